"""Forecasts compared without their means."""

import numpy as np
import pytest

from xrecal.arrays import Forecasts, ckme_weights, fit_ckme
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.status import INVALID

MEAN = Settings(supports=("mean",), bounds=None)
SHAPES = MEAN._replace(shapes=True)


def make(rng, n=60, n_new=7, m=6):
    """Cases and observations, and new forecasts; the spread tells the error."""
    spread = rng.gamma(2.0, size=(2, n + n_new, 1))
    x = rng.normal(0, 3, (2, n + n_new, 1)) + spread * rng.normal(size=(2, n + n_new, m))
    y = x.mean(-1) + 0.7 * spread[..., 0] * rng.normal(size=(2, n + n_new))
    return x[:, :n], y[:, :n], x[:, n:]


def anomalies(x):
    return x - np.nanmean(x, -1, keepdims=True)


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_errors_weigh_as_observations_of_the_anomalies_would(rng, solver, projection):
    """The embedding of errors given the anomalies, each computed by hand."""
    x, y, new = make(rng)
    settings = SHAPES._replace(solver=solver, projection=projection)
    fitted = fit_ckme(Forecasts(x), y, settings)
    plain = settings._replace(supports=("observations",), shapes=False)
    by_hand = fit_ckme(Forecasts(anomalies(x)), y - x.mean(-1), plain)
    for name in ("bandwidth", "ridge", "loss", "status"):
        np.testing.assert_allclose(
            getattr(fitted, name), getattr(by_hand, name), rtol=1e-6, err_msg=name
        )
    members, weights = ckme_weights(
        Forecasts(new), Forecasts(x), y, fitted,
        own_members=True, shapes=True, projection=projection,
    )  # fmt: skip
    errors, expected = ckme_weights(
        Forecasts(anomalies(new)), Forecasts(anomalies(x)), y - x.mean(-1), by_hand,
        projection=projection,
    )  # fmt: skip
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(members, new.mean(-1)[..., np.newaxis] + errors[:, np.newaxis])


@pytest.mark.parametrize("normal", [False, True])
def test_where_forecasts_lie_does_not_matter(rng, normal):
    x, y, new = make(rng)
    far, far_new = rng.normal(0, 50, x.shape[:2]), rng.normal(0, 50, new.shape[:2])
    width = np.abs(x[:, :, :1]), np.abs(new[:, :, :1])

    def parts(forecasts, scale, shift):
        loc = forecasts + shift[..., np.newaxis]
        return Forecasts(loc[..., :1], scale) if normal else Forecasts(loc)

    zero, zero_new = np.zeros_like(far), np.zeros_like(far_new)
    here, there = (
        (parts(x, width[0], a), y + a, parts(new, width[1], b))
        for a, b in ((zero, zero_new), (far, far_new))
    )
    found = []
    for cases, observed, forecasts in (here, there):
        fitted = fit_ckme(cases, observed, SHAPES._replace(ridge=0.01))
        given = {"own_members": True, "shapes": True}
        found.append(ckme_weights(forecasts, cases, observed, fitted, **given))
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-8)
    shifted = found[0][0] + far_new[..., np.newaxis]
    np.testing.assert_allclose(found[1][0], shifted, atol=1e-8)


def test_missing_members_and_weights_count_in_the_means(rng):
    x, y, _ = make(rng, m=4)
    x[:, ::3, 0] = np.nan
    w = rng.dirichlet(np.ones(4), x.shape[:2])
    fitted = fit_ckme(Forecasts(x, None, w), y, SHAPES)
    mass = np.where(np.isnan(x), 0, w)
    mean = (np.nan_to_num(x) * mass).sum(-1) / mass.sum(-1)
    plain = SHAPES._replace(supports=("observations",), shapes=False)
    by_hand = fit_ckme(Forecasts(x - mean[..., np.newaxis], None, w), y - mean, plain)
    np.testing.assert_allclose(fitted.bandwidth, by_hand.bandwidth)
    np.testing.assert_allclose(fitted.ridge, by_hand.ridge, rtol=1e-6)


def test_an_infinite_member_is_as_invalid_as_ever(rng):
    x, y, new = make(rng)
    x[0, 5, 2] = np.inf
    new[1, 3] = np.nan
    fitted = fit_ckme(Forecasts(x), y, SHAPES)
    assert fitted.status[0] == INVALID
    assert fitted.n_cases.tolist() == [59, 60]
    given = {"own_members": True, "shapes": True}
    _, weights = ckme_weights(Forecasts(new), Forecasts(x), y, fitted, **given)
    assert (weights[0, :, 5] == 0).all()
    assert np.isnan(weights[1, 3]).all()
    assert not np.isnan(weights[1, 4]).any()


def test_past_observations_are_refused(rng):
    x, y, _ = make(rng)
    told = "forecasts without their means, so past observations cannot be members"
    with pytest.raises(ValueError, match=told):
        fit_ckme(Forecasts(x), y, Settings(shapes=True))
