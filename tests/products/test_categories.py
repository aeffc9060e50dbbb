import numpy as np
import pytest
import xarray as xr

from tests.strategies import FORMS, close, ensemble_and_truth, points
from xrecal import arrays

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)
ENSEMBLE, TRUTH = ENSEMBLE.round(), TRUTH.round()  # so that members lie on edges
EDGES = [279.0, 281.0, 284.0]
TERCILES = TRUTH.quantile([1 / 3, 2 / 3], "time", method="inverted_cdf").assign_attrs(units="K")
GIVEN = {
    "numbers": EDGES,
    "by place": TERCILES.rename(quantile="tercile"),
    "by date": xr.concat([TRUTH - 1, TRUTH + 1], "edge"),
}


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


def edges_of(found, end):
    return found.coords[f"{end}_edge" if f"{end}_edge" in found.coords else f"t2m_{end}_edge"]


# laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [ENSEMBLE.dims, ("member", "lon", "time", "lat")])
@pytest.mark.parametrize("given", GIVEN)
def test_those_of_the_array_functions_at_each_point(given, dims):
    edges = GIVEN[given]
    found = ENSEMBLE.transpose(*dims).recal.categories(edges)
    assert found.dims == tuple("category" if d == "member" else d for d in dims)
    for point in points(TRUTH):
        members = ENSEMBLE.isel(point).to_numpy()
        here = edges if given == "numbers" else edges.isel(point).T.to_numpy()
        here = np.broadcast_to(here, (9, np.shape(here)[-1]))
        expected = arrays.category_probabilities(arrays.weighted_exceedance(members, here), here)
        got = found.isel(point).transpose("time", "category")
        np.testing.assert_array_equal(got, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("form", FORMS)
def test_they_sum_to_one_and_are_differences_of_the_cdf(form, given):
    forecast, edges = FORMS[form](ENSEMBLE), GIVEN[given]
    found, cdf = array(forecast.recal.categories(edges)), array(forecast.recal.cdf(edges))
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum("category"), 1, rtol=1e-15)
    (along,) = set(cdf.dims) - set(found.dims)
    rest = [d for d in found.dims if d != "category"]
    steps = np.diff(cdf.transpose(*rest, along), axis=-1, prepend=0, append=1)
    np.testing.assert_allclose(found.transpose(*rest, "category"), steps, atol=1e-14)


@pytest.mark.parametrize("given", GIVEN)
def test_edges_tell_what_a_category_is(given):
    found = ENSEMBLE.recal.categories(GIVEN[given])
    inside = (found.lower_edge < ENSEMBLE) & (found.upper_edge >= ENSEMBLE)
    assert (found.upper_edge == ENSEMBLE).any()
    shares = inside.mean("member").transpose(*found.dims)
    np.testing.assert_allclose(found, shares, atol=1e-15)
    assert (found.lower_edge.isel(category=0) == -np.inf).all()
    assert (found.upper_edge.isel(category=-1) == np.inf).all()


def test_their_ranked_probability_score():
    found = ENSEMBLE.recal.categories(TERCILES)
    happened = (found.lower_edge < TRUTH) & (found.upper_edge >= TRUTH)
    apart = (found.cumsum("category") - happened.cumsum("category")) ** 2
    edges = found.upper_edge.isel(category=slice(-1))
    for given in (edges, TERCILES):
        score = ENSEMBLE.recal.ranked_probability_score(TRUTH, given)
        np.testing.assert_allclose(score, apart.sum("category"), atol=1e-14)


def test_edges_that_are_equal_decrease_or_are_missing():
    first = xr.DataArray([280.0, 280.0, 282.0, np.nan], dims="case")
    edges = xr.concat([first, xr.full_like(first, 281.0)], "edge")
    edges = edges.where(edges["case"] != 1, 280.0).rename(case="time")
    found = ENSEMBLE.isel(time=slice(4)).recal.categories(edges)
    assert (found.isel(time=1, category=1) == 0).all()
    assert found.isel(time=slice(2)).notnull().all()
    assert found.isel(time=slice(2, 4)).isnull().all()


# labels and attributes ----------------------------------------------------------------------------


def labels(edges):
    return list(ENSEMBLE.recal.categories(edges)["category"].to_numpy())


def test_what_categories_are_called():
    assert labels(EDGES) == ["<= 279", "279 to 281", "281 to 284", "> 284"]
    assert labels([0.1]) == ["<= 0.1", "> 0.1"]
    assert labels(TERCILES) == ["below_normal", "near_normal", "above_normal"]
    percent = TERCILES.rename(quantile="percentile").assign_coords(percentile=[33.333, 66.667])
    assert labels(percent) == ["below_normal", "near_normal", "above_normal"]
    assert labels(TRUTH.quantile([0.1, 0.5], "time")) == ["0-10 %", "10-50 %", "50-100 %"]
    other = TERCILES.drop_vars("quantile").rename(quantile="threshold")
    assert labels(other) == ["category 1 of 3", "category 2 of 3", "category 3 of 3"]


def test_names_and_attributes():
    forecast = ENSEMBLE.assign_attrs(standard_name="air_temperature", history="made")
    found = forecast.recal.categories(EDGES)
    assert found.name == "categories"
    assert found.attrs == {
        "long_name": "probability that 2 m temperature lies in the category",
        "units": "1",
        "history": "made\nxrecal: probabilities of categories",
    }
    assert found.upper_edge.attrs["units"] == found.lower_edge.attrs["units"] == "K"
    assert found.upper_edge.dims == ("category",)


def test_variables_have_edges_of_their_own():
    dew = (ENSEMBLE - 3).assign_attrs(units="degC")
    both = xr.Dataset({"t2m": ENSEMBLE, "dew": dew}).recal.categories(EDGES)
    assert list(both.data_vars) == ["t2m", "dew"]
    assert both["t2m_upper_edge"].attrs["units"] == "K"
    assert both["dew_upper_edge"].attrs["units"] == "degC"
    np.testing.assert_array_equal(both["dew"], dew.recal.categories(EDGES))


def test_edges_and_forecasts_that_do_not_fit():
    categories = ENSEMBLE.recal.categories
    for edges in ([281.0, 279.0], [280.0, 280.0], [], 280.0, [280.0, np.nan], np.zeros((2, 2))):
        with pytest.raises(ValueError, match="edges must be increasing numbers, got"):
            categories(edges)
    with pytest.raises(ValueError, match=r"edges need a dimension of their own.*\['lat', 'lon'\]"):
        categories(TERCILES.isel(quantile=0))
    with pytest.raises(ValueError, match=r"edges along 'quantile' must increase.*edges.sortby"):
        categories(TERCILES.isel(quantile=[1, 0]))
    with pytest.raises(ValueError, match="forecast is in K but threshold is in degC"):
        categories(TERCILES.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match=r"forecast\.rename\(category=\.\.\.\)"):
        ENSEMBLE.rename(lat="category").recal.categories(EDGES)
    with pytest.raises(ValueError, match=r"threshold\.rename\(quantile='threshold'\)"):
        FORMS["quantile"](ENSEMBLE).recal.categories(TERCILES)


def test_chunks_of_the_cases():
    expected = ENSEMBLE.recal.categories(GIVEN["by date"])
    lazy = ENSEMBLE.chunk(time=2).recal.categories(GIVEN["by date"].chunk(time=3))
    close(lazy.compute(), expected)
