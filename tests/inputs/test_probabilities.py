"""Probabilities of categories, or up to thresholds, are scored like any forecast."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

TIME = pd.date_range("2020-01-01", periods=40, freq="7D")
EDGES = [-0.43, 0.43]
RNG = np.random.default_rng(0)
OBS = xr.DataArray(RNG.normal(size=40), {"time": TIME}, name="t", attrs={"units": "K"})
PMF = xr.DataArray(
    RNG.dirichlet([2, 2, 2], 40),
    {"time": TIME, "category": ["below", "near", "above"]},
    ["time", "category"],
    "t",
    {"long_name": "probability", "units": "1"},
)
CDF = xr.DataArray(
    PMF.values.cumsum(1)[:, :2],
    {"time": TIME, "threshold": ("threshold", EDGES, {"units": "K"})},
    ["time", "threshold"],
    "t",
)
HAPPENED = OBS.values[:, np.newaxis] <= np.array(EDGES)
BRIER = (CDF.values - HAPPENED) ** 2


EDGES_IN_K = xr.DataArray(EDGES, dims=["edge"], attrs={"units": "K"})


@pytest.mark.parametrize(
    "forecast", [xrecal.probabilities(PMF, EDGES_IN_K), xrecal.probabilities(CDF)]
)
def test_scores_at_the_edges_are_those_of_the_probabilities(forecast):
    np.testing.assert_allclose(forecast.recal.rps(OBS, EDGES), BRIER.sum(1))
    np.testing.assert_allclose(forecast.recal.brier_score(OBS, EDGES), BRIER)
    np.testing.assert_allclose(forecast.recal.cdf(EDGES).t, CDF, atol=1e-15)
    np.testing.assert_allclose(forecast.recal.categories(EDGES).t, PMF, atol=1e-15)
    assert forecast.t.attrs == {"units": "K", "ancillary_variables": "t_weight"}


def test_probabilities_are_fitted():
    model = xrecal.probabilities(CDF).recal.fit(OBS)
    issued = model.exceedance(xrecal.probabilities(CDF[:3]), EDGES).t
    assert issued.notnull().all()


def test_issued_categories_know_their_edges_which_differ_by_place():
    members = xr.DataArray(RNG.normal(size=(40, 2, 9)), dims=["time", "place", "member"], name="t")
    edges = xr.DataArray([[0.0, 0.0], [-0.5, 0.5]], dims=["place", "edge"])
    issued = members.recal.categories(edges)
    for forecast in (xrecal.probabilities(issued), xrecal.probabilities(issued, edges)):
        np.testing.assert_allclose(
            forecast.recal.categories(edges)["categories"], issued, atol=1e-15
        )


def test_categories_of_normal_distributions_know_their_edges():
    normal = xrecal.gaussian(OBS, xr.full_like(OBS, 1.0))
    probable = normal.recal.categories(EDGES)["t"]
    forecast = xrecal.probabilities(probable)
    np.testing.assert_allclose(
        forecast.recal.exceedance(EDGES)["t"], normal.recal.exceedance(EDGES)["t"], atol=1e-12
    )


def test_missing_and_lazy_probabilities():
    missing = PMF.where(PMF.time > TIME[0])
    missing[1, 2] = np.nan
    forecast = xrecal.probabilities(missing, EDGES)
    exceeded = forecast.recal.exceedance(0.43).t
    np.testing.assert_allclose(exceeded, PMF[:, 2].where(PMF.time > TIME[1]))
    for values, edges in ((PMF, EDGES), (CDF, None)):
        lazy = xrecal.probabilities(values.chunk(time=7), edges)
        assert lazy.t_weight.chunks is not None
        xr.testing.assert_identical(lazy.compute(), xrecal.probabilities(values, edges))


def test_places_without_edges_are_missing():
    edges = xr.DataArray([[0.0, 1.0], [0.0, np.nan]], dims=["place", "edge"])
    values = PMF.expand_dims(place=2).drop_vars("category")
    exceeded = xrecal.probabilities(values, edges).recal.exceedance(0.0).t
    assert exceeded.notnull().all("time").values.tolist() == [True, False]


def test_thresholds_are_numbers():
    with pytest.raises(TypeError, match="edges must hold numbers, got <U1"):
        xrecal.probabilities(CDF.assign_coords(threshold=["a", "b"]))


def test_rounding_makes_no_negative_weight():
    cdf = CDF.copy(data=np.tile([0.3, 0.3 - 1e-9], (40, 1)))
    assert xrecal.probabilities(cdf).t_weight.min() == 0


def test_one_edge_and_float32():
    event = xr.DataArray(np.float32([[0.25, 0.75]]), dims=["time", "category"])
    forecast = xrecal.probabilities(event, [3.0])
    assert forecast.forecast.dtype == forecast.forecast_weight.dtype == np.float32
    assert forecast.recal.exceedance(3.0).forecast.item() == 0.75


WRONG = {
    "not along a dimension": (lambda: (OBS,), r"dimensions 'category' and 'threshold'; they have"),
    "no edges": (lambda: (PMF,), r"give the 2 edges between the 3 categories: edges="),
    "too few": (lambda: (PMF, [0.0]), "3 categories have 2 edges between them, got 1"),
    "falling": (lambda: (PMF, [1.0, 0.0]), "edges must increase, got array"),
    "thresholds": (
        lambda: (CDF.isel(threshold=[1, 0]),),
        r"thresholds must increase, got .*values.sortby\('threshold'\)",
    ),
    "edges twice": (
        lambda: (CDF, EDGES),
        "values along 'threshold' need the thresholds as labels of 'threshold'; leave edges",
    ),
    "other dims": (
        lambda: (PMF, xr.DataArray([[0.0, 1.0]], dims=["a", "b"])),
        r"one dimension that values lack; they have \['a', 'b'\]",
    ),
    "percent": (lambda: (100 * PMF, EDGES), "40 of 40 forecasts .* use values / 100"),
    "exceedance": (lambda: (1 - CDF,), "40 of 40 forecasts decrease .* use 1 - values"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_forecast_is_refused(case):
    arguments, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        xrecal.probabilities(*arguments())
    with pytest.raises(TypeError, match="must be an xarray DataArray, got list"):
        xrecal.probabilities([0.5, 0.5])


@pytest.mark.parametrize(("values", "typed"), [(PMF, "forecast, edges"), (CDF, "forecast")])
def test_bare_probabilities_say_what_to_type(values, typed):
    with pytest.raises(
        ValueError, match=rf"make a forecast of them: xrecal\.probabilities\({typed}\)"
    ):
        values.recal.crps(OBS)
