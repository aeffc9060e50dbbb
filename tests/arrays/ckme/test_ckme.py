import numpy as np
import pytest

from tests.arrays.distributions.test_distance import double_sum_distance
from tests.pairs import pairwise
from xrecal.arrays import (
    Forecasts,
    ckme_weights,
    features,
    find_bounds,
    fit_ckme,
    median_bandwidth,
    squared_energy_distance,
)
from xrecal.arrays.ckme.embedding import Settings, complete_fit
from xrecal.arrays.status import CONSTANT, IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW

from .reference import GRID, SUPPORTS, Choice, Embedding, blocks_in_time, joint_weights_of_features


def make_cases(rng, n_locations=2, n=40, m=6, missing=True):
    """Cases (L, n, m), observations (L, n); some members and observations are missing."""
    centre = 2 * np.sin(2 * np.pi * np.arange(n) / 23) + rng.normal(size=(n_locations, 1))
    spread = rng.gamma(2, size=(n_locations, n))
    x = (centre + 1)[..., np.newaxis] + spread[..., np.newaxis] * rng.normal(
        size=(n_locations, n, m)
    )
    y = centre + 0.5 * spread * rng.normal(size=(n_locations, n))
    if missing:
        x[:, ::5, 1:3] = np.nan
        x[:, 7] = np.nan
        y[:, 11] = np.nan
    return x, y


def with_covariates(rng, n_locations, n, n_new=5):
    """Features of a plain and a circular covariate, of cases and new forecasts."""
    cases, new = (rng.normal(size=(n_locations, k, 2)) for k in (n, n_new))
    return features(cases, (None, 3.0)), features(new, (None, 3.0))


def as_embedding(x, y, cell=0, of=None, days=None, half_life=np.inf, bounds="auto", **settings):
    """Reference of one location, and the slots of the cases that it uses."""
    x, y = x[cell], y[cell]
    used = np.isfinite(y) & np.isfinite(x).any(-1)
    if of is not None:
        used &= np.isfinite(of.values[cell]).all(-1)
    slot = np.flatnonzero(used)
    x, y = x[slot], y[slot]
    d = double_sum_distance(x)
    pairs = np.sqrt(d) if settings.get("kernel") == "laplace" else d
    r = np.zeros((slot.size, 0)) if of is None else of.values[cell, slot]
    low, high, _ = find_bounds(y[np.newaxis], bounds)
    omega = None
    if np.isfinite(half_life):
        omega = 0.5 ** ((np.max(days) - days[slot]) / half_life)
    found = Embedding(
        d,
        y,
        np.nanmean(x, -1),
        np.nanvar(x, -1),
        r,
        np.zeros(0) if of is None else joint_weights_of_features(r, of.circular),
        omega,
        low[0],
        high[0],
        **({"bandwidth": np.median(pairs[np.triu_indices(slot.size, 1)])} | settings),
        inverse_size=(1 / np.isfinite(x).sum(-1)).mean(),
    )
    return found, slot


def fixed(n_locations, bandwidth, ridge):
    """A fit that has chosen these, past observations, and nothing else."""
    each = np.ones(n_locations)
    return complete_fit({"bandwidth": bandwidth * each, "ridge": ridge * each}, 0)


def weigh(new, x, y, fitted, **settings):
    """Weights alone."""
    new, x = (a if isinstance(a, Forecasts) else Forecasts(a) for a in (new, x))
    return ckme_weights(new, x, y, fitted, **settings)[1]


def same(found, expected, but=()):
    for name, value in expected._asdict().items():
        if name not in but:
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)


