"""Forecasts and observations of days that come one after the other, in files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from tests.cli.files import run

STARTS = np.datetime64("2020-01-01", "ns") + np.arange(46) * np.timedelta64(1, "D")
LEARNED = 40
"""Starts of the first fit, of which those verify late whose lead is long."""


def truth_and_forecasts(seed=0, n_members=5, places=2):
    """Observations by day, and forecasts (init, lead, place, member) of them."""
    rng = np.random.default_rng(seed)
    days = STARTS[0] + np.arange(52) * np.timedelta64(1, "D")
    place = {"place": np.arange(places)}
    signal = 3 * rng.normal(size=(days.size, places))
    truth = xr.DataArray(
        280 + signal + rng.normal(size=signal.shape),
        {"time": days, **place},
        ["time", "place"],
        name="t2m",
        attrs={"units": "K"},
    )
    leads = np.array([1, 3])
    at = np.arange(STARTS.size)[:, np.newaxis] + leads
    members = 282 + signal[at][..., np.newaxis]
    members = members + 0.4 * rng.normal(size=(*members.shape[:-1], n_members))
    forecasts = xr.DataArray(
        members,
        {"init": STARTS, "lead": ("lead", leads, {"units": "days"}), **place},
        ["init", "lead", "place", "member"],
        name="t2m",
        attrs={"units": "K"},
    )
    return truth, forecasts


TRUTH, FORECASTS = truth_and_forecasts()


class Days(NamedTuple):
    """Paths, and what a morning's command is given."""

    folder: Path
    model: Path
    output: Path
    forecasts: Path
    observations: Path

    def args(self, now, *more):
        return [
            "cycle", self.model, "--forecasts", self.forecasts, "--observations", self.observations,
            "--output", self.output, "--quantiles", "0.1,0.5,0.9", "--now", now, "--json",
            "--quiet", *more,
        ]  # fmt: skip

    def morning(self, day, *more, forecasts=FORECASTS, truth=TRUTH):
        """The command on a day, with all that there is until then."""
        self.hand_over(day, forecasts, truth)
        return run(*self.args(STARTS[day], *more))

    def hand_over(self, day, forecasts=FORECASTS, truth=TRUTH):
        """Write the forecasts of the last days and all observations until a day."""
        write(forecasts[max(day - 6, 0) : day + 1], self.forecasts)
        write(truth.sel(time=slice(None, STARTS[day])), self.observations)


def write(array, path):
    array.to_dataset(name="t2m").drop_encoding().to_netcdf(path)


def first_fit(folder, method=None, suffix=".nc"):
    """A model of what had verified before the first morning, and the files of a cycle."""
    valid = FORECASTS["init"] + FORECASTS["lead"].astype("timedelta64[D]")
    known = xr.DataArray(
        TRUTH.sel(time=valid.to_numpy().ravel()).to_numpy().reshape(46, 2, 2),
        FORECASTS.isel(member=0, drop=True).coords,
        ["init", "lead", "place"],
        attrs=TRUTH.attrs,
    ).where(valid <= STARTS[LEARNED - 1])
    past = slice(0, LEARNED - 1)
    method = xrecal.EMOS() if method is None else method
    model = FORECASTS[past].recal.fit(known[past], method)
    path = folder / f"model{suffix}"
    model.save(path)
    return Days(folder, path, folder / "out", folder / "forecasts.nc", folder / "obs.nc")


HOURS = np.array([24, 72])
LEADS = {
    "hours": ("lead", HOURS, {"units": "hours"}),
    "lengths": ("lead", HOURS.astype("m8[h]").astype("m8[ns]")),
    "standard": ("lead", HOURS / 1.0, {"units": "h", "standard_name": "forecast_period"}),
    "valid times": ("lead", HOURS // 24),
}
"""One and three days in the ways in which files tell them; the last has valid times beside."""


def drifting(leads, mornings, first, learned=40):
    """Forecasts (init, lead, member) whose errors grow by three standard deviations.

    From the observation of day ``first`` of the ``mornings`` on, which come after those learned.
    """
    rng = np.random.default_rng(1)
    days = STARTS[0] + np.arange(learned + mornings + 3) * np.timedelta64(1, "D")
    signal = 3 * rng.normal(size=days.size)
    values = 280 + signal + rng.normal(size=days.size)
    values[learned + first :] += 3
    truth = xr.DataArray(values, {"time": days}, ["time"], "t2m", {"units": "K"})
    starts = days[:-3]
    at = np.arange(starts.size)[:, np.newaxis] + HOURS // 24
    members = 280 + signal[at][..., np.newaxis] + rng.normal(size=(*at.shape, 4))
    coords = {"init": starts, "lead": LEADS[leads]}
    if leads == "valid times":
        coords["valid_time"] = (("init", "lead"), days[at])
    forecasts = xr.DataArray(members, coords, ["init", "lead", "member"], "t2m", {"units": "K"})
    return forecasts, truth, learned
