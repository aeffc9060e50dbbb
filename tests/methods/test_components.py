"""Components of a pool: what their names stand for, and what they say about unseen cases."""

import re
from pathlib import Path

import numpy as np
import pytest

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal.arrays.ckme.fitting import LATER_PARTS
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import IDENTICAL
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, Covariates
from xrecal.methods.ckme import SUPPORTS
from xrecal.methods.components import (
    MEMBERS,
    beside_observations,
    components_of,
    fit_method,
    give_way,
    raw_quantiles,
)

HINDCAST, TRUTH = ensemble_and_truth()
OPTIONS = Path(__file__).parents[2] / "docs" / "options.md"
N = 80
METHODS = [xrecal.EMOS(), xrecal.IDR(), xrecal.Climatology(), xrecal.CKME(ridge=0.01), xrecal.Raw()]


def test_every_support_is_described():
    assert set(MEMBERS) == set(SUPPORTS["auto"])


@pytest.mark.parametrize("text", [xrecal.LinearPool.__doc__, OPTIONS.read_text()])
def test_documentation_explains_every_part_of_a_name(text):
    labels = [c.label for c in xrecal.LinearPool(condition_on="season").components]
    words = {word for label in labels for word in re.findall("[a-z]+", label)}
    for word in words:
        assert re.search(rf"\b{word}\b|_{word}\b", text, re.IGNORECASE), word
    assert "emos_season_2" in text


def cases(rng, shift=None):
    loc = rng.normal(size=(1, N, 5))
    observed = loc.mean(-1) + 0.5 * rng.normal(size=(1, N))
    if shift is not None:
        observed[:, shift] += 1000
    return Cases(Forecasts(loc), observed, Covariates(np.zeros((1, N, 0))), CaseAxis())


