"""What the command refuses, with which code, and what it prints."""

import sys

import distributed
import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.cli import main

from .files import (
    FEW,
    HINDCAST,
    NEW,
    TRUTH,
    VERIFIED,
    refused,
    run,
    run_apart,
    succeed,
    write,
    write_model,
)

Q = ["--quantiles", "0.5"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["fit", "a", "b"], "Missing argument 'MODEL'"),
        (
            ["fit", "a", "b", "c", "--method", "magic"],
            "'magic' is not one of 'ckme', 'linear-pool'",
        ),
        (
            ["fit", "a", "b", "c", "--method", "linearpool"],
            "'linearpool' is not a method; did you mean 'linear-pool'?",
        ),
        (["fit", "a", "b", "c", "--option", "ridge"], "'ridge' is not of the form KEY=VALUE"),
        (["fit", "a", "b", "c.nc", "--chunks", "lat"], "'lat' is not of the form DIM=N, as in"),
        (["fit", "a", "b", "c.nc", "--chunks", "lat=0"], "'lat=0' is not of the form DIM=N"),
        (
            ["fit", "a", "b", "c.nc", "--resume", "--overwrite"],
            "--resume continues and --overwrite",
        ),
        (
            ["fit", "a", "b", "c", "--method", "CKME(1)"],
            "is not a method: give settings by their names",
        ),
        (
            ["fit", "a", "b", "c", "--method", "print(1)"],
            "there is no method print; the methods are CKME, LinearPool",
        ),
        (
            ["fit", "a", "b", "c", "--method", "CKME(ridge="],
            "type a name such as ckme, or a name with settings",
        ),
        (
            ["fit", "a", "b", "c", "--method", "CKME(gap=open(1))"],
            "there is no method open; the methods are CKME",
        ),
        (
            ["fit", "a", "b", "c", "--pool", "lat=3,lon"],
            "'lat=3,lon' is not of the form DIM,... or",
        ),
        (["fit", "a", "b", "c", "--pool", "lat,lat"], "as in --pool lat,lon or --pool lat=3,lon=3"),
        (["apply", "m", "f", "o"], "give exactly one of --quantiles 0.1,0.5,0.9, --members"),
        (
            ["apply", "m", "f", "o", *Q, "--exceedance", "3"],
            "give exactly one of --quantiles",
        ),
        (["apply", "m", "f", "o", "--exceedance", "5,0"], "as in --exceedance 0,5"),
        (["apply", "m", "f", "o", "--categories", "1/0"], "as in --categories 1/3,2/3"),
        (["score", "f", "o", "--score", "roc"], "--score roc needs --threshold, such as 0,5"),
        (
            ["score", "f", "o", "--threshold", "0"],
            "--threshold belongs to --report or --score brier",
        ),
        (["apply", "m", "f", "o", *Q, "--members", "3"], "give exactly one of"),
        (["apply", "m", "f", "o", "--members", "0"], "0 is not in the range x>=1"),
        (["apply", "m", "f", "o", "--quantiles", "0.5,0.1"], "must be ascending numbers from 0"),
        (["apply", "m", "f", "o", "--quantiles", "1,2"], "must be ascending numbers from 0 to 1"),
        (["apply", "m", "f", "o", "--quantiles", "many"], "must be ascending numbers from 0 to 1"),
        (["compare", "a", "b", "--option", "gap=1"], "--option belongs to one method"),
    ],
)
def test_wrong_command_lines(args, told):
    done = run(*args)
    assert done.code == 2
    assert told in " ".join(done.err.split())