# against the dense reference ---------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("kernel", "goal", "folds", "gap"),
    pairwise(
        ["gaussian", "laplace"],
        [("crps", "euclidean"), ("laplace", "euclidean"), ("crps", "energy")],
        ["block", "year", "random"],
        [0, 2],
    ),
)
def test_fit_equals_the_dense_reference(rng, kernel, goal, folds, gap):
    n = 46
    x, y = make_cases(rng, 1, n)
    if kernel == "laplace":
        y = np.round(y, 1)  # with ties
    groups = {"block": None, "year": 1990 + np.arange(n) // 8, "random": rng.permutation(n)}[folds]
    settings = {"kernel": kernel, "loss": goal[0], "projection": goal[1]}
    fitted = fit_ckme(
        Forecasts(x),
        y,
        Settings(gap=gap, **settings),
        groups=groups,
        blocks=0 if folds == "year" else 5,
    )
    embedding, slot = as_embedding(x, y, **settings)
    assert fitted.n_cases == slot.size
    assert fitted.bandwidth == pytest.approx(embedding.bandwidth)
    fold = blocks_in_time(slot.size)
    if folds == "year":
        fold = np.unique(groups[slot], return_inverse=True)[1]
    elif folds == "random":
        fold = fold[np.argsort(np.argsort(groups[slot]))]

    def expected(ridge):
        return embedding.mean_loss(fold, slot, gap, Choice(ridge))

    on_grid = np.array([expected(ridge) for ridge in GRID])
    assert fitted.loss[0] == pytest.approx(on_grid.min(), rel=1e-6)
    assert expected(fitted.ridge[0]) <= on_grid.min() * (1 + 1e-8)
    best = on_grid.argmin()
    assert bool(fitted.status[0] & RIDGE_EDGE) == (best in (0, GRID.size - 1))
    if not fitted.status[0]:
        assert GRID[best - 1] < fitted.ridge[0] < GRID[best + 1]


@pytest.mark.each_value
@pytest.mark.parametrize("half_life", [np.inf, 60.0])
@pytest.mark.parametrize("support", ["mean", "standardised"])
def test_losses_of_supports_equal_the_reference(rng, support, half_life):
    x, y = make_cases(rng, 1)
    y = np.maximum(y, 0)
    (of, _), days = with_covariates(rng, 1, 40), np.cumsum(rng.integers(1, 9, 40)) * 1.0
    settings = Settings(supports=(support,), kernels=((2.0, 0.5),), gap=1)
    fitted = fit_ckme(Forecasts(x), y, settings, features=of, days=days, half_life=half_life)
    embedding, slot = as_embedding(x, y, of=of, days=days, half_life=half_life)
    fold = blocks_in_time(slot.size)
    losses = [
        embedding.mean_loss(fold, slot, 1, Choice(ridge, support, 2.0, 0.5)) for ridge in GRID
    ]
    assert fitted.loss[0] == pytest.approx(min(losses), rel=1e-6)


def test_each_location_is_as_if_alone(rng):
    x, y = make_cases(rng, 4)
    x[2] = np.nan  # sea
    x[1, 20], y[0, 5] = np.nan, np.nan
    new = rng.normal(size=(4, 3, 6))
    fitted = fit_ckme(Forecasts(x), y)
    weights = weigh(new, x, y, fitted)
    np.testing.assert_array_equal(fitted.n_cases, [37, 37, 0, 38])
    for cell in range(4):
        one = slice(cell, cell + 1)
        alone = fit_ckme(Forecasts(x[one]), y[one])
        for together, single in zip(fitted, alone, strict=True):
            np.testing.assert_array_equal(together[one], single)
        np.testing.assert_array_equal(weights[one], weigh(new[one], x[one], y[one], alone))


# what a location can lack ------------------------------------------------------------------------


def test_too_few_cases_give_nan_and_a_status(rng):
    x, y = make_cases(rng, 3, 30, missing=False)
    y[0, 19:] = np.nan
    y[1, 20:] = np.nan
    fitted = fit_ckme(Forecasts(x), y, Settings(ridge=0.1, bandwidth=2))
    np.testing.assert_array_equal(fitted.status, [TOO_FEW, 0, 0])
    np.testing.assert_array_equal(fitted.n_cases, [19, 20, 30])
    np.testing.assert_array_equal(fitted.ridge, [np.nan, 0.1, 0.1])
    np.testing.assert_array_equal(fitted.bandwidth, [np.nan, 2, 2])
    for name in ("strength", "lower", "upper", "half_life"):
        np.testing.assert_array_equal(np.isnan(getattr(fitted, name)), [True, False, False])
    weights = weigh(x, x, y, fitted)
    assert np.isnan(weights[0]).all()
    assert np.isfinite(weights[1:]).all()
    few = fit_ckme(Forecasts(x), y, Settings(min_samples=10))
    assert few.status[0] & TOO_FEW == 0
    one = fit_ckme(Forecasts(x[:, :1]), y[:, :1], Settings(min_samples=0))
    assert one.status[0] == TOO_FEW


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_identical_forecasts_give_climatology(rng, projection):
    y = rng.normal(size=(1, 30))
    y[0, 4] = np.nan
    x = Forecasts(np.tile([0.0, 0.0, 1.0], (1, 30, 1)))
    fitted = fit_ckme(x, y, Settings(projection=projection))
    assert fitted.status == IDENTICAL
    assert fitted.bandwidth == np.inf
    weights = weigh(rng.normal(size=(1, 3, 5)), x, y, fitted, projection=projection)
    np.testing.assert_allclose(weights, np.tile(np.isfinite(y) / 29, (1, 3, 1)), atol=1e-15)


@pytest.mark.parametrize("where", ["member", "observation", "weight", "scale"])
def test_invalid_values_leave_their_case_out(rng, where):
    x, y = make_cases(rng, 1, missing=False)
    scale, case_weights = np.ones_like(x), np.ones_like(x)
    clean_y = y.copy()
    clean_y[0, 3] = np.nan
    if where == "member":
        x[0, 3, 0] = -np.inf
    elif where == "observation":
        y[0, 3] = np.inf
    elif where == "weight":
        case_weights[0, 3, 0] = -1.0
    else:
        scale[0, 3, 0] = -1.0
    cases = Forecasts(x, scale if where == "scale" else None, case_weights)
    fitted, clean = fit_ckme(cases, y), fit_ckme(cases, clean_y)
    assert fitted.status & INVALID
    same(fitted, clean, but=("status",))
    assert fitted.n_cases == 39
    new = Forecasts(*(None if part is None else part[:, 4:9] for part in cases))
    weights = weigh(new, cases, y, fitted)
    np.testing.assert_array_equal(weights, weigh(new, cases, clean_y, clean))
    np.testing.assert_array_equal(weights[..., 3], 0)
    invalid = Forecasts(*(None if part is None else part[:, 2:5] for part in cases))
    found = weigh(invalid, cases, y, fitted)
    assert np.isnan(found[0, 1]).all() == (where != "observation")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_cases_without_a_covariate_are_left_out(rng, value):
    x, y = make_cases(rng, 1, missing=False)
    values = rng.normal(size=(1, 40, 1))
    values[0, 3] = value
    clean_y = y.copy()
    clean_y[0, 3] = np.nan
    settings = Settings(kernels=((1.0, 0.0), (1.0, 1.0)))
    fitted = fit_ckme(Forecasts(x), y, settings, features=features(values, (None,)))
    values[0, 3] = 0
    clean = fit_ckme(Forecasts(x), clean_y, settings, features=features(values, (None,)))
    same(fitted, clean)
    assert fitted.n_cases == 39


def test_a_constant_covariate_is_told_and_plays_no_part(rng):
    x, y = make_cases(rng, 2, missing=False)
    values = rng.normal(size=(2, 40, 1))
    values[1] = 7.0
    settings = Settings(kernels=((1.0, 1.0),))
    found = fit_ckme(Forecasts(x), y, settings, features=features(values, (None,)))
    np.testing.assert_array_equal(found.status & CONSTANT > 0, [False, True])
    plain = fit_ckme(Forecasts(x), y)
    assert found.loss[1] == plain.loss[1]
    assert found.loss[0] != plain.loss[0]


@pytest.mark.parametrize("ridge", [None, 0.1])
def test_support_of_errors_where_a_location_has_too_few_cases(rng, ridge):
    x, y = make_cases(rng, 2, missing=False)
    y[0, 5:] = np.nan
    fitted = fit_ckme(Forecasts(x), y, Settings(supports=("regression",), ridge=ridge))
    np.testing.assert_array_equal(fitted.support, SUPPORTS.index("regression"))
    members, weights = ckme_weights(Forecasts(x), Forecasts(x), y, fitted, own_members=True)
    assert np.isnan(members[0]).all()
    assert np.isnan(weights[0]).all()
    assert np.isfinite(members[1]).all()


def test_members_of_weight_zero_do_not_count_whatever_they_hold(rng):
    x, y = make_cases(rng, 1, missing=False)
    padded = np.concatenate([x, np.full((1, 40, 1), 9e36), np.full((1, 40, 1), np.inf)], axis=-1)
    weights = np.ones_like(padded)
    weights[..., -2:] = 0
    expected, found = fit_ckme(Forecasts(x), y), fit_ckme(Forecasts(padded, None, weights), y)
    assert found.status == expected.status
    np.testing.assert_allclose(found.bandwidth, expected.bandwidth, rtol=1e-12)
    np.testing.assert_allclose(found.ridge, expected.ridge, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{}, {"projection": "energy"}, {"loss": "laplace"}, {"supports": SUPPORTS}],
    ids=str,
)
def test_constant_observations(rng, settings):
    x, _ = make_cases(rng, 1, missing=False)
    y = np.full((1, 40), 3.0)
    fitted = fit_ckme(Forecasts(x), y, Settings(**settings))
    assert np.isfinite(fitted.ridge).all()
    members, weights = ckme_weights(
        Forecasts(x),
        Forecasts(x),
        y,
        fitted,
        projection=settings.get("projection", "euclidean"),
        own_members="supports" in settings,
    )
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)
    found = (weights * members if members.ndim == 3 else weights * members[:, np.newaxis]).sum(-1)
    np.testing.assert_allclose(found, 3, atol=1e-9)


