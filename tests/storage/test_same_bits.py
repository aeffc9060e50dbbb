"""The same bits, whatever the layout of arrays in memory, and from a model that was stored."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import METHODS, ensemble_and_truth, new_cases

METHODS = {
    **METHODS,
    "default": xrecal.CKME(),
    "pools": xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS(), xrecal.IDR())),
    "experts": xrecal.OnlinePool((xrecal.EMOS(), xrecal.Climatology()), refit=45),
}
SIZES = {"m": 9, "n_lat": 1}
HINDCAST, TRUTH = ensemble_and_truth(n=119, **SIZES)
"""As many cases as sums in other orders need to differ."""
NEW, VERIFIED = new_cases(n=30, **SIZES)


def sliced(array):
    """Every other value of a larger array."""
    whole = np.full([2 * size + 1 for size in array.shape], np.nan)
    part = whole[(slice(1, None, 2),) * array.ndim]
    part[...] = array.to_numpy()
    return array.copy(data=part)


def columns(array):
    return array.copy(data=np.asfortranarray(array.to_numpy()))


LAYOUTS = {
    "columns": columns,
    "turned": lambda array: array.transpose(*reversed(array.dims)).copy(deep=True),
    "sliced": sliced,
    "backwards": lambda array: array.copy(data=array.to_numpy()[..., ::-1].copy()[..., ::-1]),
    "chunks": lambda array: array.chunk(lon=1),
    "chunks of columns": lambda array: columns(array).chunk(lon=1),
}


@cache
def model_of(method):
    return HINDCAST.recal.fit(TRUTH, METHODS[method])


@cache
def issued_of(method):
    return issued(model_of(method))


def issued(model, forecast=NEW, verified=VERIFIED):
    """What a model makes of forecasts, in one order of dimensions."""
    made = {
        "quantile": model.quantile(forecast, [0.05, 0.5, 0.95]),
        "crps": model.crps(forecast, verified),
    }
    made |= {n: v for n, v in model.apply(forecast).items() if n == "t2m_novelty"}
    return xr.Dataset(made).transpose("time", "lat", "lon", ...).compute()


@pytest.mark.each_value
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_any_layout_in_memory(method, layout):
    hindcast, truth, *new = map(LAYOUTS[layout], (HINDCAST, TRUTH, NEW, VERIFIED))
    found = issued(hindcast.recal.fit(truth, METHODS[method]), *new)
    xr.testing.assert_equal(found, issued_of(method))


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["model.nc", "model.zarr"])
@pytest.mark.parametrize("method", ["default", "emos", "idr", "pools", "experts"])
def test_a_stored_model_before_and_after_an_update(method, name, tmp_path):
    model = model_of(method)
    model.save(tmp_path / name)
    opened = xrecal.open_recalibrator(tmp_path / name)
    xr.testing.assert_identical(issued(opened), issued_of(method))
    updated = (m.update(NEW[:20], VERIFIED[:20]) for m in (opened, model))
    xr.testing.assert_identical(*(issued(m, NEW[20:], VERIFIED[20:]) for m in updated))
