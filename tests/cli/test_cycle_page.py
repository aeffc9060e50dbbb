"""Each row of the tables of ``docs/cycle.md`` and of the exit codes of ``docs/batch.md`` holds."""

import gzip
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
from tests.pages import Checks
from xrecal.chunks.blockwise import TaskError
from xrecal.cli.commands import xrecal as command
from xrecal.runs import turn as cycling
from xrecal.storage.lock import locked

from .cycle_kills import tree
from .test_cycle_starts import FITTED, FORECASTS, STARTS, TRUTH, files, fit, morning, stems

CYCLE, BATCH = "docs/cycle.md", "docs/batch.md"
LEFT = Checks(CYCLE, "What it leaves")
STARTED = Checks(CYCLE, "What becomes of each start")
CODES = Checks(CYCLE, "Exit codes")
ODD = Checks(CYCLE, "What comes late, twice, wrong or not at all")
OF_ALL = Checks(BATCH, "Exit codes")
TABLES = {"left": LEFT, "starts": STARTED, "codes": CODES, "odd": ODD, "all": OF_ALL}
DAY = 25
"""Of the last morning of the cycle that is begun; the first was the day before."""


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


@pytest.mark.parametrize("name", TABLES)
def test_each_row_has_a_check_and_each_check_a_row(name):
    assert TABLES[name].unbound == set()


def each_row(checks):
    return pytest.mark.parametrize("row", list(checks.rows))


@each_row(LEFT)
def test_what_it_leaves(folder, row):
    LEFT.by_row[row](folder / "out", LEFT.rows[row])


@each_row(STARTED)
def test_what_becomes_of_each_start(folder, row, monkeypatch):
    STARTED.by_row[row](folder, row, monkeypatch)


@each_row(CODES)
def test_exit_codes(folder, row, monkeypatch):
    CODES.by_row[row](folder, monkeypatch)


@each_row(OF_ALL)
def test_exit_codes_of_all_commands(folder, row, monkeypatch):
    assert OF_ALL.by_row[row](folder, monkeypatch) == [int(code) for code in row.split(", ")]


@each_row(ODD)
def test_what_comes_late_twice_wrong_or_not_at_all(folder, row, monkeypatch):
    """The result of a check has the code of the row, and what its message names."""
    result, message = ODD.rows[row]
    done = ODD.by_row[row](folder, monkeypatch)
    assert done.code in ((3,) if "(3" in result else (0, 11)), done.err
    for name in message.split("`")[1::2]:
        if name in done.data:
            assert done.data[name], name
        elif not name.startswith("--"):
            assert name in done.err
    if message == "none":
        assert done.err == ""


# what it leaves -----------------------------------------------------------------------------------


@LEFT.row("`forecasts/20261123T000000.nc`")
def _(out, _):
    (stem,) = stems([DAY])
    model = out / "models" / f"{stem}.nc"
    FORECASTS[[DAY]].drop_encoding().to_netcdf(out.parent / "today.nc")
    done = run("apply", model, out.parent / "today.nc", out.parent / "q.nc", "--quantiles", 0.5)
    assert done.code == 0
    with xr.open_dataset(out / "forecasts" / f"{stem}.nc") as issued:
        xr.testing.assert_equal(issued["v"], xr.load_dataset(out.parent / "q.nc")["v"])


@LEFT.row("`models/20261123T000000.nc`")
def _(out, cells):
    assert files(out.parent, "models") == set(stems([24, 25]))
    assert "30 by default" in cells[0]
    assert next(o for o in command.commands["cycle"].params if o.name == "keep").default == 30
    morning(out.parent, [24, 25, 26], 26, "--keep", 2)
    assert files(out.parent, "models") == set(stems([25, 26]))


@LEFT.row("`scores.nc`")
def _(out, _):
    with xr.open_dataset(out / "scores.nc") as scores:
        assert set(scores) >= {f"v_{what}" for what in ("crps", "crps_raw", "pit", "observation")}
        np.testing.assert_array_equal(scores["v_observation"][0, 0], TRUTH[25])


