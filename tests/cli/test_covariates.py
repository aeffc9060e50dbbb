"""Covariates in files: commands and Python condition on the same."""

import json

import numpy as np
import pytest
import xarray as xr

import xrecal

from .days import FORECASTS, LEARNED, STARTS, TRUTH, first_fit
from .files import HINDCAST, KINDS, NEW, refused, run, succeed, write
from .files import TRUTH as OBSERVED

Q = ["--quantiles", "0.2,0.7"]
RNG = np.random.default_rng(4)


def known(like, seed):
    """A wind, members of a cloud cover, and a normal distribution of rain."""
    rng = np.random.default_rng(seed)
    n = like.sizes["time"]
    wind, loc, scale = (
        xr.DataArray(a, {"time": like.time}, ["time"])
        for a in (rng.normal(size=n), rng.normal(size=n), np.exp(rng.normal(size=n)))
    )
    cloud = xr.DataArray(rng.normal(size=(n, 3)), {"time": like.time}, ["time", "number"])
    cloud = cloud + xr.DataArray([0.0, 1.0, 2.0, 3.0], {"lat": like.lat}, ["lat"])
    whole = xr.Dataset({"wind": wind, "cloud": cloud, "rain_loc": loc, "rain_scale": scale})
    return whole, {"wind": wind, "cloud": cloud, "rain": whole[["rain_loc", "rain_scale"]]}


PAST, LATER = known(HINDCAST, 1), known(NEW, 2)


@pytest.fixture
def files(tmp_path, request):
    kind = getattr(request, "param", "nc")
    files = write(tmp_path, kind)
    for name, (dataset, _) in {"past": PAST, "later": LATER}.items():
        path = tmp_path / f"{name}.{kind}"
        dataset.to_netcdf(path) if kind == "nc" else dataset.to_zarr(path, consolidated=False)
    return files


@pytest.mark.parametrize("files", KINDS, indirect=True)
@pytest.mark.parametrize("names", [(), ("wind", "cloud")], ids=["all", "part"])
def test_fit_and_apply_take_covariates_of_a_file(files, names):
    folder, kind = files.folder, files.hindcast.rpartition(".")[2]
    model, out = folder / f"m.{kind}", folder / f"out.{kind}"
    past, later = folder / f"past.{kind}", folder / f"later.{kind}"
    named = [word for name in names for word in ("--condition-on", name)]
    args = ["--method", "emos", "--chunks", "lat=2", *named]
    succeed("fit", files.hindcast, files.truth, model, *args, "--covariates", past)
    succeed("apply", model, files.new, out, *Q, "--covariates", later)
    expected = HINDCAST.recal.fit(
        OBSERVED, xrecal.EMOS(), covariates=PAST[1], condition_on=names or None
    )
    found = xrecal.open_recalibrator(model).variables["t2m"]
    assert {*found.periods} >= {"wind", "cloud", "cloud_spread"}
    assert ("rain_spread" in found.periods) == (not names)
    opened = xr.open_dataset(out) if kind == "nc" else xr.open_zarr(out, consolidated=False)
    quantiles = expected.quantile(NEW, [0.2, 0.7], covariates=LATER[1])
    with opened:
        np.testing.assert_allclose(opened["t2m"].transpose(*quantiles.dims), quantiles, rtol=1e-10)


def test_commands_refuse_what_python_does(files):
    folder = files.folder
    past, later = folder / "past.nc", folder / "later.nc"
    fit = ["fit", files.hindcast, files.truth, folder / "m.nc", "--method", "emos"]
    message = refused(*fit, "--covariates", later)
    assert "has no value for" in message
    assert "there is no" in refused(*fit, "--covariates", folder / "none.nc")
    succeed(*fit, "--covariates", past)
    message = refused("apply", folder / "m.nc", files.new, folder / "out.nc", *Q)
    assert "the covariate 'wind' is not known for forecast" in message
    done = run(*fit, "--covariates", past, "--resume", "--condition-on", "wind", "--quiet")
    assert done.code == 3
    assert "belongs to another request" in done.err


def test_update_takes_covariates_of_a_file(files):
    folder = files.folder
    part, rest = (OBSERVED.isel(time=at) for at in (slice(0, 40), slice(40, None)))
    first = HINDCAST[:40].recal.fit(part, xrecal.EMOS(), covariates=PAST[1] | at_first())
    first.save(folder / "m.nc")
    args = ["--covariates", folder / "past.nc", "--observed-variable", "t2m"]
    succeed("update", folder / "m.nc", files.hindcast, files.truth, folder / "u.nc", *args)
    expected = first.update(HINDCAST[40:], rest, covariates=PAST[1])
    found = xrecal.open_recalibrator(folder / "u.nc").compute()
    np.testing.assert_allclose(
        found.quantile(NEW, [0.2, 0.7], covariates=LATER[1]),
        expected.quantile(NEW, [0.2, 0.7], covariates=LATER[1]),
        rtol=1e-8,
    )


def at_first():
    """Covariates of the first cases, which a fit finds among all."""
    return {name: value.isel(time=slice(0, 40)) for name, value in PAST[1].items()}


def test_the_cycle_takes_covariates_of_a_file_and_of_python(tmp_path):
    days = first_fit(tmp_path)
    index = xr.DataArray(RNG.normal(size=STARTS.size), {"init": STARTS}, ["init"])
    past = slice(0, LEARNED - 1)
    observed = TRUTH.sel(time=slice(None, STARTS[LEARNED - 1]))
    model = FORECASTS[past].recal.fit(observed, xrecal.EMOS(), covariates={"index": index[past]})
    model.save(days.model, overwrite=True)
    index.to_dataset(name="index").to_netcdf(tmp_path / "index.nc")
    done = days.morning(44, "--covariates", tmp_path / "index.nc")
    assert done.code in (0, 10), done.err
    assert done.data["issued"]
    assert done.data["learned"] > 0
    assert done.data["scored"] > 0
    cycle = xrecal.Cycle(tmp_path / "python", days.model, quantiles=[0.1, 0.5, 0.9])
    truth = TRUTH.sel(time=slice(None, STARTS[44]))
    again = cycle.run(FORECASTS[38:45], truth, STARTS[44], covariates={"index": index})
    assert again.issued == done.data["issued"]
    for path in sorted((days.output / "forecasts").glob("*.nc")):
        with (
            xr.open_dataset(path) as one,
            xr.open_dataset(tmp_path / "python" / "forecasts" / path.name) as other,
        ):
            xr.testing.assert_equal(one, other)
    lacking = xrecal.Cycle(tmp_path / "lacking", days.model, quantiles=[0.5])
    with pytest.warns(UserWarning, match="the covariate 'index' is not known for"):
        assert lacking.run(FORECASTS[40:42], truth, STARTS[44]).issued == []


def test_compare_takes_covariates_of_a_file(files):
    names = files.hindcast, files.truth
    known = ["--covariates", files.folder / "past.nc", "--method", "emos", "--json"]
    found = json.loads(succeed("compare", *names, *known).out)
    expected = xrecal.compare(HINDCAST, OBSERVED, xrecal.EMOS(), covariates=PAST[1])
    mean = float(expected["crps"].sel({"method": "EMOS"}).mean())
    assert found["methods"]["EMOS"]["crps"] == pytest.approx(mean)
    planned = succeed("compare", *names, *known, "--dry-run")
    assert json.loads(planned.out)["status"] == "planned"
