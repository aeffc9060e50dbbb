import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from tests.strategies import (
    METHODS,
    PAPER,
    ensemble_and_truth,
    model_of,
    new_cases,
    points,
)
from xrecal import arrays

from .test_verbs import array, edges_of

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
QUINTILES = [0.2, 0.4, 0.6, 0.8]


# laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_categories_are_steps_of_the_cdf(method):
    model = model_of(method)
    found = model.categories(NEW, QUINTILES)
    assert found.dims == ("time", "category", "lat", "lon")
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum("category"), 1, rtol=1e-14)
    cdf = model.cdf(NEW, edges_of(found).rename(category="edge"))
    steps = np.diff(cdf.transpose(..., "edge"), axis=-1, prepend=0, append=1)
    np.testing.assert_allclose(found.transpose(..., "category"), steps, atol=1e-14)


@pytest.mark.parametrize("q", [(1 / 3, 2 / 3), QUINTILES])
@pytest.mark.parametrize("dims", [TRUTH.dims, ("lon", "time", "lat")])
def test_edges_are_quantiles_of_the_observations_used(q, dims):
    truth = TRUTH.where((TRUTH.lat > 45) | (TRUTH.time < TRUTH.time[30]))
    model = HINDCAST.recal.fit(truth.transpose(*dims), xrecal.Climatology())
    edges = edges_of(model.categories(NEW, q))
    for point in points(TRUTH):
        y = truth.isel(point).dropna("time").to_numpy()
        expected = np.quantile(y, q, method="inverted_cdf")
        np.testing.assert_array_equal(edges.isel(point), expected)
        np.testing.assert_array_equal(edges.isel(point), arrays.weighted_quantile(y, q))


def test_climatology_gives_each_tercile_a_third():
    model = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())  # of 48 cases
    np.testing.assert_allclose(model.categories(NEW), 1 / 3, rtol=1e-14)


def test_observations_on_an_edge_are_below_it():
    truth = TRUTH.round()
    found = HINDCAST.recal.fit(truth, xrecal.Climatology()).categories(NEW)
    inside = (truth > found.lower_edge) & (truth <= found.upper_edge)
    shares = inside.mean("time").expand_dims(time=found.time).transpose(*found.dims)
    np.testing.assert_allclose(found, shares, rtol=1e-14)


def test_where_it_hardly_rains_the_middle_is_empty():
    rain = (TRUTH - 281).clip(min=0).assign_attrs(TRUTH.attrs)
    found = HINDCAST.recal.fit(rain, xrecal.Climatology()).categories(NEW, [0.1, 0.3])
    assert (edges_of(found) == 0).all()
    assert (found.isel(category=1) == 0).all()
    assert (found.isel(category=0) > 0.3).all()


# types -----------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("types", [("f4", "f4"), ("f4", "f8"), ("f8", "f4")])
@pytest.mark.parametrize("method", ["ckme", "idr", "emos", "errors", "pool"])
def test_types_and_inputs(method, types):
    """Edges have the type of the members, so that an observation lies on the edge it makes."""
    of_forecast, of_truth = types
    truth = freeze(TRUTH.round(1).astype(of_truth))
    hindcast, new = freeze(HINDCAST.astype(of_forecast)), freeze(NEW.astype(of_forecast))
    model = hindcast.recal.fit(truth, METHODS[method])
    found = model.categories(new)
    assert found.dtype == of_forecast
    expected = array(model.apply(new).recal.categories(edges_of(found)))
    np.testing.assert_allclose(found, expected.transpose(*found.dims), atol=2e-6)
    if method in ("ckme", "idr"):
        assert edges_of(found).dtype == of_truth
        assert np.isin(edges_of(found), truth).all()
    assert new.equals(NEW.astype(of_forecast))


# windows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [TRUTH, TRUTH.where(TRUTH.lat > 45, TRUTH.round())])
def test_edges_within_a_window_are_those_of_its_climatology(truth):
    model = HINDCAST.recal.fit(truth, PAPER)
    edges = edges_of(model.categories(NEW, QUINTILES, window=90))
    seasonal = HINDCAST.recal.fit(truth, xrecal.Climatology(window=90)).quantile(NEW, QUINTILES)
    assert set(edges.dims) == {"time", "category", "lat", "lon"}
    found = edges.rename(category="quantile").transpose(*seasonal.dims)
    np.testing.assert_array_equal(found, seasonal)
    assert not np.array_equal(found, edges_of(model.categories(NEW, QUINTILES))[:, 0])


def test_the_widest_window_holds_all_cases():
    model = HINDCAST.recal.fit(TRUTH, PAPER)
    found, expected = model.categories(NEW, window=366), model.categories(NEW)
    np.testing.assert_array_equal(found, expected)
    assert "window of 366 days" in found.attrs["history"]
    assert "all cases" in expected.attrs["history"]


def test_a_single_forecast_has_edges_of_its_date():
    model = HINDCAST.recal.fit(TRUTH, PAPER)
    today, whole = NEW.isel(time=3), model.categories(NEW, window=90)
    found = model.categories(today, window=90)
    assert found.dims == ("category", "lat", "lon")
    np.testing.assert_array_equal(found.upper_edge, whole.upper_edge.isel(time=3))
    np.testing.assert_allclose(found, whole.isel(time=3), rtol=1e-12, atol=1e-14)


def test_dates_without_a_past_case_have_no_categories():
    summer = TRUTH.time.dt.month.isin([5, 6, 7, 8])
    hindcast, truth = HINDCAST.isel(time=summer), TRUTH.isel(time=summer)
    model = hindcast.recal.fit(truth, xrecal.Climatology(), min_samples=10)
    found = model.categories(NEW, window=60)
    known = found.notnull().all(["category", "lat", "lon"])
    np.testing.assert_array_equal(known, NEW.time.dt.month.isin([4, 5, 6, 7, 8, 9]))
    assert model.categories(NEW).notnull().all()


