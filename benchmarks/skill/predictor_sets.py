"""Sets with all that is known at the start: other variables, last observations, features of places.

The first 60 % of the dates are to learn from.
"""

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr

import xrecal
from examples.real_data import open_data

from .sets import Set, by_share
from .streams import HOURS

BROKEN = "tcc"  # of Innsbruck: another unit from 2014 on
QUARTERS = (f"{name}{quarter}" for name in ("CC", "PPT") for quarter in range(1, 5))
MODEL = ("RHmin", "RHmax", "Tmax_lapse", "Tmin_lapse", "WS", "LH", *QUARTERS)
OTHERS = ("Present_Tmax", "Present_Tmin", "Solar radiation")  # of Seoul, beside those of the model
LEAD = np.timedelta64(2, "D")  # of the network


def dillingen() -> Iterator[Set]:
    """Means of seven other variables, and the control run of all eight."""
    given = open_data("dillingen_ecmwf.nc")
    of = given["predictors"]

    def part(name: str, statistic: str) -> xr.DataArray:
        return of.sel(predictor=name, statistic=statistic, drop=True)

    issued = xrecal.gaussian(part("temp", "mean").rename("temperature_loc"), part("temp", "sd"))
    names = of["predictor"].values.tolist()
    covariates = {name: part(name, "mean") for name in names if name != "temp"}
    covariates |= {f"{name}_control": part(name, "ctrl") for name in names}
    yield by_share(
        "Dillingen", issued, given["observation"], "time", season=True, covariates=covariates
    )


def innsbruck() -> Iterator[Set]:
    given = open_data("innsbruck_gefs36.nc")
    of = {
        str(n): given["predictors"].sel(predictor=n, drop=True) for n in given["predictor"].values
    }
    issued = of.pop("t2m").expand_dims(member=1).transpose("time", "member")
    pair = issued.rename("temperature"), given["observation"]
    whole = {name: one for name, one in of.items() if name != BROKEN}
    for name, covariates in (("", whole), (", one breaks", of)):
        yield by_share(f"Innsbruck{name}", *pair, "time", season=True, covariates=covariates)


def hannover() -> Iterator[Set]:
    """Means and spreads of nine other variables."""
    given = open_data("hannover_ecmwf.nc")
    issued = xrecal.gaussian(given["t2m_mean"].rename("temperature_loc"), given["t2m_sd"])
    others = [str(name) for name in given.data_vars if str(name).endswith(("_mean", "_sd"))]
    covariates = {name: given[name] for name in others if "t2m" not in name}
    yield by_share(
        "Hannover", issued, given["observation"], "time", season=True, covariates=covariates
    )


def prices(file: str, name: str) -> Iterator[Set]:
    """Prices of all hours of the day before, which are known when those of a day are forecast."""
    given = open_data(file)
    starts = given["forecast"].rename(time="init")
    known = given["observation"].recal.known_at(starts, delay="1D").rename(init="time")
    covariates = {
        f"hour_{hour}": known.sel(hour=hour, drop=True) for hour in given["hour"].values.tolist()
    }
    given = given.sel(hour=list(HOURS))
    pair = given["forecast"], given["observation"]
    yield by_share(name, *pair, "time", season=True, covariates=covariates)


def seoul() -> Iterator[Set]:
    """Maximum temperature at 25 stations: each alone, and in one fit."""
    given = open_data("seoul_ldaps.nc")
    covariates = {f"LDAPS_{name}": given[f"LDAPS_{name}"] for name in MODEL}
    covariates |= {name.replace(" ", "_"): given[name] for name in OTHERS}
    issued = covariates.pop("LDAPS_Tmax_lapse").expand_dims(member=1, axis=2)
    covariates = {name: one.reset_coords(drop=True) for name, one in covariates.items()}
    observed = given["Next_Tmax"].reset_coords(drop=True)
    places = issued.drop_vars(["DEM", "Slope"]), issued.rename(DEM="height")
    for name, part, more in (
        ("each station", places[0], {}),
        ("one fit", places[0], {"pool": ("station",)}),
        ("one fit, with features", places[1], {"pool": ("station",), "features": ("Slope",)}),
    ):
        known = {"season": True, "covariates": covariates, **more}
        yield by_share(f"Seoul, {name}", part.rename("temperature"), observed, "time", **known)


def network() -> Iterator[Set]:
    """Temperature at 835 stations in half a year, and the last error that is known at the start."""
    given = open_data("uwme_t2m_network.nc")
    issued, observed = given["forecast"], given["obs"].reset_coords(drop=True)
    starts = issued.assign_coords(time=issued["time"] - LEAD).rename(time="init")
    known = (observed - issued.reset_coords(drop=True)).recal.known_at(starts)
    last = known.rename(init="time").assign_coords(time=issued["time"]).reset_coords(drop=True)
    issued = issued.rename("temperature").expand_dims(member=1, axis=2)
    known = {"season": False, "covariates": {"last_error": last}, "pool": ("station",)}
    yield by_share("Network, one fit", issued, observed, "time", **known)


SOURCES: dict[str, Callable[[], Iterator[Set]]] = {
    "dillingen": dillingen,
    "innsbruck": innsbruck,
    "hannover": hannover,
    "prices DE": lambda: prices("epf_de.nc", "Prices DE"),
    "prices PJM": lambda: prices("epf_pjm.nc", "Prices PJM"),
    "prices EPEX": lambda: prices("epex_de.nc", "Prices EPEX"),
    "seoul": seoul,
    "network": network,
}
"""Sets by source."""
