"""Components of a pool: what their names stand for, and what they say about unseen cases."""

import re
from pathlib import Path

import numpy as np
import pytest

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal.arrays.ckme.search import LATER_PARTS
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import IDENTICAL
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases
from xrecal.methods.ckme_choices import SUPPORTS
from xrecal.methods.components import MEMBERS, held_out_by_refits
from xrecal.methods.covariates import Covariates

HINDCAST, TRUTH = ensemble_and_truth()
OPTIONS = Path(__file__).parents[2] / "docs" / "options.md"
N = 80
METHODS = [
    xrecal.EMOS(),
    xrecal.IDR(),
    xrecal.Climatology(),
    xrecal.CKME(support="observations", ridge=0.01),
    xrecal.Raw(),
]


def test_every_support_is_described():
    assert set(MEMBERS) == set(SUPPORTS["auto"])


@pytest.mark.parametrize("text", [xrecal.LinearPool.__doc__, OPTIONS.read_text()])
def test_documentation_explains_every_part_of_a_name(text):
    labels = [c.label for c in xrecal.LinearPool(condition_on="season").components]
    words = {word for label in labels for word in re.findall("[a-z]+", label)}
    for word in words:
        assert re.search(rf"\b{word}\b|_{word}\b", text, re.IGNORECASE), word
    assert "average" in text


def cases(rng, shift=None):
    loc = rng.normal(size=(1, N, 5))
    observed = loc.mean(-1) + 0.5 * rng.normal(size=(1, N))
    if shift is not None:
        observed[:, shift] += 1000
    return Cases(Forecasts(loc), observed, Covariates(np.zeros((1, N, 0))), CaseAxis())


def held_out(method, shift=None):
    given = cases(np.random.default_rng(0), shift)
    (trial,) = method.try_locations(given, 20, lambda m: held_out_by_refits(m, given))
    return trial.held_out[0]


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


@pytest.fixture(scope="module")
def model():
    return HINDCAST.isel(lat=[0], lon=[0]).recal.fit(
        TRUTH.isel(lat=[0], lon=[0]), xrecal.LinearPool()
    )


def test_weights_describe_their_components(model):
    weights = model.state["pool_weight"]
    told = dict(part.split(": ", 1) for part in weights.attrs["description"].split("; "))
    assert list(told) == list(weights["component"].to_numpy())
    assert told["raw"] == "Raw()"
    assert told["idr_season"] == "IDR(condition_on=('season',))"
    assert told["ckme_shapes_season"] == (
        "CKME(bandwidth='cv', support='standardised', condition_on=('season',), compare='shapes'), "
        "members from past errors in units of the spread that EMOS gives"
    )


def test_description_is_stored(model, tmp_path):
    model.save(tmp_path / "model.nc")
    found = xrecal.open_recalibrator(tmp_path / "model.nc").state["pool_weight"].attrs
    assert found == model.state["pool_weight"].attrs


def test_members_say_what_their_component_is(model):
    issued = model.apply(HINDCAST.isel(lat=[0], lon=[0], time=[0]))
    told = issued["component"].attrs["long_name"]
    assert told == "component that the member comes from"


def test_single_members_have_no_shapes_and_the_pool_says_nothing_of_it():
    """The kernel of forecasts tells them apart, so none of them is alike to the pool."""
    one = HINDCAST.isel(lat=[0], lon=[0], member=[0])
    model = one.recal.fit(TRUTH.isel(lat=[0], lon=[0]), xrecal.LinearPool())
    assert (model.state["status"] & IDENTICAL == 0).all()
    alone = one.recal.fit(
        TRUTH.isel(lat=[0], lon=[0]), xrecal.CKME(support="errors", compare="shapes")
    )
    assert (alone.state["status"] & IDENTICAL == 0).all()  # it issues errors around the means
