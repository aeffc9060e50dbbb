"""Progress of long work, by a clock that is set."""

import re
import sys
from io import StringIO

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.chunks import progress
from xrecal.chunks.progress import counted, parts, reported, stage
from xrecal.inputs import pool as pooling

HINDCAST, TRUTH = ensemble_and_truth()


class Clock:
    """Time that goes on when it is told to, and by ``step`` whenever it is read."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "clock", made)
    return made


class Terminal(StringIO):
    def isatty(self):
        return True


def seconds_of(text):
    return [int(s) for s in re.findall(r"(\d+) s", text)]


def test_short_work_prints_nothing(clock, capsys):
    with reported("work"):
        for _ in counted(range(29)):
            clock.now += 0.1
    assert capsys.readouterr().err == ""


def test_lines_become_rarer_where_there_is_no_terminal(clock, capsys):
    with reported("work"):
        for _ in counted(range(1000)):
            clock.now += 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "work: 0% after 3 s"
    seconds = np.array(seconds_of("\n".join(lines)))
    assert np.diff(seconds).min() == 10
    assert (np.diff(seconds) <= np.maximum(10, np.ceil(0.25 * seconds[1:]))).all()
    assert len(lines) == 15


def test_a_bar_on_a_terminal(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with reported("work"):
        for _ in counted(range(10)):
            clock.now += 1
    *bars, last = sys.stderr.getvalue().split("\r")[1:]
    assert bars[0] == f"work [{'#' * 9:<30}]  30%    3 s"
    assert last == f"work [{'#' * 30}] 100%   10 s\n"


def test_a_bar_in_a_notebook(clock, monkeypatch):
    stream = type("OutStream", (StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    with reported("work"):
        for _ in counted(range(10)):
            clock.now += 1
    assert stream.getvalue().startswith("\rwork [###")


def test_steps_inside_a_step_are_shares_of_it(clock, capsys):
    with reported("whole"), reported("part"):
        for _ in counted("ab"):
            for _ in counted("cd"):
                clock.now += 11
    assert capsys.readouterr().err.splitlines() == [
        "whole: 25% after 11 s", "whole: 50% after 22 s", "whole: 75% after 33 s",
        "whole: 100% after 44 s",
    ]  # fmt: skip


def test_shares_never_fall(clock, capsys):
    with reported("whole"):
        for _ in counted("ab"):
            for _ in counted("cd"):
                clock.now += 11
            for _ in counted("efgh"):
                clock.now += 11
    lines = capsys.readouterr().err.splitlines()
    shares = [int(re.search(r"(\d+)%", line)[1]) for line in lines]
    assert shares[:4] == [25, 50, 50, 50]
    assert shares == sorted(shares)


def test_stages_are_steps_of_one_call(clock, capsys):
    with reported("whole"):
        for number in range(2):
            with stage(number, 2):
                for _ in counted("cd"):
                    clock.now += 11
    told = re.findall(r"(\d+)%", capsys.readouterr().err)
    assert told == ["25", "50", "75", "100"]


@pytest.mark.parametrize("name", ["fit", "compare"])
def test_shares_of_long_calls_never_fall(name, clock, capsys):
    clock.step = 4.0
    methods = [xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME())), xrecal.EMOS()]
    if name == "fit":
        HINDCAST.recal.fit(TRUTH, methods[0])
    else:
        xrecal.compare(HINDCAST, TRUTH, methods)
    shares = [int(share) for share in re.findall(r"(\d+)% after", capsys.readouterr().err)]
    assert len(shares) > 2
    assert shares == sorted(shares)


def test_choices_and_forecasts_of_a_cross_validation_are_two_steps(clock, capsys, monkeypatch):
    clock.step = 4.0
    monkeypatch.setattr(progress, "SELDOM", 0.0)
    monkeypatch.setattr(progress, "MORE", 0.0)
    HINDCAST.recal.cross_validate(TRUTH, xrecal.CKME(), by="block")
    shares = [int(share) for share in re.findall(r"(\d+)% after", capsys.readouterr().err)]
    assert shares == sorted(shares)
    assert 50 in shares
    assert 90 in shares
    assert shares.index(100) > len(shares) // 2


def shares_of(call, capsys, monkeypatch, clock):
    """Percentages that a call prints, one for each step of the clock."""
    clock.step = 4.0
    monkeypatch.setattr(progress, "SELDOM", 0.0)
    monkeypatch.setattr(progress, "MORE", 0.0)
    call()
    return [int(share) for share in re.findall(r"(\d+)% after", capsys.readouterr().err)]


POOLED = {"pool": ("lat", "lon"), "by": "block"}


@pytest.mark.parametrize(
    ("method", "most_pooled"), [(xrecal.CKME(), 10_000), (xrecal.LinearPool(), 100)]
)
def test_splits_without_joint_choices_are_one_step(method, most_pooled, clock, capsys, monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", most_pooled)
    shares = shares_of(
        lambda: HINDCAST.recal.cross_validate(TRUTH, method, **POOLED),
        capsys,
        monkeypatch,
        clock,
    )
    assert shares == sorted(shares)
    assert {share % 20 for share in shares} == {0}  # each of five blocks is a fifth


def test_shares_of_several_methods_never_fall(clock, capsys, monkeypatch):
    methods = [xrecal.CKME(), xrecal.EMOS(), xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME()))]
    shares = shares_of(
        lambda: xrecal.compare(HINDCAST, TRUTH, methods, by="block"), capsys, monkeypatch, clock
    )
    assert len(set(shares)) > 10
    assert shares == sorted(shares)


def test_work_that_fails_says_when(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())

    def work():
        for one in counted([1, 0]):
            clock.now += 4
            one / one

    with pytest.raises(ZeroDivisionError), reported("work"):
        work()
    assert sys.stderr.getvalue().endswith(" ended    8 s\n")
    assert not progress._open


def test_parts_are_all_places(clock):
    assert list(parts(7)) == [slice(0, 7)]
    with reported("work"):
        found = []
        for at in parts(70):
            found += range(70)[at]
            clock.now += 1
        assert found == list(range(70))
        assert len(list(parts(70))) < 7  # quick ones grow
    with reported("work", shown=False):
        assert list(parts(7)) == [slice(0, 7)]


CALLS = {
    "fit": lambda **shown: HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), **shown),
    "cross_validate": lambda **shown: HINDCAST.recal.cross_validate(
        TRUTH, xrecal.EMOS(), by="block", **shown
    ),
    "compare": lambda **shown: xrecal.compare(HINDCAST, TRUTH, [xrecal.EMOS()], **shown),
    "report": lambda **shown: HINDCAST.recal.report(TRUTH, n_resamples=10, **shown),
}


@pytest.mark.parametrize("name", CALLS)
def test_long_calls_show_their_progress(name, clock, capsys):
    clock.step = 4.0
    CALLS[name]()
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(re.fullmatch(rf"xrecal {name}: (\d+% after )?\d+ s", line) for line in lines)
    assert np.diff(seconds_of("\n".join(lines))).min(initial=10) >= 10
    CALLS[name](progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_tasks_of_dask_count(scheduler, clock, capsys):
    import dask

    clock.step = 4.0
    lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH.chunk(lat=1), xrecal.EMOS(), progress=False)
    with dask.config.set(scheduler=scheduler):
        found = lazy.compute()
        assert re.search(r"xrecal fit: \d+% after", capsys.readouterr().err)
        lazy.compute(progress=False)
        assert capsys.readouterr().err == ""
    xr.testing.assert_identical(found.state, CALLS["fit"](progress=False).state)


@pytest.mark.parametrize(
    "method", [xrecal.CKME(), xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME()))]
)
def test_results_do_not_depend_on_progress(method):
    shown, silent = (HINDCAST.recal.fit(TRUTH, method, progress=p) for p in (True, False))
    xr.testing.assert_identical(shown.state, silent.state)
    new = new_cases()[0]
    with xrecal.progress("apply"):
        found = shown.quantile(new, [0.1, 0.9])
    xr.testing.assert_identical(found, silent.quantile(new, [0.1, 0.9]))
