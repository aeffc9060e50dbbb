"""Selections without a location or a forecast: results without values, of the right shape."""

import numpy as np
import pytest
import xarray as xr

import xrecal

from .marks import forbid_compute
from .strategies import METHODS, PAPER, ensemble_and_truth, model_of, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
PRODUCTS = {
    "apply": lambda model, new: model.apply(new),
    "quantile": lambda model, new: model.quantile(new, [0.1, 0.9]),
    "one quantile": lambda model, new: model.quantile(new, 0.5),
    "members": lambda model, new: model.members(new, 3),
    "ecc": lambda model, new: model.members(new, coherence="ecc"),
    "schaake": lambda model, new: model.members(new, 3, coherence="schaake"),
    "exceedance": lambda model, new: model.exceedance(new, [280.0, 281.0]),
    "cdf": lambda model, new: model.cdf(new, 280.0),
    "categories": lambda model, new: model.categories(new),
    "categories of the season": lambda model, new: model.categories(new, window=90),
    "mean": lambda model, new: model.mean(new),
    "std": lambda model, new: model.std(new),
}
STATISTICS = {
    "quantile": lambda new: new.recal.quantile([0.1, 0.9]),
    "members": lambda new: new.recal.members(3),
    "exceedance": lambda new: new.recal.exceedance(280.0),
    "cdf": lambda new: new.recal.cdf([280.0, 281.0]),
    "categories": lambda new: new.recal.categories([280.0, 281.0]),
    "mean": lambda new: new.recal.mean(),
}


def same_but_empty(found, whole, dim):
    """That a result is a selection of none along a dimension."""
    expected = whole.isel({dim: slice(0)})
    assert type(found) is type(whole)
    xr.testing.assert_identical(found.compute(), expected)
    if isinstance(found, xr.DataArray):
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("method", METHODS)
def test_fits_at_no_location(method):
    """All that follows from such a model is empty too."""
    none, whole = {"lat": slice(0)}, model_of(method)
    state = whole.state
    if METHODS[method].in_common:  # of which no place knows any
        shared = METHODS[method].in_common
        state = state.assign({name: state[name] * np.nan for name in shared})
    expected = {name: PRODUCTS[name](whole, NEW).isel(none) for name in ("apply", "quantile")}
    for hindcast in (HINDCAST.isel(none), HINDCAST.isel(none).chunk()):
        with forbid_compute():
            model = hindcast.recal.fit(TRUTH.isel(none), METHODS[method])
        same_but_empty(model.compute().state, state, "lat")
        for product, empty in expected.items():
            assert PRODUCTS[product](model, NEW.isel(none)).sizes == empty.sizes


@pytest.mark.each_value
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("method", ["ckme", "emos", "pool", "errors", "window"])
def test_products_of_no_forecast(method, product):
    model, new = model_of(method), NEW.isel(time=slice(0))
    whole = PRODUCTS[product](model, NEW)
    for none in (new, new.chunk()):
        same_but_empty(PRODUCTS[product](model, none), whole, "time")


@pytest.mark.parametrize("lazy", [False, True])
def test_fields_of_past_dates_of_no_forecast(lazy):
    model, new = HINDCAST.recal.fit(TRUTH, PAPER), NEW.isel(time=slice(0))
    found = model.members(new.chunk() if lazy else new, 3, coherence="dates")
    same_but_empty(found, model.members(NEW, 3, coherence="dates"), "time")
    nowhere = HINDCAST.isel(lat=slice(0)).recal.fit(TRUTH.isel(lat=slice(0)), PAPER)
    assert nowhere.members(NEW.isel(lat=slice(0)), 3, coherence="dates").sizes["lat"] == 0


@pytest.mark.each_value
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dim", ["time", "lat"])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_of_no_forecast(statistic, dim, lazy):
    new = NEW.isel({dim: slice(0)})
    same_but_empty(
        STATISTICS[statistic](new.chunk() if lazy else new), STATISTICS[statistic](NEW), dim
    )


def test_no_case_to_learn_or_verify_is_told():
    with pytest.raises(ValueError, match="no label along 'time' is common to hindcast"):
        HINDCAST.isel(time=slice(0)).recal.fit(TRUTH, PAPER)
    with pytest.raises(ValueError, match="forecast has no members: its dimension 'member' has"):
        NEW.isel(member=slice(0)).recal.mean()


def test_no_place_is_an_empty_result():
    model = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())
    assert model.quantile(NEW.isel(lat=slice(0)), 0.5).sizes["lat"] == 0


# members along several dimensions -----------------------------------------------------------------


def test_variables_with_members_of_their_own():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": (HINDCAST - 3).rename(member="number")})
    truth, new = xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2}), hindcast.isel(time=slice(5))
    model = hindcast.recal.fit(truth, xrecal.Climatology())
    assert model.quantile(new, [0.5]).sizes == {"time": 5, "quantile": 1, "lat": 2, "lon": 2}
    match = (
        r"members of 'dew' are along 'number'.*'calibration_time' along both: apply the model to "
        r"each variable alone: "
        r"model\['dew'\]\.apply\(forecast\['dew'\]\)"
    )
    with pytest.raises(ValueError, match=match):
        model.apply(new)
    alone = model["dew"].apply(new["dew"])
    assert alone.dew.dims == ("number", "lat", "lon")
    assert np.isfinite(alone.dew_weight).all()