@LEFT.row("`monitor.nc`")
def _(out, _):
    with xr.open_dataset(out / "monitor.nc") as seen:
        assert {"v_e_value", "v_alarm", "v_change"} <= set(seen)


@LEFT.row("`status.json`")
def _(out, _):
    status = json.loads((out / "status.json").read_text())
    assert (status["last_issued"], status["models"]) == (*stems([25]), stems([24, 25]))
    assert status["n_issued"] == 2
    names = {"too_late", "early", "empty", "refused", "in_hindcast", "alarms", "changes"}
    assert names <= set(status)


@LEFT.row("`cycle.json`")
def _(out, _):
    first = json.loads((out / "cycle.json").read_text())
    (out.parent / "model.nc").write_bytes(fit(25))
    morning(out.parent, [24, 25], DAY)
    second = json.loads((out / "cycle.json").read_text())
    assert (first["fit"] != second["fit"], second["after"]) == (True, *stems([25]))


# what becomes of each start -----------------------------------------------------------------------


def in_status(folder, name):
    return json.loads((folder / "out" / "status.json").read_text())[name]


@STARTED.row("`issued`")
def _(folder, row, _):
    done = morning(folder, [24, 25, 26], 26)
    assert done.data["issued"] == stems([26])
    assert done.data["starts"] == 3


@STARTED.row("`issued_before`")
def _(folder, row, _):
    assert morning(folder, [24, 25, 26], 26).data["issued_before"] == 2


@STARTED.row("`too_late`")
def _(folder, row, _):
    for model in (folder / "out" / "models").iterdir():
        model.unlink()
    (folder / "model.nc").write_bytes(fit(25))
    (folder / "out" / "forecasts" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25], DAY)
    assert done.data["too_late"] == in_status(folder, "too_late") == stems([24])
    assert f"{folder}/model.nc knows observations up to 2021-03-26T00:00:00" in done.err


@STARTED.row("`in_hindcast`")
def _(folder, row, _):
    done = morning(folder, [20, 21, 24, 25], DAY)
    assert done.data["in_hindcast"] == in_status(folder, "in_hindcast") == 2
    assert done.err == ""


@STARTED.row("`early`")
def _(folder, row, _):
    done = morning(folder, [24, 25, 26], DAY)
    assert done.data["early"] == in_status(folder, "early") == stems([26])


@STARTED.row("`empty`")
def _(folder, row, _):
    done = morning(folder, [25, 26], 26, empty=[26])
    assert done.data["empty"] == in_status(folder, "empty") == stems([26])
    beyond = FORECASTS.where(FORECASTS["init"] != STARTS[26], np.inf)
    assert morning(folder, [25, 26], 26, forecasts=beyond).data["empty"] == stems([26])
    assert morning(folder, [25, 26], 26).data["issued"] == stems([26])


@STARTED.row("`refused`")
def _(folder, row, monkeypatch):
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
    assert f"1 forecasts are refused, {stems([26])[0]}: such a day" in done.err
    monkeypatch.undo()
    done = morning(folder, [25, 26, 27], 27)
    assert done.data["issued"] == done.data["late"] == stems([26])


# exit codes ---------------------------------------------------------------------------------------


@CODES.row("0")
def _(folder, _):
    assert morning(folder, [25, 26], 26).code == 0


@CODES.row("10")
def _(folder, _):
    higher = folder, TRUTH[:30] + 8, "--alpha", 0.5
    done = observed(*higher, days=range(24, 30), now=29)
    assert (done.code, done.data["alarms"] > 0) == (10, True)
    assert observed(*higher, days=range(24, 30), now=29).code == 11


@CODES.row("11")
def _(folder, _):
    before = tree(folder / "out")
    done = morning(folder, [24, 25], DAY)
    assert (done.code, done.data["status"]) == (11, "nothing new")
    assert tree(folder / "out") == before


