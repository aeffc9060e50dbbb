"""From a forecast and what verified to what a figure draws, for ``.recal.plot``."""

from __future__ import annotations

from collections.abc import Hashable

import xarray as xr

from xrecal.diagnostics import crps, skill
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.labels import at_scalars
from xrecal.inputs.pairing import Observations, pair_cases, pair_variables
from xrecal.products.statistics import quantile

from .fan import LEVELS
from .reading import only_form, only_variable


def with_known_members(forecast: Labelled, member_dim: Hashable | None) -> Labelled:
    """A forecast whose members lie along ``member``, if they have another dimension."""
    return forecast if member_dim is None else forecast.rename({member_dim: "member"})


def fan_quantiles(forecast: Labelled) -> Labelled:
    """Quantiles of a fan; those of a forecast that has them are its own."""
    if only_form(forecast, name="forecast").kind == "quantile":
        return forecast
    return quantile(forecast, list(LEVELS))


def matched_observations(
    forecast: Labelled, observations: Observations | None
) -> xr.DataArray | None:
    """What verified each forecast, at its labels; a single case finds its own in a series."""
    if observations is None:
        return None
    only_form(forecast, name="forecast")
    ((form, observed),) = pair_variables(forecast, observations, None, name="forecast").values()
    return pair_cases(form, observed, name="forecast", require_dim=False).observations


def raw_beside(raw: Labelled | None, forecast: Labelled) -> Labelled | None:
    """The raw forecast at the labels of a forecast that was selected at one of them."""
    return None if raw is None else at_scalars(raw, forecast, names=("forecast", "raw forecasts"))


def crps_skill(
    forecast: Labelled,
    observations: Observations,
    reference: Labelled,
    dim: Dims,
    member_dim: Hashable | None,
) -> xr.Dataset:
    """Skill of the CRPS of a forecast over that of a reference."""
    scores, of_reference = (
        only_variable(crps(one, observations, member_dim=member_dim), name=name)
        for name, one in {"forecast": forecast, "reference": reference}.items()
    )
    return skill(scores, of_reference, dim)
