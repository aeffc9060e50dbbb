"""Continuous distributions that are stored as members.

:class:`Tailed` is a weighted ensemble with generalised Pareto tails. :class:`Linear` is a CDF that
joins quantiles by straight lines; each quantile represents the same probability. The import of this
module is fast, because it does not load Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .forms import Empirical

Between: TypeAlias = Literal["mean", "linear"]
"""Rule for quantiles between two members. With ``"linear"``, a quantile lies on a straight line
between them. With ``"mean"``, it is the mean of the members at all levels in a small range."""


class Tailed(Empirical):
    """Members (..., n) with weights (..., n); the last 20 members may represent two tails.

    ``shape`` (..., 2) holds the shape of each tail; see :mod:`.tailed`. The mean, the standard
    deviation, the skewness and the log score follow from the members alone.
    """

    shape: FloatArray | None

    def __new__(
        cls, members: FloatArray, weights: FloatArray | None, shape: FloatArray | None = None
    ) -> Tailed:
        """Store the members, the weights and the shapes of the tails."""
        made = super().__new__(cls, members, weights)
        made.shape = shape
        return made

    @property
    def parts(self) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Members, weights, and shapes of the tails."""
        return self.members, self.weights, self.shape

    def as_members(self) -> Empirical:
        """Return the members, including those that represent tails."""
        return Empirical(self.members, self.weights)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles at levels ``q``; see :mod:`.tailed_quantiles`."""
        from .tailed_quantiles import tailed_quantile

        return tailed_quantile(q, *self.parts)

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return the probabilities of values above the thresholds."""
        from .tailed import answers, fill_exceedance

        return answers(fill_exceedance, self.parts, thresholds, new=np.shape(thresholds)[-1:])

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS of each forecast, from a formula."""
        return self.threshold_weighted_crps(observations, -np.inf, np.inf)

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS of each forecast between two thresholds, from a formula."""
        from xrecal.arrays.scores.crps import thresholds_of

        from .tailed import answers, fill_crps

        ends = thresholds_of(observations, lower, upper)
        return answers(fill_crps, self.parts, observations, *ends)

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; within a jump of the CDF, ``uniform`` sets the position."""
        from .tailed import answers, fill_pit

        return answers(fill_pit, self.parts, observations, uniform)


class Linear(Empirical):
    """Quantiles (..., n) of equal mass; straight lines join them to a CDF.

    At each quantile, the CDF is the mass of all smaller quantiles plus half of the mass of this
    quantile. At the smallest quantile and at the largest quantile, the CDF jumps by half of the
    mass of this quantile. It also jumps where quantiles are equal.
    """

    def as_members(self) -> Empirical:
        """Return the quantiles as members."""
        return Empirical(self.members, self.weights)

    def _line(self) -> tuple[FloatArray, FloatArray]:
        """Return ascending quantiles and levels (..., n); all NaN if one quantile is missing."""
        assert self.weights is not None
        mass = np.asarray(self.weights, np.float64)
        x = np.broadcast_to(np.asarray(self.members, np.float64), mass.shape)
        order = np.argsort(x, axis=-1)
        x, mass = (np.take_along_axis(a, order, axis=-1) for a in (x, mass))
        unknown = np.isnan(x + mass).any(-1, keepdims=True)
        level = (np.cumsum(mass, axis=-1) - mass / 2) / mass.sum(-1, keepdims=True)
        return np.where(unknown, np.nan, x), np.where(unknown, np.nan, level)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles at levels ``q``, interpolated between the stored quantiles."""
        from .weighted import check_levels

        levels = check_levels(q)
        x, at = self._line()
        rows = zip(at.reshape(-1, at.shape[-1]), x.reshape(-1, x.shape[-1]), strict=True)
        found = np.array([np.interp(levels, *row) for row in rows])
        return found.reshape(*x.shape[:-1], levels.size)

    def _up_to(self, values: FloatArray, *, strictly: bool = False) -> FloatArray:
        """Return ``P(Y <= z)`` for values z (..., k), or ``P(Y < z)`` if ``strictly``."""
        x, at = (a[..., np.newaxis, :] for a in self._line())
        z, n = np.asarray(values, np.float64)[..., np.newaxis], x.shape[-1]
        below = (x < z if strictly else x <= z).sum(-1, keepdims=True)
        x, at = (np.broadcast_to(a, (*below.shape[:-1], n)) for a in (x, at))
        i, j = np.maximum(below - 1, 0), np.minimum(below, n - 1)
        x0, x1 = (np.take_along_axis(x, k, -1) for k in (i, j))
        p0, p1 = (np.take_along_axis(at, k, -1) for k in (i, j))
        gap = np.where(x1 > x0, x1 - x0, 1.0)
        part = np.clip((z - x0) / gap, 0.0, 1.0)
        level = p0 + part * (p1 - p0)
        level = np.where(below == 0, 0.0, np.where(below == n, 1.0, level))
        unknown = np.isnan(x[..., :1]) | np.isnan(z)
        return np.where(unknown, np.nan, level)[..., 0]

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return the probabilities of values above the thresholds."""
        return 1.0 - self._up_to(thresholds)

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; within a jump of the CDF, ``uniform`` sets the position."""
        y = np.asarray(observations)[..., np.newaxis]
        below, up_to = self._up_to(y, strictly=True)[..., 0], self._up_to(y)[..., 0]
        return np.asarray(below + uniform * (up_to - below))

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS of each forecast, from a formula."""
        return self.threshold_weighted_crps(observations, -np.inf, np.inf)

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS between two thresholds, from integrals of squared straight lines."""
        from xrecal.arrays.scores.crps import thresholds_of

        x, at = self._line()
        low, high = (a[..., np.newaxis] for a in thresholds_of(observations, lower, upper))
        y = np.clip(np.asarray(observations, np.float64)[..., np.newaxis], low, high)
        one, other = x[..., :-1], x[..., 1:]
        slope = np.diff(at, axis=-1) / np.where(other > one, other - one, 1.0)
        score = np.zeros(y.shape[:-1])
        for start, end, end_level in ((low, y, 0.0), (y, high, 1.0)):
            a, b = np.clip(one, start, end), np.clip(other, start, end)
            f, g = (at[..., :-1] + slope * (ends - one) - end_level for ends in (a, b))
            score = score + ((b - a) * (f * f + f * g + g * g) / 3).sum(-1)
        first, last = np.clip(x[..., :1], low, high), np.clip(x[..., -1:], low, high)
        outside = np.maximum(first - y, 0.0) + np.maximum(y - last, 0.0)
        return np.asarray(score + outside[..., 0])


def continuous(
    ensemble: Empirical,
    between: Between,
    slots: Sequence[int] = (),
    shape: FloatArray | None = None,
) -> Empirical:
    """Return the continuous distributions of a weighted ensemble.

    If ``shape`` is given, the members at the positions ``slots`` represent tails of these shapes.
    """
    members, weights = ensemble
    assert weights is not None
    if between == "linear":
        return Linear(members, weights)
    if shape is not None:
        others = np.delete(np.arange(members.shape[-1]), slots)
        order = np.concatenate([others, np.asarray(slots)])
        members, weights = members[..., order], weights[..., order]
    return Tailed(members, weights, shape)