@CODES.row("3")
def _(folder, _):
    (folder / "strange").mkdir()
    (folder / "strange" / "letter.txt").touch()
    done = morning(folder, [25, 26], 26, "--output", folder / "strange")
    assert (done.code, done.data["status"]) == (3, "refused")
    done = morning(folder, [25, 26], 26, empty=[26])
    assert (done.code, done.data["status"]) == (3, "incomplete")
    assert "error" in done.data
    assert done.data["exit_code"] == 3


@CODES.row("2, 4, 5, 130, ...")
def _(folder, monkeypatch):
    assert morning(folder, [25], DAY, "--members", 5).code == 2
    assert morning(folder, [25], DAY, "--scheduler", "tcp://127.0.0.1:1", "--timeout", 1).code == 4
    for error, code in ((TaskError("of a task"), 5), (KeyboardInterrupt(), 130)):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr(cycling.Turn, "score", fail)
        assert morning(folder, [25], DAY).code == code


# exit codes of all commands -----------------------------------------------------------------------


def of_fit(folder, *more):
    """Fit to some days; with or without what was there before."""
    FORECASTS[:FITTED].to_netcdf(folder / "hindcast.nc")
    TRUTH.to_netcdf(folder / "truth.nc")
    paths = (folder / name for name in ("hindcast.nc", "truth.nc", "fit.nc"))
    return run("fit", *paths, "--method", "climatology", "--json", "--quiet", *more)


@OF_ALL.row("0")
def _(folder, _):
    return [of_fit(folder).code]


@OF_ALL.row("1")
def _(folder, monkeypatch):
    def fail(*_):
        raise AssertionError("a fault")

    monkeypatch.setattr(cycling.Turn, "score", fail)
    monkeypatch.setattr("tests.cli.test_cycle_starts.run", fault_of)
    return [morning(folder, [25], DAY)]


def fault_of(*args):
    """Exit code of a command that ends with a fault, which Python would print."""
    result = CliRunner().invoke(command, [str(a) for a in args])
    assert isinstance(result.exception, AssertionError)
    return result.exit_code


@OF_ALL.row("2")
def _(folder, _):
    return [of_fit(folder, "--min-samples", "few").code]


@OF_ALL.row("3")
def _(folder, _):
    of_fit(folder)
    done = of_fit(folder)
    assert "fit.nc exists; use --overwrite" in done.err
    assert of_fit(folder, "--overwrite", "--option", "no=1").code == 3
    assert morning(folder, [26], 26, empty=[26]).code == 3
    return [done.code]


@OF_ALL.row("4")
def _(folder, _):
    return [of_fit(folder, "--scheduler", "tcp://127.0.0.1:1", "--timeout", 1).code]


@OF_ALL.row("5")
def _(folder, monkeypatch):
    def fail(*_, **__):
        raise TaskError("of a task")

    monkeypatch.setattr("xrecal.runs.target.write_block", fail)
    monkeypatch.setattr("dask.base.compute", fail)
    return [of_fit(folder).code]


@OF_ALL.row("10")
def _(folder, _):
    TRUTH.to_netcdf(folder / "truth.nc")
    (FORECASTS + 50).to_netcdf(folder / "biased.nc")
    paths = (folder / name for name in ("biased.nc", "truth.nc", "seen.nc"))
    return [run("monitor", *paths).code]


@OF_ALL.row("11")
def _(folder, _):
    return [morning(folder, [25], DAY).code]


@OF_ALL.row("130, 143, 129")
def _(folder, monkeypatch):
    codes = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        monkeypatch.setattr(cycling.Turn, "score", lambda *_, n=number: signal.raise_signal(n))
        before = signal.signal(number, signal.SIG_DFL)
        try:
            codes.append(morning(folder, [25], DAY).code)
        finally:
            signal.signal(number, before)
    return codes


# what comes late, twice, wrong or not at all -----------------------------------------------------


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


def known(folder, day):
    """Observations that the model of a day knows."""
    model = xrecal.open_recalibrator(folder / "out" / "models" / f"{stems([day])[0]}.nc")
    return model.state["observations"]


GAP = TRUTH.where(TRUTH["time"] != STARTS[26])[:27]


