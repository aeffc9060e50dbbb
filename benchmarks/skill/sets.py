"""The sets of forecasts, and how each is split in time into training and test.

A set is one call. Leads, stations, hours or models of one variable are positions of one hindcast,
each with a row of its own in the table.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import xarray as xr

from examples.real_data import open_data

SHARE = 0.6  # of the cases, the first ones, to train on where no years are given
CASES = ("time", "init")
ISSUED = ("member", "quantile", "component")
"""Dimensions of one forecast"""
CELLS = 12  # of the Iberian land cells one in so many


Position = Mapping[Hashable, Hashable]
"""A label along each of some dimensions of places."""

Part = TypeVar("Part", xr.DataArray, xr.Dataset)


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
    positions: Mapping[str, Position] | None = None
    """Of the rows of the table by name, where the set has several"""
    features: tuple[str, ...] = ()
    """Coordinates by which pooled places are compared, besides latitude and longitude"""

    @property
    def condition_on(self) -> tuple[str, ...]:
        """Names of all that forecasts may be calibrated given."""
        return ("season",) * self.season + tuple(self.covariates or ())

    @property
    def case_dim(self) -> str:
        """The dimension of the cases."""
        return next(str(d) for d in self.hindcast.dims if d in CASES)

    @property
    def n_places(self) -> int:
        """Number of positions that have a fit each."""
        sizes = self.hindcast.sizes
        no_places = {self.case_dim, *ISSUED, *(self.pool or ())}
        return math.prod(n for dim, n in sizes.items() if dim not in no_places)

    @property
    def rows(self) -> Mapping[str, Position]:
        """Position of each row of the table, by its name."""
        return self.positions or {self.name: {}}


def at(part: Part, position: Position) -> Part:
    """Values at a position; along dimensions that they lack they are the same."""
    return part.sel({d: label for d, label in position.items() if d in part.dims}, drop=True)


def part_of(one: Set, name: str) -> Set:
    """The part of a set that is a row of the table; all its dates stay."""
    position = one.rows[name]
    parts = (at(p, position) for p in (one.hindcast, one.forecast, one.observations))
    given = {label: at(value, position) for label, value in (one.covariates or {}).items()}
    issued = dict(zip(("hindcast", "forecast", "observations"), parts, strict=True))
    return one._replace(name=name, positions=None, covariates=given or None, **issued)


def alone(one: Set) -> Iterator[Set]:
    """Each row of the table as a set of its own, on the dates that have data there."""
    for name in one.positions or ():
        own = part_of(one, name)
        if not own.leave_out:
            parts = [_with_data(p, own) for p in (own.hindcast, own.forecast)]
            own = own._replace(hindcast=parts[0], forecast=parts[1])
        yield own
    if one.positions is None:
        yield one


def _with_data(forecast: xr.DataArray, one: Set) -> xr.DataArray:
    dim = one.case_dim
    known = _known(forecast, one.observations.sel({dim: forecast[dim]}), dim)
    return forecast.isel({dim: known})


def _known(forecast: xr.DataArray, observations: xr.DataArray, dim: Hashable) -> np.ndarray:
    """Cases (n,) that have data at any place."""
    issued = forecast if isinstance(forecast, xr.DataArray) else next(iter(forecast.values()))
    known = observations.notnull() & issued.notnull()
    return known.any([d for d in known.dims if d != dim]).values


def by_years(name, forecast, observations, train, test) -> Set:
    """Years from-to to train on and to score."""
    years = [forecast.sel(time=slice(*map(str, period))) for period in (train, test)]
    return Set(name, *years, observations, True)


def by_share(name, forecast, observations, dim, *, season, guard=False, **more) -> Set:
    """The first cases to train on, the others to score."""
    known = _known(forecast, observations, dim)
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
    pair = tigge["forecast"], tigge["observation"]
    one = by_years("Toulouse temperature", *pair, (2019, 2019), (2020, 2021))
    models = enumerate(tigge["model"].values.tolist(), 1)
    yield one._replace(positions={f"{one.name} {n}": {"model": model} for n, model in models})


def glofas() -> Iterator[Set]:
    # There is no lead of 15 days: the nearest before it.
    flow = open_data("glofas_discharge.nc").sel(lead=[24, 120, 360], method="pad")
    pair = flow["forecast"], flow["observation"]
    positions = {
        f"GloFAS {station} {lead // 24} d": {"station": station, "lead": lead}
        for station in flow["station"].values.tolist()
        for lead in flow["lead"].values.tolist()
    }
    yield by_share("GloFAS", *pair, "init", season=True, positions=positions)


def mjo() -> Iterator[Set]:
    index = open_data("gmao_mjo_rmm1.nc")
    leads = (1, 10, 30)
    index = index.sel(lead=list(leads))
    pair = index["forecast"], index["observation"]
    positions = {f"MJO RMM1 {lead} d": {"lead": lead} for lead in leads}
    yield by_share("MJO RMM1", *pair, "init", season=True, positions=positions)


def decadal() -> Iterator[Set]:
    sst = open_data("cesm_dple_global_ocean.nc")[["forecast", "observation"]]
    leads = (1, 5)
    sst = sst.sel(lead=list(leads))
    pair = sst["forecast"], sst["observation"]
    positions = {f"CESM decadal SST {lead} a": {"lead": lead} for lead in leads}
    yield by_share("CESM decadal SST", *pair, "init", season=False, positions=positions)


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
