"""Leads without labels: the valid times of each start say how long they are."""

import numpy as np
import pandas as pd
import xarray as xr

import xrecal

STARTS = pd.date_range("2021-03-01", periods=40)
DAYS = np.array([1, 2, 5])
RNG = np.random.default_rng(6)
FLOW = xr.DataArray(
    RNG.normal(size=60), {"time": pd.date_range("2021-03-01", periods=60)}, ["time"], name="flow"
)
TIMES = STARTS.to_numpy()[:, np.newaxis] + DAYS.astype("timedelta64[D]")
TRUTH = FLOW.sel(time=xr.DataArray(TIMES, dims=["init", "lead"])).to_numpy()
SCALE = np.array([0.2, 1.0, 3.0])[:, np.newaxis]
LABELLED = xr.DataArray(
    TRUTH[..., np.newaxis] * SCALE + RNG.normal(size=(40, 3, 5)),
    {"init": STARTS, "lead": ("lead", DAYS, {"units": "days"})},
    ["init", "lead", "member"],
    name="flow",
)
BARE = LABELLED.drop_vars("lead").assign_coords(valid_time=(["init", "lead"], TIMES))
MODEL = LABELLED.recal.fit(FLOW, xrecal.EMOS())
NEW = {"init": [3]}


def test_a_model_keeps_what_valid_times_say():
    model = BARE.recal.fit(FLOW, xrecal.EMOS())
    expected = MODEL.quantile(LABELLED.isel(NEW), 0.5).isel(lead=[1, 0])
    for new in (LABELLED, BARE):
        found = model.quantile(new.isel(NEW).isel(lead=[1, 0]), 0.5)
        np.testing.assert_allclose(found, expected.transpose(*found.dims))
    assert "by position" not in repr(model)


def test_dates_of_another_calendar():
    starts = xr.date_range("2021-03-01", periods=40, calendar="noleap", use_cftime=True)
    valid = [[start + np.timedelta64(int(d), "D").astype(object) for d in DAYS] for start in starts]
    bare = BARE.assign_coords(init=starts, valid_time=(["init", "lead"], np.array(valid)))
    found = MODEL.quantile(bare.isel(NEW).isel(lead=[2, 0]), 0.5)
    expected = MODEL.quantile(LABELLED.isel(NEW), 0.5).isel(lead=[2, 0])
    np.testing.assert_allclose(found, expected.transpose(*found.dims))


def test_months_are_counted_by_position():
    """31, 59 and 90 days after January are other lengths after March."""
    starts = pd.date_range("1990-01-01", periods=40, freq="MS")
    valid = np.stack([starts + pd.DateOffset(months=int(m)) for m in (1, 2, 5)], axis=1)
    coords = {"init": starts, "lead": ("lead", [1, 2, 5], {"units": "months"})}
    hindcast = LABELLED.assign_coords(coords)
    truth = xr.DataArray(TRUTH, hindcast.isel(member=0).coords, ["init", "lead"])
    model = hindcast.recal.fit(truth, xrecal.EMOS())
    bare = hindcast.drop_vars("lead").assign_coords(valid_time=(["init", "lead"], valid))
    expected = model.quantile(hindcast.isel(NEW), 0.5)
    np.testing.assert_allclose(model.quantile(bare.isel(NEW), 0.5), expected)
