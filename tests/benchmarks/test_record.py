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
