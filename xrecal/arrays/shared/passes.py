"""A shared fit in passes over chunks of cases, and the steps between the passes.

==========================  =======================================  ==========================
pass over all cases         result of each chunk                     next step with all results
==========================  =======================================  ==========================
:func:`.draw_sample`        cases with the smallest hashes           :func:`first_regression`
:func:`.place_sums_of`      sums for each place, first regression    :func:`second_regression`
:func:`.place_sums_of`      the same sums, second regression         :func:`start_laws`
:func:`law_sums_of`         sums of the laws, by part                :func:`finish`
==========================  =======================================  ==========================

Laws are distributions of errors; a part is a fold of the dates, or a piece of a fold. An engine
(:class:`Engine`) reads the chunks, and adds or joins their results in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from xrecal.arrays.distributions.ensemble_size import inverse_sizes, past_of
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.typing import FloatArray, IntArray

from .cells import NothingToLearnError
from .coordinates import Coordinates
from .folds import FOLDS, Folds, whole_folds
from .law import RIDGES, SharedLaw, ridge_losses, solve_sums
from .network import (
    Basis,
    Cases,
    Network,
    Standards,
    basis_from,
    place_sums_of,
    with_record,
    without_record,
)
from .places import (
    NUMBER,
    SUMS,
    Corrections,
    Places,
    fit_places,
    without_places,
)
from .regression import Pooled, fit_pooled
from .samples import Sample, draw_sample, join_samples
from .sums import Sums, all_of, no_cases, sum_cases

FEWEST_LANDMARKS, MOST_LANDMARKS = 50, 1000

WITH_RECORD, WITHOUT_RECORD = LAWS = 0, 1
"""Index of the law for places with a record, of the law for other places, and both indices."""


def landmarks_for(n_cases: int) -> int:
    """Return the largest number of landmarks: a tenth of the number of cases, within limits."""
    return int(min(max(n_cases // 10, FEWEST_LANDMARKS), MOST_LANDMARKS, max(n_cases, 1)))


def first_regression(sample: Sample) -> Pooled:
    """Fit one regression to a sample of the cases of all places; see :func:`.fit_pooled`."""
    if not sample.draws.size:
        raise NothingToLearnError("there are no cases")
    return fit_pooled(*sample.cases.moments(), sample.cases.observations)


def second_regression(
    pooled: Pooled, sums: FloatArray, features: FloatArray, sample: Sample, folds: Folds
) -> Pooled:
    """Remove the corrections of places from the cases, and fit the regression again.

    See :func:`.without_places`.
    """
    places, _ = with_record(pooled, sums, features, folds)
    cases = sample.cases
    mean, variance = cases.moments()
    parts = (mean, variance, cases.observations)
    found = without_places(pooled, places.local, cases.place, parts)
    sizes = inverse_sizes(Forecasts(cases.members))
    size, mean_variance, spread = past_of(sizes[np.newaxis], variance[np.newaxis])
    return found._replace(
        inverse_size=size.item(),
        past_variance=mean_variance.item(),
        past_variation=spread.item(),
    )


class Centred(NamedTuple):
    """Corrections of the regression at each place; the laws describe the errors that remain."""

    places: Places
    sums: FloatArray
    """(8, P) sums over all cases of each place"""
    standards: tuple[Standards, Standards]
    """Corrections for places with records, and corrections as if no place had a record"""


class Started(NamedTuple):
    """Results of all steps before the last pass, which computes the sums for the laws."""

    centred: Centred
    bases: tuple[Basis, Basis]
    seen: FloatArray
    """(2 + q, 2) smallest and largest value of each quantity in the sample. The quantities are the
    ensemble mean, the standard deviation of the ensemble, and q covariates"""


def centre_places(pooled: Pooled, sums: FloatArray, features: FloatArray, folds: Folds) -> Centred:
    """Compute the corrections of each place.

    Parameters
    ----------
    pooled : Pooled
        The common regression of all places.
    sums : array of float, shape (G, 8, P)
        Result of :func:`.network.place_sums_of` for all cases.
    features : array of float, shape (P, k)
        Features of the places.
    folds : Folds
        Folds of the dates, made of G parts.

    Returns
    -------
    Centred

    Raises
    ------
    ValueError
        If no place has two cases.
    """
    places, known = with_record(pooled, sums, features, folds)
    fold = np.arange(features.shape[0]) % min(FOLDS, features.shape[0])
    new = without_record(pooled, sums, features, places, fold)
    return Centred(places, sums.sum(0), (known, new))


def basis_of(centred: Centred, sample: Sample, max_rank: int, law: int) -> Basis:
    """Return the basis of a law: grid, coordinates and at most ``max_rank`` landmarks.

    Raises ValueError if the sample has no usable case.
    """
    return basis_from(centred.standards[law], sample.cases, max_rank)


def start_laws(centred: Centred, sample: Sample, known: Basis, new: Basis) -> Started:
    """Return all that the last pass needs: the corrections, the bases of both laws, and ranges.

    The ranges contain the ensemble means, standard deviations and covariates of the sample.
    """
    seen = np.array([[part.min(), part.max()] for part in moments_and_covariates(sample.cases)])
    return Started(centred, (known, new), seen)


def moments_and_covariates(cases: Cases) -> list[FloatArray]:
    """Return ensemble means, standard deviations and covariates of cases, (n,) each."""
    mean, variance = cases.moments()
    return [mean, np.sqrt(variance), *cases.covariates.T]


PartSums = Mapping[tuple[int, int], Sums]
"""Sums over cases. A key holds the index of a law, and the index of a part of its folds."""


def law_sums_of(cases: Cases, date: IntArray, started: Started | None) -> PartSums:
    """Compute sums over some cases for each law and part; return no sums if ``started`` is None."""
    found: dict[tuple[int, int], Sums] = {}
    if started is None:
        return found
    for law, (standards, basis) in enumerate(
        zip(started.centred.standards, started.bases, strict=True)
    ):
        part = standards.part_of(cases)
        placed, errors = basis.placed(standards, cases)
        for g in np.unique(part):
            here = part == g
            given = placed[here], errors[here], cases.weight[here]
            found[law, int(g)] = sum_cases(basis.landmarks, basis.grid, *given)
    return found


def join_sums(one: PartSums, other: PartSums) -> PartSums:
    """Add the sums over two sets of cases."""
    joined = dict(one)
    for key, sums in other.items():
        joined[key] = joined[key].plus(sums) if key in joined else sums
    return joined


class Shared(NamedTuple):
    """One fit for many places: numbers that forecasts use, and sums to which updates add cases."""

    pooled: Pooled
    places: Places
    features: FloatArray
    """(P, k) features of P places"""
    at_fit: tuple[Corrections, Corrections]
    """Corrections at the time of the fit: from the records of the places, and from features alone.
    The sums of the laws use errors around these corrections, even after updates have changed
    ``places``."""
    coordinates: tuple[Coordinates, Coordinates]
    laws: tuple[SharedLaw, SharedLaw]
    sums: tuple[Sums, Sums]
    """Sums over all cases"""
    place_sums: FloatArray
    """(8, P) sums over all cases of each place"""
    seen: FloatArray
    """(2 + q, 2) ranges as in :class:`Started`"""

    def network(self, law: int, at: tuple[Corrections, FloatArray] | None = None) -> Network:
        """Return the :class:`.Network` of a law, at the places of the fit or at other places.

        ``at`` holds the corrections and features (P', k) of other places.
        """
        corrections, features = at or (self.places.local, self.features)
        return Network(self.pooled, corrections, features, self.coordinates[law], self.laws[law])


def sums_of_law(started: Started, sums: PartSums, law: int) -> list[Sums]:
    """Return the sums over the cases of each part of the folds of a law."""
    basis, folds = started.bases[law], started.centred.standards[law].folds
    nothing = no_cases(basis.landmarks.rank, basis.grid.size - 1)
    return [sums.get((law, g), nothing) for g in range(folds.of_part.size)]


def learn_law(
    started: Started, sums: PartSums, ridges: FloatArray, law: int
) -> tuple[SharedLaw, Sums]:
    """Learn a law with the ridge that minimises held-out loss; return also the sums of all cases.

    If fewer than two folds have cases, as in a record of one date, the function takes the largest
    ridge.
    """
    basis, folds = started.bases[law], started.centred.standards[law].folds
    parts = sums_of_law(started, sums, law)
    best = ridges.size - 1
    if ridges.size > 1 and len(folds.pairs(parts)) > 1:
        best = int(np.argmin(ridge_losses(parts, basis.grid, folds, ridges)))
    total = all_of(parts)
    return solve_sums(basis.landmarks, basis.grid, total, float(ridges[best])), total


def finish(started: Started, *learned: tuple[SharedLaw, Sums]) -> Shared:
    """Assemble the fit from both laws and their sums."""
    known, new = started.centred.standards
    at = np.arange(known.n_places)
    held_out = at if new.place_fold is None else new.place_fold * new.n_places + at
    one, other = learned
    return Shared(
        known.pooled,
        started.centred.places,
        known.features,
        (started.centred.places.local, Corrections(*(part[held_out] for part in new.corrections))),
        (started.bases[0].coordinates, started.bases[1].coordinates),
        (one[0], other[0]),
        (one[1], other[1]),
        started.centred.sums,
        started.seen,
    )


def added_sums_of(fit: Shared, cases: Cases) -> tuple[FloatArray, Sums, Sums]:
    """Compute sums over further cases: sums for the places (8, P), and sums for both laws."""
    one_part = cases._replace(part=np.zeros(cases.place.size, np.int64))
    count = fit.features.shape[0]
    of_places = place_sums_of(fit.pooled, one_part, count, 1)[0]
    laws = []
    for which in (WITH_RECORD, WITHOUT_RECORD):
        law = fit.laws[which]
        standards = Standards(
            fit.pooled, fit.at_fit[which], fit.features, count, whole_folds(1), None
        )
        basis = Basis(fit.coordinates[which], law.landmarks, law.grid)
        placed = basis.placed(standards, one_part)
        laws.append(sum_cases(law.landmarks, law.grid, *placed, cases.weight))
    return of_places, laws[0], laws[1]


def join_added(
    one: tuple[FloatArray, Sums, Sums], other: tuple[FloatArray, Sums, Sums]
) -> tuple[FloatArray, Sums, Sums]:
    """Add the sums over two sets of further cases."""
    return one[0] + other[0], one[1].plus(other[1]), one[2].plus(other[2])


def with_added(fit: Shared, added: tuple[FloatArray, Sums, Sums], fading: float = 1.0) -> Shared:
    """Add cases to a fit; grid, landmarks, ridges and variances stay the same.

    The function multiplies the weights of the previous cases by ``fading``.
    """
    return solved(with_sums(fit, added, fading))


def with_sums(fit: Shared, added: tuple[FloatArray, Sums, Sums], fading: float = 1.0) -> Shared:
    """Add cases to the sums of a fit, without changing its corrections and laws."""
    factors = np.full((len(fit.place_sums), 1), fading)
    factors[NUMBER] = 1.0
    of_places = fit.place_sums * factors + added[0]
    sums = fit.sums[0].times(fading).plus(added[1]), fit.sums[1].times(fading).plus(added[2])
    return fit._replace(place_sums=of_places, sums=sums)


def solved(fit: Shared) -> Shared:
    """Compute the corrections and laws of a fit from its sums, in O(r³ + r² J) time."""
    places = fit_places(fit.place_sums, fit.features, fit.pooled.kurtosis, fit.places.settings)
    laws = [
        solve_sums(law.landmarks, law.grid, total, law.ridge)
        for law, total in zip(fit.laws, fit.sums, strict=True)
    ]
    return fit._replace(places=places, laws=(laws[0], laws[1]))


def without_sums(fit: Shared) -> Shared:
    """Return the fit without sums.

    The result takes less memory. Updates need the sums, but forecasts do not.
    """
    empty = no_cases(0, 0)
    return fit._replace(sums=(empty, empty))


def with_places(fit: Shared, features: FloatArray) -> Shared:
    """Add places with features (P', k) and without cases to a fit.

    Later cases of the added places do not change the law of places with a record. This law uses
    errors around corrections from the records at the time of the fit. The added places had no
    record at this time.
    """
    new = fit.places.at(features)
    unknown = Corrections(*(np.full_like(part, np.nan) for part in new))
    local, known, without = (
        Corrections(*(np.concatenate(both) for both in zip(one, other, strict=True)))
        for one, other in ((fit.places.local, new), (fit.at_fit[0], unknown), (fit.at_fit[1], new))
    )
    room = (0, len(features))
    return fit._replace(
        places=fit.places._replace(local=local, odd=np.pad(fit.places.odd, room)),
        features=np.concatenate([fit.features, features]),
        at_fit=(known, without),
        place_sums=np.pad(fit.place_sums, ((0, 0), room)),
    )


class Engine(Protocol):
    """Object that runs passes over all cases, in memory or as tasks of Dask."""

    def total(self, function: Callable[..., Any], join: Callable[..., Any], *given: Any) -> Any:
        """Join the results of ``function(cases, date, *given)`` over all chunks of cases."""

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the value of ``function(*args)``."""


class Learned(NamedTuple):
    """Results of the passes over all cases, as values or as tasks of Dask."""

    fit: Any
    """:class:`Shared`, or None without usable cases"""
    sample: Any
    """:class:`.samples.Sample` of the cases"""
    started: Any
    """:class:`Started`"""
    place_sums: Any
    """(G, 8, P) eight sums over the cases of each part and place"""
    law_sums: Any
    """``PartSums``"""


def run(
    engine: Engine, features: FloatArray, folds: Folds, max_rank: int, ridges: FloatArray = RIDGES
) -> Learned:
    """Run the passes of a fit.

    Parameters
    ----------
    engine : Engine
        Engine that reads all cases.
    features : array of float, shape (P, k)
        Features of the places.
    folds : Folds
        Folds of the dates.
    max_rank : int
        Largest number of landmarks.
    ridges : array of float, shape (K,)
        Ridges to choose from.

    Returns
    -------
    Learned
    """
    size = folds.of_part.size, features.shape[0]
    sample = engine.total(draw_sample, join_samples)
    pooled = engine.once(IfAny(first_regression), sample)
    sums = engine.total(_place_sums, np.add, pooled, *size)
    pooled = engine.once(IfAny(second_regression), pooled, sums, features, sample, folds)
    sums = engine.total(_place_sums, np.add, pooled, *size)
    centred = engine.once(IfAny(centre_places), pooled, sums, features, folds)
    # Neither law needs the other law, so an engine may work on both at once.
    bases = [engine.once(IfAny(basis_of), centred, sample, max_rank, law) for law in LAWS]
    started = engine.once(IfAny(start_laws), centred, sample, *bases)
    law_sums = engine.total(law_sums_of, join_sums, started)
    learned = [engine.once(IfAny(learn_law), started, law_sums, ridges, law) for law in LAWS]
    fit = engine.once(IfAny(finish), started, *learned)
    return Learned(fit, sample, started, sums, law_sums)


class IfAny:
    """A function that returns None if an argument is None, or if there are no usable cases."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__name__ = function, function.__name__.strip("_")

    def __call__(self, *args: Any) -> Any:
        """Return the value of the function, or None."""
        if any(arg is None for arg in args):
            return None
        try:
            return self.function(*args)
        except NothingToLearnError:  # the status of the fit reports this
            return None


def _place_sums(
    cases: Cases, date: IntArray, pooled: Pooled | None, n_parts: int, count: int
) -> FloatArray:
    if pooled is None:
        return np.zeros((n_parts, len(SUMS), count))
    return place_sums_of(pooled, cases, count, n_parts)
