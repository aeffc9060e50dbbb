"""Sets of forecasts that are issued day by day or week by week, split in time."""

from collections.abc import Iterator

import numpy as np

import xrecal
from examples.real_data import open_data

from .sets import Set, by_share

HOURS = (4, 8, 12, 19)  # of the day: night, morning, noon and evening
SECOND_SEASON_ENDS = np.datetime64("2025-08-01")
CASES = 2500  # of the cases of one date and another at most, to train on and to score


def prices(file: str, name: str, named: bool) -> Iterator[Set]:
    given = open_data(file).sel(hour=list(HOURS))
    pair = given["forecast"], given["observation"]
    positions = {f"{name} {hour} h": {"hour": hour} for hour in HOURS}
    yield by_share(name, *pair, "time", season=True, named=named, positions=positions)


def prices_de() -> Iterator[Set]:
    return prices("epf_de.nc", "Prices DE", True)


def prices_pjm() -> Iterator[Set]:
    return prices("epf_pjm.nc", "Prices PJM", True)


def prices_epex() -> Iterator[Set]:
    return prices("epex_de.nc", "Prices EPEX", True)


def hannover() -> Iterator[Set]:
    given = open_data("hannover_ecmwf.nc")

    def issued(loc, scale):
        return xrecal.gaussian(loc.rename("temperature_loc"), scale)

    pair = issued(given["lead_t2m_mean"], given["lead_t2m_sd"]), given["lead_observation"]
    positions = {f"Hannover {lead} h": {"lead": lead} for lead in given["lead"].values.tolist()}
    yield by_share("Hannover", *pair, "time", season=True, positions=positions)
    others = [n for n in given.data_vars if str(n).endswith("_mean") and "t2m" not in str(n)]
    pair = issued(given["t2m_mean"], given["t2m_sd"]), given["observation"]
    covariates = {str(n).removesuffix("_mean"): given[n] for n in others}
    name = "Hannover 24 h, with other variables"
    yield by_share(name, *pair, "time", season=True, covariates=covariates)


def flusight() -> Iterator[Set]:
    given = open_data("flusight_admissions.nc")
    levels = tuple(given["quantile"].values.tolist())
    early = (given["time"] < SECOND_SEASON_ENDS).values
    positions = {f"FluSight {lead} weeks": {"lead": lead} for lead in given["lead"].values.tolist()}
    given = np.log1p(given)
    yield Set(
        "FluSight",
        given["forecast"].isel(time=early),
        given["forecast"].isel(time=~early),
        given["observation"],
        season=True,
        levels=levels,
        scale="log(1 + x)",
        positions=positions,
    )


def hefs() -> Iterator[Set]:
    given = open_data("hefs_lgnn5.nc")
    rain = given.isel(lead=slice(None, None, 2))
    pair = rain["forecast"], rain["observation"]
    positions = {f"HEFS rain {lead} h": {"lead": lead} for lead in rain["lead"].values.tolist()}
    yield by_share("HEFS rain", *pair, "init", season=False, positions=positions)
    pair = given["discharge_forecast"], given["discharge_observation"]
    yield by_share("HEFS discharge", *pair, "init", season=False)


def uwme() -> Iterator[Set]:
    """Dates of two months, of several stations each: whole dates are on one side of the split."""
    given = open_data("uwme_precip_samples.nc").drop_vars(["lat"])
    step = -(-given.sizes["sample"] // CASES)
    given = given.isel(sample=slice(None, None, step)).sortby("time")
    dates = np.unique(given["time"].values)
    early = (given["time"] < dates[int(0.6 * dates.size)]).values
    given = given.drop_vars("time").rename(sample="time")
    parts = given["forecast"].isel(time=early), given["forecast"].isel(time=~early)
    yield Set("UWME rain", *parts, given["observation"], season=False, named=True)
