"""Forecasts of one place, or of a part of the places, get the fits of these."""

from functools import cache

import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from tests.pairs import pairwise

PLACES = {"station": ["a", "b", "c"], "level": [500, 850]}
DIMS = ("time", "level", "member", "station")
HINDCAST = random(*DIMS, **PLACES, sizes={"level": 2})
NEW = random(*DIMS, **PLACES, seed=2, sizes={"level": 2})
OBSERVED = random("station", "time", "level", **PLACES, seed=1, sizes={"level": 2})
COVARIATE = random("time", "station", station=PLACES["station"], seed=3)


def verified(new):
    """At the places of a forecast; those of all are enough for a single one."""
    return OBSERVED.sel({d: new[d].to_numpy() for d in PLACES if d in new.dims})


METHODS = {
    "ckme": xrecal.CKME(ridge=0.05),
    "errors": xrecal.CKME(ridge=0.05, support="errors"),
    "emos": xrecal.EMOS(),
    "idr": xrecal.IDR(),
}
CALLS = {
    "apply": lambda model, new: model.apply(new),
    "quantile": lambda model, new: model.quantile(new, [0.1, 0.9]),
    "exceedance": lambda model, new: model.exceedance(new, 0.5),
    "categories": lambda model, new: model.categories(new),
    "mean": lambda model, new: model.mean(new),
    "crps": lambda model, new: model.crps(new, verified(new)),
    "pit": lambda model, new: model.pit(new, verified(new), seed=3),
    "members": lambda model, new: model.members(new, 6),
    "schaake": lambda model, new: model.members(new, 7, coherence="schaake"),
}
SELECTED = {
    "one": {"station": "b"},
    "one of each": {"station": "c", "level": 850},
    "a list of one": {"station": ["b"]},
    "another order": {"station": ["c", "a"]},
    "of each": {"level": 500, "station": ["c", "b", "a"]},
}


model = cache(lambda method: HINDCAST.recal.fit(OBSERVED, METHODS[method]))


@cache
def of_all(method, call):
    """What a call makes of the whole forecast."""
    return CALLS[call](model(method), NEW)


@pytest.mark.each_value
@pytest.mark.parametrize(("method", "call", "selected"), pairwise(METHODS, CALLS, SELECTED))
def test_results_are_those_of_the_whole_forecast(method, call, selected):
    selected = SELECTED[selected]
    expected = of_all(method, call).sel(selected)
    part = CALLS[call](model(method), NEW.sel(selected))
    xr.testing.assert_allclose(part, expected, rtol=1e-12)


def test_lazy_models_and_forecasts():
    lazy = HINDCAST.chunk(station=1).recal.fit(OBSERVED, METHODS["ckme"])
    whole = lazy.compute().quantile(NEW, 0.5)
    with forbid_compute():
        some = lazy.quantile(NEW.chunk(station=2).sel(station=["c", "a"]), 0.5)
        one = lazy.quantile(NEW.sel(station="b"), 0.5)
    xr.testing.assert_allclose(some.compute(), whole.sel(station=["c", "a"]), rtol=1e-12)
    xr.testing.assert_allclose(one.compute(), whole.sel(station="b"), rtol=1e-12)


def test_pools_and_covariates():
    given = {"wind": COVARIATE}
    pooled = HINDCAST.recal.fit(
        OBSERVED, METHODS["ckme"], pool="level", condition_on="wind", covariates=given
    )
    whole = pooled.quantile(NEW, 0.5, covariates=given)
    for selected in SELECTED.values():
        some = {"wind": COVARIATE.sel({"station": selected.get("station", PLACES["station"])})}
        part = pooled.quantile(NEW.sel(selected), 0.5, covariates=some)
        xr.testing.assert_allclose(part, whole.sel(selected), rtol=1e-12)


def test_distributions():
    normal = xrecal.gaussian(HINDCAST.mean("member"), HINDCAST.std("member"))
    model = normal.recal.fit(OBSERVED, METHODS["ckme"])
    one = normal.sel(station="b", level=500)
    expected = model.quantile(normal, 0.5).sel(station="b", level=500)
    xr.testing.assert_allclose(model.quantile(one, 0.5), expected, rtol=1e-12)


def test_stored_models(tmp_path):
    HINDCAST.recal.fit(OBSERVED, METHODS["ckme"]).save(tmp_path / "model.zarr")
    again = xrecal.open_recalibrator(tmp_path / "model.zarr")
    whole = again.quantile(NEW, 0.5)
    xr.testing.assert_equal(again.quantile(NEW.sel(station="b"), 0.5), whole.sel(station="b"))


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (NEW.assign_coords(station=list("abd")), "labels along 'station' differ, first at posi"),
        (NEW.sel(station=["a", "a"]), "labels along 'station' of forecast must be unique"),
        (NEW.sel(station="b", drop=True), r"it lacks \['station'\]: apply the model to all"),
        (NEW.sel(station="b").assign_coords(station="d"), "differ along 'station': 3 against 1"),
    ],
)
def test_errors(new, message):
    model = HINDCAST.recal.fit(OBSERVED, METHODS["emos"])
    with pytest.raises(ValueError, match=message):
        model.quantile(new, 0.5)
