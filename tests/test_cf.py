"""What is issued, as readers of the CF conventions see it."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.cli.files import succeed

from .strategies import PAPER, ensemble_and_truth, new_cases

REALIZATION = {"standard_name": "realization", "units": "1", "long_name": "member of the ensemble"}
LABELS = [1, 2, 3, 4, 5]


def numbered(array, dim="number"):
    """Forecasts whose members have a coordinate as CF wants it."""
    renamed = array.rename(member=dim)
    return renamed.assign_coords({dim: (dim, LABELS[: array.sizes["member"]], REALIZATION)})


HINDCAST, TRUTH = ensemble_and_truth()
NEW = numbered(new_cases()[0])


@cache
def model():
    return numbered(HINDCAST).recal.fit(TRUTH, PAPER)


def drawn(how, n, forecast=NEW):
    """Members of the forecast, or of the recalibrated one."""
    if how == "raw":
        return forecast.recal.members(n)
    return model().members(forecast, n, coherence=None if how == "model" else how)


@pytest.mark.parametrize("how", ["raw", "model", "schaake", "dates", "ecc"])
def test_members_keep_their_coordinate(how):
    same = drawn(how, 5)["number"]
    xr.testing.assert_identical(same.variable, NEW["number"].variable)
    if how != "ecc":
        more = drawn(how, 7)["number"]
        np.testing.assert_array_equal(more, np.arange(1, 8))
        assert more.attrs == REALIZATION


def test_labels_that_are_no_numbers_are_counted_from_zero():
    named = NEW.assign_coords(number=("number", list("abcde"), REALIZATION))
    np.testing.assert_array_equal(named.recal.members(5)["number"], list("abcde"))
    found = named.recal.members(3)["number"]
    np.testing.assert_array_equal(found, [0, 1, 2])
    assert found.attrs == REALIZATION


def test_members_without_a_coordinate_get_none():
    bare = NEW.drop_vars("number")
    assert "number" not in bare.recal.members(5).coords
    quantiles = NEW.recal.quantile([0.1, 0.5, 0.9])
    assert "member" not in quantiles.recal.members(5).coords


CALLS = {
    "quantile": lambda d: model().quantile(d, [0.1, 0.5]),
    "members": lambda d: model().members(d, 5),
    "mean": lambda d: d.recal.mean(),
    "apply": lambda d: model().apply(d),
    "held out": lambda d: (
        numbered(HINDCAST).to_dataset().recal.cross_validate(TRUTH, xrecal.EMOS(), by="block")
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_datasets_name_their_conventions(call):
    found = CALLS[call](NEW.to_dataset())
    assert found.attrs["Conventions"] == "CF-1.11"


@pytest.mark.parametrize(
    ("given", "expected"), [("CF-1.8", "CF-1.8"), ("ACDD-1.3", "CF-1.11, ACDD-1.3")]
)
def test_conventions_of_the_forecast_stay(given, expected):
    dataset = NEW.to_dataset().assign_attrs(Conventions=given)
    assert model().quantile(dataset, [0.5]).attrs["Conventions"] == expected


@pytest.mark.parametrize("command", [("--members", "5"), ("--quantiles", "0.5")])
def test_files_are_those_of_cf(tmp_path, command):
    paths = [
        tmp_path / name for name in ("hindcast.nc", "truth.nc", "model.nc", "new.nc", "out.nc")
    ]
    for path, array in zip(paths, (numbered(HINDCAST), TRUTH, None, NEW), strict=False):
        if array is not None:
            array.to_dataset(name="t2m").to_netcdf(path)
    succeed("fit", *paths[:3], "--method", "emos")
    succeed("apply", *paths[2:], *command)
    with xr.open_dataset(paths[-1]) as out:
        assert out.attrs["Conventions"] == "CF-1.11"
        if "--members" in command:
            assert out["number"].attrs == REALIZATION


def test_cf_xarray_finds_members_and_quantities():
    pytest.importorskip("cf_xarray", reason="cf_xarray is not installed: pip install cf-xarray")
    members = model().members(NEW.to_dataset(), 5)
    assert members.cf["realization"].name == "number"
    assert members.cf.standard_names["realization"] == ["number"]
    median = model().quantile(NEW.assign_attrs(standard_name="air_temperature"), 0.5)
    assert median.attrs["cell_methods"] == "realization: median"
    dataset = median.to_dataset(name="t2m")
    assert dataset.cf["air_temperature"].name == "t2m"
