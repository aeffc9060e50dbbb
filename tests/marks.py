"""Marks for data beside the project, and a guard against computing too early."""

import os
from pathlib import Path

import dask
import pytest

DATA = Path(os.environ.get("XRECAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def requires_data(*names: str) -> pytest.MarkDecorator:
    """Skip where the real data sets are absent; in CI they must be there."""
    missing = [name for name in names if not (DATA / name).exists()]
    absent = bool(missing) and not os.environ.get("CI")
    return pytest.mark.skipif(absent, reason=f"no {missing} in {DATA}; set XRECAL_DATA")


def forbid_compute():
    """Context in which any Dask compute fails the test."""

    def fail(*_, **__):
        raise AssertionError("computed a Dask graph where only a graph was asked for")

    return dask.config.set(scheduler=fail)
