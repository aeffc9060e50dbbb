"""What the command line gives is what the same call gives in Python."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal import diagnostics
from xrecal.runs.target import RunError

from .files import FEW, HINDCAST, NEW, TRUTH, VERIFIED, refused, run, succeed, write_model

EMOS = ["--method", "emos"]


def opened(path):
    with xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None) as dataset:
        return dataset.load()


# fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "pool"), [("lat,lon", ("lat", "lon")), ("lon=3", {"lon": 3})])
def test_a_pooled_fit(files, typed, pool):
    model = files.folder / "m.nc"
    succeed("fit", files.hindcast, files.truth, model, *EMOS, "--pool", typed)
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), pool=pool)
    found = xrecal.open_recalibrator(model).compute()
    xr.testing.assert_allclose(found.state, expected.state, rtol=1e-12)
    out = files.folder / "o.nc"
    succeed("apply", model, files.new, out, "--quantiles", "0.1,0.9")
    quantiles = expected.quantile(NEW, [0.1, 0.9])
    np.testing.assert_allclose(opened(out).t2m.transpose(*quantiles.dims), quantiles, rtol=1e-12)


def test_pools_that_are_none(files):
    args = "fit", files.hindcast, files.truth, files.folder / "m.nc", *EMOS
    assert "pool names the calibration dimension 'time'" in refused(*args, "--pool", "time")
    told = refused(*args, "--pool", "lat", "--chunks", "lat=2")
    assert (
        told == "--chunks names 'lat', which is pooled, so each block has all of it; leave it out"
    )


# settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (["--method", "ckme"], ["--method", "CKME()"]),
        (["--method", "emos"], ["--method", " EMOS "]),
        (
            ["--method", "ckme", "--option", "ridge=1e-1", "--option", "gap=5D"],
            ["--method", "CKME(gap='120 hours', ridge=0.10)"],
        ),
        (["--method", "ckme", "--option", "ridge=1"], ["--method", "CKME(ridge=1.0)"]),
        (["--method", "ckme", "--option", "ridge=1.0"], ["--option", "ridge=1"]),
        (
            ["--method", "ckme", "--condition-on", "season"],
            ["--method", "CKME(condition_on='season')"],
        ),
        (
            ["--method", "LinearPool(methods=(EMOS(), Climatology()))"],
            ["--method", "LinearPool( methods = [EMOS(), Climatology(window=None)] )"],
        ),
    ],
)
def test_a_run_that_is_begun_goes_on_however_settings_are_spelled(files, one, two, monkeypatch):
    """Without computing: as far as the layout, and then what a dry run says."""
    target, chunks = files.folder / "m.zarr", ["--chunks", "lat=2,lon=3"]
    args = "fit", files.hindcast, files.truth, target

    def begin(dataset, run, _):
        run.begin(dataset)
        raise RunError("here")

    monkeypatch.setattr("xrecal.runs.run.write_in_blocks", begin)
    assert run(*args, *one, *chunks).code == 5
    told = run(*args, *two, "--chunks", "lon=3,lat=2", "--resume", "--dry-run")
    assert told.code == 0, told.err
    assert run(*args, "--method", "idr", *chunks, "--resume", "--dry-run").code == 3


def test_blocks_that_are_proven_count_however_settings_are_spelled(files, monkeypatch):
    args = "fit", files.hindcast, files.truth, files.folder / "m.zarr", "--chunks", "lat=2"
    with monkeypatch.context() as patch:
        patch.setattr("xrecal.runs.target.put_in_place", lambda *_: 1 / 0)
        assert run(*args, "--method", "climatology", "--option", "window=30").code == 5
    typed = ["--method", "Climatology(window=30.0)", "--resume"]
    done = succeed(*args, *typed, "--json").data
    assert (done["blocks"], done["blocks_skipped"]) == (2, 2)
    assert "is complete already" in succeed(*args, *typed).out


def test_methods_with_settings_as_in_python(files, few):
    args = "compare", *few, "--json", "--gap", "1"
    methods = xrecal.Climatology(window=60), xrecal.Climatology(window=120)
    done = run(*args, *(x for one in methods for x in ("--method", repr(one))))
    assert done.code == 0, done.err
    table = xrecal.compare(HINDCAST.isel(FEW), TRUTH.isel(FEW), list(methods), gap=1)
    assert list(done.data["methods"]) == table.method.to_numpy().tolist()
    told = refused("fit", files.hindcast, files.truth, files.folder / "m.nc", "--method",
                   "CKME(rigde=1)")  # fmt: skip
    assert "--method: the method ckme has no setting 'rigde'" in told
    assert told.endswith("did you mean 'ridge'?")


# apply --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "method"), [("nc", "ckme"), pytest.param("zarr", "emos", marks=pytest.mark.slow)]
)
def test_probabilities(files, suffix, method):
    model = files.folder / "m.nc"
    succeed("fit", files.hindcast, files.truth, model, "--method", method)
    fitted = xrecal.open_recalibrator(model)
    wanted = {
        "exceedance": ("280,285.5", fitted.exceedance(NEW, [280.0, 285.5])),
        "categories": ("1/3,2/3", fitted.categories(NEW)),
    }
    for option, (typed, expected) in wanted.items():
        out = files.folder / f"{option}.{suffix}"
        succeed("apply", model, files.new, out, f"--{option}", typed, "--chunks", "lat=2")
        found = opened(out)
        values = found.t2m.transpose(*expected.dims)
        np.testing.assert_array_equal(values, expected)
        for d in expected.dims:
            np.testing.assert_array_equal(values[d], expected[d])
        assert ("t2m_novelty" in found) == (method == "ckme")
        assert values.attrs["long_name"] == expected.attrs["long_name"]
    edges = opened(files.folder / f"categories.{suffix}")["t2m_upper_edge"]
    expected = wanted["categories"][1]["upper_edge"]
    np.testing.assert_array_equal(edges.transpose(*expected.dims), expected)
    done = run("apply", model, files.new, files.folder / f"categories.{suffix}",
               "--categories", "0.1,0.9", "--resume")  # fmt: skip
    assert (done.code, "categories was " in done.err) == (3, True)


def test_a_plan_of_probabilities_counts_them(files):
    model = write_model(files.folder / "m.nc", xrecal.EMOS())
    for option, typed, n in [("exceedance", "1,2,3,4", 4), ("categories", "0.5", 2)]:
        done = run("apply", model, files.new, files.folder / "o.nc", f"--{option}", typed,
                   "--dry-run", "--json")  # fmt: skip
        assert done.data["variables"]["t2m"]["output_bytes"] == n * NEW[:, 0].size * 8


# score --------------------------------------------------------------------------------------------

THRESHOLD = [280.0, 284.0]
SCORES = {name: one for name, one in diagnostics.SCORES.items() if name != "crps"}
EACH = {"roc": "area", "economic_value": "value", "anomaly_correlation": "correlation",
        "generalised_discrimination": "discrimination"}  # fmt: skip


def expected_of(name):
    args = [NEW, VERIFIED, *([THRESHOLD] if SCORES[name].thresholds else [])]
    function = getattr(diagnostics, name)
    if name in EACH:
        return function(*args)[EACH[name]].mean(["lat", "lon"])
    found = function(*args, dim=...)
    return found["skill"] if isinstance(found, xr.Dataset) else found


def check_by_label(found, expected, name):
    """Numbers under their labels along each dimension in turn."""
    if not expected.ndim:
        found = np.nan if found is None else found
        return np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
    labels = [f"{label:g}" for label in expected[expected.dims[0]].to_numpy()]
    assert list(found) == labels
    for label, part in zip(labels, expected, strict=True):
        check_by_label(found[label], part, name)
    return None


def test_all_scores(files):
    asked = [x for name in SCORES for x in ("--score", name)]
    args = ["score", files.new, files.verified, *asked, "--threshold", "280,284"]
    done = run(*args, "--json", "--chunks", "lat=2,lon=2")
    assert done.code == 0, done.err
    found = done.data["scores"]["t2m"]
    for name in SCORES:
        expected = expected_of(name)
        check_by_label(found[name], expected, name)
    lines = run(*args).out.splitlines()
    assert f"  wis {found['wis']:.4g} K" in lines
    assert f"  roc threshold 280 {found['roc']['280']:.4g}" in lines


def test_what_cannot_be_scored_is_told(files):
    args = "score", files.new, files.verified, "--score", "roc", "--threshold", "400"
    told = (
        "roc threshold 400 not known: too few cases, no case with the event, or no case without it"
    )
    assert told in run(*args).out
    assert run(*args, "--json").data["scores"]["t2m"]["roc"] == {"400": None}


def test_forecasts_and_observations_in_one_file(files):
    both = files.folder / "both.nc"
    xr.Dataset({"fc": NEW, "ob": VERIFIED}).to_netcdf(both)
    told = refused("score", both, both)
    assert told == (
        "'fc' of the observations has members, as forecasts do; name the observed variable: "
        "--variable fc --observed-variable NAME, one of ['ob']"
    )
    done = succeed("score", both, both, "--variable", "fc", "--observed-variable", "ob", "--json")
    expected = NEW.recal.crps(VERIFIED).mean().item()
    assert done.data["scores"]["fc"]["crps"] == pytest.approx(expected)


def test_scores_of_a_dimension_that_is_named(files):
    NEW.rename(time="when").to_dataset(name="t2m").to_netcdf(files.folder / "new.nc")
    VERIFIED.rename(time="when").to_dataset(name="t2m").to_netcdf(files.folder / "o.nc")
    done = run("score", files.folder / "new.nc", files.folder / "o.nc", "--dim", "when", "--score",
               "anomaly_correlation", "--json")  # fmt: skip
    assert done.code == 0, done.err
    expected = expected_of("anomaly_correlation").item()
    found = done.data["scores"]["t2m"]["anomaly_correlation"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_summary(files, few):
    here = {"lat": 0, "lon": 0}
    paths = [files.folder / "one.nc", files.folder / "verified.nc"]
    for array, path in zip((HINDCAST, TRUTH), paths, strict=True):
        array.isel(here).to_dataset(name="t2m").to_netcdf(path)
    expected = HINDCAST.isel(here).recal.summary(TRUTH.isel(here))
    found = run("score", *paths, "--summary", "--json").data["scores"]["t2m"]["summary"]
    assert found["bias"] == pytest.approx(expected["bias"].item())
    assert found["coverage_0.9"] == pytest.approx(expected["coverage"].sel(level=0.9).item())
    assert repr(expected) in run("score", *paths, "--summary").out
    whole = HINDCAST.isel(FEW).recal.summary(TRUTH.isel(FEW))
    args = "score", *few, "--summary"
    found = run(*args, "--json").data["scores"]["t2m"]["summary"]
    assert found["skce"]["median"] == pytest.approx(whole["skce"].median().item())
    assert found["crps"]["highest"] == pytest.approx(whole["crps"].max().item())
    assert repr(whole) in run(*args).out


@pytest.mark.slow
def test_the_report(files):
    model, out, page = (files.folder / name for name in ("m.nc", "out.nc", "page.pdf"))
    succeed("fit", files.hindcast, files.truth, model, *EMOS)
    succeed("apply", model, files.new, out, "--quantiles", "0.05,0.25,0.5,0.75,0.95")
    args = "score", out, files.verified, "--report"
    done = run(*args, page, "--raw", files.new, "--threshold", "284", "--json")
    assert done.code == 0, done.err
    assert done.data["report"] == str(page)
    expected = files.folder / "expected.pdf"
    issued = opened(out)
    issued.recal.report(VERIFIED, path=expected, threshold=284.0, raw=NEW)
    assert page.read_bytes() == expected.read_bytes()
    assert "path must end in .pdf or .png" in refused(*args, files.folder / "page.txt")
    NEW.to_dataset(name="a").assign(b=NEW).to_netcdf(files.folder / "other.nc")
    told = refused(*args, page, "--raw", files.folder / "other.nc")
    assert told == "--raw has ['a', 'b'], but no 't2m'; give a file of that variable"


def test_several_variables(files):
    paths = [files.folder / "both.nc", files.folder / "verified_both.nc"]
    for array, path in zip((NEW, VERIFIED), paths, strict=True):
        xr.Dataset({"a": array, "b": array + 1}).to_netcdf(path)
    done = run("score", *paths, "--score", "rps", "--threshold", "284", "--json")
    for name, shift in (("a", 0), ("b", 1)):
        expected = diagnostics.rps(NEW + shift, VERIFIED + shift, [284.0], dim=...).item()
        assert done.data["scores"][name]["rps"] == pytest.approx(expected)
    assert "a report shows one variable; name it: --variable a" in refused(
        "score", *paths, "--report", files.folder / "page.png"
    )


# compare ------------------------------------------------------------------------------------------


def same_scores(found, table):
    assert found["n_cases"] == int(table.n_cases.sum())
    for i, label in enumerate(table.method.to_numpy()):
        mean = float((table.crps * table.n_cases)[i].sum() / table.n_cases.sum())
        np.testing.assert_allclose(found["methods"][label]["crps"], mean, rtol=1e-6)


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["--by", "year", "--gap", "2"], {"by": "year", "gap": 2}),
        (
            ["--by", "retrospective", "--gap", "36h", "--min-samples", "5"],
            {"by": "retrospective", "gap": "36h", "min_samples": 5},
        ),
        (["--pool", "lat,lon", "--gap", "5D"], {"pool": ("lat", "lon"), "gap": "5D"}),
        (
            ["--by", "rolling", "--every", "240D", "--window", "20", "--min-samples", "10"],
            {"by": "rolling", "every": "240D", "window": 20, "min_samples": 10},
        ),
        (
            ["--by", "rolling", "--every", "4", "--refit", "12", "--min-samples", "5"],
            {"by": "rolling", "every": 4, "refit": 12, "min_samples": 5},
        ),
    ],
)
def test_comparisons_by_other_splits(few, typed, options):
    done = run("compare", *few, *EMOS, *typed, "--json")
    assert done.code == 0, done.err
    table = xrecal.compare(HINDCAST.isel(FEW), TRUTH.isel(FEW), xrecal.EMOS(), **options)
    same_scores(done.data, table)


@pytest.mark.parametrize(("typed", "by"), [("lat", "lat"), ("year,season", ("year", "season"))])
def test_comparisons_have_rows(few, typed, by):
    done = run("compare", *few, *EMOS, "--by", typed, "--json")
    assert done.code == 0, done.err
    table = xrecal.compare(HINDCAST.isel(FEW), TRUTH.isel(FEW), xrecal.EMOS(), by=by)
    same_scores(done.data, table)
    rows = table.attrs["by"]
    assert list(done.data["rows"]) == [str(label) for label in table[rows].values]
    for i, found in enumerate(done.data["rows"].values()):
        same_scores(found, table.isel({rows: i}))
        error = table.overall_crps_error.sel({"method": "EMOS"})[i].item()
        assert found["methods"]["EMOS"]["crps_error"] == pytest.approx(error)
    assert run("compare", *few, *EMOS, "--by", typed).out.splitlines()[0].startswith(rows)
    told = refused("compare", *few, *EMOS, "--by", "month")
    assert (
        "--by month is not a dimension of places or leads of hindcast; name one of ['lat'" in told
    )


def test_comparisons_on_new_forecasts(files):
    both = xr.concat([TRUTH, VERIFIED], "time")
    both.to_dataset(name="t2m").to_netcdf(files.folder / "both.nc")
    args = ["compare", files.hindcast, files.folder / "both.nc", *EMOS, "--forecast", files.new]
    done = run(*args, "--json")
    assert done.code == 0, done.err
    same_scores(done.data, xrecal.compare(HINDCAST, both, xrecal.EMOS(), forecast=NEW))
    assert "leave out these parameters or the forecast" in refused(*args, "--gap", "1")
    planned = run(*args, "--dry-run", "--json").data
    part = planned["methods"]["EMOS()"]["variables"]["t2m"]
    assert (part["splits"], part["cases"]) == (0, 48)


def test_comparisons_on_new_forecasts_with_their_own_observations(files):
    VERIFIED.to_dataset(name="t2m").to_netcdf(files.folder / "later.nc")
    args = ["compare", files.hindcast, files.truth, *EMOS]
    later = ["--verification", files.folder / "later.nc"]
    done = run(*args, "--forecast", files.new, *later, "--json")
    assert done.code == 0, done.err
    options = {"forecast": NEW, "verification": VERIFIED}
    same_scores(done.data, xrecal.compare(HINDCAST, TRUTH, xrecal.EMOS(), **options))
    told = refused(*args, *later)
    assert "verification is given without forecast" in told.replace("--", "")


def test_a_plan_of_a_comparison(files):
    args = ["compare", files.hindcast, files.truth, *EMOS, "--method", "ckme", "--by", "year"]
    done = run(*args, "--dry-run", "--json", "--chunks", "lat=2")
    assert done.code == 0, done.err
    assert list(done.data["methods"]) == ["EMOS()", "CKME()"]
    for label, found in done.data["methods"].items():
        method = {"EMOS()": xrecal.EMOS(), "CKME()": xrecal.CKME()}[label]
        plan = xrecal.plan(HINDCAST.chunk(lat=2), TRUTH, method, by="year", probe=False)
        assert found["task_bytes"] == plan.task_bytes
        assert found["variables"]["t2m"]["splits"] == 4
    rolling = ["--by", "rolling", "--every", "4", "--refit", "12", "--min-samples", "5"]
    done = run(*args[:5], *rolling, "--dry-run", "--json")
    assert done.data["methods"]["EMOS()"]["variables"]["t2m"]["splits"] == 10
    told = refused(*args[:5], "--by", "rolling")
    assert "--by rolling needs --every, the time between two fits; give --every" in told
    text = run(*args, "--dry-run").out
    assert "48 forecasts of 5 members held out in 4 splits, from " in text
