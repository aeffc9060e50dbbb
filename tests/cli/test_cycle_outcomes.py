"""Outcomes of a cycle: files, starts, exit codes; late, repeated, wrong and missing inputs."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import xrecal
from tests.cli.files import run
from xrecal.chunks.blockwise import TaskError
from xrecal.cli.commands import xrecal as command
from xrecal.runs import turn as cycling
from xrecal.storage.lock import locked

from .cycle_kills import tree
from .test_cycle_starts import FITTED, FORECASTS, STARTS, TRUTH, files, fit, morning, stems

DAY = 25
"""Day of the last morning of the cycle in ``begun``; its first morning is the day before"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    (folder / "model.nc").write_bytes(fit(24))
    assert morning(folder, [24, 25], DAY).code == 0
    return folder


@pytest.fixture
def folder(begun, tmp_path):
    """A cycle that has issued two starts."""
    return Path(shutil.copytree(begun, tmp_path / "cycle"))


# files of a cycle ---------------------------------------------------------------------------------


def test_a_forecast_file_has_the_values_of_apply(folder):
    out = folder / "out"
    (stem,) = stems([DAY])
    model = out / "models" / f"{stem}.nc"
    FORECASTS[[DAY]].drop_encoding().to_netcdf(folder / "today.nc")
    done = run("apply", model, folder / "today.nc", folder / "q.nc", "--quantiles", 0.5)
    assert done.code == 0
    with xr.open_dataset(out / "forecasts" / f"{stem}.nc") as issued:
        xr.testing.assert_equal(issued["v"], xr.load_dataset(folder / "q.nc")["v"])


def test_the_last_models_are_kept(folder):
    assert files(folder, "models") == set(stems([24, 25]))
    assert next(o for o in command.commands["cycle"].params if o.name == "keep").default == 30
    morning(folder, [24, 25, 26], 26, "--keep", 2)
    assert files(folder, "models") == set(stems([25, 26]))


def test_files_beside_the_forecasts(folder):
    out = folder / "out"
    with xr.open_dataset(out / "scores.nc") as scores, xr.open_dataset(out / "monitor.nc") as seen:
        assert set(scores) >= {f"v_{what}" for what in ("crps", "crps_raw", "pit", "observation")}
        np.testing.assert_array_equal(scores["v_observation"][0, 0], TRUTH[25])
        assert {"v_e_value", "v_alarm", "v_change"} <= set(seen)
    status = json.loads((out / "status.json").read_text())
    assert (status["last_issued"], status["models"]) == (*stems([25]), stems([24, 25]))
    assert status["n_issued"] == 2
    names = {"too_late", "early", "empty", "refused", "in_hindcast", "alarms", "changes"}
    assert names <= set(status)
    first = json.loads((out / "cycle.json").read_text())
    (folder / "model.nc").write_bytes(fit(25))
    morning(folder, [24, 25], DAY)
    second = json.loads((out / "cycle.json").read_text())
    assert (first["fit"] != second["fit"], second["after"]) == (True, *stems([25]))


# starts -------------------------------------------------------------------------------------------


def in_status(folder, name):
    return json.loads((folder / "out" / "status.json").read_text())[name]


def test_starts_are_told_by_what_becomes_of_them(folder):
    """In the result and in the status; which those are says ``test_cycle_starts``."""
    done = morning(folder, [20, 21, 24, 25, 26, 27], 26)
    assert (done.code, done.data["starts"]) == (0, 6)
    assert (done.data["issued"], done.data["issued_before"]) == (stems([26]), 2)
    assert done.data["early"] == in_status(folder, "early") == stems([27])
    assert done.data["in_hindcast"] == in_status(folder, "in_hindcast") == 2


def test_a_start_before_the_last_observation_of_all_models_is_too_late(folder):
    shutil.rmtree(folder / "out" / "models")
    (folder / "model.nc").write_bytes(fit(25))
    (folder / "out" / "forecasts" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25, 26], 26)
    assert done.data["too_late"] == in_status(folder, "too_late") == stems([24])
    assert f"{folder}/model.nc knows observations up to 2021-03-26T00:00:00" in done.err
    assert done.code == 0


def test_a_start_without_members_is_empty(folder):
    done = morning(folder, [25, 26], 26, empty=[26])
    assert done.data["empty"] == in_status(folder, "empty") == stems([26])
    assert (done.code, done.data["status"], done.data["exit_code"]) == (3, "incomplete", 3)
    assert "error" in done.data
    beyond = FORECASTS.where(FORECASTS["init"] != STARTS[26], np.inf)
    assert morning(folder, [25, 26], 26, forecasts=beyond).data["empty"] == stems([26])
    assert morning(folder, [25, 26, 27], 27, empty=[26]).code == 0
    assert morning(folder, [25, 26], 26).data["issued"] == stems([26])