@ODD.row("an observation comes late")
def _(folder, _):
    without = observed(folder, GAP)
    first = tree(folder / "out" / "forecasts")
    done = observed(folder, TRUTH[:28], days=(24, 25, 26, 27), now=27)
    assert (without.data["learned"], done.data["learned"]) == (0, 4)
    after = tree(folder / "out" / "forecasts")
    assert {name: after[name] for name in first} == first
    return done


@ODD.row("an observation is missing")
def _(folder, _):
    done = observed(folder, GAP)
    assert (done.data["learned"], done.data["issued"]) == (0, stems([26]))
    return done


@ODD.row("an observation that the model knows already")
def _(folder, _):
    done = observed(folder, TRUTH[: DAY + 1], days=(24, 25), now=DAY)
    assert (done.data["learned"], done.data["revised"], done.code) == (0, 0, 11)
    return done


@ODD.row("an observation has another value now (a revision)")
def _(folder, _):
    revised = TRUTH[:27].copy()
    revised[25] += 1
    done = observed(folder, revised)
    assert done.data["revised"] == 1
    assert float(known(folder, 26).max()) == pytest.approx(float(TRUTH[:27].max()))
    with xr.open_dataset(folder / "out" / "scores.nc") as scores:
        assert float(scores["v_observation"][0, 0]) == pytest.approx(float(revised[25]))
    return done


@ODD.row("observations of the future")
def _(folder, _):
    done = observed(folder, TRUTH[:29])
    assert done.data["of_the_future"] == 3
    assert "up to 2021-03-29T00:00:00, while it is 2021-03-27" in done.err
    assert "give --now" in done.err
    return done


@ODD.row("mornings were missed")
def _(folder, _):
    for day in (26, 27):
        morning(folder, range(24, day + 1), day)
    one_by_one = tree(folder / "out")
    shutil.rmtree(folder / "out")
    done = morning(folder, range(24, 28), 27)
    assert done.data["issued"] == stems(range(24, 28))
    assert tree(folder / "out") == one_by_one
    return done


@ODD.row("no observation for weeks")
def _(folder, _):
    quiet = observed(folder, TRUTH[:26], days=(25, 26), now=26)
    assert "no observation" not in quiet.err
    later = FORECASTS[[35]].assign_coords(init=[STARTS[25] + np.timedelta64(20, "D")])
    both = xr.concat([FORECASTS[24:27], later], "init")
    done = morning(folder, range(4), DAY, "--now", later["init"].to_numpy()[0], forecasts=both)
    assert "knows no observation of the 20 days before" in done.err
    assert len(done.data["issued"]) == 1
    return done


@ODD.row("a start comes late, after later ones were issued")
def _(folder, _):
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
    return done


@ODD.row("a start comes late, and all models know what came after")
def _(folder, _):
    shutil.rmtree(folder / "out" / "models")
    (folder / "model.nc").write_bytes(fit(25))
    (folder / "out" / "forecasts" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25, 26], 26)
    assert done.data["too_late"] == stems([24])
    assert "not issued, as all models that are kept know what came after" in done.err
    return done


@ODD.row("a start after `--now`")
def _(folder, _):
    done = morning(folder, [25, 26, 27], 26)
    assert done.data["early"] == stems([27])
    return done


@ODD.row("a start without any member")
def _(folder, _):
    assert morning(folder, [25, 26, 27], 27, empty=[26]).code == 0
    return morning(folder, [27, 28], 28, empty=[28])


@ODD.row("a start whose file is damaged")
def _(folder, _):
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
    return done


@ODD.row("somebody removed a forecast")
def _(folder, _):
    before = tree(folder / "out")
    (folder / "out" / "forecasts" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25], DAY)
    assert done.data["issued"] == stems([24])
    assert tree(folder / "out") == before
    return done


