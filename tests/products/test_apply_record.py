"""Mass that is issued beyond the observed record by more than its range."""

import warnings

import numpy as np
import pytest
import xarray as xr

from tests.strategies import FORMS, METHODS, ensemble_and_truth, model_of, new_cases
from xrecal.products.recalibrated import mass_beyond

HINDCAST, TRUTH = ensemble_and_truth()
NEW, _ = new_cases()
OWN = ["errors", "shapes", "season", "pit", "conformal", "pool"]


def expected(issued):
    """Mass by its definition, forecast by forecast."""
    low, high = TRUTH.min("time"), TRUTH.max("time")
    width = high - low
    far = (issued.t2m < low - width) | (issued.t2m > high + width)
    return issued.t2m_weight.where(far, 0).sum("member")


def test_a_case_by_hand():
    from xrecal.arrays.distributions.forms import Empirical

    members = np.array([[[-3.1, -2.9, 0.5, 3.9, 4.1], [0.0, 0.1, 0.2, np.nan, 0.3]]])
    weights = np.array([[[0.1, 0.2, 0.3, 0.3, 0.1], [0.25, 0.25, 0.25, 0.0, 0.25]]])
    # A record from -1 to 2 has the range 3: far are values below -4 and above 5.
    ends = np.full((1, 2), -1.0), np.full((1, 2), 2.0)
    found = mass_beyond(Empirical(2 * members, weights), *ends)
    np.testing.assert_allclose(found, [[0.7, 0.0]])
    none = mass_beyond(Empirical(members, weights), ends[0], ends[0])
    assert np.isnan(none).all()
    weights[0, 1] = np.nan
    found = mass_beyond(Empirical(members, weights), *ends)
    np.testing.assert_array_equal(np.isnan(found), [[False, True]])


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
@pytest.mark.filterwarnings("ignore:.* unlike all:UserWarning")
@pytest.mark.filterwarnings("ignore:.* outside the observed range:UserWarning")
@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("shift", [0, 60])
def test_it_is_that_of_what_is_issued(method, shift):
    model, forecast = model_of(method), (NEW + shift).assign_attrs(NEW.attrs)
    issued = model.apply(forecast)
    xr.testing.assert_allclose(issued.t2m_beyond, expected(issued), rtol=0, atol=1e-12)
    assert issued.t2m_beyond.attrs["units"] == "1"
    lazy = model.apply(forecast.chunk({"lat": 1})).t2m_beyond
    assert lazy.chunks is not None
    xr.testing.assert_allclose(lazy.compute(), issued.t2m_beyond, rtol=0, atol=1e-12)
    one = model.apply(forecast[0]).t2m_beyond
    xr.testing.assert_allclose(one, issued.t2m_beyond[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", ["weighted", "quantile", "normal"])
def test_it_is_there_for_other_forms(form):
    issued = model_of("season", form).apply(FORMS[form](NEW))
    xr.testing.assert_allclose(issued.t2m_beyond, expected(issued), rtol=0, atol=1e-12)


def test_past_observations_have_none():
    for method in ("ckme", "climatology", "idr", "emos"):
        assert not [n for n in model_of(method).apply(NEW) if str(n).endswith("_beyond")]


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
@pytest.mark.filterwarnings("ignore:.* unlike all:UserWarning")
@pytest.mark.parametrize(
    ("method", "component"), [("errors", "errors"), ("pool", "ckme.*|emos|tail")]
)
def test_many_in_memory_are_told_with_the_first_and_the_component(method, component):
    model = model_of(method)
    far = NEW.where(NEW.time <= NEW.time[3], NEW + 60).assign_attrs(NEW.attrs)
    told = (
        "12 of 28 forecasts of 't2m' have more than 5% of their mass outside the observed range by "
        "more than the width of this range, up to 100%, the first at time 2011-05-15, lat 45.0, "
        f"lon 0.0, most of it from the component '({component}|tail)'. If that is not plausible"
    )
    with pytest.warns(UserWarning, match=told):
        model.apply(far)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.apply(far.chunk({"lat": 1}))
        model.apply(NEW)


def test_nothing_lies_beyond_bounds():
    rain = (HINDCAST - 283).clip(0).assign_attrs(units="mm")
    seen = (TRUTH - 281).clip(0).assign_attrs(units="mm")
    model = rain.recal.fit(seen, METHODS["errors"])
    issued = model.apply((NEW - 283).clip(0).assign_attrs(units="mm"))
    assert float(issued.t2m.where(issued.t2m_weight > 0).min()) >= 0
    assert float(issued.t2m_beyond.max()) < 0.05
