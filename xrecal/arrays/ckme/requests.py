"""What a search asks for, and what it is told: by compiled code, or by array expressions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from xrecal.typing import FloatArray, IntArray

TO_TRY, TO_COMPARE, LATER = range(3)
"""Sets of folds: to try ridges by, to compare what is nearly best by, and of later cases forecast
from earlier ones."""

TRYING, COMPARING, CLOSER, RECORDING, DOUBTING, REFINING, REPRESENTING, CENTRING = range(8)
"""Phases of a fit. Locations that are searched together wait for each other at each of them."""

FIRST, THEN = range(2)
"""Directions in which ridges are tried: up and then down, or down and then up."""

Stage: TypeAlias = tuple[int, int, int]
"""Phase of a request, place of the kernel or support in it, and direction.

Of locations that are searched together, those at the smallest stage go on first."""


class Losses(NamedTuple):
    """Request for the losses of some supports with one kernel and ridge: :class:`HeldOut`."""

    stage: Stage
    kernel: int
    exponent: float
    supports: IntArray
    folds: int
    slack: float
    by_fold: bool = False
    """True if those of each fold are asked for too"""


class Reaches(NamedTuple):
    """Request whether landmarks represent all cases as well as a ridge needs: bool."""

    stage: Stage
    kernel: int
    exponent: float


class Landmarks(NamedTuple):
    """Request for the cases that represent all others in forecasts: sequence of int."""

    stage: Stage
    kernel: int
    exponent: float


class Centre(NamedTuple):
    """Request for the coefficients of the centre of a support, fitted to all cases: (c,)."""

    stage: Stage
    support: int
    conditioned: bool
    """True if it depends on the covariates"""


class HeldOut(NamedTuple):
    """Answer about held-out forecasts."""

    losses: FloatArray
    """(S,) mean losses; entries of supports that were not asked for have no meaning"""
    recorded: FloatArray | None = None
    """(S, n, width) what was recorded of the cases, where that is wanted"""
    of_folds: FloatArray | None = None
    """(F, S) mean losses of each fold, where they are asked for"""


T = TypeVar("T")
Request: TypeAlias = Losses | Reaches | Landmarks | Centre
Steps: TypeAlias = Generator[Request, Any, T]
"""Steps of a search, which ask for something each and end with a result."""
