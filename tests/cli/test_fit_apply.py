import itertools

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.pairs import pairwise
from xrecal.inputs import pool as pooling

from .files import (
    DATA,
    HINDCAST,
    KINDS,
    NEW,
    TRUTH,
    run,
    succeed,
    write,
)

LEVELS = [0.1, 0.5, 0.9]
Q = ["--quantiles", "0.1,0.5,0.9"]


def opened(path):
    return xr.open_dataset(path, engine="zarr" if str(path).endswith("zarr") else None)


@pytest.fixture(scope="module")
def in_memory():
    """A model, its quantiles, and what it issues."""
    model = HINDCAST.recal.fit(TRUTH)
    return model, model.quantile(NEW, LEVELS), model.apply(NEW)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("inputs", "out", "chunks"), pairwise(KINDS, KINDS, [[], ["--chunks", "lat=2,lon=2"]])
)
def test_the_same_as_in_memory(tmp_path, in_memory, inputs, out, chunks):
    files = write(tmp_path, inputs)
    model, result = tmp_path / f"model.{out}", tmp_path / f"result.{out}"
    succeed("fit", files.hindcast, files.truth, model, *chunks)
    expected, quantiles, issued = in_memory
    found = xrecal.open_recalibrator(model)
    xr.testing.assert_identical(found.state.compute(), expected.state)
    succeed("apply", model, files.new, result, *Q)
    with opened(result) as written:
        xr.testing.assert_equal(written.t2m, quantiles)
        assert written.t2m.dims == quantiles.dims
        assert written.t2m.dtype == quantiles.dtype
        assert written.t2m.attrs["units"] == "K"
        assert written.t2m.attrs["ancillary_variables"] == "t2m_beyond t2m_novelty"
        for beside in ("t2m_novelty", "t2m_beyond"):
            xr.testing.assert_allclose(written[beside], issued[beside], atol=1e-12)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".partial") == []


@pytest.mark.parametrize("method", ["ckme", "LinearPool(methods=(EMOS(), CKME()))"])
def test_one_fit_of_many_pooled_cases(files, monkeypatch, method):
    monkeypatch.setattr(pooling, "MAX_POOLED", 100)
    model, out = files.folder / "m.zarr", files.folder / "o.nc"
    pool = ["--method", method, "--pool", "lat,lon"]
    planned = run("fit", files.hindcast, files.truth, model, *pool, "--dry-run")
    assert ("a pass" in planned.out) == (method == "ckme")
    succeed("fit", files.hindcast, files.truth, model, *pool)
    succeed("apply", model, files.new, out, *Q)
    settings = (
        xrecal.CKME() if method == "ckme" else xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME()))
    )
    expected = HINDCAST.recal.fit(TRUTH, settings, pool=("lat", "lon"))
    with opened(out) as written:
        xr.testing.assert_allclose(written.t2m, expected.quantile(NEW, LEVELS), rtol=1e-9)


def test_blocks_are_those_asked_for_or_stored(files):
    model, out = files.folder / "m.zarr", files.folder / "o.zarr"
    fit = ["fit", files.hindcast, files.truth, model, "--method", "climatology"]
    done = succeed(*fit, "--chunks", "lat=3", "--json")
    assert done.data["blocks"] == 2
    assert xrecal.open_recalibrator(model).state.chunksizes["lat"] == (3, 1)
    assert succeed("apply", model, files.new, out, *Q, "--json").data["blocks"] == 2
    again = succeed("apply", model, files.new, out, *Q, "--json", "--chunks", "lon=1",
                    "--overwrite")  # fmt: skip
    assert again.data["blocks"] == 3


@pytest.mark.parametrize(
    ("name", "settings", "method"),
    [
        ("ckme", ["support=errors", "bounds=[0,null]", "ridge=0.5", "half-life=900"],
         xrecal.CKME(support="errors", bounds=(0, None), ridge=0.5, half_life=900)),
        ("emos", ["bounds=none", "vary_spread=true"],
         xrecal.EMOS(bounds=None, vary_spread=True, condition_on="season")),
        ("climatology", ["window=90"], xrecal.Climatology(window=90)),
        ("conformal", ["alpha=0.2"], xrecal.ConformalPrediction(alpha=0.2)),
        ("pit", [], xrecal.PITRecalibration()),
        ("idr", [], xrecal.IDR()),
        ("raw", [], xrecal.Raw()),
    ],
)  # fmt: skip
def test_methods_and_their_settings(files, name, settings, method):
    model = files.folder / "m.nc"
    options = [word for text in settings for word in ("--option", text)]
    options += ["--condition-on", "season"] if getattr(method, "condition_on", None) else []
    succeed("fit", files.hindcast, files.truth, model, "--method", name, *options)
    found = xrecal.open_recalibrator(model)
    assert next(iter(found.variables.values())).method == method
    xr.testing.assert_identical(found.state, HINDCAST.recal.fit(TRUTH, method).state)


