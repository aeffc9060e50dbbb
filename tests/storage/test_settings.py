import json
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xrecal
from tests.strategies import METHODS
from xrecal.inputs.pool import Pool
from xrecal.storage.settings import decode, encode

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.timedeltas(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(
            st.one_of(st.text(), st.integers(), st.tuples(st.text())), inner, max_size=4
        ),
    ),
)


def through_text(value):
    return decode(json.loads(json.dumps(encode(value, "it"), allow_nan=False)))


@given(VALUES)
def test_values_come_back(value):
    found = through_text(value)
    assert repr(found) == repr(value)  # tells NaN, tuples and lists, 1 and 1.0 and True


@pytest.mark.parametrize(
    "method",
    [
        *METHODS.values(),
        xrecal.LinearPool(),
        xrecal.LinearPool(condition_on=()),
        xrecal.LinearPool(
            methods=(xrecal.CKME(support="observations", bounds=(0, None)), xrecal.Raw())
        ),
        xrecal.EMOS(bounds=(0.0, np.inf), condition_on=("a", "season"), vary_spread=True),
        xrecal.CKME(
            support="observations",
            half_life=timedelta(days=3),
            bandwidth=np.float64(0.1),
            ridge="cv",
        ),
        Pool(("lat", "lon"), (3, 4), (3, 1), (0, 1, 2)),
    ],
    ids=repr,
)
def test_settings_come_back(method):
    found = through_text(method)
    assert type(found) is type(method)
    assert found == method


def test_arrays_come_back():
    for array in (np.array([1, 2], "i1"), np.array([[0.1, np.nan]], "f4"), np.array(["a", "bc"])):
        found = through_text(array)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def with_fields(**changes):
    """The text of a CKME with other settings."""
    text = encode(xrecal.CKME(), "it")
    return text | {"fields": text["fields"] | changes}


class Own(xrecal.CKME):
    pass


@pytest.mark.parametrize("value", [object(), Own(), {1, 2}, np.array([None]), 1j])
def test_other_values_are_refused(value):
    name = type(value).__name__
    with pytest.raises(TypeError, match=rf"^settings holds .* of the type {name}, which cannot be"):
        encode((1, value), "settings")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ({"class": "Popen", "fields": {}}, "Popen' is not known; known classes are CKME, "),
        (with_fields(colour=1), "CKME has other fields than those given, such as 'colour'"),
        ({"class": "EMOS", "fields": {}}, "EMOS has other fields than those given, such as 'bou"),
        (with_fields(ridge=-1), "CKME: ridge must be"),
        ({"pickle": "gASV"}, r"an object with the keys \['pickle'\] is not known"),
    ],
)
def test_only_what_is_known_is_made(text, told):
    with pytest.raises(ValueError, match=told):
        decode(text)
