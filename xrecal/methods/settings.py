"""Settings of methods: their display, common checks, and suggestions for misspelt names."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.rows import is_whole

from .base import Bounds, Method, is_method
from .settings_html import settings_html

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


F = TypeVar("F", bound=Callable[..., Any])


def once(function: F) -> F:
    """Add a cache to a function, so that it computes its result for equal settings only once."""
    return cast(F, wraps(function)(lru_cache(maxsize=64)(function)))


@dataclass(frozen=True, repr=False)
class Settings(Method):
    """Base of methods that users choose.

    ``repr`` shows only the settings of a method that differ from the default; a notebook shows all
    settings.

    Parameters
    ----------
    exchangeable : bool
        A setting of every method. True: members have no names, and their order has no meaning.
        False: each member is a forecast model with a name, which is its label along the member
        dimension. The fit then gives a weight and an offset to each of these models. The fit learns
        the weights from all places together, or from the places that ``choose`` joins. The weights
        are not negative. A ridge penalises unequal weights, and so draws them towards equal
        weights. The offset of a model is its bias minus the bias of the weighted mean. The fit
        subtracts the offsets from the members. The method then gets ensembles of these members and
        weights. If a model is missing on a day, the other models share its weight. xrecal finds
        each model by its label. ``update`` does not change weights and offsets.
    """

    exchangeable: bool = field(default=True, kw_only=True)

    settles_covariates: ClassVar[bool] = False
    """True if ``condition_on=None`` lets the dates of cases decide on covariates, and
    ``condition_on=()`` means no covariates."""

    has_own_bounds: ClassVar[bool] = False
    """True if a pool has bounds of its own, in addition to the bounds of its methods."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Make the settings; for an unknown name, raise TypeError with all known names."""
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
        if not isinstance(self.exchangeable, bool):
            name = type(self).__name__
            raise ValueError(
                f"{name}: exchangeable must be True or False, got {self.exchangeable!r}"
            )
        if "bounds" in vars(self):
            check_bounds(self)
        if self.condition_on != () or not self.settles_covariates:
            check_names(self)

    def with_bounds(self, bounds: Bounds) -> Self:
        """Return the settings with ``bounds`` in place of "auto", also in the methods of a pool."""
        changes: dict[str, Any] = {}
        if (methods := getattr(self, "methods", None)) is not None:
            changes["methods"] = tuple(
                m.with_bounds(bounds) if isinstance(m, Settings) else m for m in methods
            )
        if vars(self).get("bounds") == "auto" and (methods is None or self.has_own_bounds):
            changes["bounds"] = bounds
        return replace(self, **changes) if changes else self

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in changed(self).items()]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _repr_html_(self) -> str:
        return settings_html(self)


def settings_of(kind: type) -> tuple[str, ...]:
    """Return the names of the settings of a class, with settings of all methods at the end."""
    every = fields(cast("type[DataclassInstance]", kind))
    return tuple(f.name for f in sorted(every, key=lambda f: f.kw_only is True))