def test_missing_and_unreadable_inputs(files):
    folder = files.folder
    assert refused("fit", folder / "no.nc", files.truth, folder / "m.nc") == (
        f"there is no {folder}/no.nc"
    )
    (folder / "text.nc").write_text("text")
    message = refused("fit", folder / "text.nc", files.truth, folder / "m.nc")
    assert f"hindcast {folder}/text.nc cannot be read: " in message
    (folder / "gauge.csv").write_text("date,discharge")
    message = refused("fit", files.hindcast, folder / "gauge.csv", folder / "m.nc")
    assert f"{folder}/gauge.csv is a table, but commands read netCDF files and Zarr" in message
    (folder / "empty.zarr").mkdir()
    message = refused("score", folder / "empty.zarr", files.truth)
    assert f"forecast {folder}/empty.zarr cannot be read: " in message
    message = refused("fit", files.hindcast, "s3://b/o.zarr", folder / "m.nc")
    assert "observations must be a path on this machine, got 's3://b/o.zarr'" in message
    succeed("fit", files.hindcast, files.truth, folder / "m.nc", "--method", "raw")
    message = refused("score", folder / "m.nc", files.truth)
    assert "is a fitted model; give a file of data" in message
    message = refused("apply", files.new, files.new, folder / "o.nc", *Q)
    assert "is not a model of xrecal: it holds t2m; open a file or store that model" in message


def test_wrong_settings(files):
    args = ["fit", files.hindcast, files.truth, files.folder / "m.nc"]
    assert refused(*args, "--option", "rigde=1").endswith("did you mean 'ridge'?")
    assert refused(*args, "--option", "condition_on=a").endswith("use --condition-on")
    assert "CKME: ridge must be 'cv' or a positive number, got -1" in refused(
        *args, "--option", "ridge=-1"
    )
    assert "the method raw has no setting 'gap', it has exchangeable" in refused(
        *args, "--method", "raw", "--option", "gap=1"
    )
    assert "gap must be a number of cases, 0 or more, or a length of time" in refused(
        *args, "--option", "gap=5 months"
    )
    assert "the covariate 'wind' is not known for hindcast" in refused(
        *args, "--condition-on", "wind"
    )
    assert "--chunks names 'time', which is not a dimension of locations" in refused(
        *args, "--chunks", "time=3"
    )
    assert "fewer than --min-samples 100" in refused(*args, "--min-samples", "100")


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_wrong_outputs(files, more):
    args = ["fit", *more, files.hindcast, files.truth]
    assert "'m.txt' must end in .zarr (a Zarr store) or .nc" in refused(
        *args, files.folder / "m.txt"
    )
    assert "there is no folder" in refused(*args, files.folder / "no" / "m.nc")


@pytest.fixture(scope="module")
def raw_model(tmp_path_factory):
    files = write(tmp_path_factory.mktemp("raw_model"))
    model = files.folder / "m.zarr"
    succeed("fit", files.hindcast, files.truth, model, "--method", "raw")
    return model


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda a: a.isel(lat=slice(2)).assign_coords(lat=[98.0, 99.0]),
            "model.state and forecast differ along 'lat': 4 against",
        ),
        (lambda a: a.assign_coords(lat=a.lat + 1), "labels along 'lat' differ"),
        (lambda a: a.assign_attrs(units="m"), "units"),
        (lambda a: a.expand_dims(lead=2), "the model has no ['lead']: select or rename"),
    ],
)
def test_forecasts_that_do_not_fit_the_model(raw_model, tmp_path, change, told):
    new = tmp_path / "other.nc"
    change(NEW).to_dataset(name="t2m").to_netcdf(new)
    assert told in refused("apply", raw_model, new, tmp_path / "o.nc", *Q)


@pytest.fixture(scope="module")
def model_in_blocks(tmp_path_factory):
    files = write(tmp_path_factory.mktemp("model_in_blocks"))
    model = files.folder / "m.zarr"
    succeed("fit", files.hindcast, files.truth, model, "--method", "emos", "--chunks", "lat=1")
    return model


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_forecasts_of_a_part_of_the_places(model_in_blocks, tmp_path, suffix):
    new, out = tmp_path / "part.nc", tmp_path / f"o.{suffix}"
    part = NEW.isel(lat=[2, 0])
    part.to_dataset(name="t2m").to_netcdf(new)
    succeed("apply", model_in_blocks, new, out, "--quantiles", "0.1,0.9")
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).quantile(part, [0.1, 0.9])
    engine = "zarr" if suffix == "zarr" else "netcdf4"
    with xr.open_dataset(out, engine=engine) as found:
        np.testing.assert_array_equal(found["t2m"].transpose(*expected.dims), expected)
        np.testing.assert_array_equal(found["lat"], part["lat"])


