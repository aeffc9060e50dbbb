"""The benchmark of large grids: what does not need a cluster."""

import csv

import numpy as np
import pytest

from benchmarks import scale
from benchmarks.speed.tables import Report


def test_a_location_has_a_row(monkeypatch, tmp_path):
    monkeypatch.setattr(scale, "METHODS", {"EMOS": scale.METHODS["EMOS"]})
    rows = list(scale.arithmetic([(30, 4), (60, 4)], 2))
    assert [row.name for row in rows] == ["EMOS, n=30 m=4", "EMOS, n=60 m=4"]
    for row in rows:
        assert set(row.cells) == {"method", "n", "m", "fit", "a forecast", "n forecasts"}
        assert row.cells["fit"] > 0


def test_cells_that_are_drawn_in_chunks_are_like_those_in_memory():
    hindcast, observed = scale.make_cells(200, 30, 50)
    values = scale.values_of_chunk(200, 30, 50, block_id=(0, 0, 1))
    assert values.shape == (200, 31, 50)
    other = scale.values_of_chunk(200, 30, 50, block_id=(0, 0, 2))
    assert not np.array_equal(values, other)
    assert values[:, :30].mean() == pytest.approx(hindcast.mean().item(), abs=0.5)
    assert values[:, 30].std() == pytest.approx(observed.std().item(), rel=0.1)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_grids_are_as_large_as_asked(monkeypatch, capsys, share):
    asked = []

    def run(options):
        asked.append((options.cells, options.method, options.once))
        return scale.grid.Outcome("", {"fit": {"s CPU": 1.0}}, [0], False, [])

    monkeypatch.setattr(scale.grid, "run", run)
    found = scale.grids(Report(), True, "folder", share)
    assert asked == [(64 * share, "ckme", False), (64 * share, "emos", True)]
    assert "holds: 2 of 2 grids" in scale.verdict(found)
    worse = found[0]._replace(differences=["values"])
    assert "MISSED: holds for 1 of 2 grids" in scale.verdict([worse, found[1]])
    assert "EMOS: fit" in capsys.readouterr().out


def test_stored_results_have_all_tables():
    with scale.RESULTS.open() as file:
        rows = list(csv.DictReader(file))
    titles = {"Core seconds a location", "Tasks that do nothing", "From Python", "By the command"}
    assert {row["table"] for row in rows} == {"", "Grids", *titles}
    assert {row["row"] for row in rows if not row["table"]} == {*("machine", "minutes", "verdict")}
