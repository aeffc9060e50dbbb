"""Settings that users type: their text, the checks that all share, and names misspelt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from .base import Method, is_method
from .setting_checks import check_bounds, check_names, did_you_mean
from .settings_html import settings_html

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


F = TypeVar("F", bound=Callable[..., Any])


def once(function: F) -> F:
    """What equal settings have computed already, such as each forecast of a pool asks for."""
    return cast(F, wraps(function)(lru_cache(maxsize=64)(function)))


class Settings(Method):
    """Base of methods that users choose.

    Their text has the settings that are not the default; a notebook shows all.
    """

    settles_covariates: ClassVar[bool] = False
    """Whether it chooses covariates by the dates where none are given; ``()`` is for none then."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Say which settings there are where one is not known; Python's own message does not."""
        own = settings_of(cls)
        for name in given:
            if name not in own:
                others = [kind.__name__ for kind in kinds_with(name)]
                owners = f", which {' and '.join(others)} {'have' if others[1:] else 'has'}"
                raise TypeError(
                    f"{cls.__name__} has no setting {name!r}{owners if others else ''}"
                    f"{did_you_mean(name, own)} Its settings: {', '.join(own) or 'none'}"
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if "bounds" in vars(self):
            check_bounds(self)
        if self.condition_on != () or not self.settles_covariates:
            check_names(self)

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in changed(self).items()]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _repr_html_(self) -> str:
        return settings_html(self)


def settings_of(kind: type) -> tuple[str, ...]:
    """Names of the settings of a class."""
    return tuple(f.name for f in fields(cast("type[DataclassInstance]", kind)))


def changed(settings: Settings) -> dict[str, Any]:
    """Settings that are not the default."""
    values = ((f, getattr(settings, f.name)) for f in fields(cast("DataclassInstance", settings)))
    return {f.name: value for f, value in values if value != f.default}


def kinds_with(name: str) -> list[type[Settings]]:
    """Classes of settings of this package that have one of this name."""
    owners: list[type[Settings]] = []
    kinds = Settings.__subclasses__()
    for kind in kinds:  # which grows by the subclasses of each
        kinds += kind.__subclasses__()
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and is_dataclass(kind) and name in settings_of(kind):
            owners.append(kind)
    return sorted(owners, key=lambda kind: kind.__name__)


def check_methods(pool: str, methods: Any) -> tuple[Method, ...]:
    """The methods of a pool as a tuple; TypeError or ValueError unless they are settings."""
    if is_method(methods) or not isinstance(methods, Iterable):
        raise TypeError(f"{pool}: methods must be several; write ({methods!r}, ...)")
    given = tuple(methods)
    classes = [m for m in given if isinstance(m, type)]
    if classes:
        raise ValueError(f"{pool}: write {classes[0].__name__}() for {classes[0].__name__}")
    wrong = [m for m in given if not is_method(m) or m.mixed]
    if not given or wrong:
        raise ValueError(
            f"{pool}: methods must be one or more settings such as (xrecal.CKME(), "
            f"xrecal.EMOS()), none of them a pool, got {given!r:.200}"
        )
    return given