# settings, types, errors -------------------------------------------------------------------------


def test_given_settings_are_kept_and_the_other_chosen(rng):
    x, y = make_cases(rng)
    chosen = fit_ckme(Forecasts(x), y)
    np.testing.assert_allclose(
        chosen.bandwidth,
        [median_bandwidth(squared_energy_distance(x[i][np.isfinite(y[i])])) for i in range(2)],
    )
    ridge = fit_ckme(Forecasts(x), y, Settings(ridge=1))
    np.testing.assert_array_equal(ridge.ridge, 1.0)
    np.testing.assert_array_equal(ridge.bandwidth, chosen.bandwidth)
    np.testing.assert_array_equal(ridge.status, 0)
    assert np.isnan(ridge.loss).all()  # nothing was chosen
    bandwidth = fit_ckme(Forecasts(x), y, Settings(bandwidth=float(chosen.bandwidth[0])))
    np.testing.assert_array_equal(bandwidth.bandwidth, chosen.bandwidth[0])
    np.testing.assert_array_equal(bandwidth.ridge[0], chosen.ridge[0])


def test_one_year_is_cut_into_blocks_in_time(rng):
    x, y = make_cases(rng, 3)
    year = fit_ckme(Forecasts(x), y, groups=np.full(40, 2001), blocks=0)
    same(year, fit_ckme(Forecasts(x), y, blocks=5))