# pools, variables, covariates ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the edges of the categories are those of all positions")
def test_edges_of_pooled_fits_are_of_the_pooled_cases():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), pool=("lat", "lon"))
    found = model.categories(NEW, [0.3])
    expected = np.quantile(TRUTH, 0.3, method="inverted_cdf")
    np.testing.assert_array_equal(edges_of(found), [expected])
    np.testing.assert_allclose(found.sum("category"), 1)


def windows(n_new=7):
    """Cases at places whose climates differ, and new ones."""
    cases = *ensemble_and_truth(n_lat=4), *new_cases(n_new, n_lat=4)
    return tuple((case + 9 * case.lat * (1 + case.lon)).rename("t2m") for case in cases)


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [{}, {"lat": 2, "lon": 1}])
@pytest.mark.parametrize("window", [None, 120])
def test_windows_have_the_edges_of_the_place_in_the_middle(window, chunks):
    hindcast, truth, new, verified = (case.chunk(chunks) for case in windows())
    method, pool = xrecal.CKME(support="errors", gap=0, ridge=0.1), {"lat": 3, "lon": 1}
    pooled = hindcast.recal.fit(truth, method, pool=pool)
    alone = hindcast.recal.fit(truth, method)
    pairs = (pooled, alone), (m.update(new, verified) for m in (pooled, alone))
    for with_neighbours, own in pairs:
        found, expected = (
            m.categories(new, QUINTILES, window=window) for m in (with_neighbours, own)
        )
        issued = with_neighbours.apply(new).recal.categories(edges_of(expected))["t2m"]
        found, expected, issued = dask.compute(found, expected, issued)
        xr.testing.assert_equal(edges_of(found), edges_of(expected))
        np.testing.assert_allclose(found, issued.transpose(*found.dims), atol=1e-12)


@pytest.mark.parametrize(
    "by", [{"by": "block"}, {"by": "rolling", "refit": 30, "every": 15}], ids=str
)
def test_held_out_windows_have_the_edges_of_the_place_in_the_middle(by):
    hindcast, truth, *_ = windows()
    method = xrecal.EMOS()
    given = {"method": method, "output": "categories", "min_samples": 5, **by}
    found, expected = (
        hindcast.recal.cross_validate(truth, pool=pool, **given) for pool in ({"lat": 3}, None)
    )
    xr.testing.assert_equal(edges_of(found), edges_of(expected))
    assert (abs(found - expected) > 1e-3).any()


def test_too_few_cases_have_no_categories():
    truth = TRUTH.where((TRUTH.lat > 45) | (TRUTH.time < TRUTH.time[5]))
    found = HINDCAST.recal.fit(truth, xrecal.EMOS()).categories(NEW)
    assert found.isel(lat=0).isnull().all()
    assert found.isel(lat=1).notnull().all()


# labels and errors --------------------------------------------------------------------------------


def test_names_and_attributes():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS())
    found = model.categories(NEW.assign_attrs(history="made", standard_name="air_temperature"))
    assert found.name == "categories"
    assert list(found["category"].to_numpy()) == ["below_normal", "near_normal", "above_normal"]
    assert found.attrs["units"] == "1"
    assert "standard_name" not in found.attrs
    first, second = found.attrs["history"].splitlines()
    assert first == "made"
    assert second.startswith(
        "xrecal: probabilities of categories, whose edges come from the climatology of all"
    )
    assert found.lower_edge.attrs["units"] == found.upper_edge.attrs["units"] == "K"
    assert list(model.categories(NEW, 0.25)["category"].to_numpy()) == ["0-25 %", "25-100 %"]


def test_what_cannot_be():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS())
    for q in ([0.7, 0.3], [0.0, 0.5], 1.0, []):
        with pytest.raises(ValueError, match="q must hold increasing levels between 0 and 1, ends"):
            model.categories(NEW, q)
    with pytest.raises(ValueError, match="q holds levels more than once"):
        model.categories(NEW, [0.5, 0.5])
    for window in (0, -3, np.nan, "30"):
        with pytest.raises(ValueError, match="window must be a positive number of days, got"):
            model.categories(NEW, window=window)
    with pytest.raises(ValueError, match=r"window=30 needs dates .* the forecast has none; leave"):
        model.categories(NEW.drop_vars("time"), window=30)
    bare = HINDCAST.drop_vars("time").recal.fit(TRUTH.drop_vars("time"), xrecal.EMOS())
    with pytest.raises(ValueError, match=r"window=30 needs dates .* the hindcast had none; leave"):
        bare.categories(NEW, window=30)
    other = HINDCAST.rename(lat="category").recal.fit(TRUTH.rename(lat="category"), xrecal.EMOS())
    with pytest.raises(ValueError, match=r"forecast\.rename\(category=\.\.\.\)"):
        other.categories(NEW.rename(lat="category"))


def test_edges_that_positions_share_are_told():
    pooled = HINDCAST.recal.fit(TRUTH, xrecal.Climatology(), pool=("lat", "lon"))
    told = "the edges of the categories are those of all positions along 'lat' and 'lon' together"
    with pytest.warns(UserWarning, match=told):
        found = pooled.categories(NEW)
    assert found.upper_edge.dims == ("category",)
    with pytest.warns(UserWarning, match=told):
        HINDCAST.recal.cross_validate(
            TRUTH, xrecal.Climatology(), output="categories", pool=("lat", "lon"), gap=1
        )
    own = pooled.apply(NEW).recal.categories(TRUTH.quantile([1 / 3, 2 / 3], "time"))  # as advised
    assert set(own["t2m_upper_edge"].dims) == {"category", "lat", "lon"}
