import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.search import Search
from xrecal.arrays.ckme.vector_ckme import (
    Vectors,
    choose_vector_ckme,
    fit_vector_ckme,
    vector_ckme_weights,
)
from xrecal.arrays.kernels.kernel import features

from .reference import GRID, Choice, Embedding, blocks_in_time, positive_median

ENERGY = Settings(loss="energy", min_samples=5)
PERIODS = [(None, None), (None, 60.0), (60.0,), (None, None, 24.0)]


def joint_cases(n=40, m=4, d=2, n_locations=2, seed=0):
    """Vector ensembles (L, n, d, m) and observations (L, n, d), with errors that depend."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(n_locations, n, d)) * (1.0, 20.0, 3.0)[:d]
    common = rng.normal(size=(n_locations, n, 1))
    observed = signal + common * (1.0, -10.0, 1.0)[:d]
    members = 1.0 + signal[..., np.newaxis] + 0.5 * rng.normal(size=(n_locations, n, d, m))
    return Vectors(members), observed


def on_circle(x, period):
    """Points of a circle of this circumference."""
    return (
        period
        / (2 * np.pi)
        * np.array([np.cos(2 * np.pi * x / period), np.sin(2 * np.pi * x / period)])
    )


def space(values, scale, periods):
    """Coordinates (..., d') of values (..., d)."""
    parts = []
    for k, period in enumerate(periods):
        one = values[..., k]
        parts += [one / scale[k]] if period is None else list(on_circle(one, period) / scale[k])
    return np.stack(parts, axis=-1)


def scale_of(values, periods):
    """Root mean square distance from the mean point of each variable."""
    found = []
    for k, period in enumerate(periods):
        points = values[:, k][np.newaxis] if period is None else on_circle(values[:, k], period)
        found.append(np.sqrt(((points - points.mean(1, keepdims=True)) ** 2).sum(0).mean()))
    return np.array(found)


def squared_distances(a, b):
    """``2 E|X-Y| - E|X-X'| - E|Y-Y'|`` of ensembles (n, m, d) and (q, p, d)."""

    def mean(x, y):
        return np.linalg.norm(x[:, np.newaxis] - y, axis=-1).mean()

    return np.array([[2 * mean(x, y) - mean(x, x) - mean(y, y) for y in b] for x in a])


class OfVectors(Embedding):
    """The embedding with targets that are numbers of vectors, and their energy score."""

    def mean_loss(self, fold, step, gap, choice, z):
        losses = []
        for i, points, weights in self.held_out(fold, step, gap, choice):
            members = z[points.astype(int)]
            apart = np.linalg.norm(members[:, np.newaxis] - members, axis=-1)
            to_truth = np.linalg.norm(members - z[i], axis=-1)
            losses.append(weights @ to_truth - weights @ apart @ weights / 2)
        return np.mean(losses)


def reference(members, observed, periods):
    """The embedding (n, d, m) and observed points of one location, and the scale."""
    scale = scale_of(np.moveaxis(members, 1, -1).reshape(-1, len(periods)), periods)
    points = space(np.moveaxis(members, 1, -1), scale, periods)
    d = squared_distances(points, points)
    number = np.arange(float(len(d)))
    embedding = OfVectors(d, number, r=np.zeros((len(d), 0)), bandwidth=positive_median(d))
    return embedding, space(observed, scale_of(observed, periods), periods), points, scale


@pytest.mark.parametrize("periods", PERIODS)
def test_choices_and_weights_are_those_of_the_formulas(periods):
    cases, observed = joint_cases(d=len(periods))
    new, _ = joint_cases(n=3, d=len(periods), seed=1)
    fitted, scale = fit_vector_ckme(cases, observed, periods, ENERGY)
    usable = np.isfinite(observed).all(-1)
    weights = vector_ckme_weights(new, cases, usable, fitted, scale, periods)
    n = observed.shape[1]
    for place in range(2):
        embedding, z, points, expected = reference(cases.members[place], observed[place], periods)
        np.testing.assert_allclose(scale[place], expected, rtol=1e-12)
        assert fitted.bandwidth[place] == pytest.approx(embedding.bandwidth, rel=1e-9)
        losses = [
            embedding.mean_loss(blocks_in_time(n), np.arange(n), 0, Choice(ridge), z)
            for ridge in GRID
        ]
        assert fitted.loss[place] == pytest.approx(min(losses), rel=1e-9)
        choice = Choice(fitted.ridge[place])
        assert abs(np.log10(choice.ridge / GRID[np.argmin(losses)])) <= 0.51
        theirs = space(np.moveaxis(new.members[place], 1, -1), expected, periods)
        for t, across in enumerate(squared_distances(theirs, points)):
            _, found = embedding.forecast(np.arange(n), across, None, None, np.zeros(0), choice)
            np.testing.assert_allclose(weights[place, t], found, atol=1e-9)


@pytest.mark.parametrize("periods", PERIODS)
def test_landmarks_give_nearly_the_same_forecasts(periods):
    cases, observed = joint_cases(n=80, d=len(periods))
    usable = np.ones(observed.shape[:2], bool)
    losses, means = [], []
    for solver in ("exact", "lowrank"):
        known = cases, observed, periods, ENERGY._replace(solver=solver)
        fitted, scale = fit_vector_ckme(*known)
        weights = vector_ckme_weights(cases, cases, usable, fitted, scale, periods)
        losses.append(fitted.loss)
        means.append(np.einsum("ltn,lnd->ltd", weights, space(observed, scale[0], periods)))
    assert (fitted.landmark[:, 0] >= 0).all()
    np.testing.assert_allclose(*losses, rtol=0.02)
    assert np.abs(means[0] - means[1]).mean() < 0.03


def test_one_variable_on_a_line_is_the_plain_embedding():
    from xrecal.arrays import Forecasts, ckme_weights, fit_ckme

    cases, observed = joint_cases(d=1)
    fitted, scale = fit_vector_ckme(cases, observed, (None,), ENERGY)
    plain, y = Forecasts(cases.members[:, :, 0] / scale[:, :, np.newaxis]), observed[..., 0]
    expected = fit_ckme(plain, y, Settings(min_samples=5))
    np.testing.assert_allclose(fitted.bandwidth, expected.bandwidth, rtol=1e-9)
    np.testing.assert_allclose(fitted.loss * y.std(1), expected.loss, rtol=1e-9)
    np.testing.assert_allclose(fitted.ridge, expected.ridge, rtol=1e-4)
    usable = np.isfinite(observed[..., 0])
    weights = vector_ckme_weights(cases, cases, usable, fitted, scale, (None,))
    _, found = ckme_weights(plain, plain, y, expected)
    np.testing.assert_allclose(weights, found, atol=1e-4)


@settings(max_examples=15)
@given(
    factor=st.sampled_from([1e-3, 0.5, 60.0]),
    shift=st.floats(-300, 300),
    order=st.permutations(range(4)),
)
def test_units_offsets_and_the_order_of_members_make_no_difference(factor, shift, order):
    cases, observed = joint_cases(n=30, n_locations=1)
    settings_ = ENERGY._replace(ridge=0.03)
    usable = np.ones((1, 30), bool)

    def weights(c, o):
        fitted, scale = fit_vector_ckme(c, o, (None, None), settings_)
        return vector_ckme_weights(c, c, usable, fitted, scale, (None, None))

    moved = cases.members * np.array([1.0, factor])[:, np.newaxis] + shift
    found = weights(Vectors(moved[..., list(order)]), observed * (1.0, factor) + shift)
    np.testing.assert_allclose(found, weights(cases, observed), atol=1e-6)


@settings(max_examples=15)
@given(turn=st.floats(-720, 720), mirrored=st.booleans())
def test_where_a_circle_begins_makes_no_difference(turn, mirrored):
    rng = np.random.default_rng(3)
    true = rng.uniform(0, 360, (1, 30, 1))
    members = true[..., np.newaxis] + 15 * rng.normal(size=(1, 30, 1, 4))
    observed = true + 20 * rng.normal(size=true.shape)
    usable = np.ones((1, 30), bool)

    def weights(c, o):
        fitted, scale = fit_vector_ckme(Vectors(c), o, (360.0,), ENERGY._replace(ridge=0.03))
        return vector_ckme_weights(Vectors(c), Vectors(c), usable, fitted, scale, (360.0,))

    sign = -1 if mirrored else 1
    found = weights((sign * members + turn) % 360, sign * observed + turn)
    np.testing.assert_allclose(found, weights(members, observed), atol=1e-6)


def test_missing_members_and_cases_are_left_out():
    cases, observed = joint_cases(n=30, m=5, n_locations=1)
    members, y = cases.members.copy(), observed.copy()
    members[0, 4, 1, 2] = np.nan  # this member is missing in both
    members[0, 7, 0] = np.nan
    y[0, 9, 1] = np.nan
    members[0, 11, 0, 3] = np.inf
    fitted, scale = fit_vector_ckme(Vectors(members), y, (None, None), ENERGY)
    assert fitted.n_cases == 27
    kept = np.delete(np.arange(30), [7, 9, 11])
    filled = members.copy()
    filled[0, 4, 0, 2] = np.nan
    step = np.delete(np.arange(30), [7, 9, 11])
    expected, expected_scale = fit_vector_ckme(
        Vectors(filled[:, kept]), y[:, kept], (None, None), ENERGY, step=step
    )
    np.testing.assert_array_equal(scale, expected_scale)
    assert fitted.bandwidth == expected.bandwidth
    assert fitted.ridge == expected.ridge
    new = members[:, [7, 11, 4]]
    usable = np.isfinite(y).all(-1)
    weights = vector_ckme_weights(
        Vectors(new), Vectors(members), usable, fitted, scale, (None, None)
    )
    assert np.isnan(weights[0, :2]).all()
    assert weights[0, 2].sum() == pytest.approx(1)
    assert (weights[0, 2, [7, 9, 11]] == 0).all()


def test_weights_of_members_count():
    cases, observed = joint_cases(n=30, m=2, d=1, n_locations=1)
    twice = np.concatenate([cases.members, cases.members[..., :1]], axis=-1)
    w = np.broadcast_to([2.0, 1.0], (1, 30, 2))
    (by_weight, one), (by_number, two) = (
        fit_vector_ckme(vectors, observed, (None,), ENERGY)
        for vectors in (Vectors(cases.members, w), Vectors(twice))
    )
    np.testing.assert_allclose(
        by_weight.bandwidth * one[:, 0], by_number.bandwidth * two[:, 0], rtol=1e-12
    )
    np.testing.assert_allclose(by_weight.loss, by_number.loss, rtol=1e-9)


def test_covariates_and_half_lives_are_passed_on():
    cases, observed = joint_cases(n=40)
    covariate = features(np.arange(40.0)[np.newaxis, :, np.newaxis] * np.ones((2, 1, 1)), (None,))
    fitted, scale = fit_vector_ckme(
        cases,
        observed,
        (None, None),
        ENERGY._replace(kernels=((1.0, 4.0),)),
        features=covariate,
        days=np.arange(40.0),
        half_life=10.0,
    )
    assert (fitted.strength == 4.0).all()
    assert (fitted.half_life == 10.0).all()
    weights = vector_ckme_weights(
        Vectors(cases.members[:, -1:]),
        cases,
        np.ones((2, 40), bool),
        fitted,
        scale,
        (None, None),
        features=covariate,
        new_features=covariate._replace(values=covariate.values[:, -1:]),
        days=np.arange(40.0),
    )
    assert (weights[:, 0, 20:].sum(-1) > 0.8).all()


@pytest.mark.parametrize("half_life", [np.inf, "cv"])
def test_choice_and_fit_are_what_one_call_does(half_life, monkeypatch):
    given = *joint_cases(n=60), (None, None), ENERGY
    known = {"days": np.arange(60.0)}
    expected, _ = fit_vector_ckme(*given, half_life=half_life, **known)
    choices = choose_vector_ckme(*given, half_life=half_life, **known)
    monkeypatch.setattr(Search, "__init__", lambda *_, **__: pytest.fail("a search began"))
    found, _ = fit_vector_ckme(*given, choices=choices, **known)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        np.testing.assert_array_equal(one, other, name)


def test_observations_that_hardly_vary_do_not_drown_the_others():
    cases, observed = joint_cases(n=60, n_locations=1)
    dry = observed.copy()
    dry[0, :, 1] = 0.0
    dry[0, 5, 1] = 1e-3
    scales = [
        fit_vector_ckme(cases, y, (None, None), ENERGY._replace(ridge=0.03))[1]
        for y in (observed, dry)
    ]
    np.testing.assert_array_equal(*scales)


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("variable", [0, 1])
def test_one_wild_member_hardly_changes_a_scale(variable, dry):
    cases, observed = joint_cases(n=60, n_locations=1)
    if dry:  # most members of a variable are equal
        cases.members[..., variable, :][cases.members[..., variable, :] < 1.5] = 0.0
    periods = (None, 360.0) if variable == 0 else (None, None)
    usual, *wild = (scale_with(cases, observed, periods, variable, by) for by in (0, 1e4, -1e9))
    np.testing.assert_allclose(wild, [usual, usual], rtol=0.6 if dry else 0.2)


def scale_with(cases, observed, periods, variable, more):
    """The scale of a fit to ensembles of which one has a member with this much more."""
    members = cases.members.copy()
    members[0, 7, variable, 2] += more
    settings = ENERGY._replace(ridge=0.03)
    return fit_vector_ckme(Vectors(members), observed, periods, settings)[1][0]


@pytest.mark.parametrize("wild", [1e4, -1e9])
def test_a_wild_value_of_a_circle_is_a_direction(wild):
    cases, observed = joint_cases(n=60, n_locations=1)
    usual, found = (scale_with(cases, observed, (None, 360.0), 1, by) for by in (0, wild))
    np.testing.assert_allclose(found, usual, rtol=0.2)


def test_shapes_and_losses_that_do_not_fit_are_refused():
    cases, observed = joint_cases()
    with pytest.raises(ValueError, match=r"with 3 variables, got \(2, 40, 2, 4\)"):
        fit_vector_ckme(cases, observed, (None,) * 3, ENERGY)
    with pytest.raises(ValueError, match=r"observations have shape \(2, 39, 2\)"):
        fit_vector_ckme(cases, observed[:, 1:], (None, None), ENERGY)
    with pytest.raises(ValueError, match=r"supports=\('observations',\) and projection='eucl"):
        fit_vector_ckme(cases, observed, (None, None), ENERGY._replace(supports=("mean",)))
    fitted, scale = fit_vector_ckme(cases, observed, (None, None), ENERGY)
    more, _ = joint_cases(d=3)
    with pytest.raises(ValueError, match="forecasts have 3 variables, but the fit has 2"):
        vector_ckme_weights(more, cases, np.ones((2, 40), bool), fitted, scale, (None, None))
    with pytest.raises(ValueError, match="the loss 'energy' is for vectors"):
        fit_vector_ckme(cases, observed, (None, None), ENERGY._replace(loss="crps"))
