"""Products of recalibrated forecasts as they are issued, with novelty beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import read_inner_levels
from xrecal.model import Recalibrator
from xrecal.products.apply import issue
from xrecal.products.categories import CATEGORIES_LINE, climatological
from xrecal.products.members import drawn_by_model, members_line
from xrecal.products.probabilities import EXCEEDANCE, probabilities
from xrecal.products.statistics import quantiles


class Product(NamedTuple):
    """Part of recalibrated forecasts to issue, all others None."""

    quantiles: Sequence[float] | None = None
    """Levels."""
    members: int | None = None
    """Number of equally likely members."""
    exceedance: Sequence[float] | None = None
    """Thresholds."""
    categories: Sequence[float] | None = None
    """Levels of the quantiles of the climatology between categories."""

    def require_one(self) -> None:
        """Raise ValueError unless one part is asked for."""
        if sum(part is not None for part in self) != 1:
            raise ValueError(f"say what to issue: one of {', '.join(self._fields)}")

    def of(
        self, model: Recalibrator, forecasts: xr.Dataset, covariates: Given = None
    ) -> xr.Dataset:
        """The product of forecasts, and their novelty, as lazy as they are."""
        after = f"after recalibration by {model.method}"
        if self.quantiles is not None:
            levels = np.asarray(self.quantiles)
            product = partial(quantiles, levels=levels, several=True)
            return issue(model, forecasts, covariates, product, f"quantiles {after}")
        if self.exceedance is not None:
            events = partial(probabilities, threshold=list(self.exceedance), kind=EXCEEDANCE)
            return issue(model, forecasts, covariates, events, f"{EXCEEDANCE.line} {after}")
        if self.categories is not None:
            shares = partial(climatological, levels=read_inner_levels(self.categories), named=True)
            return issue(model, forecasts, covariates, shares, f"{CATEGORIES_LINE} {after}")
        assert self.members is not None
        drawn = partial(drawn_by_model, n=self.members, seed=0)
        return issue(
            model, forecasts, covariates, drawn, f"{members_line(self.members, 0)}, {after}"
        )
