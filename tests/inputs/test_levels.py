"""Levels of quantiles, wherever they are asked for."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal.inputs.dims import read_inner_levels, read_levels

HINDCAST, TRUTH = ensemble_and_truth()
MODEL = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())
CALLS = {
    "ensembles": lambda q: HINDCAST.recal.quantile(q),
    "model": lambda q: MODEL.quantile(HINDCAST, q),
    "cross-validation": lambda q: HINDCAST.recal.cross_validate(
        TRUTH, xrecal.Climatology(), by="block", q=q
    ),
    "score": lambda q: HINDCAST.recal.quantile_score(TRUTH, q),
    "reliability": lambda q: HINDCAST.recal.quantile_reliability(TRUTH, q),
}


@pytest.mark.parametrize("call", CALLS)
def test_unsorted_levels_are_answered_in_their_order(call):
    found, ascending = CALLS[call]([0.9, 0.2, 0.5]), CALLS[call]([0.2, 0.5, 0.9])
    np.testing.assert_array_equal(found["quantile"], [0.9, 0.2, 0.5])
    assert found["quantile"].attrs == {"long_name": "quantile", "units": "1"}
    xr.testing.assert_identical(found.sortby("quantile"), ascending)
    assert not found.equals(ascending)


@pytest.mark.parametrize("call", CALLS)
def test_levels_given_twice_are_refused(call):
    match = "q holds levels more than once: 0.2, 0.5; give each level once"
    with pytest.raises(ValueError, match=match):
        CALLS[call]([0.5, 0.2, 0.9, 0.2, 0.5])
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1"):
        CALLS[call]([0.5, np.nan])


@pytest.mark.parametrize("call", CALLS)
def test_text_is_no_level(call):
    for text in ("0.5", ["0.5"]):
        with pytest.raises(TypeError, match="q must hold numbers between 0 and 1, got "):
            CALLS[call](text)


def test_arrays_of_levels():
    np.testing.assert_array_equal(read_levels(0.5), [0.5])
    assert read_levels([]).size == 0
    np.testing.assert_array_equal(read_inner_levels(np.array([0.2, 0.8])), [0.2, 0.8])
    for bad in ([0.8, 0.2], [0.0, 0.5], [0.5, 1.0], []):
        with pytest.raises(ValueError, match="q must hold increasing levels between 0 and 1, ends"):
            read_inner_levels(bad)
