import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import energy_distance

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.distributions.distance import LANES


def double_sum_distance(x, y=None, x_weights=None, y_weights=None):
    """2E|X-Y| - E|X-X'| - E|Y-Y'| as written, for rows (n, m) and (q, p); NaN members left out."""
    y, y_weights = (x, x_weights) if y is None else (y, y_weights)

    def valid(row, weights):
        keep = ~np.isnan(row)
        mass = np.ones(row.size) if weights is None else weights
        return row[keep], mass[keep] / mass[keep].sum()

    def mean(a, b):
        return a[1] @ np.abs(np.subtract.outer(a[0], b[0])) @ b[1]

    rows = [valid(row, None if x_weights is None else x_weights[i]) for i, row in enumerate(x)]
    columns = [valid(row, None if y_weights is None else y_weights[i]) for i, row in enumerate(y)]
    return np.array([[2 * mean(a, b) - mean(a, a) - mean(b, b) for b in columns] for a in rows])


def scipy_distance(x, y, v=None, w=None):
    v, w = (np.ones(a.shape) if b is None else b for a, b in ((x, v), (y, w)))
    known = [
        [(row[~np.isnan(row)], mass[~np.isnan(row)]) for row, mass in zip(*each, strict=True)]
        for each in ((x, v), (y, w))
    ]
    return np.array([[energy_distance(a, b, p, q) ** 2 for b, q in known[1]] for a, p in known[0]])


member = st.floats(-50, 50).map(lambda v: round(v, 3))


# against the formula and SciPy -------------------------------------------------------------------


KINDS = ["plain", "offset", "weighted", "ragged", "ties", "single members"]


def ensembles_of(kind, rng, n):
    """Ensembles (n, m) and (5, q), and their weights."""
    x = rng.normal(size=(n, 1)) + rng.gamma(2, size=(n, 1)) * rng.normal(size=(n, 6))
    y, weights = rng.normal(size=(5, 9)), (None, None)
    if kind == "offset":
        x, y = x + 280, y + 280
    if kind == "ties":
        x, y = np.round(x), np.round(y)
    if kind == "single members":
        x, y = x[:, :1], y[:, :1]
    if kind == "weighted":
        weights = rng.gamma(1, size=x.shape), rng.gamma(1, size=y.shape)
        weights[0][::3, 1] = 0.0
    if kind == "ragged":
        x[:, 1:][rng.random((n, 5)) < 0.4] = np.nan
        y[:, 1:][rng.random((5, 8)) < 0.4] = np.nan
    return x, y, *weights


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, LANES - 1, LANES, LANES + 1, 2 * LANES + 6])
def test_equals_formula_and_scipy(rng, n, kind):
    x, y, v, w = ensembles_of(kind, rng, n)
    found = squared_energy_distance(x, x_weights=v)
    np.testing.assert_allclose(found, double_sum_distance(x, x_weights=v), atol=1e-10)
    for a, b, p, q in ((x, y, v, w), (y, x, w, v)):
        found = squared_energy_distance(a, b, x_weights=p, y_weights=q)
        np.testing.assert_allclose(found, scipy_distance(a, b, p, q), atol=1e-10)


def test_published_value():
    # scipy.stats.energy_distance documents 0.88003340976158217 for these weighted values.
    x, y = np.array([[0.7, 7.4, 2.4, 6.8]]), np.array([[1.4, 8.0]])
    weights = {
        "x_weights": np.array([[2.1, 4.2, 7.4, 8.0]]),
        "y_weights": np.array([[7.6, 8.8]]),
    }
    assert squared_energy_distance(x, y, **weights)[0, 0] == pytest.approx(0.88003340976158217**2)


# missing values, types, errors -------------------------------------------------------------------


def test_errors():
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"x needs shape \(ensemble, member\), got \(2,\).*x\[np"):
        squared_energy_distance(x[0])
    with pytest.raises(ValueError, match=r"y needs shape \(ensemble, member\), got \(1, 3, 2\)"):
        squared_energy_distance(x, x[np.newaxis])
    with pytest.raises(ValueError, match="x holds infinite members; set them to NaN"):
        squared_energy_distance(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match=r"y_weights has shape \(2,\), but y has \(3, 2\)"):
        squared_energy_distance(x, x, y_weights=np.ones(2))
    with pytest.raises(ValueError, match="y_weights is given without y; pass x_weights"):
        squared_energy_distance(x, y_weights=x)
    for wrong in (-1.0, np.nan, np.inf):
        weights = np.ones_like(x)
        weights[1, 1] = wrong
        with pytest.raises(ValueError, match="x_weights must be finite and >= 0"):
            squared_energy_distance(x, x_weights=weights)


def test_small_but_real_distances_survive():
    x = np.array([[0.0], [1e-9], [1.0]])
    assert squared_energy_distance(x)[0, 1] == pytest.approx(2e-9)


def test_members_near_the_largest_number_warn_of_nothing():
    huge = np.finfo(np.float64).max
    x = np.array([[huge, huge, -huge, -huge], [0.0, 1.0, 2.0, 3.0]])
    found = squared_energy_distance(x)
    assert np.isnan(found[1, 0])
    assert squared_energy_distance(x[1:], x_weights=np.full((1, 4), huge)) == 0
