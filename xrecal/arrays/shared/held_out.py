"""Forecasts of cases that a shared fit has not seen: sums with a fold subtracted, or earlier ones.

They are made of what the fit has summed up already, fold by fold. So every place can weigh what all
places say against what its own record does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xrecal.typing import FloatArray

from .cells import NothingToLearnError
from .law import solve_sums
from .network import Cases
from .passes import WITH_RECORD, FoldSums, Shared, Started
from .places import fit_places
from .sums import Sums, all_of, no_cases


@dataclass(frozen=True)
class HeldOut:
    """Fits that have not seen the dates of one fold each; None where there is nothing to learn."""

    blocks: tuple[Shared | None, ...]
    """Without the dates of the fold"""
    later: tuple[Shared | None, ...]
    """From the folds before it alone"""

    def quantiles(self, cases: Cases, levels: FloatArray) -> FloatArray:
        """Quantiles (2, n, q) at levels (q,) in [0, 1], of cases at places of the fit.

        By the fit without the fold of each case, and by that from earlier folds; NaN where there is
        none, or a forecast has no members.
        """
        found = np.full((2, cases.fold.size, levels.size), np.nan)
        for way, fits in enumerate((self.blocks, self.later)):
            for f, fit in enumerate(fits):
                rows = np.flatnonzero(cases.fold == f)
                if fit is not None and rows.size:
                    found[way, rows] = fit.network(WITH_RECORD).quantiles(cases.take(rows), levels)
        return found


def hold_out(fit: Shared, started: Started, place_sums: FloatArray, folds: FoldSums) -> HeldOut:
    """Fits without each fold of dates, by what the passes of a fit have summed up.

    Parameters
    ----------
    fit : Shared
        Of all cases.
    started : Started
        What was known before its laws were learned.
    place_sums : array of float, shape (F, 7, P)
        From :func:`.network.place_sums_of` over all cases, fold by fold.
    folds : dict from (int, int) to Sums
        From :func:`.passes.law_sums_of` over all cases.

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
    rank, n_cells = started.bases[WITH_RECORD].landmarks.rank, fit.laws[WITH_RECORD].grid.size - 1
    nothing = no_cases(rank, n_cells)
    own = [folds.get((WITH_RECORD, f), nothing) for f in range(len(place_sums))]
    whole, at_places = all_of(own), place_sums.sum(0)
    blocks = [
        _learned(fit, started, at_places - here, whole.minus(held))
        for here, held in zip(place_sums, own, strict=True)
    ]
    later = [
        _learned(fit, started, place_sums[:f].sum(0), all_of([nothing, *own[:f]]))
        for f in range(len(own))
    ]
    return HeldOut(tuple(blocks), tuple(later))


def _learned(fit: Shared, started: Started, place_sums: FloatArray, sums: Sums) -> Shared | None:
    """The fit to cases with these sums; None where they are of no case."""
    law, chosen = fit.laws[WITH_RECORD], started.places.settings
    try:
        places = fit_places(place_sums, fit.features, fit.pooled.kurtosis, chosen)
        learned = solve_sums(law.landmarks, law.grid, sums, law.ridge)
    except NothingToLearnError:
        return None
    empty = no_cases(0, 0)  # forecasts need none
    return fit._replace(
        places=fit.places._replace(local=places.local),
        laws=(learned, fit.laws[1]),
        sums=(empty, empty),
    )
