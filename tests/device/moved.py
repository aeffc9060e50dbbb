"""Labelled data on the device, and comparisons with the host."""

import numpy as np
import xarray as xr


def to_device(cupy, data, chunks=None):
    """The same data in CuPy arrays, in Dask chunks if any are given."""
    moved = data.copy(data=cupy.asarray(data.data))
    if chunks is None:
        return moved
    cut = moved.variable.chunk({d: chunks[d] for d in chunks if d in data.dims})
    return moved.copy(data=cut.data)


def require_same(cupy, found, expected, *, computed=None, tolerance=1e-10):
    """Results on the device are those of the host, with its dimensions, types and attributes.

    ``computed`` may be given where what was found lazily has been computed already.
    """
    found, expected = _dataset(found), _dataset(expected)
    assert list(found.data_vars) == list(expected.data_vars)
    if computed is None:
        computed = found.compute()  # all at once, as variables share the work behind them
    for name, wanted in expected.data_vars.items():
        one = found[name]
        assert (one.dims, one.dtype) == (wanted.dims, wanted.dtype)
        assert one.attrs.keys() == wanted.attrs.keys()
        if one.chunks is not None:
            assert isinstance(one.data._meta, cupy.ndarray)
        values = computed[name].data
        assert isinstance(values, cupy.ndarray)
        np.testing.assert_allclose(
            cupy.asnumpy(values), wanted.to_numpy(), rtol=tolerance, atol=tolerance
        )


def _dataset(data):
    return data if isinstance(data, xr.Dataset) else data.to_dataset(name="result")
