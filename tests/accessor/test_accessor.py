import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal import diagnostics
from xrecal.products import categories, members, probabilities, statistics

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
PRODUCTS = {
    "mean": statistics.mean,
    "std": statistics.std,
    "quantile": statistics.quantile,
    "exceedance": probabilities.exceedance,
    "cdf": probabilities.cdf,
    "categories": categories.categories,
    "members": members.members,
}


def test_two_calls():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), min_samples=30)
    assert isinstance(model, xrecal.Recalibrator)
    assert NEW.recal.apply(model).identical(model.apply(NEW))
    as_dataset = HINDCAST.to_dataset().recal.fit({"t2m": TRUTH}, xrecal.EMOS(), min_samples=30)
    assert NEW.to_dataset().recal.apply(as_dataset).equals(model.apply(NEW))
    assert NEW.recal.crps(VERIFIED).identical(diagnostics.crps(NEW, VERIFIED))


CALLS = {
    "mean": ((), {}),
    "std": ((), {}),
    "quantile": (([0.1, 0.9],), {}),
    "exceedance": ((281.0,), {}),
    "cdf": ((281.0,), {}),
    "categories": (([280.0, 282.0],), {}),
    "members": ((7,), {"seed": 3}),
    "crps": ((VERIFIED,), {"fair": True}),
    "quantile_weighted_crps": ((VERIFIED, "time"), {"emphasis": "center"}),
    "log_score": ((VERIFIED, "time"), {}),
    "brier_score": ((VERIFIED, 281.0), {"fair": True}),
    "ranked_probability_score": ((VERIFIED, [280.0, 282.0]), {}),
    "quantile_score": ((VERIFIED, [0.2, 0.8]), {}),
    "wis": ((VERIFIED, "time"), {"levels": [0.2, 0.5, 0.8]}),
    "pit": ((VERIFIED,), {"seed": 5}),
    "coverage": ((VERIFIED,), {"level": 0.6, "seed": 5}),
    "spread_skill": ((VERIFIED,), {"bins": 2}),
    "rank_histogram": ((VERIFIED,), {"seed": 5}),
}


@pytest.mark.filterwarnings("ignore:only")
@pytest.mark.parametrize("kind", ["DataArray", "Dataset"])
@pytest.mark.parametrize("name", CALLS)
def test_a_door_returns_what_its_function_returns(name, kind):
    args, given = CALLS[name]
    forecast = NEW if kind == "DataArray" else NEW.to_dataset()
    if kind == "Dataset":
        args = tuple({"t2m": a} if isinstance(a, xr.DataArray) else a for a in args)
    found = getattr(forecast.recal, name)(*args, **given)
    function = PRODUCTS.get(name) or getattr(diagnostics, name)
    xr.testing.assert_identical(found, function(forecast, *args, **given))


def test_apply_needs_a_model():
    with pytest.raises(TypeError, match=r"apply takes a fitted model, from .*, got EMOS"):
        NEW.recal.apply(xrecal.EMOS())