def test_scores(files):
    expected = float(NEW.recal.crps(VERIFIED, ...))
    done = run("score", files.new, files.verified, "--json", "--quiet")
    assert done.data["scores"] == {"t2m": {"crps": expected, "units": "K", "n_cases": 84}}
    done = run("score", files.new, files.verified, "--quiet", "--chunks", "lat=1")
    assert done.out == f"t2m: CRPS {expected:.4g} K, 84 cases\n"
    model, out = write_model(files.folder / "m.nc"), files.folder / "o.zarr"
    succeed("apply", model, files.new, out, "--quantiles", "0.1,0.5,0.9")
    fitted = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())
    expected = fitted.quantile(NEW, [0.1, 0.5, 0.9]).recal.crps(VERIFIED, ...)
    found = run("score", out, files.verified, "--json", "--quiet").data["scores"]["t2m"]
    np.testing.assert_allclose(found["crps"], float(expected), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
@pytest.mark.filterwarnings("ignore:.* forecasts of 't2m' have more than:UserWarning")
def test_scores_count_novel_forecasts_and_those_far_beyond(files):
    model, out = files.folder / "m.zarr", files.folder / "o.nc"
    forecast = NEW.where(NEW.time != NEW.time[1], NEW + 100)
    forecast.to_netcdf(files.folder / "far.nc")
    succeed("fit", files.hindcast, files.truth, model)
    succeed("apply", model, files.folder / "far.nc", out, "--members", "5")
    found = run("score", out, files.verified, "--json", "--quiet").data["scores"]["t2m"]
    issued = xrecal.open_recalibrator(model).apply(forecast)
    n_places = NEW.sizes["lat"] * NEW.sizes["lon"]
    assert found["n_novel"] == (issued.t2m_novelty > 0.5).sum() >= n_places
    assert found["n_beyond"] == (issued.t2m_beyond > 0.05).sum() >= n_places
    done = run("score", out, files.verified, "--quiet")
    told = f", 84 cases, {found['n_novel']} novel, {found['n_beyond']} beyond\n"
    assert done.out.endswith(told)


def test_nothing_to_score_is_null(files):
    (VERIFIED * np.nan).to_dataset(name="t2m").to_netcdf(files.folder / "none.nc")
    done = run("score", files.new, files.folder / "none.nc", "--json", "--quiet")
    assert done.data["scores"]["t2m"] == {"crps": None, "units": "K", "n_cases": 0}


def test_comparisons(few):
    args = "compare", *few, "--quiet"
    done = run(*args, "--method", "climatology", "--option", "window=120", "--method", "raw")
    assert done.code == 2
    done = run(*args, "--method", "climatology", "--option", "window=120", "--json")
    assert done.code == 0, done.err
    table = xrecal.compare(HINDCAST.isel(FEW), TRUTH.isel(FEW), [xrecal.Climatology(window=120)])
    found = done.data
    assert (found["n_cases"], found["units"]) == (192, "K")
    assert list(found["methods"]) == table.method.to_numpy().tolist()
    (label,) = set(found["methods"]) - {"raw", "climatology"}
    one = found["methods"][label]
    np.testing.assert_allclose(one["crps"], float(table.crps.sel({"method": label}).mean()))
    raw = found["methods"]["raw"]["crps"]
    np.testing.assert_allclose(one["skill_raw"], 1 - one["crps"] / raw)
    assert set(one) == {"crps", "crps_error", "skill_climatology", "skill_raw", "p_climatology",
                        "p_raw", "fit_seconds", "apply_seconds"}  # fmt: skip
    text = run(*args, "--method", "climatology", "--option", "window=120").out
    assert "skill v climatology" in text
    assert "192 cases, CRPS in K" in text


def test_one_location_has_p_values_of_calibration(files):
    here = {"lat": 0, "lon": 0}
    paths = [files.folder / "one.nc", files.folder / "verified.nc"]
    for array, path in zip((HINDCAST, TRUTH), paths, strict=True):
        array.isel(here).to_dataset(name="t2m").to_netcdf(path)
    done = run("compare", *paths, "--quiet", "--method", "emos", "--json")
    assert done.code == 0, done.err
    table = xrecal.compare(HINDCAST.isel(here), TRUTH.isel(here), [xrecal.EMOS()])
    for i, label in enumerate(table.method.to_numpy()):
        for name in ("pit_p_value", "skce", "skce_p_value"):
            found = done.data["methods"][label][name]  # null where cases are too few to tell
            found = np.nan if found is None else found
            np.testing.assert_allclose(found, table[name][i].item(), rtol=1e-12)


def test_warnings_are_one_line_each(files):
    TRUTH.isel(time=slice(22)).to_dataset(name="t2m").to_netcdf(files.folder / "few.nc")
    args = files.hindcast, files.folder / "few.nc", files.folder / "m.nc", "--method", "raw"
    done = run_apart("fit", *args, "--quiet")
    assert done.code == 0
    assert done.err == "warning: only 22 of 48 forecasts along 'time' have an observation\n"


# the entry, and clusters --------------------------------------------------------------------------


def test_what_to_install_without_click(monkeypatch):
    monkeypatch.setattr("xrecal.cli.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"needs click; use pip install 'xrecal\[cli,io\]'"):
        main()


def test_help_and_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["xrecal", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 done, 2 wrong command line, 3 inputs or request refused" in text
    for command in ("fit", "apply", "score", "compare"):
        assert run(command, "--help").code == 0
    assert run("--version").out.startswith("xrecal, version ")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nonsense"])
def test_schedulers_that_do_not_answer(files, address):
    args = "fit", files.hindcast, files.truth, files.folder / "m.nc", "--scheduler", address
    done = run(*args, "--json")
    assert done.code == 4
    assert done.data["status"] == "unreachable"
    assert f"no scheduler can be reached at {address!r}" in done.data["error"]
    assert "such as tcp://127.0.0.1:8786" in done.data["error"]
    assert not list(files.folder.glob("m.nc*"))


def test_schedulers_need_distributed(files, monkeypatch):
    monkeypatch.setattr("xrecal.cli.cluster.find_spec", lambda name: None)
    args = "fit", files.hindcast, files.truth, files.folder / "m.nc", "--scheduler", "a:1"
    assert "--scheduler needs distributed; use pip install distributed" in refused(*args)


@pytest.fixture(
    scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.slow)]
)
def cluster(request):
    """Two workers, reached as on any machine."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    options |= {"processes": request.param == "processes", "protocol": "tcp"}
    with distributed.LocalCluster(**options) as running:
        yield running.scheduler_address


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_a_cluster_makes_the_same(files, suffix, cluster):
    model, out = files.folder / f"m.{suffix}", files.folder / f"o.{suffix}"
    where = ["--scheduler", cluster]
    args = "fit", files.hindcast, files.truth, model, "--method", "climatology"
    done = run(*args, "--chunks", "lat=1", "--json", *where)
    assert done.code == 0, done.err
    assert done.data["blocks"] == 4
    succeed("apply", model, files.new, out, *Q, *where)
    score = succeed("score", out, files.verified, "--json", *where).data["scores"]
    expected = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())
    found = xrecal.open_recalibrator(model).compute()
    xr.testing.assert_identical(found.state, expected.state)
    with xr.open_dataset(out, engine="zarr" if suffix == "zarr" else None) as written:
        np.testing.assert_array_equal(written.t2m, expected.quantile(NEW, [0.5]))
    assert score["t2m"]["n_cases"] == 84