def test_a_start_with_an_error_is_refused_and_others_are_issued(folder, monkeypatch):
    made = cycling.Turn._forecast

    def some(turn, start):
        if start == STARTS[26]:
            raise ValueError("such a day")
        return made(turn, start)

    monkeypatch.setattr(cycling.Turn, "_forecast", some)
    done = morning(folder, [25, 26, 27], 27)
    assert done.data["refused"] == in_status(folder, "refused") == {stems([26])[0]: "such a day"}
    assert done.data["issued"] == stems([27])
    assert (done.code, done.data["status"]) == (3, "incomplete")
    assert f"1 forecast ({stems([26])[0]}) refused: such a day" in done.err
    monkeypatch.undo()
    done = morning(folder, [25, 26, 27], 27)
    assert done.data["issued"] == done.data["late"] == stems([26])


# exit codes ---------------------------------------------------------------------------------------


def test_codes_10_and_11_of_a_cycle(folder):
    before = tree(folder / "out")
    done = morning(folder, [24, 25], DAY)
    assert (done.code, done.data["status"]) == (11, "nothing new")
    assert tree(folder / "out") == before
    higher = folder, TRUTH[:28] + 8, "--alpha", 0.5
    done = observed(*higher, days=range(24, 28), now=27)
    assert (done.code, done.data["alarms"] > 0) == (10, True)
    assert observed(*higher, days=range(24, 28), now=27).code == 11


