import json
import subprocess
import sys

import pytest

from xrecal.arrays.device.distance_cuda import SHARED_BYTES, TILE, _direct, _tiled, launch_of


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
        "long rows",
        "long rows across",
    ],
)
def test_kernels_find_the_distances(errors, what):
    assert 0.0 <= errors[what] < 1e-14


@pytest.mark.parametrize("what", ["equal ensembles", "missing", "empty", "no members"])
def test_special_cases_are_exact(errors, what):
    assert errors[what] == 0.0


@pytest.mark.parametrize("m", [1, 50, 90, 100, 180, 200, 8000])
def test_rows_in_shared_memory_fit(m):
    kernel, tile, shared = launch_of(m, m)
    assert shared <= SHARED_BYTES
    assert tile in (TILE, TILE // 2)
    assert kernel is (_tiled if shared else _direct)
    assert (shared > 0) == (m < 190)
