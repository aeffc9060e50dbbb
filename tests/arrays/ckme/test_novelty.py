"""How little of new forecasts is known from past ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal import arrays
from xrecal.arrays import Forecasts
from xrecal.arrays.ckme.learned import SMALL_RIDGE


def cases_of(n, *, skill=1.0, n_members=8, n_locations=2, seed=0):
    """Forecasts of a truth, of which they know as much as the skill says."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_locations, n))
    signal = skill * truth + np.sqrt(1 - skill**2) * rng.normal(size=truth.shape)
    noise = 0.5 * rng.normal(size=(*truth.shape, n_members))
    return Forecasts(signal[..., np.newaxis] + noise), truth


def kernel_of(one, other, bandwidth):
    """Gaussian kernel (q, n) on energy distances, member by member."""
    apart = np.empty((len(one), len(other)))
    for i, x in enumerate(one):
        for j, y in enumerate(other):
            between = np.abs(x[:, np.newaxis] - y).mean()
            own = [np.abs(z[:, np.newaxis] - z).mean() / 2 for z in (x, y)]
            apart[i, j] = 2 * (between - sum(own))
    return np.exp(-apart / bandwidth)


def share(new, past, bandwidth, ridge):
    """Sum of signed weights of each new forecast."""
    gram = kernel_of(past, past, bandwidth) + ridge * len(past) * np.eye(len(past))
    return np.linalg.solve(gram, kernel_of(past, new, bandwidth)).sum(0)


def reference(new, past, bandwidth):
    """Novelty from the formula; cases are left out one by one."""
    n = len(past)
    rest = [np.delete(past, i, axis=0) for i in range(n)]
    ridge = SMALL_RIDGE * n / (n - 1)  # λ n stays what it is
    alone = [share(past[i : i + 1], rest[i], bandwidth, ridge)[0] for i in range(n)]
    usual = np.median(np.clip(alone, 0, 1))
    return 1 - np.clip(share(new, past, bandwidth, SMALL_RIDGE) / usual, 0, 1)


def test_it_is_that_of_the_formula():
    past, truth = cases_of(40)
    fitted = arrays.fit_ckme(past, truth)
    new = Forecasts(np.linspace(-6, 6, 13)[np.newaxis, :, np.newaxis] * np.ones((2, 13, 8)))
    novelty = arrays.ckme_novelty(new, past, truth, fitted)
    assert novelty.min() < 0.2 < 0.9 < novelty.max()
    for place in range(2):
        expected = reference(new.loc[place], past.loc[place], fitted.bandwidth[place])
        np.testing.assert_allclose(novelty[place], expected, atol=1e-8)


@pytest.mark.each_value
@pytest.mark.parametrize("skill", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [30, 100, 400])
def test_ordinary_forecasts_are_not_novel_whatever_the_skill(n, skill):
    everything, truth = cases_of(n + 300, skill=skill)
    past, new = (Forecasts(everything.loc[:, part]) for part in (slice(n), slice(n, None)))
    fitted = arrays.fit_ckme(past, truth[:, :n])
    novelty = arrays.ckme_novelty(new, past, truth[:, :n], fitted)
    assert (np.median(novelty, axis=-1) < 0.1).all()
    assert (np.quantile(novelty, 0.9, axis=-1) < 0.25).all()


def test_forecasts_of_rain_that_stays_away_are_not_novel():
    rng = np.random.default_rng(0)
    rain = np.maximum(rng.gamma(0.3, 3.0, size=(1, 30, 1)) + rng.normal(size=(1, 30, 5)) - 1, 0)
    truth = np.maximum(rng.gamma(0.3, 3.0, size=(1, 30)) - 1, 0)
    fitted = arrays.fit_ckme(Forecasts(rain), truth)
    novelty = arrays.ckme_novelty(Forecasts(np.zeros((1, 1, 5))), Forecasts(rain), truth, fitted)
    assert novelty.item() < 0.1


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("ridge", [1e-4, 1.0])
@pytest.mark.parametrize("own_members", [False, True])
def test_weights_bring_it_along(solver, ridge, own_members):
    past, truth = cases_of(60)
    new = Forecasts(np.linspace(-6, 6, 13)[np.newaxis, :, np.newaxis] + past.loc[:, :13])
    fitted = arrays.fit_ckme(past, truth, arrays.Settings(solver=solver, ridge=ridge))
    if solver == "lowrank":  # as after an update: neither weights nor novelty find all they need
        fitted = fitted._replace(landmark=fitted.landmark[:, :2])
    alone = arrays.ckme_weights(new, past, truth, fitted, own_members=own_members)
    *weights, novelty = arrays.ckme_weights(
        new, past, truth, fitted, own_members=own_members, return_novelty=True
    )
    for found, expected in zip(weights, alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    expected = arrays.ckme_novelty(new, past, truth, fitted)
    np.testing.assert_allclose(novelty, expected, rtol=0, atol=1e-12)


def test_few_landmarks_give_what_all_cases_do():
    past, truth = cases_of(200)
    new = Forecasts(np.linspace(-6, 6, 40)[np.newaxis, :, np.newaxis] + past.loc[:, :40])
    fits = [
        arrays.fit_ckme(past, truth, arrays.Settings(solver=solver))
        for solver in ("exact", "lowrank")
    ]
    assert ((fits[1].landmark >= 0).sum(-1) < 200).all()
    fits[1] = fits[1]._replace(bandwidth=fits[0].bandwidth)
    exact, low = (arrays.ckme_novelty(new, past, truth, fitted) for fitted in fits)
    np.testing.assert_allclose(low, exact, atol=0.02)


@settings(max_examples=20, deadline=None)
@given(
    factor=st.floats(0.01, 100),
    shift=st.floats(-300, 300),
    seed=st.integers(0, 5),
)
def test_it_does_not_depend_on_the_unit(factor, shift, seed):
    past, truth = cases_of(25, seed=seed)
    new = Forecasts(np.linspace(-5, 5, 9)[np.newaxis, :, np.newaxis] + past.loc[:, :9])
    novelty = []
    for a, b in ((1, 0), (factor, shift)):
        of_past, of_new = (Forecasts(a * part.loc + b) for part in (past, new))
        fitted = arrays.fit_ckme(of_past, a * truth + b)
        novelty.append(arrays.ckme_novelty(of_new, of_past, a * truth + b, fitted))
    np.testing.assert_allclose(*novelty, atol=1e-4)
    assert ((novelty[0] >= 0) & (novelty[0] <= 1)).all()


def test_nothing_is_known_of_what_is_missing():
    past, truth = cases_of(30)
    fitted = arrays.fit_ckme(past, truth)
    fitted.ridge[1] = np.nan
    new = past.loc[:, :2].copy()
    new[:, 1] = np.nan
    novelty = arrays.ckme_novelty(Forecasts(new), past, truth, fitted)
    np.testing.assert_array_equal(np.isnan(novelty), [[False, True], [True, True]])


def test_beside_identical_past_forecasts_any_other_is_novel():
    truth = np.random.default_rng(0).normal(size=(1, 30))
    past = Forecasts(np.ones((1, 30, 4)))
    fitted = arrays.fit_ckme(past, truth)
    new = Forecasts(np.stack([np.ones((1, 4)), np.full((1, 4), 5.0)], axis=1))
    novelty = arrays.ckme_novelty(new, past, truth, fitted)
    np.testing.assert_allclose(novelty, [[0, 1]], atol=1e-6)
