"""What the names of the components of a pool stand for."""

import re
from pathlib import Path

import pytest

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal.arrays.status import IDENTICAL
from xrecal.methods.choices import SUPPORTS
from xrecal.methods.components import MEMBERS

HINDCAST, TRUTH = ensemble_and_truth()
OPTIONS = Path(__file__).parents[2] / "docs" / "options.md"


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


def test_every_support_is_described():
    assert set(MEMBERS) == set(SUPPORTS["auto"])


@pytest.mark.parametrize("text", [xrecal.LinearPool.__doc__, OPTIONS.read_text()])
def test_documentation_explains_every_part_of_a_name(text):
    labels = [c.label for c in xrecal.LinearPool(condition_on="season").components]
    words = {word for label in labels for word in re.findall("[a-z]+", label)}
    for word in words:
        assert re.search(rf"\b{word}\b|_{word}\b", text, re.IGNORECASE), word
    assert "emos_season_2" in text


def test_single_members_have_no_shapes_and_the_pool_says_nothing_of_it():
    """The kernel of forecasts tells them apart, so none of them is alike to the pool."""
    one = HINDCAST.isel(lat=[0], lon=[0], member=[0])
    model = one.recal.fit(TRUTH.isel(lat=[0], lon=[0]), xrecal.LinearPool())
    assert (model.state["status"] & IDENTICAL == 0).all()
    alone = one.recal.fit(
        TRUTH.isel(lat=[0], lon=[0]), xrecal.CKME(support="errors", compare="shapes")
    )
    assert (alone.state["status"] & IDENTICAL > 0).all()
