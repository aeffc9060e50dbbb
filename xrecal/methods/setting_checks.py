"""Checks of settings that several methods have."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import numpy as np

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.rows import is_whole

HalfLife: TypeAlias = Literal["cv"] | float | datetime.timedelta | np.timedelta64 | None
"""A length of time, in days if a number."""


def is_positive(value: object) -> bool:
    """Whether a setting is a positive, finite number."""
    number = isinstance(value, (float, np.floating)) or is_whole(value)
    return number and 0 < value < np.inf  # type: ignore[operator]


def _without_lists(settings: object) -> str:
    """Make tuples, in place, of settings that are lists; the name of the method."""
    for name, value in list(vars(settings).items()):
        if isinstance(value, list):
            object.__setattr__(settings, name, tuple(value))
    return type(settings).__name__


def check_names(settings: Any) -> None:
    """Raise ValueError unless ``condition_on`` names covariates; make lists tuples."""
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
    """Raise ValueError unless ``bounds`` are "auto", None or a pair; make lists tuples."""
    method, bounds = _without_lists(settings), settings.bounds
    if bounds is None or (isinstance(bounds, str) and bounds == "auto"):
        return
    pair = isinstance(bounds, tuple) and len(bounds) == 2
    if isinstance(bounds, tuple) and pair:
        lower = -np.inf if bounds[0] is None else bounds[0]
        upper = np.inf if bounds[1] is None else bounds[1]
        pair = all(isinstance(b, (int, float, np.number)) for b in (lower, upper)) and lower < upper
    if not pair:
        raise ValueError(
            f"{method}: bounds must be 'auto', None or (lower, upper) with lower < upper, where "
            f"None stands for no bound, got {bounds!r}"
        )


def check_choices(method: str, settings: object, choices: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise ValueError for a setting that is none of its choices."""
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value not in allowed:
            raise ValueError(
                f"{method}: {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            )


def in_days(method: str, length: HalfLife) -> float | Literal["cv"] | None:
    """A half-life in days; raises ValueError unless it is positive."""
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
    """The known name that is most like another; None if none is."""
    return next(iter(get_close_matches(name, known, n=1)), None)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """End of a sentence about an unknown name: a question for the nearest one, or a full stop."""
    meant = nearest(name, known)
    return "." if meant is None else f"; did you mean {meant!r}?"