def held_out(method, shift=None):
    ((_, quantiles),) = fit_method(method, cases(np.random.default_rng(0), shift), 20)
    return quantiles[0]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_fold_is_forecast_without_its_own_observations(method):
    fold = np.arange(N) * 5 // N
    for f in (0, 3):
        expected, found = held_out(method)[0], held_out(method, fold == f)[0]
        np.testing.assert_allclose(found[fold == f], expected[fold == f], atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_later_parts_are_forecast_from_the_past_alone(method):
    part = np.arange(N) * LATER_PARTS // N
    expected, found = held_out(method)[1], held_out(method, part >= 4)[1]
    assert np.isnan(expected[part == 0]).all()
    past = (part > 0) & (part <= 4)
    np.testing.assert_allclose(found[past], expected[past], atol=1e-9)
    assert LATER_PARTS == 8


def test_the_learning_methods_do_learn_from_the_others():
    fold = np.arange(N) * 5 // N
    for method in METHODS[:4]:
        moved = np.abs(held_out(method, fold == 0)[0] - held_out(method)[0])
        assert (moved[fold != 0].max(-1) > 1).any()


def test_raw_quantiles_are_those_of_the_forecasts(rng):
    one = cases(rng)
    levels = (np.arange(100) + 0.5) / 100
    expected = np.quantile(one.forecasts.loc[0], levels, axis=-1, method="inverted_cdf").T
    np.testing.assert_allclose(raw_quantiles(one)[0], expected)


@pytest.fixture(scope="module")
def model():
    return HINDCAST.isel(lat=[0], lon=[0]).recal.fit(
        TRUTH.isel(lat=[0], lon=[0]), xrecal.LinearPool()
    )


def test_weights_describe_their_components(model):
    weights = model.state["pool_weight"]
    told = dict(part.split(": ", 1) for part in weights.attrs["description"].split("; "))
    assert list(told) == list(weights["component"].to_numpy())
    assert told["emos"] == "EMOS()"
    assert told["emos_season_2"] == "EMOS(condition_on=('season',), vary_spread=True)"
    assert told["ckme_season_standardised"] == (
        "CKME(bandwidth='cv', support='auto', condition_on=('season',)), members from past errors "
        "in units of the spread that EMOS gives"
    )


def test_description_is_stored(model, tmp_path):
    model.save(tmp_path / "model.nc")
    found = xrecal.open_recalibrator(tmp_path / "model.nc").state["pool_weight"].attrs
    assert found == model.state["pool_weight"].attrs


def test_members_say_what_their_component_is(model):
    issued = model.apply(HINDCAST.isel(lat=[0], lon=[0], time=[0]))
    told = issued["component"].attrs["long_name"]
    assert told == "component of the pool that the member comes from"


def test_single_members_have_no_shapes_and_the_pool_says_nothing_of_it():
    """The kernel of forecasts tells them apart, so none of them is alike to the pool."""
    one = HINDCAST.isel(lat=[0], lon=[0], member=[0])
    model = one.recal.fit(TRUTH.isel(lat=[0], lon=[0]), xrecal.LinearPool())
    assert (model.state["status"] & IDENTICAL == 0).all()
    alone = one.recal.fit(
        TRUTH.isel(lat=[0], lon=[0]), xrecal.CKME(support="errors", compare="shapes")
    )
    assert (alone.state["status"] & IDENTICAL > 0).all()


# past observations give way -----------------------------------------------------------------------


def mixture(novelty, beyond=0.0):
    """Two forecasts: three observations with 0.6 of the mass, four other members with 0.4."""
    members = np.array([[0.0, 1, 2, 0.5, 1.0, 1.5, 1.8], [0.0, 1, 2, 0.5, 1.0, 1.5, 1.8]])[
        np.newaxis
    ]
    members[:, 1, 5:] += beyond
    weights = np.array([[[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1]] * 2])
    give_way(members, weights, slice(0, 3), np.array([0.6]), np.full((1, 2), novelty))
    np.testing.assert_allclose(weights.sum(-1), 1)
    return weights[0]


def test_ordinary_forecasts_stay_as_they_are():
    np.testing.assert_allclose(mixture(0.0), [[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1]] * 2)


@pytest.mark.parametrize("novelty", [0.3, 1.0])
def test_observations_give_way_to_novelty(novelty):
    weights = mixture(novelty)
    np.testing.assert_allclose(weights[:, :3], 0.2 * (1 - novelty))
    np.testing.assert_allclose(weights[:, 3:], (0.4 + 0.6 * novelty) / 4)


def test_observations_give_way_to_what_lies_beyond_them():
    weights = mixture(0.1, beyond=5)
    np.testing.assert_allclose(weights[:, :3], [[0.18] * 3, [0.1] * 3])
    np.testing.assert_allclose(weights[1, 3:], 0.7 / 4)


def test_where_novelty_is_not_known_the_range_alone_counts():
    np.testing.assert_allclose(
        mixture(np.nan, beyond=5), [[0.2] * 3 + [0.1] * 4, [0.1] * 3 + [0.175] * 4]
    )


def test_observations_that_are_alone_get_something_to_give_way_to():
    components = components_of((xrecal.CKME(support="auto"), xrecal.EMOS(), xrecal.Climatology()))
    labels = [c.label for c in components]
    weight = np.zeros((3, len(labels)))
    weight[:, labels.index("ckme_observations")] = [0.7, 0.7, 0]
    weight[:, labels.index("climatology")] = [0.3, 0.1, 0]
    weight[:, labels.index("emos")] = [0, 0.2, 1]
    mixed, of_observations = beside_observations(components, weight)
    np.testing.assert_allclose(of_observations, [1, 0.8, 0])
    np.testing.assert_array_equal(mixed[1:], weight[1:])
    added = mixed[0] - weight[0]
    assert added[labels.index("ckme_mean")] == added.sum() == 1
    without = components_of((xrecal.CKME(support="observations"), xrecal.IDR()))
    only = np.array([[0.5, 0.5]])
    np.testing.assert_array_equal(beside_observations(without, only)[0], only)
