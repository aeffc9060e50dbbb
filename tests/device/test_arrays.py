"""Array functions on a device, against those on NumPy arrays."""

import numpy as np
import pytest

from tests.arrays.device.cases import forecasts_and_observations, season
from tests.pairs import pairwise
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


@pytest.mark.parametrize(
    ("dtype", "projection", "supports", "solver"),
    pairwise(
        TOLERANCE,
        ["energy", "euclidean"],
        [("observations",), ("observations", "mean")],
        ["exact", "lowrank"],
    ),
)
def test_fit_and_weights(cupy, rng, dtype, projection, supports, solver):
    cases, observed = forecasts_and_observations(rng, 3, 70)
    cases, observed = Forecasts(cases.loc.astype(dtype)), observed.astype(dtype)
    of, days = season(3, 70)
    kernels = tuple((1.0, strength) for strength in (0.0, 1.0))
    settings = Settings(projection=projection, supports=supports, solver=solver, kernels=kernels)
    fitted = arrays.fit_ckme(cases, observed, settings, features=of, days=days)
    ours = Forecasts(cupy.asarray(cases.loc)), cupy.asarray(observed)
    moved = Features(cupy.asarray(of.values), of.circular)
    found = arrays.fit_ckme(*ours, settings, features=moved, days=days)
    for name, one, other in zip(found._fields, found, fitted, strict=True):
        if name != "ridge":  # which may move along a flat minimum
            same(cupy, one, other, dtype, err_msg=name)
    np.testing.assert_allclose(cupy.asnumpy(found.ridge), fitted.ridge, rtol=1e-3)
    given = {"projection": projection, "days": days, "own_members": len(supports) > 1}
    known = fitted._make(map(cupy.asarray, fitted))
    parts = arrays.ckme_weights(ours[0], *ours, known, features=moved, new_features=moved, **given)
    expected = arrays.ckme_weights(
        cases, cases, observed, fitted, features=of, new_features=of, **given
    )
    for one, other in zip(parts, expected, strict=True):
        same(cupy, one, other, dtype)


def test_statistics_and_scores(cupy, rng, dtype):
    members, weights = rng.normal(size=(4, 9)).astype(dtype), rng.random((4, 6, 9)).astype(dtype)
    observed = rng.normal(size=(4, 6)).astype(dtype)
    ours = cupy.asarray(members), cupy.asarray(weights)
    for name in ("weighted_mean", "weighted_std"):
        function = getattr(arrays, name)
        same(cupy, function(*ours), function(members, weights), dtype)
    levels = np.array([0.1, 0.5])
    found = arrays.weighted_quantile(ours[0], levels, ours[1])
    same(cupy, found, arrays.weighted_quantile(members, levels, weights), dtype)
    found = arrays.crps(cupy.asarray(observed), *ours)
    same(cupy, found, arrays.crps(observed, members, weights), dtype)


def test_projections(cupy, rng):
    beta, support = rng.normal(size=(5, 200)), rng.normal(size=200)
    beta += (1.0 - beta.sum(-1, keepdims=True)) / 200
    found = arrays.project_simplex(cupy.asarray(beta))
    same(cupy, found, arrays.project_simplex(beta), np.float64)
    found = arrays.project_energy(cupy.asarray(beta), cupy.asarray(support))
    same(cupy, found, arrays.project_energy(beta, support), np.float64)
