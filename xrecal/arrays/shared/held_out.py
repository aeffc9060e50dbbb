"""Forecasts of held-out cases by a shared fit, from sums of other folds or earlier ones.

The parts that the fit has summed already suffice. So every place can compare the forecast from all
places with that from its own record.
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
    """Fits without the dates of one fold each; None if there are no cases to learn from."""

    folds: Folds
    blocks: tuple[Shared | None, ...]
    """Fit to all dates but the fold and the gap around it"""
    later: tuple[Shared | None, ...]
    """Fit to the folds before it"""
    usual: FloatArray = field(default_factory=lambda: NO_PREDICTORS)
    """(1, p, 8) usual values of covariates, which replace missing ones"""

    def quantiles(self, cases: Cases, levels: FloatArray) -> FloatArray:
        """Quantiles (2, n, q) at levels (q,) in [0, 1], of cases at places of the fit.

        The first are by the fit without the fold of each case, the second by the fit to earlier
        folds. NaN if there is no such fit, or a forecast has no members.
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
    """Fits at the times when forecasts were issued."""

    fits: tuple[Shared | None, ...]
    number: IntArray
    """(n + 1,) index of the fit by the number of known dates, -1 without a fit"""
    usual: FloatArray
    """(1, p, 8) usual values of covariates"""
    bounds: tuple[float, float]
    """Bounds of the variable; infinite or NaN without a bound"""

    def known(self, count: int) -> Shared | None:
        """The fit when so many dates were known."""
        return None if self.number[count] < 0 else self.fits[self.number[count]]


def in_time(held: HeldOut, part: IntArray, bounds: tuple[float, float]) -> InTime:
    """Fits to earlier folds, as available when cases of dates in parts (n,) were issued.

    With k known dates, the fit is that to all folds before the fold of date k.
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
    """Fits without each fold of dates, from the sums of the passes of a fit.

    Parameters
    ----------
    fit : Shared
        Fit to all cases.
    started : Started
        Results of the passes before its laws were learned.
    place_sums : array of float, shape (G, 8, P)
        From :func:`.network.place_sums_of` over all cases, part by part.
    law_sums : dict from (int, int) to Sums
        From :func:`.passes.law_sums_of` over all cases.
    usual : array of float, shape (1, p, 8), optional
        Usual values of the covariates, from :meth:`.samples.Values.usual`.

    Returns
    -------
    HeldOut
        F fits of both kinds. Each fit learns the centres and spreads of places, the fields of
        features and the law without its fold. It takes the regression, scales of features,
        landmarks, the grid and the ridge from the fit to all cases.

    Notes
    -----
    Takes 2 F solutions of r equations, O(r³ + r² J) each, and no further pass over cases.
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
    """The fit to cases with these sums; None without cases."""
    law, chosen = fit.laws[WITH_RECORD], started.centred.places.settings
    try:
        places = fit_places(place_sums, fit.features, fit.pooled.kurtosis, chosen)
        learned = solve_sums(law.landmarks, law.grid, sums, law.ridge)
    except NothingToLearnError:
        return None
    local = fit.places._replace(local=places.local)
    return without_sums(fit)._replace(places=local, laws=(learned, fit.laws[1]))
