"""Results of benchmarks say what made them."""

import csv
import json
import re

import pytest

from benchmarks import record

BEFORE = "skill_before.csv"  # whose rows name the commit themselves


def test_rows_and_what_made_them_are_stored(tmp_path):
    record.store(tmp_path / "a.csv", ["name", "value"], [["one", 1.5], ["two, three", ""]])
    record.store(tmp_path / "b.csv", ["name"], [])
    with (tmp_path / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["name", "value"], ["one", "1.5"], ["two, three", ""]]
    made = json.loads((tmp_path / record.MANIFEST).read_text())
    assert list(made) == ["a.csv", "b.csv"]
    assert made["a.csv"]["packages"]["numpy"] == record.installed("numpy")
    assert made["a.csv"]["commit"] == record.commit()
    record.store(tmp_path / "a.csv", ["name"], [])
    again = json.loads((tmp_path / record.MANIFEST).read_text())
    assert list(again) == ["a.csv", "b.csv"]


def test_packages_that_are_not_there_are_told():
    assert record.installed("no such package") == "not installed"


def test_a_checkout_knows_its_commit():
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", record.commit())


@pytest.mark.parametrize("path", sorted(record.FOLDER.glob("*.csv")), ids=lambda p: p.name)
def test_all_results_that_are_kept_name_the_commit_that_made_them(path):
    if path.name == BEFORE:
        return
    made = json.loads((record.FOLDER / record.MANIFEST).read_text())[path.name]
    assert re.fullmatch(r"[0-9a-f]{7,40}", made["commit"])
    assert made["command"].startswith("python -m benchmarks.")
