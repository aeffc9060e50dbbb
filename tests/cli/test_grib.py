"""Forecasts and observations in GRIB, through the command: as the same numbers in netCDF."""

import sys

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.gribs import write_grib
from tests.marks import DATA, requires_data

from .files import refused, run, succeed

pytest.importorskip("cfgrib", reason="needs pip install 'xrecal[grib]'")
SEAS5 = "seas5_mediterranean_t2m.nc"
NAMES = {"number": "member", "time": "init", "step": "lead", "t2m": "forecast"}
FIT = ["--min-samples", "5"]
pytestmark = [requires_data(SEAS5), pytest.mark.filterwarnings("default:GRIB has no template")]


@pytest.fixture(scope="module")
def gribs(tmp_path_factory):
    """A seasonal hindcast and its observations at twelve places, as GRIB and as netCDF."""
    folder = tmp_path_factory.mktemp("grib")
    with xr.open_dataset(DATA / SEAS5, decode_timedelta=False) as real:
        part = real.isel(lat=slice(10, 13), lon=slice(20, 24)).load()
    hours = (part.valid_time - part.init).isel(init=0) // np.timedelta64(1, "h")
    part = part.assign_coords(step=("lead", hours.data)).swap_dims(lead="step").drop_vars("lead")
    forecast = part.forecast.rename(init="time", member="number")
    write_grib(folder / "past.grib2", forecast[:5].rename("2t"))
    write_grib(folder / "new.grb", forecast[5:].rename("2t"))
    observed = part.observation.stack(time=("init", "step")).reset_index("time")
    observed = observed.assign_coords(time=observed.valid_time).drop_vars(["init", "step"])
    write_grib(folder / "observed.grib", observed.drop_vars("valid_time").rename("2t"))
    for name in ("past.grib2", "new.grb", "observed.grib"):
        with xrecal.Run().open(folder / name) if "obs" not in name else _opened(folder) as read:
            same = read.t2m.load().drop_encoding()
        same = same.rename({a: b for a, b in NAMES.items() if a in same.dims}).drop_attrs()
        same.attrs["units"] = "K"
        if "lead" in same.dims:
            same = same.drop_vars("valid_time")
            same["lead"] = same.lead.assign_attrs(units="hours")
        same.to_netcdf(folder / f"{name.split('.')[0]}.nc")
    return folder


def _opened(folder):
    return xr.open_dataset(folder / "observed.grib", engine="cfgrib", indexpath="")


@pytest.fixture(scope="module")
def model(gribs):
    """A model of the hindcast in GRIB."""
    succeed("fit", gribs / "past.grib2", gribs / "observed.grib", gribs / "model.nc", *FIT)
    return gribs / "model.nc"


def test_forecasts_in_grib_are_those_in_netcdf(gribs, tmp_path):
    found = []
    for kind in ("grib2 observed.grib new.grb", "nc observed.nc new.nc"):
        suffix, observed, new = kind.split()
        model = tmp_path / f"{suffix}.nc"
        succeed("fit", gribs / f"past.{suffix}", gribs / observed, model, *FIT)
        issued = tmp_path / f"issued.{suffix}.nc"
        succeed("apply", model, gribs / new, issued, "--quantiles", "0.1,0.5,0.9")
        found.append(xr.open_dataset(issued, decode_timedelta=False).load())
    theirs = found[0].t2m.rename({a: b for a, b in NAMES.items() if a in found[0].t2m.dims})
    assert theirs.sizes["lead"] == 3
    assert bool(theirs.notnull().all())
    np.testing.assert_array_equal(theirs.transpose(*found[1].t2m.dims), found[1].t2m)


def test_quantiles_and_probabilities_go_out_as_grib(gribs, model, tmp_path):
    back = {}
    for out in ("q.nc", "q.grib2"):
        asked = ["apply", model, gribs / "new.grb", tmp_path / out, "--quantiles", "0.1,0.5,0.95"]
        done = run(*asked, "--chunks", "latitude=2,longitude=3")
        back[out] = xrecal.Run().open(tmp_path / out)
    left = "warning: GRIB has no template for t2m_beyond, t2m_novelty; q.grib2 leaves them out\n"
    assert done.err == left
    again = run(*asked, "--resume")
    assert again.code == 3
    assert "does not show if this run has made it; start again with --overwrite" in again.err
    q = back["q.grib2"].t2m
    assert list(q.percentile) == [10, 50, 95]
    ours = q.transpose("percentile", ...).to_numpy()
    theirs = back["q.nc"].t2m.transpose("quantile", *q.transpose("percentile", ...).dims[1:])
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    scores = succeed("score", tmp_path / "q.grib2", gribs / "observed.grib", "--json").data
    assert scores
    for out in ("p.nc", "p.grib2"):
        succeed("apply", model, gribs / "new.grb", tmp_path / out, "--exceedance", "283.15,290")
    share = xr.open_dataset(tmp_path / "p.nc").t2m
    options = {"engine": "cfgrib", "indexpath": "", "read_keys": ["probabilityTypeName"]}
    for digits, threshold in ((28315, 283.15), (290, 290.0)):
        keys = {"scaledValueOfUpperLimit": digits}
        one = xr.open_dataset(tmp_path / "p.grib2", filter_by_keys=keys, **options).t2m
        assert one.GRIB_probabilityTypeName == "Probability of event above upper limit"
        expected = 100 * share.sel(threshold=threshold).squeeze().transpose(*one.dims)
        np.testing.assert_allclose(one, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("forecast", "options", "message"),
    [
        ("new.grb", ["--quantiles", "0.025,0.5"], "whole per cents, but one level is 0.025"),
        ("new.grb", ["--exceedance", "283.12345678912"], "at most nine digits"),
        ("new.grb", ["--members", "10"], "takes only quantiles and probabilities of exceedance"),
        ("new.nc", ["--quantiles", "0.5"], "from the forecast, which is not a GRIB file"),
    ],
)
def test_what_grib_does_not_take_is_refused(gribs, model, tmp_path, forecast, options, message):
    if forecast == "new.nc":
        with xrecal.Run().open(gribs / "new.grb") as opened:
            opened.load().drop_encoding().to_netcdf(tmp_path / "new.nc")
    folder = tmp_path if forecast == "new.nc" else gribs
    text = refused("apply", model, folder / forecast, tmp_path / "out.grib2", *options)
    assert message in text
    assert ".zarr or .nc" in text
    assert not (tmp_path / "out.grib2").exists()


def test_a_model_is_no_grib_file(gribs, tmp_path):
    text = refused("fit", gribs / "past.grib2", gribs / "observed.grib", tmp_path / "m.grib2", *FIT)
    assert "takes only quantiles and probabilities" in text


def test_a_missing_library_is_named(gribs, monkeypatch):
    from xrecal.inputs import libraries

    find = libraries.find_spec
    monkeypatch.setattr(libraries, "find_spec", lambda m: None if m == "cfgrib" else find(m))
    text = refused("score", gribs / "new.grb", gribs / "observed.grib")
    assert text == (
        "grib files need cfgrib, which is not installed; use pip install 'xrecal[grib]'"
    )
    assert "cfgrib" in sys.modules
