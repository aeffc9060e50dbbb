"""Choices of many places to one: what they know together of kernel, support and ridge."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xrecal.typing import FloatArray

from .centre import OBSERVATIONS, SUPPORTS
from .embedding import Choices

WORST = 2.0
"""Loss of a candidate at one place, in units of the smallest there, at most: a candidate that fails
at one place, or was not tried as it was far from the best, does not decide for all of them."""


def together(
    choices: Choices, kernels: Sequence[tuple[float, float]], supports: Sequence[str]
) -> Choices:
    """Choices of L places as one for all of them.

    Kernel and support are those with the smallest mean of the losses of places, each in units of
    its smallest one. The logarithm of the best ridge with these, times the number of cases, is the
    mean of the middle half of the places: the best ridge falls with the number of cases, and that
    product hardly. A median would jump between the candidates.

    Parameters
    ----------
    choices : Choices
        (L,) of a search with these kernels and supports. Those of places without a choice are left
        out.
    kernels : sequence of (float, float)
        Factor of the bandwidth and exponent of the kernel on covariates of each candidate.
    supports : sequence of str
        Of :data:`xrecal.arrays.ckme.centre.SUPPORTS`.

    Returns
    -------
    Choices
        (1,) of an equal number of cases, one: a fit divides the ridge by its own number. NaN where
        no place has a choice.

    Examples
    --------
    >>> each = (
    ...     Choices(0, 1.0, 0.0, 0.1, np.inf, 0.5, cases=n, losses=[0.5], exponents=[-1.0])
    ...     for n in (20, 40, 80)
    ... )
    >>> of_places = Choices.joined(each, 1)
    >>> together(of_places, [(1.0, 0.0)], ["observations"]).ridge
    array([4.])
    """
    codes = np.array([SUPPORTS.index(support) for support in supports])
    there = ~np.isnan(choices.ridge)
    if not there.any():
        return Choices.joined([Choices(int(codes[0]))])
    n_kernels = len(kernels)
    losses = _relative(choices.losses[there]).mean(0).reshape(n_kernels, codes.size)
    g, s = np.unravel_index(losses.argmin(), losses.shape)
    past, beside = codes == OBSERVATIONS, 0
    if past[s] and not past.all():
        beside = int(codes[~past][losses[:, ~past].min(0).argmin()])
    cases, ridge = choices.cases[there], float(np.median(choices.ridge[there]))
    given = bool(np.isnan(cases).all())
    if not given:
        exponent = choices.exponents[there].reshape(-1, n_kernels, codes.size)[:, g, s]
        ridge = 10.0 ** middle_mean(exponent + np.log10(cases))
    one = Choices(
        support=int(codes[s]),
        widening=kernels[g][0],
        strength=kernels[g][1],
        ridge=ridge,
        half_life=float(np.median(choices.half_life[there])),
        beside=beside,
        cases=math.nan if given else 1.0,
    )
    return Choices.joined([one])


def middle_mean(values: FloatArray) -> float:
    """Mean of the middle half of some values (n,), of those at its ends in part."""
    n = values.size
    return float(np.sort(np.repeat(values, 4))[n : 3 * n].mean())


def _relative(losses: FloatArray) -> FloatArray:
    """Losses (L, K) in units of the smallest of each place, 1 where a place has none."""
    smallest = np.where(np.isfinite(losses), losses, np.inf).min(-1, keepdims=True, initial=np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = losses / smallest
    known = np.isfinite(smallest) & (smallest > 0)
    return np.where(known, np.minimum(np.nan_to_num(relative, nan=WORST), WORST), 1.0)
