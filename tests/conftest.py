import os

import numpy as np
import pytest
import scipy.linalg.cython_lapack  # noqa: F401  loads the library whose threads are limited
from hypothesis import settings
from threadpoolctl import threadpool_limits

from .sampling import leave_repetitions

# Small matrices gain nothing by threads of BLAS, which take the cores from each other.
threadpool_limits(1, user_api="blas")

# Compilation falls into the first example, so no deadline; derandomised, so a failure repeats.
# make test-slow tries every law on more examples.
settings.register_profile("xrecal", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "xrecal"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_repetitions(items)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240131)
