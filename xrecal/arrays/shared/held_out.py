"""Forecasts of cases that a shared fit has not seen: from sums of other folds, or earlier ones.

They are made of what the fit has summed up already, part by part. So every place can weigh what all
places say against what its own record does.
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
    """Fits that have not seen the dates of one fold each; None where there is nothing to learn."""

    folds: Folds
    blocks: tuple[Shared | None, ...]
    """Without the dates of the fold and of the gap around it"""
    later: tuple[Shared | None, ...]
    """From those before it alone"""
    usual: FloatArray = field(default_factory=lambda: NO_PREDICTORS)
    """(1, p, 8) usual values of covariates, by which missing ones are replaced"""

    def quantiles(self, cases: Cases, levels: FloatArray) -> FloatArray:
        """Quantiles (2, n, q) at levels (q,) in [0, 1], of cases at places of the fit.

        By the fit without the fold of each case, and by that from earlier folds; NaN where there is
        none, or a forecast has no members.
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
    """Fits as they were when forecasts were issued."""

    fits: tuple[Shared | None, ...]
    number: IntArray
    """(n + 1,) the fit when so many dates were known, -1 where there is none"""
    usual: FloatArray
    """(1, p, 8) usual values of covariates"""
    bounds: tuple[float, float]
    """Of the variable; infinite or NaN without"""

    def known(self, count: int) -> Shared | None:
        """The fit when so many dates were known."""
        return None if self.number[count] < 0 else self.fits[self.number[count]]


def in_time(held: HeldOut, part: IntArray, bounds: tuple[float, float]) -> InTime:
    """Fits of earlier folds as they could have issued cases of dates in parts (n,) of the record.

    When k dates were known, that was the fit of all folds before that of date k.
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
    """Fits without each fold of dates, by what the passes of a fit have summed up.

    Parameters
    ----------
    fit : Shared
        Of all cases.
    started : Started
        What was known before its laws were learned.
    place_sums : array of float, shape (G, 8, P)
        From :func:`.network.place_sums_of` over all cases, part by part.
    law_sums : dict from (int, int) to Sums
        From :func:`.passes.law_sums_of` over all cases.
    usual : array of float, shape (1, p, 8), optional
        Usual values of the covariates, from :meth:`.samples.Values.usual`.

    Returns
    -------
    HeldOut
        Of both kinds F fits. Centres and spreads of places, fields of features and the law are
        learned without the fold; the regression, scales of features, landmarks, the grid and the
        ridge are those of the fit, which all cases have chosen.

    Notes
    -----
    2 F solutions of r equations, O(r³ + r² J) each, and no further pass over cases.
    """
    folds, parts = started.standards[WITH_RECORD].folds, sums_of_law(started, law_sums, WITH_RECORD)
    blocks, later = (
        tuple(
            _learned(fit, started, np.tensordot(which, place_sums, 1), some_of(parts, which))
            for which in learned
        )
        for learned in (folds.learned, folds.earlier)
    )
    return HeldOut(folds, blocks, later, usual)


def _learned(fit: Shared, started: Started, place_sums: FloatArray, sums: Sums) -> Shared | None:
    """The fit to cases with these sums; None where they are of no case."""
    law, chosen = fit.laws[WITH_RECORD], started.places.settings
    try:
        places = fit_places(place_sums, fit.features, fit.pooled.kurtosis, chosen)
        learned = solve_sums(law.landmarks, law.grid, sums, law.ridge)
    except NothingToLearnError:
        return None
    local = fit.places._replace(local=places.local)
    return without_sums(fit)._replace(places=local, laws=(learned, fit.laws[1]))
