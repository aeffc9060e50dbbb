"""Twins have the layout of the real data, and their errors within a factor."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.marks import DATA, requires_data
from xrecal.datasets import open_tutorial
from xrecal.datasets.tutorial import TUTORIALS

FORECASTS = [name for name in TUTORIALS if name != "bicycle_hire"]


def real(name, monkeypatch):
    monkeypatch.setenv("XRECAL_DATA", str(DATA))
    return open_tutorial(name)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_twin_is_always_the_same_and_says_what_it_is(name):
    twin = open_tutorial(name, twin=True)
    xr.testing.assert_identical(twin, open_tutorial(name, twin=True))
    assert twin.attrs["title"].startswith("Synthetic twin of: ")
    assert not any(array.isnull().any() for array in twin.values())


@pytest.mark.parametrize("name", [name for name in TUTORIALS if name != "mjo_rmm1"])
@pytest.mark.parametrize("folder", [None, "empty"])
def test_readers_without_the_data_get_the_twin(name, folder, monkeypatch, tmp_path):
    monkeypatch.delenv("XRECAL_DATA", raising=False)
    if folder:
        monkeypatch.setenv("XRECAL_DATA", str(tmp_path))
    xr.testing.assert_identical(open_tutorial(name), open_tutorial(name, twin=True))


def test_files_of_the_user_come_first(monkeypatch, tmp_path):
    monkeypatch.setenv("XRECAL_DATA", str(tmp_path))
    twin = open_tutorial("innsbruck_temperature", twin=True)
    own = twin.rename({name: f"tmin_{name}" for name in twin.data_vars}) + 1
    own.drop_attrs(deep=False).assign(other=1).to_netcdf(tmp_path / "innsbruck_gefs.nc")
    opened = open_tutorial("innsbruck_temperature")
    xr.testing.assert_allclose(opened, twin + 1)
    assert opened.attrs["title"].startswith("Night temperature at Innsbruck airport")
    assert "twin" in open_tutorial("innsbruck_temperature", twin=True).attrs["title"]


def test_a_twin_in_a_file_keeps_its_title(monkeypatch, tmp_path):
    monkeypatch.setenv("XRECAL_DATA", str(tmp_path))
    twin = open_tutorial("mjo_rmm1", twin=True)
    twin.to_netcdf(tmp_path / "gmao_mjo_rmm1.nc")
    xr.testing.assert_identical(open_tutorial("mjo_rmm1"), twin)


def test_a_table_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XRECAL_DATA", str(tmp_path))
    twin = open_tutorial("bicycle_hire", twin=True)
    (tmp_path / "uci").mkdir()
    rows = pd.DataFrame({"instant": 0, **(twin + 1).to_dataframe()})
    rows.to_csv(tmp_path / "uci" / "bike_sharing_hour.csv.gz", index=False)
    xr.testing.assert_allclose(open_tutorial("bicycle_hire"), twin + 1)


@requires_data(*(one.file for one in TUTORIALS.values()))
@pytest.mark.parametrize("name", TUTORIALS)
def test_layout_of_the_real_data(name, monkeypatch):
    given, twin = real(name, monkeypatch), open_tutorial(name, twin=True)
    assert given.attrs["title"] != twin.attrs["title"]
    assert given.sizes == twin.sizes
    assert set(given.variables) == set(twin.variables)
    for label, array in given.variables.items():
        assert array.dims == twin[label].dims
        assert array.dtype.kind == twin[label].dtype.kind
        if label in given.data_vars:
            assert array.dtype == twin[label].dtype
            assert array.attrs.get("units") == twin[label].attrs.get("units")
    for label in ("lead", "lat", "lon", "hour", "location", "quantile"):
        if label in given.dims and label in given.coords:
            np.testing.assert_array_equal(given[label], twin[label])


@requires_data(*(TUTORIALS[name].file for name in FORECASTS))
@pytest.mark.parametrize("name", FORECASTS)
def test_errors_like_those_of_the_real_data(name, monkeypatch):
    sizes = []
    for data in (real(name, monkeypatch), open_tutorial(name, twin=True)):
        dim = "quantile" if "quantile" in data.dims else "member"
        error = (data.forecast.mean(dim) - data.observation).astype(float)
        spread = data.forecast.std(dim).mean()
        sizes.append([float(np.sqrt((error**2).mean())), float(spread)])
    given, twin = sizes
    np.testing.assert_array_less(np.abs(np.log(np.divide(twin, given))), np.log(2))
