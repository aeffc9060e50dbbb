"""Forecasts of held-out cases by a shared fit, from sums over other folds or earlier folds.

The shared fit already knows the sums over each part of the record, so these forecasts need no
further pass over the cases. With these forecasts, every place can compare the shared fit with a fit
to its own record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from xrecal.arrays.predictors import NO_PREDICTORS
from xrecal.typing import FloatArray, IntArray

from .cells import NothingToLearnError
from .folds import Folds
from .law import solve_sums
from .network import Cases
from .passes import WITH_RECORD, PartSums, Shared, Started, sums_of_law, without_sums
from .places import fit_places
from .sums import Sums, some_of


@dataclass(frozen=True)
class HeldOut:
    """Fits that each hold out one fold of dates; a fit is None if it has no training cases."""

    folds: Folds
    blocks: tuple[Shared | None, ...]
    """For each fold, the fit to all dates except this fold and the gap around it"""
    later: tuple[Shared | None, ...]
    """For each fold, the fit to all earlier folds"""
    usual: FloatArray = field(default_factory=lambda: NO_PREDICTORS)
    """(1, p, 8) usual values of each covariate, as in :mod:`.predictors`; they replace missing
    values"""

    def quantiles(self, cases: Cases, levels: FloatArray) -> FloatArray:
        """Return quantiles (2, n, q) at levels (q,) in [0, 1], for cases at places of the fit.

        Along the first axis, the first quantiles are from the fit without the fold of the case, and
        the second quantiles are from the fit to earlier folds. Quantiles are NaN if there is no
        such fit, or if a forecast has no members.
        """
        fold = self.folds.of_part[cases.part]
        found = np.full((2, fold.size, levels.size), np.nan)
        for way, fits in enumerate((self.blocks, self.later)):
            for f, fit in enumerate(fits):
                rows = np.flatnonzero(fold == f)
                if fit is not None and rows.size:
                    found[way, rows] = fit.network(WITH_RECORD).quantiles(cases.take(rows), levels)
        return found


@dataclass(frozen=True)
class InTime:
    """Fits to earlier dates: the fits that were available when past forecasts were issued."""

    fits: tuple[Shared | None, ...]
    number: IntArray
    """(n + 1,) for each k from 0 to n: position in ``fits`` of the fit that was available when k
    dates were known, or -1 without a fit"""
    usual: FloatArray
    """(1, p, 8) usual values of each covariate, as in :mod:`.predictors`"""
    bounds: tuple[float, float]
    """Bounds of the variable; infinite or NaN without a bound"""

    def known(self, count: int) -> Shared | None:
        """Return the fit that was available when this number of dates was known."""
        return None if self.number[count] < 0 else self.fits[self.number[count]]


def in_time(held: HeldOut, part: IntArray, bounds: tuple[float, float]) -> InTime:
    """Return the fits to earlier folds that were available at each of n dates.

    ``part`` (n,) is the part of each date; parts belong to folds. The first date has the number 0,
    so date k is unknown when k dates are known. The fit is then that to all folds before its fold.
    """
    number = np.append(held.folds.of_part[part], -1)
    return InTime(held.later, number, held.usual, bounds)


def hold_out(
    fit: Shared,
    started: Started,
    place_sums: FloatArray,
    law_sums: PartSums,
    usual: FloatArray = NO_PREDICTORS,
) -> HeldOut:
    """Compute fits that each hold out one fold of dates, from the sums of a fit to all cases.

    Parameters
    ----------
    fit : Shared
        Fit to all cases.
    started : Started
        Results of the passes before the fit learned its distributions of errors.
    place_sums : array of float, shape (G, 8, P)
        Result of :func:`.network.place_sums_of` for all cases.
    law_sums : dict from (int, int) to Sums
        Result of :func:`.passes.law_sums_of` for all cases.
    usual : array of float, shape (1, p, 8), optional
        Usual values of the covariates: result of :meth:`.samples.Values.usual`.

    Returns
    -------
    HeldOut
        F fits that each hold out one fold, and F fits to earlier folds. Each fit learns the centres
        and spreads of places, the fields of features and the distribution of errors from its own
        cases alone. It takes the regression, scales of features, landmarks, the grid and the ridge
        from the fit to all cases.

    Notes
    -----
    With r landmarks and J cells of the grid, the function solves 2 F systems of r equations, in
    O(r³ + r² J) time each. The function needs no further pass over cases.
    """
    folds, parts = (
        started.centred.standards[WITH_RECORD].folds,
        sums_of_law(started, law_sums, WITH_RECORD),
    )
    blocks, later = (
        tuple(
            _learned(fit, started, np.tensordot(which, place_sums, 1), some_of(parts, which))
            for which in learned
        )
        for learned in (folds.learned, folds.earlier)
    )
    return HeldOut(folds, blocks, later, usual)


def _learned(fit: Shared, started: Started, place_sums: FloatArray, sums: Sums) -> Shared | None:
    """Return the fit to the cases with these sums; None if there are no cases."""
    law, chosen = fit.laws[WITH_RECORD], started.centred.places.settings
    try:
        places = fit_places(place_sums, fit.features, fit.pooled.kurtosis, chosen)
        learned = solve_sums(law.landmarks, law.grid, sums, law.ridge)
    except NothingToLearnError:
        return None
    local = fit.places._replace(local=places.local)
    return without_sums(fit)._replace(places=local, laws=(learned, fit.laws[1]))
