"""Units that one input states and the other does not: told everywhere, once a call."""

import warnings

import numpy as np
import pytest

import xrecal
from tests.strategies import ensemble_and_truth, model_of
from xrecal.chunks.warnings import warn_once
from xrecal.methods.call_errors import explained

HINDCAST, TRUTH = ensemble_and_truth()
EMOS = xrecal.EMOS()
CALLS = {
    "crps": lambda f, o: f.recal.crps(o),
    "summary": lambda f, o: f.recal.summary(o),
    "reliability": lambda f, o: f.recal.reliability(o, 280.0),
    "fit": lambda f, o: f.recal.fit(o, EMOS),
    "cross_validate": lambda f, o: f.recal.cross_validate(o, EMOS, by="block"),
    "compare": lambda f, o: xrecal.compare(f, o, [EMOS]),
    "model": lambda f, o: model_of("emos").crps(f, o),
}


@pytest.mark.each_value
@pytest.mark.parametrize("which", ["observations", "forecast"])
@pytest.mark.parametrize("call", CALLS)
def test_units_of_one_alone(call, which):
    bare = {
        "observations": (HINDCAST, TRUTH.drop_attrs()),
        "forecast": (HINDCAST.drop_attrs(), TRUTH),
    }
    name = which
    if which == "forecast" and call in ("fit", "cross_validate", "compare"):
        name = "hindcast"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[call](*bare[which])
    assert [str(w.message) for w in caught] == [f"units of {name} not stated, taken as K"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("call", CALLS)
def test_both_or_none_say_nothing(call):
    CALLS[call](HINDCAST, TRUTH)  # warnings are errors here
    if call != "model":
        CALLS[call](HINDCAST.drop_attrs(), TRUTH.drop_attrs())


def test_other_calls_tell_it_again():
    for _ in range(2):
        with pytest.warns(UserWarning, match="units of observations not stated") as caught:
            HINDCAST.recal.crps(TRUTH.drop_attrs())
        assert len(caught) == 1


@explained("inner")
def inner():
    warn_once("a")


@explained("outer")
def outer():
    warn_once("a")
    inner()
    warn_once("b")


def test_calls_inside_a_call_are_one():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outer()
        inner()
    assert [str(w.message) for w in caught] == ["a", "b", "a"]


def test_values_are_as_with_units():
    with pytest.warns(UserWarning, match="units of observations not stated"):
        found = HINDCAST.recal.crps(TRUTH.drop_attrs())
    np.testing.assert_array_equal(found, HINDCAST.recal.crps(TRUTH))


def test_lines_run_without_a_name_are_warned():
    lines = "forecast.recal.crps(observations)"
    with pytest.warns(UserWarning, match="units of observations not stated") as caught:
        exec(lines, {"forecast": HINDCAST, "observations": TRUTH.drop_attrs()})
    assert caught[0].filename == "<string>"
