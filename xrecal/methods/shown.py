"""Settings as text, in a notebook, and misspelt ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Shown:
    """Part of settings whose text tells those that are not the default, and a notebook all."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Say which settings there are where one is not known; Python's own message does not."""
        known = settings_of(cls)
        for name in given:
            if name not in known:
                others = [kind.__name__ for kind in kinds_with(name)]
                told = f", which {' and '.join(others)} {'have' if others[1:] else 'has'}"
                raise TypeError(
                    f"{cls.__name__} has no setting {name!r}{told if others else ''}"
                    f"{did_you_mean(name, known)} Its settings: {', '.join(known) or 'none'}"
                )
        return super().__new__(cls)

    def __repr__(self) -> str:
        told = [f"{name}={value!r}" for name, value in changed(self).items()]
        return f"{type(self).__name__}({', '.join(told)})"

    def _repr_html_(self) -> str:
        from .settings_html import settings_html

        return settings_html(self)


def settings_of(kind: type) -> tuple[str, ...]:
    """Names of the settings of a class."""
    return tuple(field.name for field in fields(cast("type[DataclassInstance]", kind)))


def changed(settings: Shown) -> dict[str, Any]:
    """Settings that are not the default."""
    known = fields(cast("DataclassInstance", settings))
    values = {field.name: getattr(settings, field.name) for field in known}
    return {field.name: v for field in known if (v := values[field.name]) != field.default}


def kinds_with(name: str) -> list[type[Shown]]:
    """Classes of settings of this package that have one of this name."""
    found: list[type[Shown]] = []
    more = Shown.__subclasses__()
    while more:
        kind = more.pop(0)
        more += kind.__subclasses__()
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and is_dataclass(kind) and name in settings_of(kind):
            found.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that is most like another; None if none is."""
    found = get_close_matches(name, known, n=1)
    return found[0] if found else None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A question for the nearest name, to go on with after what is not known."""
    found = nearest(name, known)
    return "." if found is None else f"; did you mean {found!r}?"
