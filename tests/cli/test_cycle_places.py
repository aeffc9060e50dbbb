"""A cycle knows stations by names beside their dimension, whatever order each file has."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.cli.files import run

STARTS = np.datetime64("2021-01-01", "ns") + np.arange(36) * np.timedelta64(1, "D")
NAMES = np.array(["Oslo", "Bergen", "Tromso"])
OTHER = [2, 0, 1]
RNG = np.random.default_rng(0)
BESIDE = {"station_name": ("station", NAMES, {"cf_role": "timeseries_id"})}
TRUTH = xr.DataArray(
    np.array([0.0, 10.0, -10.0]) + RNG.normal(size=(36, 3)),
    {"time": STARTS, **BESIDE},
    ("time", "station"),
    name="v",
)
FORECASTS = (
    TRUTH + 1 + xr.DataArray(RNG.normal(size=(36, 3, 4)), dims=("time", "station", "member"))
)


@pytest.mark.parametrize("count", [False, True])
def test_each_file_may_have_an_order_of_its_own(tmp_path, count):
    def write(array, name, order=None):
        array = array if order is None else array.isel(station=order)
        array = array.assign_coords(station=np.arange(3)) if count else array
        array.rename("v").to_netcdf(tmp_path / name)

    xrecal_model = FORECASTS[:30].recal.fit(TRUTH, xrecal.EMOS())
    model = FORECASTS[:30].assign_coords(station=np.arange(3)) if count else FORECASTS[:30]
    model.recal.fit(TRUTH, xrecal.EMOS()).save(tmp_path / "model.nc")
    for k, (day, orders) in enumerate(zip((31, 32), ((None, OTHER), (OTHER, None)), strict=True)):
        write(FORECASTS[day - 1 : day], f"forecasts{k}.nc", orders[0])
        write(TRUTH[: day + 1], "observations.nc", orders[1])
        done = run(
            "cycle", tmp_path / "model.nc", "--forecasts", str(tmp_path / "forecasts*.nc"),
            "--observations", tmp_path / "observations.nc", "--output", tmp_path / "out",
            "--quantiles", "0.5", "--now", STARTS[day], "--json", "--quiet",
        )  # fmt: skip
        assert done.code == 0, done
    with xr.open_dataset(tmp_path / "out" / "scores.nc") as scores:
        whole = scores.load()
    np.testing.assert_array_equal(whole["station_name"], NAMES)
    expected = TRUTH.sel(time=whole["time"])
    np.testing.assert_allclose(whole["v_observation"], expected)
    at = FORECASTS.sel(time=whole["time"])
    np.testing.assert_allclose(whole["v_crps_raw"], at.recal.crps(TRUTH))
    first = xrecal_model.crps(at, TRUTH)[0]
    np.testing.assert_allclose(whole["v_crps"][0], first)
