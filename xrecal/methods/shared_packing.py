"""Arrays that store a shared fit (one fit for many places), and the kind of each place's record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import find_bounds
from xrecal.arrays.status import BOUNDS, NOT_CONVERGED, TOO_FEW
from xrecal.typing import FloatArray

from .base import Bounds

if TYPE_CHECKING:
    from xrecal.arrays.shared.packed import Sizes
    from xrecal.arrays.shared.passes import Shared
    from xrecal.arrays.shared.samples import Sample

NO_RECORD = 2
RECORDS = ("own_record", "short_record", "no_record", "unlike_others")
"""Kinds of record. The record of a place (all its past cases) is long enough, shorter than
``min_samples``, empty, or unlike other records. It is unlike others if its mean error or spread is
very different, perhaps because of another unit. The fit does not learn from such a record."""

USUAL = "usual"
"""Name of the parameter with the usual values of covariates, such as their medians."""


class Packing:
    """Function that converts a shared fit (None without usable cases) to arrays of the state.

    The arguments of a call are the fit, a sample of the cases, and the usual values of covariates.
    """

    __name__ = "packing"

    def __init__(self, sizes: Sizes, bounds: Bounds, min_samples: int) -> None:
        self.sizes, self.bounds, self.min_samples = sizes, bounds, min_samples

    def __call__(
        self, fit: Shared | None, sample: Sample, usual: FloatArray
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the state by name."""
        from xrecal.arrays.shared.places import NUMBER

        n = sample.draws.size if fit is None else int(fit.place_sums[NUMBER].sum())
        status = TOO_FEW * (n < self.min_samples)
        observed = sample.cases.observations[np.newaxis]
        lower, upper, violated = find_bounds(observed, self.bounds)
        if fit is None or status:
            status = status or NOT_CONVERGED
            packed = nothing_learned(self.sizes, sample.cases.covariates.shape[1])
            packed |= {"lower": lower[0] * np.nan, "upper": lower[0] * np.nan}
        else:
            packed = packed_fit(self.sizes, fit, self.min_samples)
            packed |= {"lower": lower[0], "upper": upper[0]}
        packed |= {USUAL: usual[0]} if usual.shape[1] else {}
        counts = {"n_cases": n, "status": status | (BOUNDS * bool(violated[0]))}
        return {name: np.asarray(value) for name, value in {**packed, **counts}.items()}


def nothing_learned(sizes: Sizes, n_covariates: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a fit that has learned nothing, by name."""
    from xrecal.arrays.shared.packed import nothing

    record = np.full(sizes.places, NO_RECORD, np.int8)
    return nothing(sizes._replace(covariates=n_covariates)) | {"record": record}


def packed_fit(sizes: Sizes, fit: Shared, min_samples: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a fit by name, with the kind of record of each place."""
    from xrecal.arrays.shared.packed import pack
    from xrecal.arrays.shared.places import NUMBER

    n = fit.place_sums[NUMBER]
    record = np.select([fit.places.odd, n == 0, n < min_samples], [3, NO_RECORD, 1], 0)
    whole = sizes._replace(covariates=fit.seen.shape[0] - 2)
    return pack(fit, whole) | {"record": record.astype(np.int8)}
