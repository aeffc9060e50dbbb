"""Scores of recalibrated forecasts, inside the chunk, against those of what apply issues."""

import inspect

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import METHODS, ensemble_and_truth, model_of, new_cases
from xrecal import arrays

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
LEVELS = [0.1, 0.5, 0.9]
SCORES = {
    "crps": {},
    "log_score": {},
    "brier_score": {"threshold": TRUTH.mean("time")},
    "ranked_probability_score": {"edges": [280.0, 281.5]},
    "quantile_score": {"q": LEVELS},
    "wis": {"levels": LEVELS},
    "error_spread": {},
    "pit": {"seed": 3},
}
"""Verbs of a model that are doors of forecasts too, with their own parameters."""


def score(name, of, *given, **options):
    return getattr(of, name)(*given, **SCORES[name], **options)


def issued_score(name, model, **options):
    found = score(name, NEW.recal.apply(model).recal, VERIFIED, **options)
    return found["t2m"] if isinstance(found, xr.Dataset) else found


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_the_issued_forecasts(name, method):
    model = model_of(method)
    found, issued = score(name, model, NEW, VERIFIED), issued_score(name, model)
    np.testing.assert_allclose(found, issued.transpose(*found.dims), rtol=1e-9, atol=1e-9)
    assert found.notnull().all()
    assert found.name == name
    assert found.attrs["long_name"]
    assert found.attrs["units"] == issued.attrs["units"]
    if name == "pit":
        assert "seed 3" in found.attrs["estimator"]
        return
    assert found.attrs["estimator"] == issued.attrs["estimator"]
    over = ["time", "lat"]
    mean = score(name, model, NEW, VERIFIED, dim=over)
    np.testing.assert_allclose(mean, found.mean(over), rtol=1e-12)
    assert mean.attrs["history"].endswith(", mean over 'time' and 'lat'")


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_lazy_and_missing_where_the_truth_is(name):
    model, verified = model_of("ckme"), VERIFIED.copy()
    verified[2] = np.nan
    expected = score(name, model, NEW, verified)
    assert expected.isnull().all(["lat", "lon"]).isel(time=2).all()
    for chunks in ({"lat": 1}, {"time": 3}):
        with forbid_compute():
            lazy = score(name, model, NEW.chunk(chunks), verified.chunk(lon=1))
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        score(name, model, NEW, VERIFIED.assign_attrs(units="degC"))


@pytest.mark.parametrize("threshold", [280.5, [280.0, 281.0]])
def test_brier_score_is_that_of_the_exceedance(threshold):
    model = model_of("ckme")
    found = model.brier_score(NEW, VERIFIED, threshold)
    probability = model.exceedance(NEW, threshold)
    value = probability.threshold if isinstance(threshold, list) else threshold
    expected = (probability - (value < VERIFIED)) ** 2
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12, atol=1e-15)
    assert found.dims == probability.dims


def test_jumps_are_drawn_by_location_and_case():
    """On a support of two values every case is within a jump."""
    coarse = TRUTH.copy(data=np.where(TRUTH > 280, 281.0, 279.0))
    model = HINDCAST.recal.fit(coarse, xrecal.Climatology())
    verified = VERIFIED.copy(data=np.where(VERIFIED > 280, 281.0, 279.0))
    found, other = model.pit(NEW, verified, seed=1), model.pit(NEW, verified, seed=2)
    assert np.unique(found).size == found.size
    assert not (found == other).any()
    low = (coarse < 280).mean("time")
    u = arrays.uniform_at(1, np.arange(4).reshape(2, 2)[:, :, None], np.arange(7))
    u = xr.DataArray(u, dims=["lat", "lon", "time"])
    expected = xr.where(verified < 280, low * u, low + (1 - low) * u).transpose(*found.dims)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="seed must be a whole number, got 'a'"):
        model.pit(NEW, VERIFIED, seed="a")


def test_calls_that_a_verb_does_not_take_are_explained():
    model = model_of("emos")
    with pytest.raises(TypeError, match=r"^model.crps has no parameter 'fair'"):
        model.crps(NEW, VERIFIED, fair=True)
    with pytest.raises(TypeError, match=r"^model.wis needs observations \(DataArray, Dataset or"):
        model.wis(NEW)
    with pytest.raises(ValueError, match=r"one minus it is lacking for 0\.1"):
        model.wis(NEW, VERIFIED, levels=[0.1, 0.5])


@pytest.mark.parametrize("name", [*SCORES, "mean", "std", "quantile", "exceedance", "cdf"])
def test_every_parameter_of_a_verb_is_described(name):
    verb = getattr(xrecal.Recalibrator, name)
    parameters = inspect.getdoc(verb).partition("\nParameters\n----------\n")[2]
    described = [line for line in parameters.partition("\n\n")[0].splitlines() if line[0] != " "]
    names = [name for line in described for name in line.partition(" :")[0].split(", ")]
    assert names == list(inspect.signature(verb).parameters)[1:]
