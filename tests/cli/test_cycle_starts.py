"""Each start that a cycle is handed is counted once, whatever became of it, and none in silence."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import xrecal
from tests.cli.files import run
from xrecal.runs.outcome import stem_of

from .cycle_kills import tree

STARTS = np.datetime64("2021-03-01", "ns") + np.arange(36) * np.timedelta64(1, "D")
FITTED = 24
"""Starts of the hindcast, each with leads of one and two days."""
LEADS = np.array([1, 2])
TRUTH = xr.DataArray(
    np.random.default_rng(0).normal(size=40),
    {"time": STARTS[0] + np.arange(40) * np.timedelta64(1, "D")},
    ["time"],
    name="v",
)
FORECASTS = xr.DataArray(
    TRUTH.to_numpy()[np.arange(36)[:, None] + LEADS][..., None]
    + np.random.default_rng(1).normal(size=(36, 2, 3)),
    {"init": STARTS, "lead": ("lead", LEADS, {"units": "days"})},
    ["init", "lead", "member"],
    name="v",
)


@functools.cache
def fit(known):
    """A model of the hindcast and what was observed up to a day, in bytes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nc"
        observed = TRUTH[: known + 1]
        FORECASTS[:FITTED].recal.fit(observed, xrecal.Climatology()).save(path)
        return path.read_bytes()


def morning(folder, days, now, *more, forecasts=FORECASTS, empty=(), handed=True):
    """The command with the forecasts of some days."""
    given = forecasts[np.sort(days)]
    if len(empty):
        given = given.where(~given["init"].isin(STARTS[list(empty)]))
    (folder / "forecasts.nc").unlink(missing_ok=True)  # a failed run may hold it open
    given.drop_encoding().to_netcdf(folder / "forecasts.nc")
    TRUTH[: now + 1].to_netcdf(folder / "observations.nc")
    own = ("--forecasts", folder / "forecasts.nc") if handed else ()
    return run(
        "cycle", folder / "model.nc", *own, "--observations",
        folder / "observations.nc", "--output", folder / "out", "--quantiles", "0.5", "--now",
        STARTS[now], "--alpha", 1e-9, "--run-length", 10**9, "--json", "--quiet", *more,
    )  # fmt: skip


def stems(days):
    return [stem_of(STARTS[day]) for day in sorted(days)]


def files(folder, kind):
    return {path.stem for path in (folder / "out" / kind).glob("*.nc")}


WARNED = {
    "late": "came late; a late forecast comes from a model without cases from after its start",
    "too_late": "too late to be issued, as all kept models know later observations",
    "early": "not issued yet, with a start in the future (now",
    "empty": "not issued, as all members are missing; give such forecasts again",
}


def check_counts(done, folder, days, now, known, empty, before, models):
    """Each start in the one list it belongs to, by what was there before; the code follows."""
    handed, data = set(stems(days)), done.data
    first_allowed = STARTS[max(FITTED, known)]
    may = {
        s for d in days for s in stems([d])
        if STARTS[d] >= first_allowed or any(model <= s for model in models)
    }  # fmt: skip
    early = {s for d in days for s in stems([d]) if d > now} - before
    due = handed - before - early
    assert set(data["early"]) == early
    assert set(data["empty"]) == due & may & set(stems(empty))
    assert set(data["issued"]) == due & may - set(stems(empty))
    assert set(data["late"]) == {s for s in data["issued"] if before and s < max(before)}
    there = before | set(data["issued"])
    past = {s for s in due - may & set(stems(range(FITTED))) if there and s < min(there)}
    assert set(data["too_late"]) == due - may - past
    assert data["in_hindcast"] == len(past)
    assert data["issued_before"] == len(handed & before)
    assert data["refused"] == {}
    lists = [data[name] for name in ("issued", "too_late", "early", "empty")]
    counts = data["issued_before"] + data["in_hindcast"]
    assert sum(map(len, lists)) + counts == data["starts"] == len(handed)
    assert files(folder, "forecasts") == there
    for name, words in WARNED.items():
        told = [line for line in done.err.splitlines() if words in line]
        assert len(told) == bool(data[name]), name
        assert all(min(data[name]) in line for line in told)
    newest = max(handed - early, default=None)
    return 3 if newest is not None and newest not in there | past else None


@st.composite
def mornings(draw):
    """Days that are handed over, the day it is, and what else happens."""
    day = st.integers(18, 31)
    return draw(
        st.lists(
            st.tuples(
                st.sets(day, min_size=1, max_size=6), day, st.sets(day, max_size=3),
                st.sampled_from([1, 2, 30]), st.booleans(),
            ),
            min_size=1, max_size=3,
        )
    )  # fmt: skip


@settings(max_examples=max(settings().max_examples // 4, 5), phases=[Phase.generate])
@given(st.sampled_from([22, 24, 25]), mornings())
def test_each_start_is_counted_once(known, days_of):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.nc").write_bytes(fit(known))
        for days, now, empty, keep, deletes in days_of:
            if deletes:  # by hand
                for path in sorted((folder / "out" / "forecasts").glob("*.nc"))[:1]:
                    path.unlink()
            before, models = files(folder, "forecasts"), files(folder, "models")
            old = tree(folder / "out") if (folder / "out").exists() else None
            done = morning(folder, [*days], now, "--keep", keep, empty=empty)
            code = check_counts(done, folder, days, now, known, empty, before, models)
            has_written = tree(folder / "out") != old
            assert done.code == (code or (0 if has_written else 11)), done.err
