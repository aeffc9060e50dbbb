"""Choice, fit and prediction for many locations at once, against those of the host."""

import numpy as np
import pytest

from tests.pairs import pairwise
from xrecal.arrays import Forecasts, Settings
from xrecal.arrays.ckme import ckme, weights
from xrecal.arrays.ckme.ckme import smallest_losses
from xrecal.arrays.ckme.embedding import calibration_of
from xrecal.arrays.device import cases as on_device
from xrecal.arrays.device import choosing, stacked
from xrecal.arrays.device import weights as predicting
from xrecal.arrays.device.ckme import choose_ckme, fit_ckme
from xrecal.arrays.device.weights import ckme_novelty, ckme_weights, ckme_weights_of_both
from xrecal.arrays.kernels.kernel import joint_weights
from xrecal.arrays.status import IDENTICAL, INVALID, TOO_FEW

from .cases import forecasts_and_observations, season

EVERY = ("observations", "mean", "regression", "standardised", "ratio")
SEASONAL = ((1.0, 0.0), (4.0, 0.0), (1.0, 1.0), (4.0, 0.25))
WITHIN = 1.002
"""Loss with the choices of the device, in units of the loss with those of the host, at most."""

SETTINGS = [
    Settings(),
    Settings(supports=EVERY, kernels=SEASONAL),
    Settings(kernel="laplace", supports=("mean",)),
    Settings(ridge=1e-2, supports=("mean", "ratio"), bandwidth=0.5),
    Settings(ridge=1e-2, supports=("standardised",)),
    Settings(kernels=SEASONAL[:2], gap=2),
    Settings(supports=EVERY[3:], shapes=True),
]


def gaps(rng, n=60, *, rain=False, weighted=False):
    """Cases at five locations whose missing and invalid ones differ."""
    cases, observed = forecasts_and_observations(rng, 5, n, rain=rain)
    observed[0, 3:9], cases.loc[1, 5], cases.loc[1, 6, 1:] = np.nan, np.nan, np.nan
    observed[2, 9:], cases.loc[3, 7, 0] = np.nan, np.inf
    cases.loc[4] = 1.0
    return Forecasts(cases.loc, None, rng.random(cases.loc.shape) if weighted else None), observed