def fails(error):
    """A function that raises an error whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail


def test_other_codes_of_a_cycle(folder, monkeypatch):
    assert morning(folder, [25], DAY, "--members", 5).code == 2
    assert morning(folder, [25], DAY, "--scheduler", "tcp://127.0.0.1:1", "--timeout", 1).code == 4
    for error, code in ((TaskError("of a task"), 5), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr(cycling.Turn, "score", fails(error))
        assert morning(folder, [25], DAY).code == code
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        monkeypatch.setattr(cycling.Turn, "score", lambda *_, n=number: signal.raise_signal(n))
        before = signal.signal(number, signal.SIG_DFL)
        try:
            assert morning(folder, [25], DAY).code == code
        finally:
            signal.signal(number, before)
    monkeypatch.setattr(cycling.Turn, "score", fails(AssertionError("a fault")))
    monkeypatch.setattr("tests.cli.test_cycle_starts.run", fault_of)
    assert morning(folder, [25], DAY) == 1


def fault_of(*args):
    """Exit code of a command that ends with a fault, which Python would print."""
    result = CliRunner().invoke(command, [str(a) for a in args])
    assert isinstance(result.exception, AssertionError)
    return result.exit_code


def test_codes_of_a_fit_and_a_monitor(folder, monkeypatch):
    FORECASTS[:FITTED].to_netcdf(folder / "hindcast.nc")
    TRUTH.to_netcdf(folder / "truth.nc")
    (FORECASTS + 50).to_netcdf(folder / "biased.nc")
    paths = [folder / name for name in ("hindcast.nc", "truth.nc", "fit.nc")]

    def of_fit(*more):
        return run("fit", *paths, "--method", "climatology", "--json", "--quiet", *more)

    assert of_fit("--min-samples", "few").code == 2
    assert of_fit("--scheduler", "tcp://127.0.0.1:1", "--timeout", 1).code == 4
    assert of_fit().code == 0
    again = of_fit()
    assert again.code == 3
    assert "fit.nc exists; use --overwrite" in again.err
    assert of_fit("--overwrite", "--option", "no=1").code == 3
    monkeypatch.setattr("xrecal.runs.target.write_block", fails(TaskError("of a task")))
    monkeypatch.setattr("dask.base.compute", fails(TaskError("of a task")))
    assert of_fit("--overwrite").code == 5
    monkeypatch.undo()
    seen = (folder / name for name in ("biased.nc", "truth.nc", "seen.nc"))
    assert run("monitor", *seen).code == 10


# late, repeated, wrong and missing inputs ---------------------------------------------------------


def observed(folder, array, *more, days=(24, 25, 26), now=26):
    """A morning with other observations."""
    array.to_netcdf(folder / "observed.nc")
    FORECASTS[list(days)].to_netcdf(folder / "forecasts.nc")
    args = (
        "cycle", folder / "model.nc", "--forecasts", folder / "forecasts.nc", "--observations",
        folder / "observed.nc", "--output", folder / "out", "--quantiles", 0.5, "--now",
        STARTS[now], "--alpha", 1e-9, "--run-length", 10**9, "--json",
        "--quiet", *more,
    )  # fmt: skip
    return run(*args)


def test_observations_that_are_missing_or_known(folder):
    gap = TRUTH.where(TRUTH["time"] != STARTS[26])[:27]
    done = observed(folder, gap)
    assert (done.data["learned"], done.data["issued"]) == (0, stems([26]))
    assert (done.code, done.err) == (0, "")
    done = observed(folder, gap)
    assert (done.data["learned"], done.data["revised"], done.code) == (0, 0, 11)
    assert done.err == ""


def test_mornings_were_missed(folder):
    for day in (26, 27):
        morning(folder, range(24, day + 1), day)
    one_by_one = tree(folder / "out")
    shutil.rmtree(folder / "out")
    done = morning(folder, range(24, 28), 27)
    assert done.data["issued"] == stems(range(24, 28))
    assert tree(folder / "out") == one_by_one
    assert done.code == 0


def test_no_observation_for_weeks(folder):
    quiet = observed(folder, TRUTH[:26], days=(25, 26), now=26)
    assert "no observation" not in quiet.err
    later = FORECASTS[[35]].assign_coords(init=[STARTS[25] + np.timedelta64(20, "D")])
    both = xr.concat([FORECASTS[24:27], later], "init")
    done = morning(folder, range(4), DAY, "--now", later["init"].to_numpy()[0], forecasts=both)
    assert "knows no observation of the 20 days before" in done.err
    assert len(done.data["issued"]) == 1
    assert done.code == 0


def test_a_start_comes_late(folder):
    later = morning(folder, [24, 25, 27], 27)
    assert later.data["late"] == []
    before = tree(folder / "out" / "forecasts")
    done = morning(folder, [24, 25, 26, 27], 27)
    assert done.data["issued"] == done.data["late"] == stems([26])
    after = tree(folder / "out" / "forecasts")
    assert {name: after[name] for name in before} == before
    model = xrecal.open_recalibrator(folder / "out" / "models" / f"{stems([25])[0]}.nc")
    model = model.update(FORECASTS[24:26], TRUTH[:27])
    expected = model.quantile(FORECASTS[[26]], [0.5])
    with xr.open_dataset(folder / "out" / "forecasts" / f"{stems([26])[0]}.nc") as issued:
        np.testing.assert_array_equal(issued["v"], expected.transpose(*issued["v"].dims))
    assert done.code == 0


def test_a_start_whose_file_is_damaged(folder):
    for day in (25, 26):
        path = folder / f"day-{day}.nc"
        packed = {"v": {"zlib": True, "fletcher32": True}}
        FORECASTS[[day]].to_netcdf(path, encoding=packed)
    damaged = bytearray(path.read_bytes())
    at = max(damaged.find(bytes([0x78, level])) for level in (0x01, 0x5E, 0x9C))
    assert at > 0
    damaged[at + 9] ^= 255
    path.write_bytes(damaged)
    (folder / "out" / "forecasts" / f"{stems([25])[0]}.nc").unlink()
    done = morning(folder, [25], 26, "--forecasts", path, "--forecasts", folder / "day-25.nc",
                   handed=False)  # fmt: skip
    assert done.data["issued"] == stems([25])
    assert set(done.data["refused"]) == set(stems([26]))
    assert "some of the forecasts cannot be read" in done.err
    assert done.code == 3


def test_somebody_removed_a_forecast(folder):
    before = tree(folder / "out")
    (folder / "out" / "forecasts" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25], DAY)
    assert done.data["issued"] == stems([24])
    assert tree(folder / "out") == before
    assert done.code == 0


def test_a_file_is_removed_before_its_leads_have_verified(folder):
    done = morning(folder, [26, 27], 27)
    assert (done.data["learned"], done.data["scored"]) == (1, 1)  # of 26 alone
    assert done.code == 0


def test_a_start_in_two_files(folder):
    FORECASTS[[25]].to_netcdf(folder / "again.nc")
    done = morning(folder, [24, 25], DAY, "--forecasts", folder / "again.nc")
    assert "2021-03-26 00:00:00 occurs in the forecasts twice" in done.err
    assert done.code == 3


def test_members_far_beyond_all_values(folder):
    beyond = FORECASTS.where((FORECASTS["init"] != STARTS[26]) | (FORECASTS["member"] > 0), 1e30)
    done = morning(folder, [25, 26], 26, forecasts=beyond)
    assert done.data["issued"] == stems([26])
    assert "2 members" in done.err
    assert done.code == 0


def test_starts_without_dates(folder):
    starts = STARTS[24:26].copy()
    starts[1] = np.datetime64("NaT")
    odd = {
        "have no dates along 'init'": FORECASTS[24:26].assign_coords(init=[0, 1]),
        "hold a start without a date (NaT)": FORECASTS[24:26].assign_coords(init=starts),
        "hold no start": FORECASTS[:0],
    }
    for text, one in odd.items():
        one.to_netcdf(folder / "odd.nc")
        done = morning(folder, [25], DAY, "--forecasts", folder / "odd.nc")
        assert done.code == 3
        assert f"odd.nc {text}" in done.err


def test_two_runs_at_once(folder):
    with locked(folder / "out"):
        done = morning(folder, [25, 26], 26)
    assert f"has been writing {folder}/out since" in done.err
    assert done.code == 3


def test_a_folder_of_something_else(folder):
    (folder / "letters").mkdir()
    (folder / "letters" / "dear.txt").write_text("dear")
    done = morning(folder, [25, 26], 26, "--output", folder / "letters")
    assert tree(folder / "letters") == {"dear.txt": "dear"}
    assert "it holds dear.txt" in done.err
    assert (done.code, done.data["status"]) == (3, "refused")
