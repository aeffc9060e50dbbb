import numpy as np
import pytest
from hypothesis import settings

# Compilation falls into the first example, so no deadline; derandomised, so a failure repeats.
settings.register_profile("xrecal", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("xrecal")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240131)
