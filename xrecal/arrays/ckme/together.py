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
        no place has a choice. ``losses`` and ``exponents`` are those of all places.

    Examples
    --------
    >>> each = (
    ...     Choices(0, 1.0, 0.0, 0.1, np.inf, 0.5, cases=n, losses=[0.5], exponents=[-1.0])
    ...     for n in (20, 40, 80)
    ... )
    >>> of_places = Choices.joined(each, 1)
    >>> together(of_places, [(1.0, 0.0)], ["observations"]).ridge.round(3)
    array([4.])
    """
    there = ~np.isnan(choices.ridge)
    if not there.any():
        none = Choices(SUPPORTS.index(supports[0]))
        return Choices.joined([none], len(kernels) * len(supports))
    losses, exponents = _comparable(choices)
    tried = np.isfinite(choices.losses)[there]
    logarithms = [
        middle_mean(own[use] if use.any() else own)
        for own, use in zip(exponents[there].T, tried.T, strict=True)
    ]
    one = Choices(
        ridge=float(np.median(choices.ridge[there])),
        half_life=float(np.median(choices.half_life[there])),
        cases=math.nan if np.isnan(choices.cases[there]).all() else 1.0,
        losses=losses[there].mean(0),
        exponents=np.array(logarithms),
    )
    return _best(Choices.joined([one], losses.shape[1]), kernels, supports)


def with_own(
    of_all: Choices,
    own: Choices,
    share: FloatArray,
    kernels: Sequence[tuple[float, float]],
    supports: Sequence[str],
) -> Choices:
    """Choices of L places from what all of them know and from their own evidence.

    Parameters
    ----------
    of_all : Choices
        (L,) of :func:`together` for the places of the same kind.
    own : Choices
        (L,) of the search at each place; one without a choice goes by the others.
    share : array of float, shape (L,)
        Of the own evidence: losses, and logarithms of ridges times numbers of cases, are means with
        this share and the rest.
    kernels, supports : sequence
        As in :func:`together`.

    Returns
    -------
    Choices
        (L,) of one case.
    """
    losses, exponents = _comparable(own)
    part = np.where(np.isnan(own.ridge), 0.0, share)[:, np.newaxis]
    known = np.isfinite(own.losses) & (part > 0)
    between = np.where(known, (1 - part) * of_all.exponents + part * exponents, of_all.exponents)
    both = (1 - part) * of_all.losses + part * losses
    return _best(of_all._replace(losses=both, exponents=between), kernels, supports)


def _comparable(choices: Choices) -> tuple[FloatArray, FloatArray]:
    """Losses (L, K) in units of the smallest of each place, and logarithms of ridge times cases."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _relative(choices.losses), choices.exponents + np.log10(choices.cases)[:, np.newaxis]


def _best(
    choices: Choices, kernels: Sequence[tuple[float, float]], supports: Sequence[str]
) -> Choices:
    """Choices (L,) with the kernel, support and ridge that have the smallest losses."""
    codes = np.array([SUPPORTS.index(support) for support in supports])
    losses = choices.losses.reshape(-1, len(kernels), codes.size)
    rows, best = np.arange(len(losses)), choices.losses.argmin(-1)
    g, s = np.unravel_index(best, losses.shape[1:])
    past = codes == OBSERVATIONS
    beside = np.zeros(rows.size, np.int8)
    if past.any() and not past.all():
        errors = codes[~past][losses[:, :, ~past].min(1).argmin(-1)]
        beside = np.where(past[s], errors, 0)
    of_kernel = np.array(kernels, np.float64)[g]
    return choices._replace(
        support=codes[s],
        widening=of_kernel[:, 0],
        strength=of_kernel[:, 1],
        ridge=np.where(
            np.isnan(choices.cases), choices.ridge, 10.0 ** choices.exponents[rows, best]
        ),
        beside=beside,
    )


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
