"""Runs and the daily cycle from Python: what the commands give, and errors in words of Python."""

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.cli.cycle_kills import tree
from tests.cli.days import FORECASTS, STARTS, TRUTH, first_fit
from tests.cli.files import HINDCAST, NEW, succeed, write
from tests.cli.files import TRUTH as OBSERVED

Q = [0.1, 0.5, 0.9]


def test_a_cycle_on_arrays_leaves_what_the_command_leaves(tmp_path):
    days = first_fit(tmp_path)
    cycle = xrecal.Cycle(tmp_path / "python", days.model, quantiles=Q)
    for day in (39, 40):
        done = days.morning(day).data
        truth = TRUTH.sel(time=slice(None, STARTS[day]))
        found = cycle.run(FORECASTS[max(day - 6, 0) : day + 1], truth, str(STARTS[day]))
        assert (found.issued, found.learned, found.scored) == (
            done["issued"], done["learned"], done["scored"]
        )  # fmt: skip
        assert found.scores == done["scores"]
    assert tree(tmp_path / "python") == tree(days.output)
    assert cycle.run(FORECASTS[34:41], truth, STARTS[40]).status == "nothing new"


def test_a_cycle_of_a_model_in_memory(tmp_path):
    days = first_fit(tmp_path)
    model = xrecal.open_recalibrator(days.model)
    truth = TRUTH.sel(time=slice(None, STARTS[40]))
    parts = [FORECASTS[[39]], FORECASTS[[40]]]
    done = [
        xrecal.Cycle(tmp_path / name, one, members=3).run(parts, truth, STARTS[40])
        for name, one in {"path": days.model, "memory": model}.items()
    ]
    assert done[0].issued == done[1].issued
    found = [tree(tmp_path / name / "forecasts") for name in ("path", "memory")]
    assert found[0] == found[1]
    again = xrecal.Cycle(tmp_path / "memory", model, members=3).run(parts, truth, STARTS[40])
    assert again.status == "nothing new"


def test_a_cycle_warns_and_refuses_in_words_of_python(tmp_path):
    days = first_fit(tmp_path)
    cycle = xrecal.Cycle(tmp_path / "out", days.model, quantiles=Q)
    with pytest.warns(UserWarning, match=r"the future .*; check start dates and now"):
        done = cycle.run(FORECASTS[40:42], TRUTH[:41], STARTS[40])
    assert done.early == ["20200211T000000"]
    with pytest.raises(ValueError, match="name a later date, or begin again in another folder"):
        cycle.run(FORECASTS[40:42], TRUTH[:41], STARTS[41], model_at="2019-01-01")
    with pytest.raises(ValueError, match="say what to issue: one of quantiles, members"):
        xrecal.Cycle(tmp_path / "out", days.model)
    with pytest.raises(ValueError, match="occurs in the forecasts twice"):
        cycle.run([FORECASTS[40], FORECASTS[40]], TRUTH[:41], STARTS[41])
    with pytest.raises(TypeError, match=r"cycle.run has no parameter 'forecast'"):
        cycle.run(forecast=FORECASTS, observations=TRUTH)


def test_a_run_writes_what_the_commands_write(tmp_path):
    files = write(tmp_path)
    succeed("fit", files.hindcast, files.truth, tmp_path / "a.zarr", "--method", "emos")
    run = xrecal.Run(tmp_path / "b.zarr", chunks={"lat": 2})
    past = run.open(files.hindcast, "hindcast")
    model = past.recal.fit(run.open_observations(files.truth, past), xrecal.EMOS())
    assert run.write(model, {"method": model.method}).n_blocks == 2
    one, two = (xrecal.open_recalibrator(tmp_path / f"{name}.zarr") for name in "ab")
    xr.testing.assert_identical(one.state.compute(), two.state.compute())
    succeed("apply", tmp_path / "a.zarr", files.new, tmp_path / "a.nc", "--quantiles", "0.1,0.9")
    run = xrecal.Run(tmp_path / "b.nc")
    model = run.open_model(tmp_path / "b.zarr")
    issued = run.issue(model, run.open(files.new, model=model), quantiles=[0.1, 0.9])
    run.write(issued, {"quantiles": [0.1, 0.9]})
    with xr.open_dataset(tmp_path / "a.nc") as found, run.open_result() as made:
        xr.testing.assert_equal(found, made)
    expected = HINDCAST.recal.fit(OBSERVED, xrecal.EMOS()).quantile(NEW, [0.1, 0.9])
    np.testing.assert_array_equal(made["t2m"].transpose(*expected.dims), expected)


def test_a_run_goes_on_and_refuses_in_words_of_python(tmp_path):
    files = write(tmp_path)

    def work(settings=None, compute=None, **options):
        run = xrecal.Run(tmp_path / "m.zarr", chunks={"lat": 2}, compute=compute, **options)
        past = run.open(files.hindcast, "hindcast")
        model = past.recal.fit(run.open_observations(files.truth, past), xrecal.Raw())
        return run, model, settings or {"method": xrecal.Raw()}

    def stop(tasks):
        dask.compute(*tasks[:1])
        raise OSError("the lights went out")

    run, *rest = work(compute=stop)
    with pytest.raises(
        xrecal.TaskError, match=r"1 of 2 blocks .* repeat the command with resume=True"
    ):
        run.write(*rest)
    run, *rest = work()
    with pytest.raises(
        FileExistsError, match=r"interrupted run .* with resume=True, or start again"
    ):
        run.write(*rest)
    run, *rest = work({"method": xrecal.EMOS()}, resume=True)
    with pytest.raises(ValueError, match="belongs to another request: method was"):
        run.preview(*rest)
    run, *rest = work(resume=True)
    assert run.preview(*rest)[:2] == (2, 1)
    assert run.write(*rest) == (2, 1, False)
    assert run.write(*rest) == (2, 2, True)
    run, *rest = work()
    with pytest.raises(FileExistsError, match="use overwrite=True to replace it, or another path"):
        run.write(*rest)
    with pytest.raises(ValueError, match="resume=True continues and overwrite=True starts again"):
        work(resume=True, overwrite=True)
    with pytest.raises(
        ValueError, match=r"chunks names 'time', which is not a dimension of locations"
    ):
        xrecal.Run(chunks={"time": 2}).open(files.hindcast)
    with pytest.raises(ValueError, match="the run has no output"):
        xrecal.Run().write(rest[0])