@pytest.mark.parametrize("own_members", [False, True])
def test_forecasts_of_single_precision_stay_so(rng, own_members):
    x, y = (array.astype(np.float32) for array in make_cases(rng))
    fitted = fit_ckme(Forecasts(x), y)
    assert fitted.bandwidth.dtype == np.float64
    for part in ckme_weights(Forecasts(x), Forecasts(x), y, fitted, own_members=own_members):
        assert part.dtype == np.float32


def test_errors(rng):
    x, y = make_cases(rng)
    cases, settings = Forecasts(x), Settings()
    for name, choices in {
        "kernel": "'gaussian', 'laplace'",
        "loss": "'crps', 'laplace', 'energy'",
        "projection": "'euclidean', 'energy'",
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be one of {choices}, got 'x'"):
            fit_ckme(cases, y, settings._replace(**{name: "x"}))
        if name != "loss":
            with pytest.raises(ValueError, match=f"{name} must be one of {choices}, got 'x'"):
                weigh(cases, cases, y, fixed(2, 1.0, 1.0), **{name: "x"})
    with pytest.raises(ValueError, match="supports must be one of 'observations', 'mean', "):
        fit_ckme(cases, y, Settings(supports=("observations", "errors")))
    for name, value in {"bandwidth": 0.0, "ridge": -1.0}.items():
        with pytest.raises(ValueError, match=f"{name} must be positive, or None to choose it"):
            fit_ckme(cases, y, settings._replace(**{name: value}))
    with pytest.raises(ValueError, match="ridge must be at least 1e-12, got 1e-13"):
        fit_ckme(cases, y, Settings(ridge=1e-13))
    with pytest.raises(
        ValueError, match=r"blocks must be 0 .* a whole number from 2, and gap .* number from 0"
    ):
        fit_ckme(cases, y, blocks=1)
    for gap in (-1, 1.5):
        with pytest.raises(
            ValueError, match=f"a timedelta or a whole number from 0, got blocks=5, gap={gap}"
        ):
            fit_ckme(cases, y, Settings(gap=gap))
    with pytest.raises(ValueError, match="step must hold whole numbers, got float64"):
        fit_ckme(cases, y, step=np.arange(40) / 2)
    with pytest.raises(ValueError, match=r"observations have shape \(40,\).*need \(2, 40\)"):
        fit_ckme(cases, y[0])
    for name in ("groups", "step"):
        with pytest.raises(ValueError, match=rf"{name} has shape \(3,\), but there are 40 cases"):
            fit_ckme(cases, y, **{name: np.arange(3)})
    with pytest.raises(ValueError, match=r"cases need 3 axes .*, got \(40, 6\)"):
        fit_ckme(Forecasts(x[0]), y)
    with pytest.raises(ValueError, match="half_life='cv' needs days, the dates of the cases"):
        fit_ckme(cases, y, half_life="cv")
    with pytest.raises(ValueError, match="a half-life needs days, the dates of the cases"):
        fit_ckme(cases, y, half_life=30.0)
    with pytest.raises(ValueError, match="forecasts have 1 locations, but cases have 2"):
        weigh(x[:1], cases, y, fixed(2, 1.0, 1.0))
    with pytest.raises(ValueError, match="must both be ensembles or both be Gaussian"):
        weigh(Forecasts(x, np.ones_like(x)), cases, y, fixed(2, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"bandwidth has shape \(1,\), but there are 2 loc"):
        weigh(cases, cases, y, fixed(1, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"ridge has shape \(1,\), but there are 2 loc"):
        weigh(cases, cases, y, fixed(2, 1.0, 1.0)._replace(ridge=np.ones(1)))
