"""Ways in which the world writes the same forecasts, observations, thresholds and covariates.

Each way rewrites one input. ``WAYS`` is the table of them.
"""

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pandas as pd
import xarray as xr

from .worlds import PLACES, NotHereError, Piece, World

FORECASTS = ("hindcast", "forecast")
THRESHOLDS = ("threshold", "monthly_threshold", "seasonal_threshold")
COVARIATES = ("covariate", "new_covariate")
DATED = (*FORECASTS, "observations", *COVARIATES)
PLACED = (*DATED, *THRESHOLDS)


Rewrite = Callable[[Piece, np.random.Generator, World], Piece]


@dataclass(frozen=True)
class Way:
    """A way, the inputs that it may rewrite, and what may come of it."""

    name: str
    rewrite: Rewrite
    roles: tuple[str, ...]
    rtol: float
    refused: str
    """Why it may be refused where all inputs are written so; empty if it must be taken."""
    selects: bool
    """Whether it leaves a part; then always one of the new forecasts."""
    moves_places: bool
    hides_places: bool


WAYS: dict[str, Way] = {}


def way(
    *roles: str,
    rtol: float = 0.0,
    refused: str = "",
    selects: bool = False,
    moves_places: bool = False,
    hides_places: bool = False,
) -> Callable[[Rewrite], Rewrite]:
    """Enter a function in the table."""

    def enter(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__.replace("_", " ")
        WAYS[name] = Way(name, rewrite, roles, rtol, refused, selects, moves_places, hides_places)
        return rewrite

    return enter


def here(piece: Piece, *dims: str) -> str:
    """The name of the first of some canonical dimensions that an input has."""
    for dim in dims:
        name = piece.name(dim)
        if name is not None:
            return name
    raise NotHereError


def with_index(piece: Piece, *dims: str) -> str:
    """The same, where labels lie along it."""
    name = here(piece, *dims)
    if name not in piece.array.indexes:
        raise NotHereError
    return name


def canonical(piece: Piece, *dims: str) -> str:
    return next(d for d in dims if piece.name(d) is not None)


def pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def shuffled(piece: Piece, rng: np.random.Generator, dim: str) -> Piece:
    name = here(piece, dim)
    return piece.taken(dim, rng.permutation(piece.array.sizes[name]))


def any_of(piece: Piece, rng: np.random.Generator, dim: str, world: World) -> int:
    """Where one of the canonical labels is along a dimension that is still whole."""
    name = with_index(piece, dim)
    n = world.pieces[piece.role].array.sizes[dim]
    if piece.array.sizes[name] != n:
        raise NotHereError
    return int(np.flatnonzero(piece.positions[dim] == rng.integers(n))[0])


def labelled(piece: Piece, name: str, labels: Any, **attrs: Any) -> Piece:
    """Other labels along a dimension; its attributes stay."""
    kept = piece.array[name].attrs if name in piece.array.coords else {}
    labels = xr.Variable(name, labels, {**kept, **attrs})
    return piece.of(piece.array.drop_vars(name, errors="ignore").assign_coords({name: labels}))


# dimensions ---------------------------------------------------------------------------------------


def start_of(world: World) -> str:
    """Canonical name of the starts; without leads that of the dates."""
    return "time" if world.lead_kind == "none" else "init"


@way(*PLACED)
def dimensions_in_another_order(piece, rng, world):
    return piece.of(piece.array.transpose(*rng.permutation(piece.array.dims)))


@way(*DATED)
def usual_name_of_starts(piece, rng, world):
    here(piece, start_of(world))
    names = ["init_time", "forecast_reference_time", "forecast_time", "ref_time", "reference_time",
             "initialization_time"]  # fmt: skip
    if world.lead_kind != "none":
        names.append("time")
    return piece.renamed(start_of(world), pick(rng, names))


@way(*DATED)
def starts_by_standard_name(piece, rng, world):
    name = with_index(piece, start_of(world))
    piece = piece.of(piece.array.copy())
    of = "time" if world.lead_kind == "none" else "forecast_reference_time"
    piece.array[name].attrs["standard_name"] = of
    return piece.renamed(start_of(world), pick(rng, ["S", "run", "cycle"]))


@way(*DATED)
def name_of_starts_given_as_dim(piece, rng, world):
    dim = start_of(world)
    here(piece, dim)
    piece = piece.renamed(dim, "case")
    return piece.of(piece.array, told={**piece.told, "dim": dim})


@way(*FORECASTS, "observations")
def usual_name_of_leads(piece, rng, world):
    here(piece, "lead")
    names = ["lead_time", "step", "prediction_timedelta", "forecast_period", "leadtime", "lead_day",
             "fhour", "horizon", "ltime", "forecast_hour"]  # fmt: skip
    return piece.renamed("lead", pick(rng, names))


@way(*FORECASTS, "observations")
def leads_by_what_they_are(piece, rng, world):
    """A name that says nothing, and a timedelta, a unit or a standard name that does."""
    name = with_index(piece, "lead")
    if piece.array[name].dtype.kind != "m" and "units" not in piece.array[name].attrs:
        raise NotHereError
    piece = piece.of(piece.array.copy())
    if rng.random() < 0.5:
        piece.array[name].attrs["standard_name"] = "forecast_period"
    return piece.renamed("lead", pick(rng, ["L", "ahead", "fc"]))


@way(*FORECASTS)
def usual_name_of_members(piece, rng, world):
    here(piece, "member")
    return piece.renamed("member", pick(rng, ["number", "realization", "ensemble"]))


@way(*FORECASTS)
def members_by_standard_name(piece, rng, world):
    name = here(piece, "member")
    labels = np.arange(piece.array.sizes[name])
    piece = labelled(piece, name, labels, standard_name="realization")
    return piece.renamed("member", pick(rng, ["M", "ens"]))


@way(*FORECASTS)
def name_of_members_given_as_member_dim(piece, rng, world):
    here(piece, "member")
    piece = piece.renamed("member", "run")
    return piece.of(piece.array, told={**piece.told, "member_dim": "member"})


@way("observations")
def usual_name_of_valid_times(piece, rng, world):
    here(piece, "time")
    return piece.renamed("time", pick(rng, ["valid_time", "date", "t", "day"]))


@way(*PLACED, moves_places=True)
def another_name_of_stations(piece, rng, world):
    here(piece, "station")
    return piece.renamed("station", pick(rng, ["site", "location", "stn", "place"]))


@way(*PLACED)
def another_name_of_the_grid(piece, rng, world):
    here(piece, "lat"), here(piece, "lon")
    return piece.renamed("lat", "latitude").renamed("lon", "longitude")


# members ------------------------------------------------------------------------------------------


@way(*FORECASTS, rtol=1e-6)
def members_in_another_order(piece, rng, world):
    return shuffled(piece, rng, "member")


@way(*FORECASTS)
def numbered_members(piece, rng, world):
    name = here(piece, "member")
    n = np.arange(piece.array.sizes[name])
    texts = np.array([f"r{k}i1p1" for k in n])
    return labelled(piece, name, pick(rng, [n, n + 1, texts, texts.astype(object)]))


# places -------------------------------------------------------------------------------------------


@way(*PLACED, moves_places=True)
def stations_in_another_order(piece, rng, world):
    with_index(piece, "station")
    return shuffled(piece, rng, "station")


def _beside(piece: Piece, rng: np.random.Generator, coords: dict[str, Any]) -> Piece:
    """Coordinates along the stations in place of their labels, and often another order."""
    name = with_index(piece, "station")
    array = piece.array.drop_vars(name)
    taken = {c: (name, *v) for c, v in coords.items() if c not in array.coords and c != name}
    piece = piece.of(array.assign_coords(taken))
    return shuffled(piece, rng, "station") if rng.random() < 0.7 else piece


def _names(piece: Piece) -> list[str]:
    names = [str(s) for s in piece.array[with_index(piece, "station")].to_numpy()]
    if not {*names} <= {*PLACES}:
        raise NotHereError
    return names


@way(*PLACED, moves_places=True)
def names_beside_stations_by_cf_role(piece, rng, world):
    names = (np.array(_names(piece)), {"cf_role": "timeseries_id"})
    return _beside(piece, rng, {pick(rng, ["station_name", "id"]): names})


@way(*PLACED, moves_places=True)
def names_beside_stations(piece, rng, world):
    return _beside(piece, rng, {"station_name": (np.array(_names(piece)),)})


@way(*PLACED, moves_places=True)
def names_beside_a_counting_index(piece, rng, world):
    names = (np.array(_names(piece)), {"cf_role": "timeseries_id"})
    piece = _beside(piece, rng, {"station_name": names})
    name = here(piece, "station")
    return labelled(piece, name, np.arange(piece.array.sizes[name]))


def _coordinates(piece: Piece, rng: np.random.Generator) -> dict[str, Any]:
    lat, lon = np.array([PLACES[s] for s in _names(piece)]).T
    lon = pick(rng, [lon, lon % 360])
    if rng.random() < 0.3:
        lat, lon = lat.astype(np.float32), lon.astype(np.float32)
    names = pick(rng, [("latitude", "longitude"), ("lat", "lon")])
    return {names[0]: (lat, {"units": "degrees_north"}), names[1]: (lon, {"units": "degrees_east"})}


@way(*PLACED, moves_places=True)
def latitude_and_longitude_beside_stations(piece, rng, world):
    return _beside(piece, rng, _coordinates(piece, rng))


@way(*PLACED, moves_places=True)
def latitude_and_longitude_beside_a_counting_index(piece, rng, world):
    piece = _beside(piece, rng, _coordinates(piece, rng))
    name = here(piece, "station")
    return labelled(piece, name, np.arange(piece.array.sizes[name]))


@way(*PLACED)
def latitude_and_longitude_beside_names(piece, rng, world):
    name = with_index(piece, "station")
    coords = {c: (name, *v) for c, v in _coordinates(piece, rng).items()}
    return piece.of(piece.array.assign_coords(coords))


@way(*PLACED)
def names_of_another_type(piece, rng, world):
    name = with_index(piece, "station")
    names = _names(piece)
    types = [np.array(names, object), np.array(names), np.array(names, np.dtypes.StringDType()),
             np.array([n.encode() for n in names], object),
             np.array([n.encode() for n in names]), np.array([n.ljust(12) for n in names]),
             np.array([n.encode().ljust(20) for n in names])]  # fmt: skip
    return labelled(piece, name, pick(rng, types))


@way(*PLACED)
def stations_by_number(piece, rng, world):
    name = with_index(piece, "station")
    numbers = [1000 * (1 + list(PLACES).index(s)) + 17 for s in _names(piece)]
    dtype = pick(rng, [np.int32, np.int64, np.uint16, np.float64])
    return labelled(piece, name, np.array(numbers, dtype))


@way(*PLACED, hides_places=True)
def stations_without_labels(piece, rng, world):
    name = with_index(piece, "station")
    return piece.of(piece.array.drop_vars(name))


@way(*PLACED, hides_places=True)
def stations_counted(piece, rng, world):
    name = with_index(piece, "station")
    return labelled(piece, name, np.arange(piece.array.sizes[name]))


@way("hindcast", "forecast", "observations", *THRESHOLDS, *COVARIATES, selects=True)
def one_station_selected(piece, rng, world):
    return piece.taken("station", any_of(piece, rng, "station", world))


@way("hindcast", "forecast", "observations", *THRESHOLDS, *COVARIATES, selects=True)
def one_station_of_length_one(piece, rng, world):
    return piece.taken("station", [any_of(piece, rng, "station", world)])


@way(*PLACED, moves_places=True)
def latitudes_from_north_to_south(piece, rng, world):
    with_index(piece, "lat")
    return piece.taken("lat", slice(None, None, -1))


@way(*PLACED, moves_places=True)
def longitudes_from_0_to_360(piece, rng, world):
    name = with_index(piece, "lon")
    if piece.array[name].ndim != 1 or piece.array[name].dtype.kind != "f":
        raise NotHereError
    piece = labelled(piece, name, piece.array[name].to_numpy() % 360)
    return piece.taken("lon", np.argsort(piece.array[name].to_numpy()))


@way(*PLACED)
def labels_of_the_grid_as_float32(piece, rng, world):
    lat, lon = with_index(piece, "lat"), with_index(piece, "lon")
    for name in (lat, lon):
        piece = labelled(piece, name, piece.array[name].to_numpy().astype(np.float32))
    return piece


def _rows_and_columns(piece: Piece, rng: np.random.Generator, two_dimensional: bool) -> Piece:
    lat, lon = (piece.array[with_index(piece, d)].to_numpy() for d in ("lat", "lon"))
    if {"y", "x", "latitude", "longitude"} & {*piece.array.coords, *piece.array.dims}:
        raise NotHereError
    array = piece.array.drop_vars([here(piece, "lat"), here(piece, "lon")])
    piece = piece.of(array).renamed("lat", "y").renamed("lon", "x")
    coords: dict[str, Any] = {"latitude": ("y", lat), "longitude": ("x", lon)}
    if two_dimensional:
        both = np.meshgrid(lat, lon, indexing="ij")
        coords = {
            "latitude": (("y", "x"), both[0] + 0.005 * both[1]),
            "longitude": (("y", "x"), both[1] + 0.005 * both[0]),
        }
    piece = piece.of(piece.array.assign_coords(coords))
    return piece.taken("lat", slice(None, None, -1)) if rng.random() < 0.5 else piece


@way(*PLACED, moves_places=True)
def rows_and_columns_beside_latitude_and_longitude(piece, rng, world):
    return _rows_and_columns(piece, rng, False)


@way(*PLACED, moves_places=True)
def curvilinear_grid(piece, rng, world):
    return _rows_and_columns(piece, rng, True)


@way(*PLACED, moves_places=True)
def curvilinear_grid_with_counting_indexes(piece, rng, world):
    piece = _rows_and_columns(piece, rng, True)
    for dim in ("lat", "lon"):
        name = here(piece, dim)
        piece = labelled(piece, name, np.arange(piece.array.sizes[name]))
    return piece


# dates --------------------------------------------------------------------------------------------


def _dates(piece: Piece) -> tuple[str, pd.DatetimeIndex]:
    """The dimension of an input that has dates as datetime64, and these."""
    name = with_index(piece, "init", "time")
    index = piece.array.indexes[name]
    if not isinstance(index, pd.DatetimeIndex) or index.tz is not None:
        raise NotHereError
    return name, index


@way(*DATED)
def dates_of_another_unit(piece, rng, world):
    name, index = _dates(piece)
    unit = pick(rng, ["s", "ms", "us", "ns"])
    return labelled(piece, name, index.to_numpy().astype(f"datetime64[{unit}]"))


@way(*DATED)
def dates_in_a_time_zone(piece, rng, world):
    """The same instants; dates without a time zone are in UTC."""
    name, index = _dates(piece)
    zone = pick(rng, ["UTC", "Europe/Oslo", "America/New_York", "Asia/Kolkata"])
    return labelled(piece, name, index.tz_localize("UTC").tz_convert(zone))


def cftimes(dates: Any, calendar: str) -> Any:
    found = np.empty(np.shape(dates), object)
    for at in np.ndindex(found.shape):
        d = pd.Timestamp(dates[at])
        found[at] = cftime.datetime(d.year, d.month, d.day, d.hour, calendar=calendar)
    return found


@way(*DATED)
def dates_as_cftime(piece, rng, world):
    name, index = _dates(piece)
    calendar = pick(rng, ["standard", "proleptic_gregorian", "noleap", "gregorian"])
    if calendar == "noleap" and (index[(index.month == 2) & (index.day == 29)]).size:
        raise NotHereError
    return labelled(piece, name, cftimes(index.to_numpy(), calendar))


@way(*DATED)
def dates_as_objects(piece, rng, world):
    name, index = _dates(piece)
    objects = pick(rng, [list(index), list(index.to_pydatetime())])
    return labelled(piece, name, pd.Index(objects, dtype=object))


@way(*DATED, refused="text is not a date")
def dates_as_text(piece, rng, world):
    name, index = _dates(piece)
    texts = index.strftime(pick(rng, ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y%m%d%H"]))
    return labelled(piece, name, np.array(texts, pick(rng, [str, object])))


@way(*DATED, refused="a period is not a date")
def dates_as_periods(piece, rng, world):
    name, index = _dates(piece)
    return labelled(piece, name, index.to_period("M" if world.lead_kind == "months" else "D"))


@way(*DATED, refused="numbers that are not decoded are no dates")
def dates_not_decoded(piece, rng, world):
    name, index = _dates(piece)
    unit, hours = pick(rng, [("days", 24), ("hours", 1)])
    numbers = (index - pd.Timestamp("1970-01-01")) // pd.Timedelta(hours, "h")
    dtype = pick(rng, [np.int64, np.float64, np.int32])
    return labelled(piece, name, np.array(numbers, dtype), units=f"{unit} since 1970-01-01")


@way(*DATED, rtol=1e-12)
def dates_in_another_order(piece, rng, world):
    with_index(piece, "init", "time")
    return shuffled(piece, rng, canonical(piece, "init", "time"))


@way("observations", *COVARIATES)
def dates_that_nobody_asks_for(piece, rng, world):
    name, index = _dates(piece)
    more = piece.array.isel({name: slice(0, 3)})
    more = more.assign_coords({name: index[:3] - pd.Timedelta(4000, "D")}) + 50.0
    array = xr.concat([more.assign_attrs(piece.array.attrs), piece.array], name)
    dim = canonical(piece, "init", "time")
    positions = {**piece.positions, dim: np.concatenate([[-1, -1, -1], piece.positions[dim]])}
    return piece.of(array.transpose(*piece.array.dims), positions=positions)


@way(*DATED, rtol=1e-12)
def dates_beside_the_dimension(piece, rng, world):
    """As profiles have them: the dimension has no index, but dates along it."""
    name = with_index(piece, "init", "time")
    dim = canonical(piece, "init", "time")
    old = piece.array[name]
    array = piece.array.drop_vars(name).rename({name: "N_PROF"})
    array = array.assign_coords({name: ("N_PROF", old.to_index(), old.attrs)})
    array = array.reset_index(name) if name in array.xindexes else array
    told = piece.told if rng.random() < 0.3 else {**piece.told, "dim": dim}
    piece = piece.of(array, names={**piece.names, dim: "N_PROF"}, told=told)
    return shuffled(piece, rng, dim) if rng.random() < 0.5 else piece


@way("forecast", *COVARIATES[1:], selects=True)
def one_start_selected(piece, rng, world):
    return piece.taken(start_of(world), any_of(piece, rng, start_of(world), world))


@way("forecast", *COVARIATES[1:], selects=True)
def one_start_of_length_one(piece, rng, world):
    return piece.taken(start_of(world), [any_of(piece, rng, start_of(world), world)])


# leads --------------------------------------------------------------------------------------------

SPELLINGS = {
    "seconds": ["seconds", "s"],
    "minutes": ["minutes", "min"],
    "hours": ["hours", "h", "hour", "hr", "Hours"],
    "days": ["days", "day", "d"],
    "weeks": ["weeks", "week"],
}
HOURS = {"seconds": 1 / 3600, "minutes": 1 / 60, "hours": 1, "days": 24, "weeks": 168}


def _spans(piece: Piece) -> tuple[str, pd.TimedeltaIndex]:
    name = with_index(piece, "lead")
    index = piece.array.indexes[name]
    if not isinstance(index, pd.TimedeltaIndex):
        raise NotHereError
    return name, index


@way(*FORECASTS, "observations")
def leads_as_numbers_with_a_unit(piece, rng, world):
    name, index = _spans(piece)
    unit = pick(rng, list(HOURS))
    hours = index / pd.Timedelta(1, "h")
    dtype = pick(rng, [np.int64, np.int32, np.float64, np.float32])
    numbers = np.round(np.array(hours / HOURS[unit])).astype(dtype)
    return labelled(piece, name, numbers, units=pick(rng, SPELLINGS[unit]))


@way(*FORECASTS, "observations")
def leads_of_another_unit(piece, rng, world):
    name, index = _spans(piece)
    unit = pick(rng, ["s", "ms", "us", "ns"])
    return labelled(piece, name, index.to_numpy().astype(f"timedelta64[{unit}]"))


@way(*FORECASTS, "observations")
def leads_as_objects(piece, rng, world):
    name, index = _spans(piece)
    objects = pick(rng, [list(index), list(index.to_pytimedelta())])
    return labelled(piece, name, pd.Index(objects, dtype=object))


@way(*FORECASTS, "observations")
def leads_in_another_order(piece, rng, world):
    with_index(piece, "lead")
    return shuffled(piece, rng, "lead")


@way(*FORECASTS, "observations")
def months_spelled_in_another_way(piece, rng, world):
    name = with_index(piece, "lead")
    if world.lead_kind != "months" or piece.array[name].attrs.get("units") != "months":
        raise NotHereError
    dtype = pick(rng, [np.int64, np.int32, np.float64, np.float32])
    units = pick(rng, ["months", "month", "mon", "Months"])
    return labelled(piece, name, piece.array[name].to_numpy().astype(dtype), units=units)


@way(*FORECASTS, "observations")
def months_counted_from_one(piece, rng, world):
    name = with_index(piece, "lead")
    if world.lead_kind != "months" or piece.array[name].attrs.get("units") != "months":
        raise NotHereError
    numbers = piece.array[name].to_numpy().astype(np.int64) + 1
    piece = labelled(piece, name, numbers)
    if rng.random() < 0.5:
        piece.array[name].attrs.pop("units")
    return piece.renamed("lead", pick(rng, ["forecastMonth", "leadtime_month"]))


def _valid(piece: Piece, world: World) -> xr.DataArray:
    """Valid time of each forecast, in the manner of the dates of its starts."""
    start = piece.name("init") or piece.name("time")
    whole = world.pieces["hindcast"].array, world.pieces["forecast"].array
    own = whole[piece.role == "forecast"]
    if "init" not in own.dims:
        raise NotHereError
    leads = own["lead"].to_numpy()
    starts = own["init"].to_numpy()
    if world.lead_kind == "months":
        months = starts.astype("datetime64[M]")[:, np.newaxis] + leads
        valid = months.astype("datetime64[ns]")
    else:
        valid = starts[:, np.newaxis] + leads
    valid = valid[np.ix_(piece.positions["init"], piece.positions["lead"])]
    written = piece.array.coords.get(start if start is not None else "init")
    if written is not None and written.dtype == object and written.size:
        first = np.ravel(written.to_numpy())[0]
        if isinstance(first, cftime.datetime):
            valid = cftimes(valid, first.calendar)
    return xr.DataArray(valid, dims=["init", "lead"])


def with_valid_times(piece: Piece, world: World, name: str = "valid_time", **attrs: Any) -> Piece:
    if name in piece.array.coords or name in piece.array.dims:
        raise NotHereError
    valid = _valid(piece, world)
    scalars = {d: 0 for d in ("init", "lead") if piece.names[d] is None}
    valid = valid.isel(scalars).rename({d: piece.names[d] for d in valid.dims if d not in scalars})
    return piece.of(piece.array.assign_coords({name: (valid.dims, valid.to_numpy(), attrs)}))


@way(*FORECASTS)
def with_valid_time(piece, rng, world):
    if "lead" not in piece.names:
        raise NotHereError
    return with_valid_times(piece, world)


@way(*FORECASTS)
def with_times_by_standard_name(piece, rng, world):
    if "lead" not in piece.names:
        raise NotHereError
    return with_valid_times(piece, world, "verification", standard_name="time")


@way(*FORECASTS)
def with_valid_time_in_place_of_leads(piece, rng, world):
    """Leads without labels, or numbers without a unit, and valid times over starts and leads."""
    name = with_index(piece, "lead")
    if "valid_time" not in piece.array.coords:
        piece = with_valid_times(piece, world)
    array = piece.array.drop_vars(name)
    if rng.random() < 0.5:
        array = array.assign_coords({name: np.arange(array.sizes[name])})
    piece = piece.of(array)
    return piece.renamed("lead", "L") if rng.random() < 0.5 else piece


def _as_read(piece: Piece, world: World, starts: str, leads: str, members: str) -> Piece:
    if "lead" not in piece.names or {starts, leads, members, "valid_time"} & {*piece.array.coords}:
        raise NotHereError
    piece = with_valid_times(piece, world)
    for dim, new in {"init": starts, "lead": leads, "member": members}.items():
        if piece.name(dim) is not None:
            piece = piece.renamed(dim, new)
    return piece.of(piece.array.assign_coords(surface=0.0))


@way(*FORECASTS)
def as_cfgrib_reads_them(piece, rng, world):
    return _as_read(piece, world, "time", "step", "number")


@way(*FORECASTS)
def as_the_climate_data_store_has_them(piece, rng, world):
    return _as_read(piece, world, "forecast_reference_time", "forecast_period", "number")


def _one_lead(piece: Piece, rng: np.random.Generator, world: World) -> Piece:
    piece = piece.taken("lead", [any_of(piece, rng, "lead", world)])
    return with_valid_times(piece, world) if rng.random() < 0.5 else piece


@way(*FORECASTS, selects=True)
def one_lead_of_length_one(piece, rng, world):
    return _one_lead(piece, rng, world)


@way(*FORECASTS, selects=True)
def one_lead_selected(piece, rng, world):
    return _one_lead(piece, rng, world).taken("lead", 0)


@way(*FORECASTS, selects=True)
def one_lead_told_by_valid_time_alone(piece, rng, world):
    name = with_index(piece, "lead")
    piece = piece.taken("lead", [any_of(piece, rng, "lead", world)])
    if "valid_time" not in piece.array.coords:
        piece = with_valid_times(piece, world)
    piece = piece.taken("lead", 0)
    return piece.of(piece.array.drop_vars(name))


@way("observations")
def observations_over_starts_and_leads(piece, rng, world):
    if "time" not in piece.names or world.lead_kind == "none":
        raise NotHereError
    name, index = _dates(piece)
    if not index.is_unique:
        raise NotHereError
    parts = []
    for role in FORECASTS:
        forecasts = world.pieces[role]
        valid = _valid(forecasts, world).to_numpy()
        part = piece.array.reindex({name: np.unique(valid)}).sel(
            {name: xr.DataArray(valid, dims=["init", "lead"])}
        )
        own = forecasts.array
        parts.append(part.drop_vars(name).assign_coords(init=own["init"], lead=own["lead"]))
    array = xr.concat(parts, "init").assign_attrs(piece.array.attrs)
    names = {"init": "init", "lead": "lead"} | {k: v for k, v in piece.names.items() if k != "time"}
    positions = {d: np.arange(array.sizes[d]) for d in ("init", "lead")} | {
        k: v for k, v in piece.positions.items() if k != "time"
    }
    return piece.of(array, names=names, positions=positions)


@way("observations")
def analysis_with_step_zero(piece, rng, world):
    """As GRIB analyses are read: a step of zero, and a valid time equal to the time."""
    name = with_index(piece, "time")
    if "valid_time" in piece.array.coords:
        raise NotHereError
    beside = {"step": np.timedelta64(0, "ns"), "number": 0, "surface": 0.0}
    own = {"valid_time": (name, piece.array[name].to_numpy())} if name != "valid_time" else {}
    return piece.of(piece.array.assign_coords({**beside, **own}))


# values -------------------------------------------------------------------------------------------


@way(*PLACED, rtol=1e-6)
def values_as_float32(piece, rng, world):
    return piece.of(piece.array.astype(np.float32))


@way(*FORECASTS, "observations", refused="the order of bytes of another machine")
def values_of_another_machine(piece, rng, world):
    return piece.of(piece.array.astype(piece.array.dtype.newbyteorder(">")))


FILLS = ["_FillValue", "missing_value"]


@way(*FORECASTS, "observations")
def declared_fill_value_for_missing(piece, rng, world):
    declared = {**piece.array.encoding, **piece.array.attrs}
    if any(name in declared and not np.isnan(declared[name]) for name in FILLS):
        raise NotHereError
    value = pick(rng, [-9999.0, 1e20, 9.969209968386869e36, -32768.0, 999.0, 0.0])
    value = np.asarray(value, piece.array.dtype)[()]
    array = piece.array.fillna(value)
    name = pick(rng, FILLS)
    if rng.random() < 0.5:
        return piece.of(array.assign_attrs({name: value}))
    array = array.assign_attrs(piece.array.attrs)
    array.encoding[name] = value
    return piece.of(array)


@way(*FORECASTS, rtol=1e-6)
def quantiles_as_percentiles(piece, rng, world):
    name = with_index(piece, "quantile")
    if name != "quantile":
        raise NotHereError
    levels = piece.array[name].to_numpy() * 100
    levels = pick(rng, [levels, np.round(levels).astype(int), np.round(levels).astype("f4")])
    return labelled(piece, name, levels).renamed("quantile", "percentile")


@way(*FORECASTS, rtol=1e-6)
def levels_of_quantiles_as_float32(piece, rng, world):
    name = with_index(piece, "quantile")
    return labelled(piece, name, piece.array[name].to_numpy().astype(np.float32))


@way(*FORECASTS, rtol=1e-6)
def levels_of_quantiles_in_another_order(piece, rng, world):
    with_index(piece, "quantile")
    return shuffled(piece, rng, "quantile")


@way(*PLACED)
def chunks_of_dask(piece, rng, world):
    beside = [c for n, c in piece.array.coords.items() if n not in piece.array.indexes]
    if not all(isinstance(c.dtype, np.dtype) for c in beside):  # Dask takes no periods
        raise NotHereError
    whole = [piece.name(d) for d in ("member", "quantile", "month", "season")]
    if piece.role != "forecast":
        whole += [piece.name(d) for d in ("init", "time")]
    sizes = piece.array.sizes
    chunks = {d: -1 if d in whole else int(rng.integers(1, n + 1)) for d, n in sizes.items()}
    return piece.of(piece.array.chunk(chunks))


@way(*PLACED)
def another_layout_in_memory(piece, rng, world):
    if piece.array.chunks is not None or not piece.array.ndim:
        raise NotHereError
    values = piece.array.to_numpy()
    if rng.random() < 0.5:
        values = np.asfortranarray(values)
    else:
        wide = np.full([2 * n for n in values.shape], np.inf, values.dtype)
        wide[tuple(slice(None, None, 2) for _ in values.shape)] = values
        values = wide[tuple(slice(None, None, 2) for _ in values.shape)]
    if rng.random() < 0.5:
        values.flags.writeable = False
    encoding = piece.array.encoding
    array = piece.array.copy(data=values)
    array.encoding = encoding
    return piece.of(array)


def _stored(piece: Piece, write: Callable[[xr.Dataset, Path], xr.Dataset]) -> Piece:
    named = piece.array.to_dataset(name="stored")
    for coordinate in named.coords.values():
        coordinate.encoding = {}
    attrs, encoding = named["stored"].attrs, named["stored"].encoding
    for name in {*FILLS} & set(attrs) & set(encoding):
        del encoding[name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = write(named, Path(folder))
        except (ValueError, TypeError, NotImplementedError, OverflowError) as error:
            raise NotHereError from error
    return piece.of(found["stored"].rename(piece.array.name))


@way(*PLACED)
def netcdf_and_back(piece, rng, world):
    def write(dataset: xr.Dataset, folder: Path) -> xr.Dataset:
        dataset.to_netcdf(folder / "file.nc")
        with xr.open_dataset(folder / "file.nc") as opened:
            return opened.load()

    return _stored(piece, write)


@way(*PLACED)
def zarr_and_back(piece, rng, world):
    def write(dataset: xr.Dataset, folder: Path) -> xr.Dataset:
        dataset.to_zarr(folder / "store.zarr", consolidated=False)
        with xr.open_zarr(folder / "store.zarr", consolidated=False) as opened:
            return opened.load()

    return _stored(piece, write)


# attributes and what lies beside ------------------------------------------------------------------


@way(*FORECASTS, "observations", *THRESHOLDS)
def units_spelled_in_another_way(piece, rng, world):
    spelled = pick(rng, ["kelvin", "K", "Kelvin", "degK", "deg_K", "degrees_kelvin"])
    array = piece.array.copy()
    array.attrs["units"] = spelled
    return piece.of(array)


@way(*FORECASTS, "observations", *THRESHOLDS)
def another_unit_stated(piece, rng, world):
    """Of all alike; values of which some are in one unit and some in another are refused."""
    array = piece.array.copy()
    array.attrs["units"] = pick(rng, ["degC", "degree_Celsius", "celsius", "°C", "deg_C"])
    return piece.of(array)


@way(*FORECASTS, "observations", *THRESHOLDS)
def units_not_stated(piece, rng, world):
    array = piece.array.copy()
    array.attrs.pop("units", None)
    return piece.of(array)


@way(*PLACED)
def another_name_of_the_variable(piece, rng, world):
    return piece.of(piece.array.rename(pick(rng, ["tas", "2t", None, "air_temperature"])))


@way(*FORECASTS)
def dataset_of_one_variable(piece, rng, world):
    return piece.of(piece.array, form="dataset")


@way(*PLACED)
def coordinates_that_say_nothing(piece, rng, world):
    height = xr.Variable((), 2.0, {"units": "m", "standard_name": "height"})
    surface = xr.Variable((), 0.0)
    array = piece.array.assign_coords(height=height, surface=surface)
    place = piece.name("station")
    if place is not None:
        array = array.assign_coords(altitude=(place, 5.0 * piece.positions["station"]))
    return piece.of(array)


@way(*PLACED)
def attributes_of_coordinates(piece, rng, world):
    array = piece.array.copy()
    usual = {"lat": "latitude", "lon": "longitude", "station": "platform_name"}
    for dim, standard in usual.items():
        name = piece.name(dim)
        if name is not None and name in array.coords:
            array[name].attrs |= {"standard_name": standard, "long_name": "where"}
    for dim in ("init", "time"):
        name = piece.name(dim)
        if name is not None and name in array.coords and piece.role != "observations":
            array[name].attrs["long_name"] = "start"
    return piece.of(array)


@way(*THRESHOLDS)
def parts_of_the_year_in_another_order(piece, rng, world):
    here(piece, "month", "season")
    return shuffled(piece, rng, canonical(piece, "month", "season"))