def changed(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from the default, with their values."""
    defaults = {f.name: f.default for f in fields(cast("DataclassInstance", settings))}
    values = {name: getattr(settings, name) for name in settings_of(type(settings))}
    return {name: value for name, value in values.items() if value != defaults[name]}


def kinds_with(name: str) -> list[type[Settings]]:
    """Return the classes of this package that have a setting of this name."""
    owners: list[type[Settings]] = []
    kinds = Settings.__subclasses__()
    for kind in kinds:  # subclasses are appended during the loop
        kinds += kind.__subclasses__()
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and is_dataclass(kind) and name in settings_of(kind):
            owners.append(kind)
    return sorted(owners, key=lambda kind: kind.__name__)


def check_methods(pool: str, methods: Any) -> tuple[Method, ...]:
    """Return the methods of a pool as a tuple.

    Raises TypeError if ``methods`` is a single method or not iterable, and ValueError if one of the
    values is not allowed in a pool.
    """
    if is_method(methods) or not isinstance(methods, Iterable):
        raise TypeError(f"{pool}: methods must be a tuple of methods; write ({methods!r}, ...)")
    given = tuple(methods)
    classes = [m for m in given if isinstance(m, type)]
    if classes:
        raise ValueError(f"{pool}: write {classes[0].__name__}() instead of {classes[0].__name__}")
    wrong = [m for m in given if not is_method(m) or m.mixed]
    if not given or wrong:
        raise ValueError(
            f"{pool}: methods must be a tuple of one or more methods such as (xrecal.CKME(), "
            f"xrecal.EMOS()), none of them a pool, got {given!r:.200}"
        )
    named = [type(m).__name__ for m in given if not m.exchangeable]
    if named:
        raise ValueError(
            f"{pool}: all methods of a pool get members with the same weights; leave exchangeable "
            f"out of {named[0]}, and write {pool}(methods, exchangeable=False)"
        )
    return given


HalfLife: TypeAlias = Literal["cv"] | float | datetime.timedelta | np.timedelta64 | None
"""Half-life of cases: a length of time, a number of days, "cv" (cross-validation chooses it), or
None (all cases have equal weights)."""


def is_positive(value: object) -> bool:
    """Return whether a setting is a positive, finite number."""
    number = isinstance(value, (float, np.floating)) or is_whole(value)
    return number and 0 < value < np.inf  # type: ignore[operator]


def _without_lists(settings: object) -> str:
    """Replace lists among the settings by tuples, in place; return the name of the method."""
    for name, value in list(vars(settings).items()):
        if isinstance(value, list):
            object.__setattr__(settings, name, tuple(value))
    return type(settings).__name__


def check_names(settings: Any) -> None:
    """Raise ValueError unless ``condition_on`` is None or names different covariates.

    The function also replaces lists among the settings by tuples.
    """
    method, condition_on = _without_lists(settings), settings.condition_on
    names = condition_on if isinstance(condition_on, tuple) else (condition_on,)
    named = bool(names) and all(isinstance(n, str) and n for n in names)
    if condition_on is not None and not named:
        raise ValueError(
            Advice(
                f"{method}: ",
                Typed("condition_on"),
                " must be 'season', the name of a covariate or a tuple of names, "
                f"got {condition_on!r}",
            )
        )
    if len(set(names)) < len(names):
        twice = f" names a covariate twice: {condition_on!r}"
        raise ValueError(Advice(f"{method}: ", Typed("condition_on"), twice))


def check_bounds(settings: Any) -> None:
    """Raise ValueError unless ``bounds`` is "auto", None or a pair of bounds.

    The function also replaces lists among the settings by tuples.
    """
    method, bounds = _without_lists(settings), settings.bounds
    if bounds is None or (isinstance(bounds, str) and bounds == "auto"):
        return
    pair = isinstance(bounds, tuple) and len(bounds) == 2
    if isinstance(bounds, tuple) and pair:
        is_open = [b is None or (isinstance(b, str) and b == "auto") for b in bounds]
        lower = -np.inf if is_open[0] else bounds[0]
        upper = np.inf if is_open[1] else bounds[1]
        pair = all(isinstance(b, (int, float, np.number)) for b in (lower, upper)) and lower < upper
    if not pair:
        raise ValueError(
            f"{method}: bounds must be 'auto', None or (lower, upper) with lower < upper, where "
            f"None means no bound and 'auto' means that the fit finds the bound, got {bounds!r}"
        )


def check_choices(method: str, settings: object, choices: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise ValueError if a setting in ``choices`` does not have one of its allowed values."""
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value not in allowed:
            raise ValueError(
                f"{method}: {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            )


def in_days(method: str, length: HalfLife) -> float | Literal["cv"] | None:
    """Return a half-life in days, or "cv" or None; raise ValueError unless it is positive."""
    if length is None or (isinstance(length, str) and length == "cv"):
        return length
    days: object = length
    if isinstance(length, datetime.timedelta):
        days = length / datetime.timedelta(days=1)
    elif isinstance(length, np.timedelta64):
        days = float(length / np.timedelta64(1, "D"))
    if not is_positive(days):
        raise ValueError(
            f"{method}: half_life must be a positive timedelta or number of days, 'cv' or None, "
            f"got {length!r}"
        )
    return float(days)  # type: ignore[arg-type]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is most similar to ``name``; None if no name is similar."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.7)), None)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name, with the most similar known name.

    The end is a question such as "did you mean 'ridge'?", or a full stop if no known name is
    similar.
    """
    meant = nearest(name, known)
    return "." if meant is None else f"; did you mean {meant!r}?"
