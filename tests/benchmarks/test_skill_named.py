"""Members with names against exchangeable ones: rows, short records and the table."""

import numpy as np
import pandas as pd
import xarray as xr

from benchmarks.skill import named
from benchmarks.skill.sets import by_share


def given():
    """Forecasts of three models, of which the first one is the best."""
    rng = np.random.default_rng(1)
    time = pd.date_range("2015-01-01", periods=100, freq="D")
    truth = 5 * rng.normal(size=100)
    members = truth[:, np.newaxis] + np.array([0.3, 2.0, 2.0]) * rng.normal(size=(100, 3))
    coords = {"time": time, "member": ["a", "b", "c"]}
    issued = xr.DataArray(members, coords, ("time", "member"), name="t")
    observed = xr.DataArray(truth, {"time": time}, ("time",))
    return by_share("Set", issued, observed, "time", season=False)


def test_weights_of_models_gain_where_records_are_long_and_lose_nothing_where_short(monkeypatch):
    monkeypatch.setattr(named, "METHODS", {"EMOS": named.METHODS["EMOS"]})
    whole, *short = (named.score_set(one, "uwme") for one in named.with_short(given()))
    assert [row["cases"] for row in (whole, *short)] == [60, 15, 30]
    assert whole["scored"] == 40
    assert whole["EMOS ratio"] < 0.9
    assert [row["EMOS ratio"] for row in short] == [1.0, 1.0]
    monkeypatch.setattr(named, "COLUMNS", [*named.COLUMNS[:9], "commit"])
    *_, last = named.lines([whole, *short])
    assert last == (
        "budget holds: named over exchangeable, short records, at most 1.0000 (<= 1.01)"
    )
    *_, last = named.lines([{**short[0], "EMOS ratio": 1.02}])
    assert "budget MISSED" in last
