"""Arrays of cases as tasks take them: forecasts from their parts, covariates together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.inputs.forms import VECTOR
from xrecal.methods.base import Covariates
from xrecal.typing import FloatArray

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Forecasts

COVARIATE = "covariate_"
"""Prefix of covariates among the variables of the state."""

NEW_MEMBER = "new_member"
"""Dimension of the members of forecasts inside a task, where cases and results have their own."""


def is_part(name: str) -> bool:
    """Whether an array of the state holds calibration forecasts."""
    return name in ("loc", "scale", "weights") or name.startswith(VECTOR)


def forecasts_of(parts: Mapping[str, FloatArray]) -> Forecasts:
    """Forecasts (L, n, m) from their parts.

    Of vectors with the members of one variable after those of another; a member that one of them
    misses is missing in all.
    """
    from xrecal.arrays.distributions.forms import Forecasts

    names = [name for name in parts if name.startswith(VECTOR)]
    vector = [parts[n] for n in sorted(names, key=lambda n: int(n.removeprefix(VECTOR)))]
    if not vector:
        return Forecasts(**parts)
    missing = np.isnan(vector).any(0)
    whole = [np.where(missing, np.nan, members) for members in vector]
    return Forecasts(np.concatenate(whole, axis=-1), None, parts.get("weights"))


def covariates_of(
    values: Sequence[FloatArray], periods: Mapping[str, float | None], like: FloatArray
) -> Covariates:
    """Covariates (L, n) each, together; of the shape and library of an array where none."""
    xp = namespace(like)
    stacked = np.stack(values, axis=-1) if values else xp.zeros((*like.shape, 0))
    return Covariates(stacked, tuple(periods), tuple(periods.values()))