@ODD.row("a run was interrupted")
def _(folder, monkeypatch):
    made, starts = cycling.Turn._forecast, []

    def until_the_second(turn, start):
        starts.append(start)
        if len(starts) == 2:
            raise KeyboardInterrupt
        return made(turn, start)

    shutil.copytree(folder, folder / "whole")
    whole = morning(folder / "whole", [25, 26, 27], 27)
    monkeypatch.setattr(cycling.Turn, "_forecast", until_the_second)
    assert morning(folder, [25, 26, 27], 27).code == 130
    monkeypatch.undo()
    done = morning(folder, [25, 26, 27], 27)
    assert whole.data["issued"] == stems([26, 27])
    assert done.data["issued"] == stems([27])
    assert tree(folder / "out") == tree(folder / "whole" / "out")
    return done


@ODD.row("a forecast file is removed before its leads have verified")
def _(folder, _):
    done = morning(folder, [26, 27], 27)
    assert (done.data["learned"], done.data["scored"]) == (1, 1)  # of 26 alone
    return done


@ODD.row("a start in two files")
def _(folder, _):
    FORECASTS[[25]].to_netcdf(folder / "again.nc")
    done = morning(folder, [24, 25], DAY, "--forecasts", folder / "again.nc")
    assert "2021-03-26 00:00:00 stands in the forecasts twice" in done.err
    return done


@ODD.row("a file in another unit, or with other variables, places or leads than the others")
def _(folder, _):
    path = folder / "odd.nc"
    odd = FORECASTS[[26]].assign_attrs(units="m"), FORECASTS[[26]].rename("w")
    odd += (FORECASTS[[26]].assign_coords(lead=("lead", [1, 3], {"units": "days"})),)
    odd += (FORECASTS[[26]].expand_dims(place=2),)
    for one in odd:
        one.to_netcdf(path)
        with_unit = FORECASTS.assign_attrs(units="K")
        done = morning(folder, [25], 26, "--forecasts", path, forecasts=with_unit)
        assert done.code == 3
        assert "odd.nc" in done.err
    return done


@ODD.row("a file with fewer members")
def _(folder, _):
    FORECASTS[[26], :, :2].to_netcdf(folder / "few.nc")
    done = morning(folder, [24, 25], 26, "--forecasts", folder / "few.nc")
    assert done.data["issued"] == stems([26])
    return done


@ODD.row("members more than a million times the largest value that the model has seen")
def _(folder, _):
    beyond = FORECASTS.where((FORECASTS["init"] != STARTS[26]) | (FORECASTS["member"] > 0), 1e30)
    done = morning(folder, [25, 26], 26, forecasts=beyond)
    assert done.data["issued"] == stems([26])
    assert "2 members" in done.err
    return done


@ODD.row("no dates along the starts, a start without a date, or a file without starts")
def _(folder, _):
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
    return done


def with_layout(path, layout):
    import netCDF4

    with netCDF4.Dataset(path, "a") as file:
        file.xrecal_schema = np.int64(layout)


@ODD.row("a model of a newer version of xrecal")
def _(folder, _):
    with_layout(folder / "model.nc", 99)
    return morning(folder, [25, 26], 26)


@ODD.row("a model of an older version")
def _(folder, _):
    with_layout(folder / "model.nc", 8)
    assert morning(folder, [25, 26], 26).code == 0
    stored = Path(__file__).parents[1] / "stored" / "schema1_emos.nc.gz"
    (folder / "model.nc").write_bytes(gzip.decompress(stored.read_bytes()))
    undated = FORECASTS[25:27].isel(lead=0, drop=True).rename(init="time")
    done = morning(folder, range(2), 26, forecasts=undated.expand_dims(station=3))
    assert done.code == 3
    return done


@ODD.row("two runs at once")
def _(folder, _):
    with locked(folder / "out"):
        done = morning(folder, [25, 26], 26)
    assert f"has been writing {folder}/out since" in done.err
    return done


@ODD.row("a folder of something else as `--output`")
def _(folder, _):
    (folder / "letters").mkdir()
    (folder / "letters" / "dear.txt").write_text("dear")
    done = morning(folder, [25, 26], 26, "--output", folder / "letters")
    assert tree(folder / "letters") == {"dear.txt": "dear"}
    assert "it holds dear.txt" in done.err
    return done
