"""Array functions on a device, against those on NumPy arrays."""

import numpy as np
import pytest

from tests.arrays.device.cases import forecasts_and_observations, season
from xrecal import arrays
from xrecal.arrays import Features, Forecasts, Settings

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def same(cupy, found, expected, dtype, **options):
    assert isinstance(found, cupy.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        cupy.asnumpy(found), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], **options
    )


@pytest.mark.parametrize(("n", "m", "q", "p"), [(40, 7, 9, 5), (17, 100, 5, 120), (5, 400, 3, 9)])
def test_distances(cupy, rng, dtype, n, m, q, p):
    x, y = rng.normal(size=(n, m)).astype(dtype), rng.normal(size=(q, p)).astype(dtype)
    x[0, 1:], x[1] = np.nan, np.nan
    weights = rng.random(x.shape).astype(dtype)
    ours, others = cupy.asarray(x), cupy.asarray(y)
    distance = arrays.squared_energy_distance
    same(cupy, distance(ours), distance(x), dtype)
    same(cupy, distance(ours, others), distance(x, y), dtype)
    found = distance(ours, x_weights=cupy.asarray(weights))
    same(cupy, found, distance(x, x_weights=weights), dtype)


@pytest.mark.parametrize("supports", [("observations",), ("observations", "mean")], ids=len)
def test_choice_fit_and_weights(cupy, rng, dtype, supports):
    cases, observed = forecasts_and_observations(rng, 3, 70)
    cases, observed = Forecasts(cases.loc.astype(dtype)), observed.astype(dtype)
    of, days = season(3, 70)
    kernels = tuple((1.0, strength) for strength in (0.0, 1.0))
    settings = Settings(supports=supports, kernels=kernels)
    ours = Forecasts(cupy.asarray(cases.loc)), cupy.asarray(observed)
    moved = Features(cupy.asarray(of.values), of.circular)
    choices = arrays.choose_ckme(*ours, settings, features=moved, days=days)
    assert {type(part) for part in choices} == {np.ndarray}
    fitted = arrays.fit_ckme(cases, observed, settings, features=of, days=days, choices=choices)
    found = arrays.fit_ckme(*ours, settings, features=moved, days=days, choices=choices)
    for name, one, other in zip(found._fields, found, fitted, strict=True):
        same(cupy, one, other, dtype, err_msg=name)
    given = {"days": days, "own_members": len(supports) > 1, "return_novelty": True}
    known = fitted._make(map(cupy.asarray, fitted))
    parts = arrays.ckme_weights(ours[0], *ours, known, features=moved, new_features=moved, **given)
    expected = arrays.ckme_weights(
        cases, cases, observed, fitted, features=of, new_features=of, **given
    )
    for one, other in zip(parts, expected, strict=True):
        same(cupy, one, other, dtype)


def test_ridges_are_tried_in_parts_where_memory_is_small(cupy, rng, monkeypatch):
    cases, observed = forecasts_and_observations(rng, 2, 40)
    ours = Forecasts(cupy.asarray(cases.loc)), cupy.asarray(observed)
    whole = arrays.choose_ckme(*ours)
    monkeypatch.setattr("xrecal.arrays.device.cases.WORKSPACE", 1)
    for one, other in zip(arrays.choose_ckme(*ours), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: arrays.crps(x[:, 0], x), "crps"),
        (lambda x: arrays.weighted_mean(x), "weighted_mean"),
        (lambda x: arrays.project_simplex(x), "project_simplex"),
        (lambda x: arrays.similarity(x, 1.0), "similarity"),
    ],
    ids=["score", "statistic", "projection", "kernel"],
)
def test_other_functions_say_which_copy_to_make(cupy, rng, call, what):
    message = rf"{what} has no implementation for CuPy arrays; .*cupy\.asnumpy\(x\)"
    with pytest.raises(TypeError, match=message):
        call(cupy.asarray(rng.normal(size=(4, 4))))