def require_equal(found, expected, tolerance=1e-10):
    for name, one, other in zip(found._fields, found, expected, strict=True):
        assert one.dtype == other.dtype, name
        # An optimiser finds coefficients near zero only about, from variances that are rounded.
        near = 1e-7 if name.endswith("centre") else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=near, err_msg=name)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("settings", "rain", "weighted"), pairwise(SETTINGS, [False, True], [False, True])
)
def test_with_given_choices_fit_and_weights_are_those_of_the_host(rng, settings, rain, weighted):
    cases, observed = gaps(rng, rain=rain, weighted=weighted)
    of, days = season(5, 60)
    given = {"features": of if settings.kernels == SEASONAL else None, "days": days}
    choices = ckme.choose_ckme(cases, observed, settings, half_life=400.0, **given)
    expected = ckme.fit_ckme(cases, observed, settings, choices=choices, **given)
    found = fit_ckme(cases, observed, settings, choices=choices, **given)
    require_equal(found, expected)
    assert found.status[2] == TOO_FEW
    assert found.status[3] & INVALID
    assert found.status[4] & IDENTICAL or settings.shapes
    new = forecasts_and_observations(rng, 5, 9, m=3, rain=rain)[0]
    new.loc[0, 2], new.loc[1, 3, 1], new.loc[2, 4, 0] = np.nan, np.inf, np.nan
    how = {**given, "kernel": settings.kernel, "shapes": settings.shapes}
    if given["features"] is not None:
        how["new_features"] = season(5, 9)[0]
        how["new_features"].values[0, 1] = np.nan
    args = new, cases, observed, expected
    more = {"own_members": settings.supports != ("observations",), "return_novelty": True}
    for one, other in zip(
        (*ckme_weights(*args, **how, **more), *ckme_weights_of_both(*args, **how)),
        (*weights.ckme_weights(*args, **how, **more), *weights.ckme_weights_of_both(*args, **how)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    novelty = ckme_novelty(*args, **how)
    np.testing.assert_allclose(novelty, weights.ckme_novelty(*args, **how), atol=1e-9)


@pytest.mark.parametrize("n", [40, 450])
def test_joint_weights_are_those_of_the_host(rng, n):
    circular, n_used = np.array([False, True, True, False, False]), np.array([n, n - 7, 1, n])
    of = rng.normal(size=(4, n, 5)) * 10.0 ** rng.integers(-3, 3, 5)
    of[1, :, 3], of[3, :, [0, 4]] = 2.0, 1.0
    used = np.arange(n) < n_used[:, np.newaxis]
    of[~used] = 0.0
    found = on_device.joint_weights(of, circular, used[:, :, None] & used[:, None, :], n_used)
    expected = [joint_weights(x[:k], circular) for x, k in zip(of, n_used, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def loss_with(choices, cases, observed, settings, **given):
    """Held-out loss of each location with its kernel, support and ridge."""
    found = []
    for place in range(observed.shape[0]):
        one = choices.at(place)
        alone = settings._replace(
            ridge=one.ridge,
            supports=(EVERY[one.support],),
            kernels=((one.widening, one.strength),),
        )
        known = {**given, "features": given["features"].take(slice(place, place + 1))}
        calibration = calibration_of(
            cases.take(slice(place, place + 1)), observed[place : place + 1], **known
        )
        found.append(smallest_losses(calibration, alone, np.array([one.half_life]))[0])
    return np.array(found)


@pytest.mark.each_value
@pytest.mark.parametrize("rain", [False, True])
@pytest.mark.parametrize("by_year", [False, True])
def test_chosen_settings_are_as_good_as_those_of_the_host(rng, rain, by_year):
    cases, observed = forecasts_and_observations(rng, 4, 72, rain=rain)
    observed[0, 5:9] = np.nan
    of, days = season(4, 72)
    observed[1] += 2 * of.values[1, :, 0]
    settings = Settings(supports=EVERY, kernels=SEASONAL, solver="exact")
    given = {"features": of, "groups": np.arange(72) // 12 if by_year else np.arange(72)}
    given["blocks"] = 0 if by_year else 5
    found = choose_ckme(cases, observed, settings, days=days, **given)
    expected = ckme.choose_ckme(cases, observed, settings, days=days, **given)
    for name in ("support", "widening", "strength", "half_life", "beside", "status"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-9)
    ours, theirs = (loss_with(c, cases, observed, settings, **given) for c in (found, expected))
    assert (ours <= WITHIN * theirs).all()


def test_many_cases_are_as_good_as_by_landmarks(rng):
    cases, observed = forecasts_and_observations(rng, 2, 320)
    settings = Settings(supports=("observations", "mean"))
    given = {"features": season(2, 320)[0]}
    found, expected = (
        choose(cases, observed, settings) for choose in (choose_ckme, ckme.choose_ckme)
    )
    exact = settings._replace(solver="exact")
    ours, theirs = (loss_with(c, cases, observed, exact, **given) for c in (found, expected))
    assert (ours <= WITHIN * theirs).all()


def test_half_lives_are_those_of_the_host(rng):
    cases, observed = forecasts_and_observations(rng, 3, 60)
    observed[1, 40:] += 4
    days = 7.0 * np.arange(60)
    found, expected = (
        choose(cases, observed, days=days, half_life="cv")
        for choose in (choose_ckme, ckme.choose_ckme)
    )
    np.testing.assert_array_equal(found.half_life, expected.half_life)
    assert np.isfinite(found.half_life[1])


def test_groups_must_agree_as_on_the_host(rng):
    x = rng.normal(size=(24, 6, 1)).repeat(8, axis=1) + 0.3 * rng.normal(size=(24, 48, 5))
    y = rng.normal(size=(24, 6)).repeat(8, axis=1) + 0.4 * rng.normal(size=(24, 48))
    given = {"groups": np.arange(48) // 8, "blocks": 0}
    expected = ckme.choose_ckme(Forecasts(x), y, **given)
    doubted = (expected.ridge == 1) & (expected.status == 0)
    assert 0 < doubted.sum() < 24
    found = choose_ckme(Forecasts(x), y, **given)
    np.testing.assert_array_equal((found.ridge == 1) & (found.status == 0), doubted)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-9)


def test_nothing_to_train_on_means_the_largest_ridge(rng):
    cases, observed = forecasts_and_observations(rng, 2, 30)
    for choose in (choose_ckme, ckme.choose_ckme):
        found = choose(cases, observed, Settings(gap=100))
        np.testing.assert_array_equal(found.ridge, 1.0)
        assert np.isnan(found.loss).all()


def test_blocks_of_locations_and_forecasts_change_nothing(rng, monkeypatch):
    cases, observed = gaps(rng)
    settings = Settings(supports=EVERY[:2])
    whole = fit_ckme(cases, observed, settings)
    issued = ckme_weights_of_both(cases, cases, observed, whole)
    monkeypatch.setattr(on_device, "WORKSPACE", 1)
    monkeypatch.setattr(predicting, "ROWS", 7)
    monkeypatch.setattr(stacked, "STACKED", 3)  # matrices are solved one by one
    require_equal(fit_ckme(cases, observed, settings), whole)
    for one, other in zip(ckme_weights_of_both(cases, cases, observed, whole), issued, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_no_locations_and_no_forecasts(rng):
    cases, observed = gaps(rng)
    fitted = fit_ckme(cases, observed)
    none = Forecasts(cases.loc[:, :0])
    assert ckme_weights(none, cases, observed, fitted, own_members=True)[1].shape == (5, 0, 60)
    nowhere = fit_ckme(cases.take(slice(0)), observed[:0])
    assert nowhere.ridge.shape == (0,)


def test_inputs_are_not_changed_and_float32_stays(rng):
    cases, observed = gaps(rng)
    cases, observed = Forecasts(cases.loc.astype(np.float32)), observed.astype(np.float32)
    cases.loc.flags.writeable = observed.flags.writeable = False
    found = fit_ckme(cases, observed)
    assert found.ridge.dtype == np.float64
    assert ckme_weights(cases, cases, observed, found)[1].dtype == np.float32


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (Settings(projection="energy"), "projection='energy'"),
        (Settings(loss="laplace"), "loss='laplace'"),
        (Settings(solver="lowrank"), "solver='lowrank'"),
    ],
)
def test_other_settings_are_refused(rng, settings, what):
    cases, observed = forecasts_and_observations(rng)
    for function in (fit_ckme, choose_ckme):
        with pytest.raises(TypeError, match=f"{what} has no implementation for CuPy arrays; copy"):
            function(cases, observed, settings)


def test_what_cannot_be_done_is_refused(rng):
    cases, observed = forecasts_and_observations(rng)
    with pytest.raises(TypeError, match=r"distance of normal distributions has no implementation"):
        fit_ckme(Forecasts(cases.loc, cases.loc), observed)
    with pytest.raises(TypeError, match="a fit from given distances, or a fit of vectors"):
        fit_ckme(cases, observed, squared=[None])
    with pytest.raises(ValueError, match="a half-life needs days"):
        fit_ckme(cases, observed, half_life=3.0)
    with pytest.raises(ValueError, match="half_life='cv' needs days"):
        fit_ckme(cases, observed, half_life="cv")
    with pytest.raises(ValueError, match="observations have shape"):
        fit_ckme(cases, observed[:1])
    low_rank = ckme.fit_ckme(cases, observed, Settings(solver="lowrank"))
    with pytest.raises(
        TypeError, match=r"a forecast from .* landmarks has no implementation for CuPy arrays"
    ):
        ckme_weights(cases, cases, observed, low_rank)
    with pytest.raises(TypeError, match="a forecast from known distances"):
        ckme_novelty(cases, cases, observed, fit_ckme(cases, observed), across=[None])


def test_the_crps_is_that_of_the_definition(rng):
    points, y = np.sort(rng.normal(size=(4, 9))), rng.normal(size=4)
    weights_ = rng.dirichlet(np.ones(9), 4)
    apart = np.abs(points[:, :, None] - points[:, None, :])
    expected = (weights_ * np.abs(points - y[:, None])).sum(-1)
    expected -= 0.5 * np.einsum("ni,nij,nj->n", weights_, apart, weights_)
    np.testing.assert_allclose(choosing.crps(weights_, points, y), expected, atol=1e-12)
