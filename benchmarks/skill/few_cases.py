"""Sets of few cases: each year, or each block, is forecast from all others."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from examples.real_data import open_data

from .sets import Set, left_out

WINTERS = 9  # of the Iberian land cells one in so many
OCEAN = 12, 9  # of the cells of the Pacific one in so many, along both axes
YEARS, MEMBERS, WORLDS = 30, 20, 12


def europe() -> Iterator[Set]:
    given = open_data("europe_jja_cfsv2.nc")
    yield left_out("Europe JJA temperature", given["forecast"], given["observation"], guard=True)


def large_ensemble() -> Iterator[Set]:
    given = open_data("cesm_le_global_sst.nc")
    yield left_out("CESM LE global SST", given["forecast"], given["observation"], guard=True)


def decadal_years() -> Iterator[Set]:
    """Leads of global means, of which each year is forecast from all others."""
    given = open_data("cesm_dple_global_ocean.nc").drop_vars("valid_year")
    pairs = {
        "SST": ("forecast", "observation"),
        "SST v FOSI": ("forecast", "observation_fosi"),
        "salinity": ("salinity_forecast", "salinity_observation"),
    }
    leads = (1, 3, 6, 10)
    given = given.sel(lead=list(leads))
    for variable, (forecast, observed) in pairs.items():
        name, pair = f"CESM decadal {variable}", (given[forecast], given[observed])
        positions = {f"{name} {lead} a": {"lead": lead} for lead in leads}
        yield left_out(name, *pair, guard=True, positions=positions)


def pacific() -> Iterator[Set]:
    cells = {"nlat": slice(None, None, OCEAN[0]), "nlon": slice(None, None, OCEAN[1])}
    given = open_data("cesm_dple_epacific_lagged.nc").isel(cells)
    given = given.stack(cell=("nlat", "nlon")).reset_index("cell", drop=True)
    known = np.flatnonzero(given["observation"].notnull().all("time"))
    given = given.isel(cell=known)[["forecast", "observation"]]
    pair = given["forecast"].transpose("time", "member", "cell"), given["observation"]
    yield left_out("East Pacific SST", *pair, guard=True, named=True)


def iberian_winters() -> Iterator[Set]:
    """Rain of whole winters."""
    given = open_data("cfs_iberia_precip.nc")[["forecast", "observation", "winter"]]
    given = given.stack(cell=("lat", "lon")).reset_index("cell", drop=True)
    land = given["observation"].notnull().mean("time") > 0.9
    given = given.isel(cell=np.flatnonzero(land)[::WINTERS])
    given = given.groupby("winter").mean()
    pair = given["forecast"].transpose("winter", "member", "cell"), given["observation"]
    pair = tuple(part.rename(winter="time") for part in pair)
    yield left_out("Iberia winter rain", *pair, guard=True)


def seasonal_rain() -> Iterator[Set]:
    """Synthetic seasonal rain: two models with opposite biases in one ensemble, and some skill."""
    rng = np.random.default_rng(7)
    for name, bias in (("refuted", 100.0), ("biased", 40.0)):
        signal = rng.normal(size=(YEARS, WORLDS))
        observed = 40.0 * rng.gamma(4.0, 1.0, (YEARS, WORLDS)) * np.exp(0.25 * signal)
        sign = np.where(np.arange(MEMBERS) < MEMBERS // 2, 1.0, -1.0)[:, np.newaxis]
        drawn = 40.0 * rng.gamma(4.0, 1.0, (YEARS, MEMBERS, WORLDS))
        issued = drawn * np.exp(0.25 * signal[:, np.newaxis]) + bias * sign
        years = {"time": np.arange(1990, 1990 + YEARS)}
        pair = (
            xr.DataArray(np.maximum(issued, 0.0), years, ("time", "member", "world")),
            xr.DataArray(observed, years, ("time", "world")),
        )
        yield left_out(f"Seasonal rain, {name}", *pair, guard=True)


def airports() -> Iterator[Set]:
    """A month at two airports; each day is forecast from all others."""
    given = open_data("uwme_multivariable_small.nc")
    for variable in ("t2m", "precip24", "max_wind10"):
        pair = given[f"{variable}_forecast"], given[f"{variable}_observation"]
        pair = tuple(part.assign_coords(time=np.arange(part.sizes["time"])) for part in pair)
        pair = pair[0].transpose("time", "member", "station"), pair[1]
        yield left_out(f"UWME {variable}", *pair, guard=True, named=True)
