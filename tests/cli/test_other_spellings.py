"""Leads and names of places that a model knows in another spelling than the files of the day."""

import numpy as np
import pytest
import xarray as xr

import xrecal

from .days import LEADS, LEARNED, STARTS, first_fit, truth_and_forecasts
from .files import refused, succeed

TRUTH, FORECASTS = truth_and_forecasts()
NAMES = ["Århus", "Zürich"]
BYTES = np.array([name.encode() for name in NAMES])


def write(array, path):
    array.to_dataset(name="t2m").drop_encoding().to_netcdf(path)
    return path


@pytest.mark.parametrize("leads", ["hours", "lengths", "standard"])
def test_an_update_takes_leads_in_any_unit(tmp_path, leads):
    days = first_fit(tmp_path)
    truth = write(TRUTH, tmp_path / "truth.nc")
    made = {}
    for name, lead in {"days": FORECASTS["lead"], leads: LEADS[leads]}.items():
        more = FORECASTS[LEARNED:].assign_coords(lead=lead)
        hindcast = write(more, tmp_path / f"{name}.nc")
        path = tmp_path / f"{name}_model.nc"
        data = succeed("update", days.model, hindcast, truth, path, "--json").data
        made[name] = data["variables"], xrecal.open_recalibrator(path).state
    assert made["days"][0] == made[leads][0] == {"t2m": {"learned": 24, "revised": 0}}
    xr.testing.assert_identical(made["days"][1], made[leads][1])


def test_a_cycle_takes_names_that_are_padded(tmp_path):
    days = first_fit(tmp_path)
    model = FORECASTS[:LEARNED].assign_coords(place=NAMES)
    truth = TRUTH.sel(time=slice(None, STARTS[LEARNED])).assign_coords(place=NAMES)
    model.recal.fit(truth, xrecal.EMOS()).save(days.model, overwrite=True)
    spelt = {"place": [f"{name} " for name in NAMES]}
    wrong = TRUTH.copy(deep=True)
    wrong[{"time": 41, "place": 1}] = 1e30  # beyond a million times all that was seen
    done = days.morning(
        42, forecasts=FORECASTS.assign_coords(spelt), truth=wrong.assign_coords(spelt)
    )
    assert done.code == 0, done.err
    assert len(done.data["issued"]) == 7 - done.data["in_hindcast"]


def test_text_of_fixed_length_is_a_name(tmp_path):
    hindcast = write(FORECASTS.assign_coords(place=BYTES), tmp_path / "h.nc")
    truth = write(TRUTH.assign_coords(place=BYTES), tmp_path / "o.nc")
    for suffix in ("nc", "zarr"):
        model = tmp_path / f"m.{suffix}"
        succeed("fit", hindcast, truth, model, "--method", "emos")
        assert xrecal.open_recalibrator(model).state["place"].to_numpy().tolist() == NAMES
        succeed("apply", model, hindcast, tmp_path / f"{suffix}.nc", "--members", "3")


def test_bytes_that_are_no_utf_8_stay_apart(tmp_path):
    names = np.array(["Grün".encode("latin-1"), "Grön".encode("latin-1")])
    own = FORECASTS.assign_coords(place=names)
    model = own.recal.fit(TRUTH.assign_coords(place=names), xrecal.EMOS())
    turned = own[:, :, ::-1]
    np.testing.assert_array_equal(model.quantile(turned, 0.5)[:, :, ::-1], model.quantile(own, 0.5))
    model.save(tmp_path / "m.nc")
    opened = xrecal.open_recalibrator(tmp_path / "m.nc")
    assert opened.state["place"].to_numpy().tolist() == ["Gr\\xfcn", "Gr\\xf6n"]
    np.testing.assert_array_equal(opened.quantile(own, 0.5), model.quantile(own, 0.5))


def test_an_update_without_some_leads_says_so(tmp_path):
    days = first_fit(tmp_path)
    hindcast = write(FORECASTS[LEARNED:, :1], tmp_path / "h.nc")
    truth = write(TRUTH, tmp_path / "o.nc")
    told = refused("update", days.model, hindcast, truth, tmp_path / "u.nc")
    assert told.startswith("model.state and hindcast differ along 'lead': 2 against 1 labels")
