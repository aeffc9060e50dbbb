"""The oldest versions that pyproject.toml states, and that make test-minimum has them."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from .minimum import PROJECT, constraints

INSTALLED = Path(sys.prefix) / "constraints.txt"


def test_every_oldest_version_is_stated():
    oldest = constraints()
    assert {"numpy", "xarray", "dask", "click", "zarr", "matplotlib", "distributed"} <= set(oldest)


@pytest.mark.parametrize(
    ("requirement", "told"),
    [
        ("dask", "'dask' is not of the form NAME>=VERSION"),
        ("numpy>=2,<3", "'numpy>=2,<3' is not of the form NAME>=VERSION"),
        ("numpy>=1.0", "numpy is from 2.0 on, and 1.0"),
    ],
)
def test_other_requirements_are_refused(monkeypatch, requirement, told):
    monkeypatch.setitem(PROJECT, "dependencies", ["numpy>=2.0", requirement])
    with pytest.raises(ValueError, match=r"pyproject\.toml: ") as refused:
        constraints()
    assert told in str(refused.value)


@pytest.mark.skipif(not INSTALLED.exists(), reason="not run by make test-minimum")
def test_the_oldest_versions_are_installed():
    for name, oldest in constraints().items():
        found = version(name).split(".")
        stated = oldest.split(".")
        assert found == stated + ["0"] * (len(found) - len(stated)), name
