"""Functions for a device, run on NumPy arrays: they compare ensembles by the definition."""

import pytest

from xrecal.arrays import dispatch


@pytest.fixture(autouse=True)
def distances_by_definition(monkeypatch):
    monkeypatch.setitem(dispatch.DISTANCES, "numpy", "tests.device.naive")
