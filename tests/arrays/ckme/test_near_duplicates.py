"""Forecasts that hardly differ, whose distances are little more than rounding."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xrecal.arrays import (
    Forecasts,
    Vectors,
    ckme_weights,
    fit_ckme,
    fit_ckme_family,
    fit_vector_ckme,
    vector_ckme_weights,
)
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.lowrank import LowRank

from .reference import SUPPORTS
from .test_ckme import make_cases
from .test_lowrank import location_of


def alike(rng, n, base, noise, groups, m=None):
    """Ensembles (n, m) of some groups that are the same but for relative noise."""
    m = int(rng.integers(1, 12)) if m is None else m
    centres = base + rng.normal(size=(max(groups, 1), m)) * (groups > 0)
    return centres[rng.integers(len(centres), size=n)] + noise * (base or 1.0) * rng.normal(
        size=(n, m)
    )


def all_but_one(rng, n, base, noise):
    x = alike(rng, n, base, noise, 1, 5)
    x[n // 3] += 1.0
    return x


HINDCASTS = {
    "noise": lambda *to: alike(*to, 0),
    "one ensemble": lambda *to: alike(*to, 1),
    "three ensembles": lambda *to: alike(*to, 3),
    "all but one": all_but_one,
    "one value": lambda *to: np.repeat(alike(*to, 0, 1), 4, axis=1),
}

hindcasts = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kind": st.sampled_from(list(HINDCASTS)),
        "base": st.sampled_from([280.0, 0.0, 1.0]),
        "noise": st.floats(-13, -8).map(lambda power: 10.0**power),
    }
)
fits = st.fixed_dictionaries(
    {
        "solver": st.sampled_from(["exact", "lowrank"]),
        "supports": st.sampled_from([("observations",), SUPPORTS]),
        "ridge": st.one_of(st.none(), st.floats(-8, 0).map(lambda power: 10.0**power)),
        "projection": st.sampled_from(["euclidean", "energy"]),
    }
)


def sick_and_healthy(hindcast, n):
    """Ensembles and observations (2, n) at a place of near duplicates and one as others are."""
    rng = np.random.default_rng(hindcast["seed"])
    sick = HINDCASTS[hindcast["kind"]](rng, n, hindcast["base"], hindcast["noise"])
    x, y = make_cases(rng, 2, n, missing=False)
    wide = np.full((2, n, max(sick.shape[1], x.shape[2])), np.nan)
    wide[0, :, : sick.shape[1]], wide[1, :, : x.shape[2]] = sick, x[1]
    return wide, y


# Of this seed columns differ by more than a tenth, as distances next to rounding count as none.
@given(hindcasts, fits, st.sampled_from([np.inf, 300.0, 20.0, 2.0]))
@example(
    {"seed": 63, "kind": "one ensemble", "base": 1.0, "noise": 1e-12},
    {"solver": "lowrank", "supports": ("observations",), "ridge": None, "projection": "euclidean"},
    np.inf,
)
def test_no_location_fails_and_others_do_not_notice(hindcast, fit, half_life):
    x, y = sick_and_healthy(hindcast, 60)
    days, own = np.arange(60.0), fit["supports"] != ("observations",)
    given_dates = {} if np.isinf(half_life) else {"days": days}

    def weigh(of):
        cases = Forecasts(x[of])
        fitted = fit_ckme(cases, y[of], Settings(**fit), half_life=half_life, **given_dates)
        new = Forecasts(np.concatenate([x[of], x[of] * (1 + 1e-10), x[of] + 5.0], axis=1))
        members, weights = ckme_weights(
            new, cases, y[of], fitted, projection=fit["projection"], own_members=own, **given_dates
        )
        return fitted, members, weights

    both, alone = weigh(slice(None)), weigh(slice(1, 2))
    weights, members = both[2], both[1]
    assert np.isfinite(weights).all()
    assert np.isfinite(members).all()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-9)
    for found, expected in zip((*both[0], *both[1:]), (*alone[0], *alone[1:]), strict=True):
        np.testing.assert_array_equal(found[1:], expected)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", HINDCASTS)
@pytest.mark.parametrize("noise", [1e-12, 1e-9])
def test_families_and_more_cases_do_not_fail_either(kind, noise):
    x, y = sick_and_healthy({"seed": 3, "kind": kind, "base": 280.0, "noise": noise}, 80)
    chosen = Settings(solver="lowrank", supports=SUPPORTS[:-1])  # ratios need a zero
    family, quantiles = fit_ckme_family(
        Forecasts(x[:, :60]), y[:, :60], chosen, n_quantiles=5, days=np.arange(60.0)
    )
    assert np.isfinite(quantiles[:, 0]).all()
    for fitted in family:  # the landmarks are those of fewer cases, as after an update
        _, weights = ckme_weights(Forecasts(x), Forecasts(x), y, fitted, own_members=True)
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-9)


@pytest.mark.parametrize("noise", [1e-12, 1e-10, 1e-8])
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_vectors_that_hardly_differ(rng, noise, solver):
    x = 280.0 + rng.normal(size=(1, 1, 2, 5)) + 280.0 * noise * rng.normal(size=(1, 60, 2, 5))
    truth = rng.normal(size=(1, 60, 2))
    chosen = Settings(loss="energy", solver=solver)
    fitted, scale = fit_vector_ckme(Vectors(x), truth, (None, None), chosen)
    usable = np.arange(60.0)[np.newaxis]
    weights = vector_ckme_weights(Vectors(x), Vectors(x), usable, fitted, scale, (None, None))
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-9)


def factor_of(x, landmarks=()):
    one = location_of(Forecasts(x), np.zeros(len(x)), low_rank=True)
    return LowRank(one, one.median if np.isfinite(one.median) else 1.0, 0.0, landmarks)


@given(hindcasts, st.floats(-10, -1))
def test_landmarks_of_a_fit_always_serve_again(hindcast, tolerance):
    x = HINDCASTS[hindcast["kind"]](
        np.random.default_rng(hindcast["seed"]), 60, hindcast["base"], hindcast["noise"]
    )
    whole = factor_of(x)
    rank = whole.extend(10.0**tolerance)
    assert whole.residual <= 10.0**tolerance
    assert rank >= 1
    again = factor_of(x, whole.landmarks)
    again.extend(10.0**tolerance)
    for factor in (whole, again):
        assert np.isfinite(factor.rows).all()
        assert (factor.rows**2).sum(0).max() <= 2.0 + 1e-9
    assert again.residual <= 10.0**tolerance


@pytest.mark.parametrize("seed", [22, 116, 276])
def test_hindcasts_as_long_as_landmarks_are_used_for_by_default(seed):
    rng = np.random.default_rng(seed)
    x = alike(rng, 260, 1.0, 1e-12, 1)[np.newaxis]
    y = rng.normal(size=(1, 260))
    fitted = fit_ckme(Forecasts(x), y)
    _, weights = ckme_weights(Forecasts(x), Forecasts(x), y, fitted)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e-300, 5e-324])
def test_values_whose_squares_are_too_small_for_a_number(rng, size):
    x, y = make_cases(rng, 1, 60, missing=False)
    x, y = size * np.round(x), size * np.round(y)
    fitted = fit_ckme(Forecasts(x), y, Settings(supports=SUPPORTS, bounds=None))
    members, weights = ckme_weights(Forecasts(x), Forecasts(x), y, fitted, own_members=True)
    assert np.isfinite(members).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-9)
