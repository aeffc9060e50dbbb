"""Fits of low rank against exact ones."""

import numpy as np
import pytest

from xrecal.arrays import Forecasts, ckme_weights, crps, fit_ckme, fit_ckme_family
from xrecal.arrays.ckme import search
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.search import COMPARED, TRIED

from .reference import SUPPORTS
from .test_ckme import make_cases, with_covariates

KERNELS = ((1.0, 0.0), (1.0, 1.0), (4.0, 0.25))


def both(rng, n=160, n_new=40, settings=None, **arguments):
    """Fits with both solvers and the mean CRPS of their forecasts."""
    x, y = make_cases(rng, 1, n + n_new)
    of, new_of = with_covariates(rng, 1, n, n_new)
    cases, new = Forecasts(x[:, :n]), Forecasts(x[:, n:])
    found = {}
    for solver in ("exact", "lowrank"):
        chosen = Settings(**({"kernels": KERNELS} | (settings or {}) | {"solver": solver}))
        fitted = fit_ckme(cases, y[:, :n], chosen, features=of, **arguments)
        own = chosen.supports != ("observations",)
        members, weights = ckme_weights(
            new, cases, y[:, :n], fitted, kernel=chosen.kernel, projection=chosen.projection,
            features=of, new_features=new_of, days=arguments.get("days"), own_members=own,
        )  # fmt: skip
        score = np.nanmean(crps(y[:, n:], members, weights))
        found[solver] = fitted, score, weights
    return found


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_forecasts_with_a_given_ridge_are_as_good_as_exact_ones(rng, ridge, projection, kernel):
    settings = {"ridge": ridge, "projection": projection, "kernel": kernel}
    found = both(rng, settings=settings | {"kernels": KERNELS[1:2]})
    (exact, expected, _), (low, score, _) = found["exact"], found["lowrank"]
    assert score == pytest.approx(expected, rel=2e-3)
    assert low.bandwidth == pytest.approx(exact.bandwidth)
    assert (exact.landmark == -1).all()
    assert (low.landmark[0] >= 0).sum() >= 3


@pytest.mark.parametrize("loss", ["crps", "laplace"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_what_is_chosen_is_about_as_good_on_held_out_cases(rng, loss, projection):
    found = both(rng, settings={"loss": loss, "projection": projection})
    assert found["lowrank"][0].loss == pytest.approx(found["exact"][0].loss, rel=5e-3)


@pytest.mark.parametrize("gap", [0, 4])
@pytest.mark.parametrize("half_life", [np.inf, 60.0])
def test_all_supports_with_gaps_and_case_weights(rng, gap, half_life):
    found = both(
        rng,
        settings={"supports": SUPPORTS, "gap": gap, "kernels": KERNELS[1:2]},
        days=np.arange(160.0),
        half_life=half_life,
    )
    assert found["lowrank"][0].loss == pytest.approx(found["exact"][0].loss, rel=5e-3)


def test_a_given_ridge_so_small_that_all_cases_count_gives_the_exact_weights(rng):
    found = both(rng, n=60, settings={"ridge": 1e-6, "bandwidth": 0.5})
    exact, low = (found[solver][2] for solver in ("exact", "lowrank"))
    np.testing.assert_allclose(low, exact, atol=2e-3)


def test_landmarks_are_slots_of_cases_that_were_used(rng):
    x, y = make_cases(rng, 2, 50)
    fitted = fit_ckme(Forecasts(x), y, Settings(solver="lowrank", ridge=0.01))
    used = np.isfinite(y) & np.isfinite(x).any(-1)
    for cell in range(2):
        landmarks = fitted.landmark[cell][fitted.landmark[cell] >= 0]
        assert used[cell, landmarks].all()
        assert len(set(landmarks)) == landmarks.size > 5
        assert (fitted.landmark[cell, landmarks.size :] == -1).all()


def test_a_family_serves_each_support_and_records_what_it_holds_out(rng):
    x, y = (np.maximum(part, 0.0) for part in make_cases(rng, 1, 150))  # ratios need a zero
    fits, quantiles = {}, {}
    for solver in ("exact", "lowrank"):
        settings = Settings(solver=solver, supports=SUPPORTS, bounds=(0, None))
        fits[solver], quantiles[solver] = fit_ckme_family(Forecasts(x), y, settings, n_quantiles=20)
    np.testing.assert_array_equal(np.isnan(quantiles["lowrank"]), np.isnan(quantiles["exact"]))
    for exact, low in zip(fits["exact"], fits["lowrank"], strict=True):
        assert low.loss == pytest.approx(exact.loss, rel=5e-3)
        assert low.support == exact.support


def test_identical_forecasts_give_the_climatology(rng):
    y = rng.normal(size=(1, 600))
    cases = Forecasts(np.ones((1, 600, 3)))
    fitted = fit_ckme(cases, y, Settings(solver="lowrank"))
    assert np.isinf(fitted.bandwidth[0])
    _, weights = ckme_weights(Forecasts(np.zeros((1, 1, 3))), cases, y, fitted)
    np.testing.assert_allclose(weights, 1 / 600)


def test_many_cases_hold_out_a_part_and_give_about_the_ridge_of_all(rng, monkeypatch):
    assert TRIED < COMPARED
    compared = 400
    monkeypatch.setattr(search, "TRIED", 100)
    monkeypatch.setattr(search, "COMPARED", compared)
    x, y = make_cases(rng, 1, compared + 40, missing=False)
    settings = Settings(supports=("observations", "mean"), solver="lowrank")
    _, quantiles = fit_ckme_family(Forecasts(x), y, settings, n_quantiles=5)
    recorded = ~np.isnan(quantiles[0, :, :, :, 0])
    assert (recorded[0].sum(-1) == compared).all()
    assert 0.8 * compared < recorded[1].sum(-1).min() <= recorded[1].sum(-1).max() <= compared
