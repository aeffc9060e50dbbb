"""Events, such as more than 10 mm of rain: their probability, and whether they happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import xarray as xr

from xrecal.inputs.metadata import probability_attributes
from xrecal.inputs.thresholds import Threshold, Thresholds, read_thresholds
from xrecal.products.probabilities import EXCEEDANCE

from .evidence import Evidence

T = TypeVar("T", xr.DataArray, xr.Dataset)


@dataclass(frozen=True)
class Events:
    """Exceedances of thresholds by the cases of a forecast."""

    thresholds: Thresholds
    probability: xr.DataArray
    """Issued; over the dimension of the thresholds too."""
    happened: xr.DataArray
    """1 where the observation exceeds the threshold, 0 where not, NaN where not known."""

    def label(self, result: T) -> T:
        """Coordinates of the thresholds, without the dimension if there is one threshold."""
        if not self.thresholds.several:
            result = result.isel({self.thresholds.dim: 0})
        return result.assign_coords(self.thresholds.coords)


def read_events(evidence: Evidence, threshold: Threshold) -> Events:
    """Probabilities of more than a threshold, and whether that happened.

    Thresholds are compared in the floating type of the forecast.
    """
    form = evidence.form
    wanted = read_thresholds(threshold, form, form.loc.dtype, evidence.pairs.dim)
    new = {wanted.dim: wanted.values.sizes[wanted.dim]}
    probability = evidence.reduce(EXCEEDANCE.reduction, [wanted.values], new)
    observed = evidence.observations
    above = (observed > wanted.values).astype(form.loc.dtype)
    known = observed.notnull() & wanted.values.notnull()
    attrs = probability_attributes(form.loc.attrs, EXCEEDANCE.event)
    attrs.pop("history", None)  # told for all results together
    return Events(wanted, probability.assign_attrs(attrs), above.where(known))
