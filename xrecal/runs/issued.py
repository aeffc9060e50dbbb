"""Products of recalibrated forecasts, such as quantiles, with the novelty of the forecasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from xrecal.products.recalibrated import Missing
from xrecal.products.statistics import quantiles


class Product(NamedTuple):
    """Settings of the one product to issue; the fields of all other products are None."""

    quantiles: Sequence[float] | None = None
    """Levels of quantiles."""
    members: int | None = None
    """Number of members, which have equal weights."""
    exceedance: Sequence[float] | None = None
    """Thresholds; the product has the probability of exceeding each threshold."""
    categories: Sequence[float] | None = None
    """Levels of the quantiles of the climatology that separate categories."""

    def require_one(self) -> None:
        """Raise ValueError unless exactly one product is given."""
        if sum(part is not None for part in self) != 1:
            raise ValueError(f"say what to issue: one of {', '.join(self._fields)}")

    def of(
        self,
        model: Recalibrator,
        forecasts: xr.Dataset,
        covariates: Given = None,
        missing_covariates: Missing = "refuse",
    ) -> xr.Dataset:
        """Return the product and the novelty of forecasts, lazy if the forecasts are lazy."""
        product, line = self._made()
        line = f"{line} after recalibration by {model.method}"
        return issue(model, forecasts, covariates, product, line, missing_covariates)

    def _made(self) -> tuple[Callable[..., xr.DataArray], str]:
        """Return a function that makes the product, and a line of text about the product."""
        if self.quantiles is not None:
            return partial(quantiles, levels=np.asarray(self.quantiles), several=True), "quantiles"
        if self.exceedance is not None:
            events = partial(probabilities, threshold=list(self.exceedance), kind=EXCEEDANCE)
            return events, EXCEEDANCE.line
        if self.categories is not None:
            shares = partial(climatological, levels=read_inner_levels(self.categories), named=True)
            return shares, CATEGORIES_LINE
        assert self.members is not None
        drawn = partial(drawn_by_model, n=self.members, seed=0)
        return drawn, f"{members_line(self.members, 0)},"
