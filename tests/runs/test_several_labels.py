"""Places that are stacked from two dimensions: in files, and back with both labels."""

import cf_xarray as cfxr
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases

SIZES = {"n_lat": 2, "n_lon": 3}
SHOWN = [0, 1, 2, 4, 5]  # not the whole grid


def stacked(array):
    array["lat"].attrs["units"] = "degrees_north"
    return array.stack(place=("lat", "lon")).isel(place=SHOWN)


GRIDDED = *ensemble_and_truth(**SIZES), *new_cases(**SIZES)
STACKED = HINDCAST, TRUTH, NEW, VERIFIED = tuple(map(stacked, GRIDDED))
EMOS = xrecal.EMOS()


@pytest.fixture(scope="module")
def model():
    return HINDCAST.recal.fit(TRUTH)


@pytest.mark.parametrize(
    "call",
    [
        lambda past, truth, new, _: past.recal.fit(truth, EMOS).categories(new),
        lambda past, truth, *_: past.recal.cross_validate(truth, EMOS, q=[0.1, 0.5]),
        lambda past, truth, *_: past.recal.skce_test(truth, dim="time").p_value,
        lambda past, truth, new, verified: past.recal.fit(truth, EMOS).crps(new, verified),
    ],
    ids=["categories", "cross_validate", "skce_test", "crps"],
)
def test_numbers_are_those_of_the_grid(call):
    found = call(*STACKED)
    expected = stacked(call(*GRIDDED)).transpose(*found.dims)
    assert found.indexes["place"].equals(HINDCAST.indexes["place"])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("by", [None, "place"])
def test_methods_are_compared_at_stacked_places(by):
    table = xrecal.compare(HINDCAST, TRUTH, [EMOS], by=by)
    assert bool(table.crps.sel(method="EMOS").notnull().all())


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_models_keep_both_labels(tmp_path, model, suffix):
    model.save(tmp_path / f"model.{suffix}")
    opened = xrecal.open_recalibrator(tmp_path / f"model.{suffix}")
    xr.testing.assert_identical(opened.quantile(NEW, 0.5).compute(), model.quantile(NEW, 0.5))
    some = NEW.isel(place=[3, 0])
    xr.testing.assert_equal(opened.quantile(some, 0.5).compute(), model.quantile(some, 0.5))


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_results_keep_both_labels(tmp_path, model, suffix):
    issued = model.apply(NEW)
    run = xrecal.Run(tmp_path / f"issued.{suffix}")
    run.write(model.apply(NEW.chunk(place=2)))
    with run.open_result() as back:
        assert back.indexes["place"].equals(NEW.indexes["place"])
        assert back["lat"].attrs == NEW["lat"].attrs
        first = back.sel(lat=NEW.lat[0].item(), lon=NEW.lon[0].item())
        assert first.t2m.dims == ("time", "member")
        xr.testing.assert_equal(
            back.recal.crps(VERIFIED, dim="time").compute(), issued.recal.crps(VERIFIED, dim="time")
        )


def test_files_are_those_of_cf_xarray(tmp_path, model):
    whole = cfxr.encode_multi_index_as_compress(NEW.to_dataset(name="t2m"), "place")
    whole.to_netcdf(tmp_path / "new.nc")
    run = xrecal.Run(tmp_path / "issued.nc")
    forecast = run.open(tmp_path / "new.nc")
    issued = run.issue(model, forecast, quantiles=[0.1, 0.9])
    run.write(issued)
    with xr.open_dataset(tmp_path / "issued.nc") as read:
        theirs = cfxr.decode_compress_to_multi_index(read, "place").load()
    assert theirs.indexes["place"].equals(NEW.indexes["place"])
    np.testing.assert_array_equal(theirs.t2m, model.quantile(NEW, [0.1, 0.9]))


def test_labels_that_no_file_can_hold_are_named(tmp_path):
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["the name", "n"])
    coords = xr.Coordinates.from_pandas_multiindex(index, "place")
    dataset = xr.Dataset({"t2m": ("place", [1.0, 2.0])}, coords)
    with pytest.raises(ValueError, match=r"labels \['the name', 'n'\] along 'place' cannot be sto"):
        xrecal.Run(tmp_path / "out.nc").write(dataset)


def test_fewer_labels_than_numbers_are_damage(tmp_path):
    broken = cfxr.encode_multi_index_as_compress(NEW.to_dataset(name="t2m"), "place")
    broken["place"] = broken["place"].copy(data=broken["place"].to_numpy() + 5)
    broken.to_netcdf(tmp_path / "new.nc")
    with pytest.raises(ValueError, match=r"forecast .*new\.nc cannot be read: "):
        xrecal.Run().open(tmp_path / "new.nc")