def test_members_are_those_of_the_model(files):
    model, out = files.folder / "m.zarr", files.folder / "o.nc"
    succeed("fit", files.hindcast, files.truth, model, "--method", "climatology")
    succeed("apply", model, files.new, out, "--members", 4)
    expected = HINDCAST.recal.fit(TRUTH, xrecal.Climatology()).members(NEW, 4)
    with opened(out) as written:
        np.testing.assert_array_equal(written.t2m, expected)
        assert written.t2m.dims == expected.dims


def test_variables_are_chosen(tmp_path):
    folder = tmp_path
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3, "mask": HINDCAST[0, 0] > 0})
    truth = xr.Dataset({"t2m": TRUTH, "td": (TRUTH - 2).assign_attrs(units="K")})
    hindcast.to_netcdf(folder / "h.nc")
    truth.to_netcdf(folder / "o.nc")
    pair = folder / "h.nc", folder / "o.nc"
    done = run("fit", *pair, folder / "m.nc", "--quiet")
    assert done.code == 3
    assert "forecasts are ['t2m', 'dew'], observations ['t2m', 'td']; name the pair" in done.err
    succeed("fit", *pair, folder / "m.nc", "--variable", "dew", "--observed-variable", "td")
    model = xrecal.open_recalibrator(folder / "m.nc")
    assert list(model.variables) == ["dew"]
    done = run("apply", folder / "m.nc", folder / "h.nc", folder / "a.nc", *Q)
    assert done.code == 0, done.err
    assert set(opened(folder / "a.nc").data_vars) == {"dew", "dew_novelty", "dew_beyond"}
    done = run("fit", *pair, folder / "n.nc", "--variable", "snow")
    assert (done.code, "hindcast has no forecast 'snow'; it has" in done.err) == (3, True)
    done = run("fit", *pair, folder / "n.nc", "--variable", "dew", "--observed-variable", "x")
    assert "observations have no variable 'x'; they have ['t2m', 'td']" in done.err


def test_several_variables_at_once(tmp_path):
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    hindcast.to_netcdf(tmp_path / "h.nc")
    truth = xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2, "more": TRUTH})
    truth.to_netcdf(tmp_path / "o.nc")
    new = xr.Dataset({"t2m": NEW, "dew": NEW - 3})
    new.to_netcdf(tmp_path / "n.nc")
    model, out = tmp_path / "m.zarr", tmp_path / "out.zarr"
    done = succeed("fit", tmp_path / "h.nc", tmp_path / "o.nc", model, "--chunks", "lat=2",
                   "--json")  # fmt: skip
    assert list(done.data["variables"]) == ["t2m", "dew"]
    succeed("apply", model, tmp_path / "n.nc", out, *Q)
    expected = hindcast.recal.fit(truth[["t2m", "dew"]]).quantile(new, LEVELS)
    with opened(out) as written:
        xr.testing.assert_equal(written[["t2m", "dew"]], expected)
        beside = ("", "_novelty", "_beyond")
        assert set(written) == {f"{name}{what}" for name in ("t2m", "dew") for what in beside}


def test_dimensions_are_named(tmp_path):
    for name, data in DATA.items():
        renamed = data.rename({d: n for d, n in {"time": "t", "member": "m"}.items()
                               if d in data.dims})  # fmt: skip
        renamed.to_dataset(name="t2m").to_netcdf(tmp_path / f"{name}.nc")
    pair, model = (tmp_path / "hindcast.nc", tmp_path / "truth.nc"), tmp_path / "m.nc"
    succeed("fit", *pair, model, "--dim", "t", "--member-dim", "m", "--min-samples", 30)
    fitted = xrecal.open_recalibrator(model).variables["t2m"]
    assert (fitted.dim, fitted.member_dim, fitted.min_samples) == ("t", "m", 30)
    succeed("apply", model, tmp_path / "new.nc", tmp_path / "out.nc", *Q)
    assert opened(tmp_path / "out.nc").t2m.dims == ("t", "quantile", "lat", "lon")


