"""The sets of forecasts, and how each is split in time into training and test."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from examples.real_data import open_data

SHARE = 0.6  # of the cases, the first ones, to train on where no years are given
CELLS = 12  # of the Iberian land cells one in so many


class Set(NamedTuple):
    """Forecasts to train on and to score, with what verified both."""

    name: str
    hindcast: xr.DataArray
    forecast: xr.DataArray
    observations: xr.DataArray
    season: bool
    guard: bool = False
    """Whether it is only guarded against losses, and does not count in the median."""
    pool: tuple[str, ...] | None = None
    """Dimensions pooled; each year of the hindcast is then forecast from all others"""
    leave_out: bool = False
    """Whether each year of the hindcast is forecast from all others, as cases are few"""
    covariates: Mapping[str, xr.DataArray] | None = None
    """Known when a forecast is issued, besides the season; at times of hindcast and forecast"""
    levels: tuple[float, ...] | None = None
    """Of quantiles that are scored by WIS, on the scale on which they were issued"""
    scale: str | None = None
    """``log(1 + x)`` where forecasts and observations are given on that scale"""
    named: bool = False
    """Whether members are models with names, which differ in their skill"""

    @property
    def condition_on(self) -> tuple[str, ...]:
        """Names of all that forecasts may be calibrated given."""
        return ("season",) * self.season + tuple(self.covariates or ())


def by_years(name, forecast, observations, train, test) -> Set:
    """Years from-to to train on and to score."""
    years = [forecast.sel(time=slice(*map(str, period))) for period in (train, test)]
    return Set(name, *years, observations, True)


def by_share(name, forecast, observations, dim, *, season, guard=False, **more) -> Set:
    """The first cases to train on, the others to score."""
    issued = forecast if isinstance(forecast, xr.DataArray) else next(iter(forecast.values()))
    known = observations.notnull() & issued.notnull()
    known = known.any([d for d in known.dims if d != dim]).values
    forecast, observations = forecast.isel({dim: known}), observations.isel({dim: known})
    cut = int(SHARE * forecast.sizes[dim])
    parts = forecast.isel({dim: slice(cut)}), forecast.isel({dim: slice(cut, None)})
    return Set(name, *parts, observations, season, guard, **more)


def left_out(name, forecast, observations, **more) -> Set:
    """Each year forecast from all others."""
    return Set(name, forecast, forecast, observations, False, leave_out=True, **more)


def innsbruck() -> Iterator[Set]:
    gefs = open_data("innsbruck_gefs.nc")
    for name, variable in (("temperature", "tmin"), ("rain", "rain")):
        pair = gefs[f"{variable}_forecast"], gefs[f"{variable}_observation"]
        yield by_years(f"Innsbruck {name}", *pair, (2000, 2009), (2010, 2016))
    rain = open_data("innsbruck_rain3d.nc")
    pair = rain["forecast"], rain["observation"]
    yield by_years("Innsbruck 3-day rain", *pair, (2005, 2009), (2010, 2012))


def frankfurt() -> Iterator[Set]:
    rain = open_data("frankfurt_rain.nc")
    pair = rain["forecast"], rain["observation"]
    yield by_years("Frankfurt rain", *pair, (2008, 2011), (2012, 2013))


def toulouse() -> Iterator[Set]:
    tigge = open_data("toulouse_tigge_t2m.nc")
    for model in range(tigge.sizes["model"]):
        pair = tigge["forecast"].isel(model=model, drop=True), tigge["observation"]
        yield by_years(f"Toulouse temperature {model + 1}", *pair, (2019, 2019), (2020, 2021))


def glofas() -> Iterator[Set]:
    flow = open_data("glofas_discharge.nc")
    for station in flow["station"].values:
        for days in (1, 5, 15):
            # There is no lead of 15 days: the nearest before it.
            one = flow.sel(station=station).sel(lead=24 * days, method="pad")
            pair = one["forecast"], one["observation"]
            name = f"GloFAS {station} {int(one['lead']) // 24} d"
            yield by_share(name, *pair, "init", season=True)


def mjo() -> Iterator[Set]:
    index = open_data("gmao_mjo_rmm1.nc")
    for lead in (1, 10, 30):
        one = index.sel(lead=lead)
        name = f"MJO RMM1 {lead} d"
        yield by_share(name, one["forecast"], one["observation"], "init", season=True)


def decadal() -> Iterator[Set]:
    sst = open_data("cesm_dple_global_ocean.nc")[["forecast", "observation"]]
    for lead in (1, 5):
        one = sst.sel(lead=lead)
        name = f"CESM decadal SST {lead} a"
        yield by_share(name, one["forecast"], one["observation"], "init", season=False)


def iberia() -> Iterator[Set]:
    rain = open_data("cfs_iberia_precip.nc")
    cells = rain.stack(cell=("lat", "lon")).reset_index("cell", drop=True)
    land = cells["observation"].notnull().mean("time") > 0.9
    cells = cells.isel(cell=np.flatnonzero(land)[::CELLS])
    pair = cells["forecast"].transpose("time", "member", "cell"), cells["observation"]
    yield by_share("Iberia rain", *pair, "time", season=True, guard=True)


def mediterranean() -> Iterator[Set]:
    seas5 = open_data("seas5_mediterranean_t2m.nc")
    pair = seas5["forecast"], seas5["forecast"], seas5["observation"]
    yield Set("SEAS5 Mediterranean", *pair, season=False, guard=True, pool=("lat", "lon"))
