import json
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def errors():
    """What the kernels find in the simulator, against the definition."""
    command = [sys.executable, "-m", "tests.arrays.in_simulator"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "what",
    [
        "among plain",
        "among weighted",
        "across plain",
        "across weighted",
        "many locations",
    ],
)
def test_kernels_find_the_distances(errors, what):
    assert 0.0 <= errors[what] < 1e-14


@pytest.mark.parametrize("what", ["equal ensembles", "missing", "empty", "no members"])
def test_special_cases_are_exact(errors, what):
    assert errors[what] == 0.0
