"""The table of one fit for many places: a row of a set, the verdict and the file."""

import csv

import numpy as np
import pytest
import xarray as xr

from benchmarks.shared.network import draw_dates, draw_network
from benchmarks.skill import places
from benchmarks.skill.sets import Set
from xrecal.inputs import pool as pooling

P, DATES, TRAINED = 6, 60, 45


def network(least):
    members, observed = draw_dates(draw_network(P, 3), 0, DATES, 4, 3)
    time = np.datetime64("2001-01-01", "ns") + np.arange(DATES) * np.timedelta64(1, "D")
    dims = ("time", "place", "member")
    forecasts = xr.DataArray(members.astype(float), {"time": time}, dims)
    truth = xr.DataArray(observed.astype(float), {"time": time}, dims[:2])
    parts = forecasts[DATES - 15 - least : DATES - 15], forecasts[DATES - 15 :]
    return Set("Network", *parts, truth, season=False, pool=("place",))


@pytest.mark.parametrize("trained", [TRAINED, 8])
def test_a_row_has_the_scores_of_all_methods_on_the_same_cases(trained, monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", 4 * trained)
    one = network(trained)
    row = places.score_set(one, "somewhere")
    assert (row["places"], row["cases"], row["scored"]) == (P, trained, 15 * P)
    raw = float(one.forecast.recal.crps(one.observations).mean())
    assert row["raw"] == pytest.approx(raw)
    model = one.hindcast.recal.fit(one.observations, pool="place", min_samples=4)
    assert row["shared"] == pytest.approx(
        float(model.crps(one.forecast, one.observations).mean()), rel=1e-6
    )
    if trained < places.LEAST:  # places have what is shared alone
        assert np.isnan(row["LinearPool"])
        assert row["weight"] == 1
        assert row["with shared"] == pytest.approx(row["shared"], rel=1e-3)
    else:
        assert 0 < row["weight"] < 1
        assert places.gain(row) == row["with shared"] / row["LinearPool"]


def row(name, cases, shared, gain):
    scores = {"raw": 2.0, "EMOS": 1.0, "1500 cases": 1.0, "shared": shared}
    pools = {"LinearPool": 1.0, "with shared": gain}
    told = {"set": name, "source": name, "places": 9, "cases": cases, "scored": 90}
    return told | scores | pools | {"shared / EMOS": shared, "weight": 0.5, "s": 1.0}


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([row("a", 30, 0.9, 1.0), row("b", 500, 1.2, 1.004)], "holds"),
        ([row("a", 30, 0.98, 1.0)], "MISSED"),
        ([row("a", 500, 0.9, 1.006)], "MISSED"),
        ([row("a", 30, 0.9, np.nan), row("b", 500, 1.0, 1.0)], "holds"),
    ],
)
def test_the_verdict(rows, word):
    assert places.verdict(rows).startswith(f"budget {word}: ")


def test_the_file_and_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(places, "RESULTS", tmp_path / "places.csv")
    places.report([row("a", 30, 0.9, 0.99)])
    with (tmp_path / "places.csv").open() as file:
        (stored,) = csv.DictReader(file)
    assert (stored["set"], stored["shared"], stored["with shared"]) == ("a", "0.9", "0.99")
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split()[:5] == ["a", "9", "30", "2.0000", "1.0000"]
