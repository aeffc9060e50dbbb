"""Results of benchmarks say what made them."""

import json
import re

import pytest

from benchmarks import record


@pytest.mark.parametrize("path", sorted(record.FOLDER.glob("*.csv")), ids=lambda p: p.name)
def test_all_results_that_are_kept_name_the_commit_that_made_them(path):
    made = json.loads((record.FOLDER / record.MANIFEST).read_text())[path.name]
    assert re.fullmatch(r"[0-9a-f]{7,40}", made["commit"])
    assert made["command"].startswith("python -m benchmarks.")


def test_sets_are_stored_one_by_one_in_the_order_of_sources(tmp_path):
    path, columns = tmp_path / "sets.csv", ("set", "source", "crps")
    assert record.stored(path) == []
    for name, source, crps in (
        ("c", "late", 0.5),
        ("a", "early", 0.1234567),
        ("b", "late", 0.6),
        ("c", "late", 0.7),
    ):
        row = {"set": name, "source": source, "crps": crps, "more": 1}
        record.store_set(path, columns, row, ("early", "late"))
    assert [tuple(row.values()) for row in record.stored(path)] == [
        ("a", "early", "0.12346"), ("c", "late", "0.7"), ("b", "late", "0.6")
    ]  # fmt: skip
    assert (tmp_path / record.MANIFEST).exists()
