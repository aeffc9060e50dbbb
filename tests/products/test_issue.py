"""Products with novelty and mass beyond the record, against those that are made one by one."""

from functools import cache, partial

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.products.apply import issue
from xrecal.products.members import drawn_by_model
from xrecal.products.statistics import quantiles

HINDCAST, TRUTH = (array.rename("t2m") for array in ensemble_and_truth())
NEW = new_cases()[0].rename("t2m").to_dataset()
LEVELS = np.array([0.1, 0.5])
PRODUCTS = {
    "quantiles": (
        partial(quantiles, levels=LEVELS, several=True),
        lambda model, new: model.quantile(new, LEVELS),
    ),
    "members": (
        partial(drawn_by_model, n=4, seed=0),
        lambda model, new: model.members(new, 4),
    ),
}
METHODS = {
    "both supports": (xrecal.CKME(), {"novelty", "beyond"}),
    "errors": (xrecal.CKME(support="regression"), {"novelty", "beyond"}),
    "observations": (xrecal.CKME(support="observations"), {"novelty"}),
    "pool": (xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS())), {"novelty", "beyond"}),
    "EMOS": (xrecal.EMOS(), set()),
}


@cache
def model_of(method):
    """A model that no test changes."""
    return HINDCAST.to_dataset().recal.fit(TRUTH, METHODS[method][0])


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.* have more than:UserWarning")
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("method", METHODS)
def test_all_at_once_is_as_one_by_one(method, product):
    model, (_, beside) = model_of(method), METHODS[method]
    of_each, expected = PRODUCTS[product]
    issued = issue(model, NEW, None, of_each, "made")
    xr.testing.assert_allclose(issued["t2m"], expected(model, NEW)["t2m"], rtol=1e-12)
    assert set(issued) == {"t2m", *(f"t2m_{what}" for what in beside)}
    applied = model.apply(NEW)
    for what in beside:
        xr.testing.assert_allclose(issued[f"t2m_{what}"], applied[f"t2m_{what}"], atol=1e-12)
        assert issued[f"t2m_{what}"].attrs == applied[f"t2m_{what}"].attrs
    named = issued["t2m"].attrs.get("ancillary_variables", "").split()
    assert set(named) == {f"t2m_{what}" for what in beside}
    assert issued["t2m"].attrs["units"] == "K"
    assert issued.attrs["history"].splitlines()[-1].endswith("made")


def test_lazy_forecasts_stay_lazy_and_are_compared_once():
    model = model_of("both supports")
    of_each, _ = PRODUCTS["quantiles"]
    lazy = issue(model, NEW.chunk(lat=1), None, of_each, "made")
    assert all(variable.chunks for variable in lazy.data_vars.values())
    graph = lazy.__dask_graph__()
    assert sum(str(key).startswith("('PredictTask-") for key in graph) == NEW.sizes["lat"]
    xr.testing.assert_allclose(lazy.compute(), issue(model, NEW, None, of_each, "made"))
