import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from xrecal.storage.encoding import from_plain, to_plain

LABELS = {
    "dates": np.array(["1700-01-01", "2001-01-01T01:02:03.123456789"], "M8[ns]"),
    "seconds": np.array(["0900-01-01", "2001-01-01T01:02:03"], "M8[s]"),
    "missing": np.array(["2001-01-01", "NaT"], "M8[ns]"),
    "leads": np.array([1, 36], "m8[h]").astype("m8[ns]"),
    "text": np.array(["a", "été"]),
    "objects": np.array(["a", "été"], object),
    "truth": np.array([True, False]),
    "small": np.array([1, 2], "u1"),
    "single": np.array([0.1, np.nan], "f4"),
    **{
        made.__name__: np.array([made(1, 2, 28, 3, 4, 5, 6), made(2500, 2, 28)])
        for made in (
            cftime.DatetimeNoLeap,
            cftime.Datetime360Day,
            cftime.DatetimeJulian,
            cftime.DatetimeGregorian,
            cftime.DatetimeAllLeap,
        )
    },
}


@pytest.fixture(params=["nc", "zarr2", "zarr3", "memory"])
def through(request, tmp_path):
    def function(dataset):
        plain = to_plain(dataset)
        if request.param == "nc":
            plain.to_netcdf(tmp_path / "a.nc")
            plain = xr.load_dataset(tmp_path / "a.nc", decode_cf=False)
        elif request.param != "memory":
            options = {"zarr_format": int(request.param[-1]), "consolidated": False}
            plain.to_zarr(tmp_path / "a.zarr", **options)
            plain = xr.open_dataset(
                tmp_path / "a.zarr", engine="zarr", consolidated=False, decode_cf=False
            )
        return from_plain(plain)

    return function


@pytest.mark.each_value
@pytest.mark.parametrize("name", LABELS)
def test_labels_and_values_come_back(through, name):
    values = LABELS[name]
    attrs = {"units": "days", "_FillValue": 7, "none": None, "range": np.array([0, 1], "i2")}
    dataset = xr.Dataset(
        {"variable": ("x", values)},
        {"x": ("x", values, attrs), "beside": ("x", values), "one": values[0]},
        {"history": "made"},
    )
    found = through(dataset)
    xr.testing.assert_identical(found, dataset)
    for key, variable in dataset.variables.items():
        assert found[key].dtype == variable.dtype
        assert [type(v) for v in found[key].to_numpy().flat] == [
            type(v) for v in variable.to_numpy().flat
        ]
        assert repr(found[key].attrs) == repr(variable.attrs)
    assert list(found.indexes) == ["x"]


def test_levels_of_an_index_come_back(through):
    dataset = xr.Dataset({"a": (("lat", "lon"), np.eye(2))}, {"lat": [1.0, 2.0], "lon": [3, 4]})
    dataset = dataset.stack(point=["lat", "lon"])
    found = through(dataset)
    xr.testing.assert_identical(found.load(), dataset)
    assert found.indexes["point"].equals(dataset.indexes["point"])


def test_packing_of_the_inputs_is_forgotten(through):
    dataset = xr.Dataset({"a": ("x", [0.123456, np.nan])}, {"x": [0.3, 1.1]})
    for variable in dataset.variables.values():
        variable.encoding = {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
    found = through(dataset)
    xr.testing.assert_identical(found.load(), dataset)


def test_others_can_read_the_dates(tmp_path):
    dates = pd.date_range("2001-01-01", periods=3, freq="6h").as_unit("ns")
    dataset = xr.Dataset(coords={"time": dates})
    to_plain(dataset).to_netcdf(tmp_path / "a.nc")
    assert xr.load_dataset(tmp_path / "a.nc").indexes["time"].equals(dates)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.array([1, "a"], object), "labels of 'x' are of the type int"),
    ],
)
def test_labels_of_other_types_are_refused(labels, told):
    with pytest.raises(TypeError, match=told):
        to_plain(xr.Dataset(coords={"x": labels}))


@pytest.mark.parametrize("name", ["a/b", 3])
def test_names_that_no_file_takes_are_refused(name):
    with pytest.raises(ValueError, match=rf"the name {name!r} cannot be stored"):
        to_plain(xr.Dataset({name: 1.0}))


def test_attributes_of_other_types_are_refused():
    with pytest.raises(TypeError, match=r"an attribute of 'a' holds .* of the type object"):
        to_plain(xr.Dataset({"a": ((), 1.0, {"odd": object()})}))


def test_missing_and_changed_variables_are_told():
    plain = to_plain(xr.Dataset({"a": ("x", [1.0]), "b": 2.0}))
    with pytest.raises(ValueError, match=r"the variables \['b'\] are missing"):
        from_plain(plain.drop_vars("b"))
    changed = plain.assign(a=1.0)
    with pytest.raises(ValueError, match=r"'a' has the dimensions \[\] in place of \['x'\]"):
        from_plain(changed)