def test_a_single_forecast_of_today(files):
    model, out = files.folder / "m.zarr", files.folder / "out.nc"
    succeed("fit", files.hindcast, files.truth, model, "--method", "emos")
    NEW.isel(time=0).to_dataset(name="t2m").to_netcdf(files.folder / "today.nc")
    succeed("apply", model, files.folder / "today.nc", out, *Q)
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).quantile(NEW.isel(time=0), LEVELS)
    np.testing.assert_array_equal(opened(out).t2m, expected)


def test_variables_of_a_store_are_read_by_name(tmp_path, monkeypatch):
    both = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    both.to_zarr(tmp_path / "h.zarr", consolidated=False)
    listed = xr.open_dataset
    for step in (1, -1):
        monkeypatch.setattr(
            "xrecal.runs.files.xr.open_dataset",
            lambda path, step=step, **options: xr.Dataset(
                dict(list(listed(path, **options).variables.items())[::step])
            ),
        )
        read = xrecal.Run(chunks={"lat": 2}).open(tmp_path / "h.zarr", "hindcast")
        assert list(read.variables) == ["dew", "t2m", "lat", "lon", "time"]
        assert list(read.indexes) == ["lat", "lon", "time"]
        assert read.t2m.chunksizes["lat"] == (2, 2)


def test_text_labels_and_stations(tmp_path):
    for name, data in DATA.items():
        stations = data.isel(lat=0, drop=True).rename(lon="station")
        stations = stations.assign_coords(station=["Gap", "Ötz", "Rom"])
        stations.to_dataset(name="t2m").to_netcdf(tmp_path / f"{name}.nc")
    for kind in KINDS:
        model, out = tmp_path / f"m.{kind}", tmp_path / f"out.{kind}"
        pair = tmp_path / "hindcast.nc", tmp_path / "truth.nc"
        succeed("fit", *pair, model, "--chunks", "station=2", "--method", "climatology")
        succeed("apply", model, tmp_path / "new.nc", out, *Q)
        assert opened(out).station.to_numpy().tolist() == ["Gap", "Ötz", "Rom"]


# what is told -------------------------------------------------------------------------------------


def test_fit_tells_cases_and_status(files):
    truth = TRUTH.copy()
    truth[:, 0, 0] = np.nan
    truth.to_dataset(name="t2m").to_netcdf(files.folder / "holes.nc")
    args = files.hindcast, files.folder / "holes.nc", files.folder / "m.zarr"
    args = *args, "--method", "climatology"
    done = succeed("fit", *args, "--json")
    assert done.err == ""
    found = done.data
    assert found.pop("seconds") > 0
    assert found == {
        "command": "fit",
        "status": "complete",
        "output": str(args[2]),
        "blocks": 1,
        "blocks_skipped": 0,
        "variables": {
            "t2m": {
                "n_matched": 48,
                "n_forecasts": 48,
                "locations": 12,
                "status": {"ok": 11, "too_few_cases": 1},
            }
        },
    }
    done = succeed("fit", *args, "--overwrite")
    assert done.out == (
        f"wrote {args[2]}: 1 block\n  t2m: 48 of 48 cases matched; ok: 11, too_few_cases: 1\n"
    )


@pytest.mark.parametrize(
    ("is_terminal", "more", "step"),
    [(True, [], 20.0), (True, [], 0.0), (True, ["--quiet"], 20.0), (False, [], 20.0)],
)
def test_progress_of_long_work_goes_to_a_terminal(files, monkeypatch, is_terminal, more, step):
    seconds = itertools.count()
    monkeypatch.setattr("xrecal.chunks.progress.clock", lambda: step * next(seconds))
    monkeypatch.setattr("xrecal.cli.session.is_terminal", lambda: is_terminal)
    done = run("fit", files.hindcast, files.truth, files.folder / "m.nc", "--json", *more)
    assert ("xrecal fit: " in done.err) == (is_terminal and not more and step > 0)
    assert done.data["status"] == "complete"
