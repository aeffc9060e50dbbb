"""Joint choice of kernel, support and ridge from the choices of many places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xrecal.typing import FloatArray

from .centre import OBSERVATIONS, SUPPORTS
from .embedding import Choices
from .ridge_rules import GRID, GRID_STEP

WORST = 2.0
"""Largest loss at one place, in units of the smallest loss at this place. Without this limit, one
place could decide for all places, if a kernel, support or ridge failed or was not tried there."""

SLACK = 0.5
"""With n cases, the joint ridge is the largest ridge that raises the loss by at most ``SLACK / n``
of the smallest loss. All places have the same weather, so losses from few cases are uncertain even
with many places. With few cases, the ridge with the smallest loss would fit the noise of the
losses. A CKME in a pool has no slack, because other components of the pool make up for a wrong
ridge."""


def together(
    choices: Choices,
    kernels: Sequence[tuple[float, float]],
    supports: Sequence[str],
    slack: float = SLACK,
) -> Choices:
    """Make one joint choice from the choices of L places.

    The joint kernel and support have the smallest mean loss over places; each loss is in units of
    the smallest loss of its place. The ridge is the largest ridge whose mean loss is nearly the
    smallest; see :data:`SLACK`. The best ridge falls with the number of cases, but the product of
    ridge and number of cases hardly changes. So, between two places, the function compares ridges
    with the same product of ridge and number of cases. It interpolates losses between ridges of the
    grid, so that the result does not jump from one grid point to the next.

    Parameters
    ----------
    choices : Choices
        (L,) choices of a search with these kernels and supports. The function ignores places
        without a choice.
    kernels : sequence of (float, float)
        For each candidate kernel, factor of the bandwidth, and strength of the covariates.
    supports : sequence of str
        Names from :data:`xrecal.arrays.ckme.centre.SUPPORTS`.
    slack : float, at least 0
        With n cases, a larger ridge may raise the loss by ``slack / n`` of the smallest loss.

    Returns
    -------
    Choices
        Joint choice (1,). Its ridge is for the geometric mean of the number of cases over places.
        The ridge is NaN if no place has a choice. ``losses`` are the mean losses over places.

    Examples
    --------
    >>> curve = 1 + (GRID + 1.5) ** 2
    >>> each = (Choices(0, 1.0, 0.0, 0.1, np.inf, 1.0, cases=50, losses=curve) for _ in range(3))
    >>> one = together(Choices.joined(each, GRID.size), [(1.0, 0.0)], ["observations"])
    >>> np.log10(one.ridge).round(3)  # -1.5 and the root of 0.01
    array([-1.4])
    """
    there = ~np.isnan(choices.ridge)
    if not there.any():
        none = Choices(SUPPORTS.index(supports[0]))
        return Choices.joined([none], len(kernels) * len(supports) * GRID.size)
    known = Choices(*(a[there] for a in choices))
    cases = 10.0 ** np.log10(known.cases).mean()
    one = Choices(
        ridge=float(np.median(known.ridge)),
        half_life=float(np.median(known.half_life)),
        cases=float(cases),
        losses=_comparable(known, cases).mean(0),
    )
    return _best(Choices.joined([one], known.losses.shape[1]), kernels, supports, slack)


def with_own(
    of_all: Choices,
    own: Choices,
    share: FloatArray,
    kernels: Sequence[tuple[float, float]],
    supports: Sequence[str],
    slack: float = SLACK,
) -> Choices:
    """Return choices of L places from the joint losses and the losses of each place.

    Parameters
    ----------
    of_all : Choices
        (L,) results of :func:`together` for the places of the same kind.
    own : Choices
        (L,) results of the search at each place; a place without a choice takes the joint choice.
    share : array of float, shape (L,)
        Weight of the losses of the place itself; the joint losses get one minus this weight.
    kernels, supports, slack
        As in :func:`together`.

    Returns
    -------
    Choices
        Choices (L,); their ridges are for the number of cases of the joint choice.
    """
    part = np.where(np.isnan(own.ridge), 0.0, share)[:, np.newaxis]
    both = (1 - part) * of_all.losses + part * _comparable(own, of_all.cases)
    return _best(of_all._replace(losses=both), kernels, supports, slack)


def _comparable(choices: Choices, cases: FloatArray | float) -> FloatArray:
    """Return losses (L, G S R) of places as if each place had ``cases`` cases.

    Losses are in units of the smallest loss of the place. The function moves the losses of a place
    along the grid of ridges, to ridges with the same product of ridge and number of cases.
    """
    losses = choices.losses.reshape(len(choices.losses), -1, GRID.size)
    filled = _continued(_continued(losses)[..., ::-1])[..., ::-1]
    smallest = np.where(np.isfinite(filled), filled, np.inf).min((1, 2), keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.minimum(np.nan_to_num(filled / smallest, nan=WORST), WORST)
        apart = np.nan_to_num(np.log10(cases / choices.cases)) / GRID_STEP
    relative = np.where(np.isfinite(smallest) & (smallest > 0), relative, 1.0)
    at = np.clip(np.arange(GRID.size) + apart[:, np.newaxis], 0, GRID.size - 1)[:, np.newaxis]
    low = np.minimum(at.astype(np.intp), GRID.size - 2)
    below, above = (np.take_along_axis(relative, low + k, axis=-1) for k in (0, 1))
    shifted: FloatArray = below + (at - low) * (above - below)
    return shifted.reshape(choices.losses.shape)


def _continued(losses: FloatArray) -> FloatArray:
    """Fill unknown losses (..., R) that follow known losses.

    If known losses rise, the new losses rise by the same steps; otherwise they are constant.
    """
    losses = np.where(np.isfinite(losses), losses, np.nan)
    for r in range(1, losses.shape[-1]):
        last = losses[..., r - 1]
        rise = last - losses[..., r - 2] if r > 1 else np.zeros(last.shape)
        ahead = last + np.fmax(rise, 0.0)
        losses[..., r] = np.where(np.isnan(losses[..., r]), ahead, losses[..., r])
    return losses


def _best(
    choices: Choices,
    kernels: Sequence[tuple[float, float]],
    supports: Sequence[str],
    slack: float,
) -> Choices:
    """Return choices (L,): the kernel and support of smallest loss, and the ridge for these two."""
    codes = np.array([SUPPORTS.index(support) for support in supports])
    curves = choices.losses.reshape(-1, len(kernels), codes.size, GRID.size)
    allowed = np.nan_to_num(slack / choices.cases)[:, np.newaxis, np.newaxis]
    exponents, losses = _nearly_lowest(curves, allowed)
    rows = np.arange(len(losses))
    g, s = np.unravel_index(losses.reshape(rows.size, -1).argmin(-1), losses.shape[1:])
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
        ridge=np.where(np.isnan(choices.cases), choices.ridge, 10.0 ** exponents[rows, g, s]),
        beside=beside,
    )


def _nearly_lowest(curves: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each curve the largest ridge with nearly the smallest loss, and the smallest loss.

    ``curves`` (..., R) are the losses with the ridges of the grid; the function returns ridges as
    powers of ten. A parabola goes through the grid point of smallest loss and its two neighbours.
    The smallest loss is the loss at the vertex of this parabola. A loss is nearly the smallest if
    it exceeds the smallest loss by up to ``slack`` (...). Between the three grid points losses
    follow the parabola, and between all other grid points they follow straight lines.
    """
    end, slack = GRID.size - 1, slack[..., np.newaxis]
    smallest = end - curves[..., ::-1].argmin(-1, keepdims=True)
    middle = np.clip(smallest, 1, end - 1)
    below, at, above = (np.take_along_axis(curves, middle + k, axis=-1) for k in (-1, 0, 1))
    bend, slope = below - 2 * at + above, (above - below) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        vertex = np.where(bend > 0, np.clip(-slope / bend, -1, 1), smallest - middle)
        lowest = at + slope * vertex + bend / 2 * vertex**2
        near = np.where(bend > 0, vertex + np.sqrt(2 * slack / bend), np.inf)
        most = np.maximum(lowest + slack, curves.min(-1, keepdims=True))
        last = end - (curves <= most)[..., ::-1].argmax(-1, keepdims=True)
        here, ahead = (
            np.take_along_axis(curves, np.minimum(last + k, end), axis=-1) for k in (0, 1)
        )
        # If losses agree up to rounding, the quotient can be any number.
        beyond = last + np.clip(np.nan_to_num((most - here) / (ahead - here)), 0.0, 1.0)
    position = np.where(near < 1, middle + near, np.minimum(beyond, end))
    return (GRID[0] + GRID_STEP * position)[..., 0], lowest[..., 0]
