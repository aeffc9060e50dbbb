"""Tests of arrays on a device: on the stand-in anywhere, and on a GPU where there is one."""

import sys

import pytest

from . import stand_in


def devices() -> int:
    """Number of CUDA devices that CuPy can use."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # not installed, or no driver
        return 0


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=pytest.mark.gpu)])
def cupy(request, monkeypatch):
    """CuPy itself, or a module that refuses what it refuses, under its name."""
    if request.param == "gpu":
        if not devices():
            pytest.skip("no CUDA device that CuPy can use")
        import cupy

        return cupy
    if devices():
        pytest.skip("there is a CUDA device, which is tested itself")
    from xarray.namedarray import pycompat

    from xrecal.arrays import dispatch

    monkeypatch.setitem(sys.modules, "cupy", stand_in.module)
    monkeypatch.setattr(pycompat, "_cached_duck_array_modules", {})
    monkeypatch.setitem(dispatch.DISTANCES, "cupy", "tests.device.naive")
    return stand_in.module
