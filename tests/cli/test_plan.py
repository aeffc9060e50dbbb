"""What a run would take: told by a dry run, and enforced before any work."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.plan import planning
from xrecal.plan.costs import Resources

from .files import HINDCAST, NEW, TRUTH, refused, run, run_apart, succeed

Q = ["--quantiles", "0.1,0.5"]


@pytest.fixture
def little(monkeypatch):
    """Sets the bytes that a task may use."""
    return lambda n: monkeypatch.setattr(planning, "find_resources", lambda: Resources(n, 2))


@pytest.fixture
def fit_args(files):
    target = files.folder / "m.zarr"
    return "fit", files.hindcast, files.truth, target, "--method", "climatology"


def planned(monkeypatch, *args):
    """The JSON and the text of a dry run, during which nothing can be fitted or predicted."""
    with monkeypatch.context() as patch:
        for method in (xrecal.Climatology, xrecal.CKME):
            patch.setattr(method, "fit_locations", None)
            patch.setattr(method, "predict_locations", None)
        done = run(*args, "--dry-run", "--json")
        text = run(*args, "--dry-run").out
    assert done.code == 0, done.err
    assert (done.data["command"], done.data["status"]) == (args[0], "planned")
    return done.data, text


def test_a_dry_run_prints_the_plan_of_the_fit(files, monkeypatch):
    model = files.folder / "m.zarr"
    args = "fit", files.hindcast, files.truth, model, "--chunks", "lat=2"
    args = *args, "--condition-on", "season"
    found, text = planned(monkeypatch, *args)
    hindcast = HINDCAST.chunk(lat=2)
    plan = xrecal.plan(hindcast, TRUTH, condition_on="season", probe=False)
    (part,) = plan.variables
    assert (found["blocks"], found["blocks_finished"]) == (2, 0)
    assert found["task_bytes"] == plan.task_bytes
    assert found["fits"] is True
    told = found["variables"]["t2m"]
    chunks = told.pop("chunks")
    assert chunks == {d: part.chunks[d] for d in ("lat", "lon")}
    assert told == {name: getattr(part, name) for name in told}
    assert (told["cases"], told["locations"], told["tasks"]) == (48, 12, 2)
    lines = text.splitlines()
    assert lines[:2] == [f"fit -> {model}: 2 blocks", "<xrecal plan: fit>"]
    assert f"  suggested      --chunks lat={chunks['lat']},lon={chunks['lon']}" in lines
    same = [line for line in str(plan).splitlines() if not line.startswith(("  sugg", "  memory "))]
    assert set(same) <= set(lines)
    assert not list(files.folder.glob("m.zarr*"))
    succeed("fit", files.hindcast, files.truth, model, "--method", "raw")
    assert "exists; use --overwrite" in refused(*args, "--dry-run")


@pytest.mark.parametrize(("more", "values"), [(Q, 2), (["--members", "7"], 7)])
def test_a_dry_run_prints_the_plan_of_the_forecasts(files, fit_args, monkeypatch, more, values):
    succeed(*fit_args, "--chunks", "lat=2")
    out = files.folder / "o.nc"
    found, text = planned(monkeypatch, "apply", fit_args[3], files.new, out, *more)
    model = HINDCAST.chunk(lat=2).recal.fit(TRUTH, xrecal.Climatology())
    plan = model.plan(NEW.chunk(lat=2), values=values, probe=False)
    assert found["blocks"] == 2
    assert found["task_bytes"] == plan.task_bytes
    assert found["variables"]["t2m"]["forecasts"] == 7
    assert found["variables"]["t2m"]["output_bytes"] == 7 * values * 6 * 8
    assert "note" not in text
    assert not out.exists()


def test_nothing_to_cut_at_a_single_location(tmp_path, monkeypatch):
    for name, data in {"h": HINDCAST, "o": TRUTH}.items():
        data.isel(lat=0, lon=0, drop=True).to_dataset(name="t2m").to_netcdf(tmp_path / f"{name}.nc")
    args = "fit", tmp_path / "h.nc", tmp_path / "o.nc", tmp_path / "m.nc"
    found, text = planned(monkeypatch, *args)
    assert found["variables"]["t2m"]["chunks"] == {}
    assert "  suggested      nothing to cut" in text.splitlines()


def test_a_run_that_needs_more_memory_is_refused(files, fit_args, little, monkeypatch):
    found, _ = planned(monkeypatch, *fit_args)
    n = found["task_bytes"]
    little(n - 1)
    message = refused(*fit_args)
    assert message.startswith("each task needs ")
    assert message.endswith(" or --force to try nevertheless")
    chunks = message.split("; use ")[1].split(", or")[0]
    assert chunks.startswith("--chunks lat=")
    assert not list(files.folder.glob("m.zarr*"))
    assert refused(*fit_args, "--resume") == message  # nothing to resume: it would begin
    found, text = planned(monkeypatch, *fit_args)
    assert found["fits"] is False
    assert "too little: take the suggested chunks" in text
    little(n)
    succeed(*fit_args)


@pytest.mark.parametrize("command", ["fit", "apply"])
def test_what_is_suggested_is_accepted_and_force_overrides(files, fit_args, little, command):
    args, out = fit_args, fit_args[3]
    if command == "apply":
        succeed(*fit_args)
        out = files.folder / "o.zarr"
        args = "apply", fit_args[3], files.new, out, *Q
    data = run(*args, "--dry-run", "--json").data
    little(data["task_bytes"] * 9 // 10)
    suggested = refused(*args).split("; use ")[1].split(", or")[0].split()
    assert succeed(*args, *suggested, "--json").data["blocks"] > 1
    succeed(*args, "--overwrite", "--force")
    with xr.open_dataset(out, engine="zarr") as written:
        assert np.isfinite(written[{"fit": "observations", "apply": "t2m"}[command]]).all()


def test_where_blocks_cannot_help_it_is_said(fit_args, little):
    little(1000)
    message = refused(*fit_args)
    assert "one location alone needs" in message
    assert "use workers with more memory or fewer threads, fewer cases, or --force" in message
    succeed(*fit_args, "--force")


def test_a_refusal_keeps_what_an_earlier_run_left(files, fit_args, little):
    succeed(*fit_args)
    little(1000)
    assert "each task needs" in refused(*fit_args, "--overwrite")
    assert xrecal.open_recalibrator(fit_args[3]).method == xrecal.Climatology()
    done = succeed(*fit_args, "--resume")  # complete, so that nothing has to be computed
    assert "is complete already" in done.out


def test_plans_repeat_no_warnings(files):
    TRUTH.isel(time=slice(22)).to_dataset(name="t2m").to_netcdf(files.folder / "few.nc")
    args = files.hindcast, files.folder / "few.nc", files.folder / "m.nc", "--method", "raw"
    done = run_apart("fit", *args, "--quiet", "--dry-run")
    assert (done.code, done.err.count("warning: only 22 of 48")) == (0, 1)
