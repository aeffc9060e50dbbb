"""GRIB files as Datasets: several variables, levels and times in one file, and refused files."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.gribs import write_grib

pytest.importorskip("cfgrib", reason="needs pip install 'xrecal[grib]'")
GRID = {"lat": [50.0, 49.0, 48.0], "lon": [1.0, 2.0, 3.0, 4.0]}
STARTS = pd.date_range("2000-01-01", periods=4, freq="10D")


@pytest.fixture
def temperature():
    values = np.random.default_rng(0).normal(280.0, 5.0, (4, 2, 5, 3, 4))
    labels = {"time": STARTS, "step": [24, 48], "number": range(5), **GRID}
    return xr.DataArray(values, labels, tuple(labels), "2t")


def opened(path):
    with xrecal.Run().open(path) as dataset:
        return dataset


def read(found, array):
    """Values that were read, in the order of the array that was written."""
    found = found.rename(latitude="lat", longitude="lon")
    return found.transpose(*(d for d in array.dims if d in found.dims)).to_numpy()


def test_members_starts_and_leads_of_several_variables(tmp_path, temperature):
    temperature[1, 0, 2, 0, 0] = np.nan
    wind = (temperature / 100).rename("10u")
    rain = (temperature.isel(step=[1]) - 200).clip(0).rename("tp")
    path = write_grib(tmp_path / "all.grib2", temperature, wind, rain)
    found = opened(path)
    assert [*found] == ["t2m", "u10", "tp"]
    assert {"heightAboveGround", "surface"}.isdisjoint(found.coords)  # each has its own
    np.testing.assert_allclose(read(found.t2m, temperature), temperature, atol=1e-3)
    np.testing.assert_allclose(read(found.u10, wind), wind, atol=1e-5)
    assert list(found.step) == [24, 48]
    assert found.step.attrs["units"] == "hours"
    both = read(found.tp, temperature)
    assert np.isnan(both[:, 0]).all()
    np.testing.assert_allclose(both[:, 1:], rain, atol=2e-3)
    assert [file.name for file in tmp_path.iterdir()] == ["all.grib2"]  # no index is left


def test_control_and_perturbed_members_are_one_ensemble(tmp_path, temperature):
    path = write_grib(tmp_path / "t.grb", temperature)
    assert list(opened(path).number) == [0, 1, 2, 3, 4]


def test_one_step_is_scalar_and_one_start_is_a_case(tmp_path, temperature):
    found = opened(write_grib(tmp_path / "t.grb2", temperature.isel(time=[3], step=[1])))
    assert found.t2m.dims == ("number", "time", "latitude", "longitude")
    assert found.step == 48
    assert list(found.valid_time) == [np.datetime64("2000-02-02")]
    assert found.heightAboveGround == 2


def monthly(path):
    """Means of two months after two starts: the lengths of the months differ."""
    eccodes = pytest.importorskip("eccodes")
    fixed = {"setLocalDefinition": 1, "localDefinitionNumber": 16, "marsType": "fcmean"}
    fixed |= {"marsStream": "msmm", "table2Version": 128, "indicatorOfParameter": 167}
    with path.open("wb") as file:
        for start, number, month in product((20000101, 20000201), (0, 1), (1, 2)):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib1")
            hours = 31 * 24 if month == 1 else {20000101: 60, 20000201: 60 - 2}[start] * 24
            keys = {"dataDate": start, "number": number, "forecastMonth": month, "endStep": hours}
            for key, value in (fixed | keys).items():
                eccodes.codes_set(message, key, value)
            eccodes.codes_set_values(message, np.full(31 * 16, 280.0 + month + start % 1000 / 100))
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)


def test_months_of_seasonal_forecasts_are_leads(tmp_path):
    monthly(tmp_path / "monthly.grib")
    found = opened(tmp_path / "monthly.grib").t2m
    assert list(found.forecastMonth) == [1, 2]
    of_starts = found.mean(["number", "latitude", "longitude"]).transpose("time", ...)
    np.testing.assert_allclose(of_starts, [[282.01, 283.01], [283.01, 284.01]], atol=1e-3)


def test_what_cannot_be_one_dataset_is_refused(tmp_path, temperature):
    path = write_grib(tmp_path / "t.grib2", temperature.rename("t"), typeOfLevel="surface")
    aloft = {"typeOfLevel": "isobaricInhPa", "level": 500}
    other = write_grib(tmp_path / "aloft.grib2", temperature.rename("t"), **aloft)
    (tmp_path / "both.grib2").write_bytes(path.read_bytes() + other.read_bytes())
    with pytest.raises(ValueError, match="'t' with typeOfLevel=surface and typeOfLevel=isobaric"):
        opened(tmp_path / "both.grib2")
    path.write_bytes(2 * path.read_bytes())
    with pytest.raises(ValueError, match="80 fields of 't' have only 40 different comb"):
        opened(path)
    other = write_grib(tmp_path / "wind.grib2", temperature.isel(lat=[0, 1]).rename("10u"))
    (tmp_path / "grids.grib2").write_bytes(path.read_bytes() + other.read_bytes())
    with pytest.raises(ValueError, match="cannot be read: it has fields on several grids"):
        opened(tmp_path / "grids.grib2")
    probability = {"productDefinitionTemplateNumber": 5}
    path = write_grib(tmp_path / "p.grib2", temperature.isel(number=0, drop=True), **probability)
    with pytest.raises(ValueError, match="it holds probabilities of events"):
        opened(path)


def test_a_damaged_file_is_named(tmp_path, temperature):
    path = write_grib(tmp_path / "t.grib2", temperature)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"forecast .*t\.grib2 cannot be read: "):
        opened(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read: No valid message found"):
        opened(path)
