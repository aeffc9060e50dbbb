"""Members and weights of new forecasts at many locations; see :mod:`xrecal.arrays.ckme.weights`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from xrecal.arrays.ckme.embedding import (
    FittedCKME,
    Settings,
    calibration_of,
    check_choice,
    check_forecasts,
    lives_of,
)
from xrecal.arrays.ckme.learned import SMALL_RIDGE, error_size
from xrecal.arrays.ckme.simplex import PROJECTIONS
from xrecal.arrays.ckme.weights import Compared
from xrecal.arrays.dispatch import namespace, only_on_host, to_host
from xrecal.arrays.distributions.ensemble_size import (
    excess_of,
    inverse_sizes,
    narrowing,
    on_footing,
    past_of,
)
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.kernel import check_kernel, no_features
from xrecal.typing import FloatArray

from .cases import (
    Cases,
    blocks,
    cases_of,
    middle_of,
    moments_of,
    refuse_others,
    similarity,
    take_block,
    valid,
)
from .centre import Bounds, centres_of, errors_of, inside, members_of
from .ensembles import across, arrange, mean_apart
from .simplex import simplex_rows
from .stacked import linear

__all__ = ["ckme_novelty", "ckme_weights", "ckme_weights_of_both"]

ROWS = 1024
"""Number of new forecasts per location that are computed at once; it limits the memory."""


BOTH = "members", "weights", "observed", "novelty"
"""Names of the arrays that :func:`ckme_weights_of_both` returns."""


def ckme_weights(
    *given: Any, own_members: bool = False, return_novelty: bool = False, **how: Any
) -> tuple[Any, ...]:
    """Compute weights on a device; see :func:`xrecal.arrays.ckme_weights`."""
    names = ("members",) * own_members + ("weights",) + ("novelty",) * return_novelty
    found = _issue(names, *given, **how)
    observations = given[2] if len(given) > 2 else how["observations"]
    return (() if own_members else (observations,)) + found


def ckme_weights_of_both(*given: Any, **how: Any) -> tuple[Any, ...]:
    """Compute weights on a device; see :func:`xrecal.arrays.ckme_weights_of_both`."""
    return _issue(BOTH, *given, **how)


def ckme_novelty(*given: Any, **how: Any) -> Any:
    """Compute the novelty on a device; see :func:`xrecal.arrays.ckme_novelty`."""
    return _issue(("novelty",), *given, **how)[0]


def _issue(
    names: tuple[str, ...],
    forecasts: Forecasts,
    cases: Forecasts,
    observations: Any,
    fitted: FittedCKME,
    projection: str = "euclidean",
    **compared: Any,
) -> tuple[Any, ...]:
    """Compute the arrays (L, T, ...) that ``names`` lists, in blocks of locations and forecasts."""
    check_choice("projection", projection, PROJECTIONS)
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    how, xp = Compared(**compared), namespace(observations)
    check_kernel(how.kernel)
    fits = FittedCKME(*map(to_host, fitted))
    if how.across is not None or (fits.landmark >= 0).any():
        raise TypeError(only_on_host("a forecast from known distances or from landmarks"))
    settings = Settings(how.kernel, projection=projection, shapes=how.shapes)
    given = calibration_of(
        cases, observations, features=how.features, days=how.days, squared=how.squared
    )
    refuse_others(given, settings)
    issued = {}
    for name in names:
        shape = (n_locations, n_new) if name == "novelty" else (n_locations, n_new, n)
        dtype = np.float64 if name == "novelty" else forecasts.loc.dtype
        issued[name] = xp.full(shape, np.nan, dtype=dtype)
    features = how.new_features or no_features(n_locations, n_new, xp)
    lives = lives_of(fits.half_life)
    for block in blocks(n_locations, 8 * n * (4 * n + 10 * min(n_new, ROWS))):
        past, _ = cases_of(given, settings, lives[block], block)
        of_block = FittedCKME._make(part[block] for part in fits)
        learned = _Learned(past, of_block, names == BOTH, to_host(inverse_sizes(cases))[block])
        for first in range(0, n_new, ROWS):
            rows = slice(first, first + ROWS)
            of = features.values[block, rows, :].astype(np.float64)
            new = _New(take_block(forecasts, block, rows), of, how.shapes, learned)
            for name, array in issued.items():
                array[block, rows, ...] = getattr(learned, name)(new).astype(array.dtype)
    return tuple(issued.values())


class _New:
    """Some new forecasts (L, q), with their similarities to the past cases."""

    def __init__(self, forecasts: Forecasts, features: Any, shapes: bool, of: _Learned) -> None:
        xp, cases = namespace(features), of.cases
        sound = valid(forecasts)[0]
        loc = xp.where(sound[..., None], forecasts.loc.astype(np.float64), float("nan"))
        ensembles = arrange(loc, forecasts.weights)
        self.mean, self.variance = moments_of(ensembles)
        sizes = inverse_sizes(forecasts)
        self.excess = excess_of(xp.asarray(of.past.inverse_size)[:, None], sizes)
        self.variance, self.noise = on_footing(self.variance, sizes, of.past)
        self.features = features
        if shapes:
            ensembles = arrange(loc - self.mean[..., None], forecasts.weights)
        squared = across(ensembles, cases.ensembles)
        wider = xp.where(sound, self.excess * mean_apart(ensembles), 0.0)
        squared = xp.maximum(squared + wider[..., None], 0.0)
        self.differs = squared[..., 0] > 0.0  # distance from the first case
        self.missing = ~sound | xp.isnan(features).any(axis=-1) | xp.isnan(of.ridge)[:, None]
        squared = xp.where(cases.used[:, None, :], squared, 0.0)
        kernel = similarity(cases, squared, features, cases.features, *of.kernel)
        self.similarity = xp.where(self.missing[..., None], float("nan"), kernel * of.root)


class _Learned:
    """Cases of L locations, and the CKME fitted to them."""

    def __init__(
        self, cases: Cases, fitted: FittedCKME, both: bool, inverse_sizes: FloatArray
    ) -> None:
        xp = namespace(cases.target)
        self.cases, self.fitted, self.bounds = cases, fitted, Bounds(fitted.lower, fitted.upper)
        self.kernel = xp.asarray(fitted.bandwidth), xp.asarray(fitted.strength)
        self.root, self.ridge = cases.root[:, None, :], xp.asarray(fitted.ridge)
        in_order = np.take_along_axis(inverse_sizes, cases.slot, axis=-1)
        used, variance = to_host(cases.used), to_host(cases.variance)
        self.past = past_of(*(np.where(used, part, np.nan) for part in (in_order, variance)))
        self._of_members = fitted.of_errors() if both else fitted
        self._gram, self._eye = cases.gram(*self.kernel), xp.eye(cases.slot.shape[1])

    def _inverse_with(self, ridge: Any) -> Any:
        """Compute the inverse (L, n, n) of the kernel matrix plus ridge times n, by location."""
        xp = namespace(ridge)
        shift = xp.where(xp.isnan(ridge), 1.0, ridge) * xp.asarray(np.maximum(self.cases.n_used, 1))
        return linear(xp, "inv", self._gram + shift[:, None, None] * self._eye)

    @cached_property
    def _inverse(self) -> Any:
        return self._inverse_with(self.ridge)

    def weights(self, new: _New) -> Any:
        """Return weights (L, q, n) of the cases; they do not depend on the kind of members."""
        xp = namespace(new.similarity)
        signed = xp.matmul(new.similarity, self._inverse) * self.root
        share = self.root**2 / xp.sum(self.root**2, axis=-1, keepdims=True)
        signed = signed + (1.0 - xp.sum(signed, axis=-1, keepdims=True)) * share
        return self._to_slots(simplex_rows(signed, self.cases.used[:, None, :]), 0.0, new)

    def observed(self, new: _New) -> Any:
        """Return weights (L, q, n) of past observations; 0 unless these were better than errors."""
        there = (self.fitted.beside != 0).astype(np.float64)
        return self.weights(new) * namespace(self.root).asarray(there)[:, None, None]

    def members(self, new: _New) -> Any:
        """Return members (L, q, n): centres plus errors.

        If the caller wants both kinds of weights, the fit is that of :meth:`FittedCKME.of_errors`.
        """
        xp, of = namespace(new.mean), self._of_members
        centre = xp.asarray(of.centre)
        error = errors_of(self.cases, of.support, centre, self.bounds)
        own = new.mean, new.variance, new.features
        middle, spread = centres_of(of.support, centre, *own)
        pairs = zip(to_host(error), to_host(self.cases.used), strict=True)
        size = xp.asarray(np.array([error_size(one[used]) for one, used in pairs]))[:, None]
        spread = spread * narrowing(centre[:, 1:2] ** 2 * new.noise, (size * spread) ** 2)
        host = self.cases.on_host
        limits = inside(host, host.used, self.bounds)
        members = members_of(middle, spread, error, self.bounds, limits)
        return self._to_slots(members, float("nan"), new)

    @cached_property
    def _familiarity(self) -> tuple[Any, Any]:
        """Return factors (L, n) of similarities, and typical sums (L,) of signed weights.

        The novelty needs both; see ``Embedding.familiarity``.
        """
        xp, cases = namespace(self._gram), self.cases
        inverse = self._inverse_with(xp.full(self.ridge.shape, SMALL_RIDGE))
        known = xp.matmul(inverse, cases.root[:, :, None])[..., 0]
        own = xp.sum(inverse * self._eye, axis=-1)
        alone = known / xp.where(cases.used, cases.root * own, 1.0)
        alone = xp.where(cases.used, xp.clip(1.0 - alone, 0.0, 1.0), float("inf"))
        usual = middle_of(xp.sort(alone, axis=-1), xp.asarray(cases.n_used.astype(np.float64)))
        return known, xp.where(usual > SMALL_RIDGE, usual, SMALL_RIDGE)

    def novelty(self, new: _New) -> Any:
        """Return the novelty (L, q) of new forecasts.

        If the forecasts of all cases are equal, any other forecast has the novelty 1.
        """
        xp, (known, usual) = namespace(new.similarity), self._familiarity
        share = xp.matmul(new.similarity, known[:, :, None])[..., 0] / usual[:, None]
        found = 1.0 - xp.clip(share, 0.0, 1.0)
        alike = xp.isinf(self.kernel[0])[:, None] & new.differs & ~new.missing
        return xp.where(alike, 1.0, found)

    def _to_slots(self, values: Any, unused: float, new: _New) -> Any:
        """Put values (L, q, n) of sorted cases into the original order of the cases.

        Values are NaN for missing forecasts.
        """
        xp = namespace(values)
        values = xp.where(self.cases.used[:, None, :], values, unused)
        values = xp.where(new.missing[..., None], float("nan"), values)
        back = xp.asarray(np.argsort(self.cases.slot, axis=-1))[:, None, :]
        return xp.take_along_axis(values, xp.broadcast_to(back, values.shape), axis=-1)
