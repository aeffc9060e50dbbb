"""Distances by the CUDA kernels, run by Numba's simulator; prints their largest errors as JSON.

The simulator has to be chosen before Numba is imported, so this is a process of its own.
"""

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np

from tests.device import naive
from xrecal.arrays.device import distance_cuda
from xrecal.arrays.device.ensembles import across, among, arrange
from xrecal.arrays.dispatch import DISTANCES


def error(found, expected) -> float:
    return float(np.abs(found - expected).max())


def main() -> dict[str, float]:
    """Errors by what was compared."""
    rng = np.random.default_rng(0)
    distance_cuda.TILE = 4  # each thread of the simulator is one of the system
    x = rng.normal(size=(2, 6, 4)).round(1)  # ties within and between ensembles
    x[0, 0, 1:], x[1, 2] = np.nan, x[1, 3]
    y, weights = rng.normal(size=(2, 3, 7)), rng.random(x.shape)
    found = {}
    for name, given in (("plain", None), ("weighted", weights)):
        ones, others = arrange(x, given), arrange(y, None)
        found[f"among {name}"] = error(distance_cuda.among(ones), naive.among(ones))
        found[f"across {name}"] = error(
            distance_cuda.across(ones, others), naive.across(ones, others)
        )
    same = arrange(x, None)
    found["equal ensembles"] = float(distance_cuda.among(same)[1, 2, 3])
    distance_cuda.MOST_LAYERS = 1  # blocks then take several locations
    found["many locations"] = error(distance_cuda.among(same), naive.among(same))
    DISTANCES["numpy"] = "xrecal.arrays.device.distance_cuda"
    x[1, 5] = np.nan
    gaps = arrange(x, None)
    missing = np.isnan(among(gaps)[1])
    found["missing"] = float((missing != (np.arange(6) == 5)[:, None] | (np.arange(6) == 5)).sum())
    found["empty"] = float(across(gaps, arrange(y[:, :0], None)).size)
    found["no members"] = float(across(gaps, arrange(y[..., :0], None)).size - 2 * 6 * 3)
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
