"""Normal distributions with bounds, such as rain: read back, scored, and refused where unknown."""

import dask
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import xrecal
from tests.labelled import random
from tests.pairs import pairwise
from xrecal import arrays
from xrecal.inputs.forms import read_forms

LEVELS = [0.05, 0.3, 0.5, 0.9, 0.99]
SOON = pytest.mark.filterwarnings("ignore:season learned")


def rain(n=90, n_lat=2, n_lon=3, m=6, seed=0, start="2001-01-15", dtype=np.float64):
    """Ensemble (time, member, lat, lon) and amounts (time, lat, lon), more than half of them 0.

    The first location never is dry: it has no bound.
    """
    rng = np.random.default_rng(seed)
    signal = 4 * rng.normal(size=(n, n_lat, n_lon)) - 1.5
    signal[:, 0, 0] += 40
    truth = np.maximum(signal + 1.5 * rng.normal(size=signal.shape), 0)
    members = np.maximum(signal[:, np.newaxis] + rng.normal(size=(n, m, n_lat, n_lon)) + 0.5, 0)
    times = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(11, "D")
    coords = {"time": times, "lat": 45.0 + np.arange(n_lat), "lon": 5.0 * np.arange(n_lon)}
    attrs = {"units": "mm", "long_name": "precipitation"}
    dims = ["time", "member", "lat", "lon"]
    return (
        xr.DataArray(members.astype(dtype), dims=dims, coords=coords, name="rain", attrs=attrs),
        xr.DataArray(truth.astype(dtype), dims=["time", "lat", "lon"], coords=coords, attrs=attrs),
    )


HINDCAST, TRUTH = rain()
NEW, VERIFIED = rain(n=20, seed=1, start="2005-01-15")


def censored(lower=0.0, upper=None):
    """Wide forecasts, half of whose mass lies on the bound."""
    return xrecal.gaussian(TRUTH.rename("rain") - 1, 0 * TRUTH + 2.0, lower=lower, upper=upper)


def only(obj):
    (form,) = read_forms(obj).values()
    return form


# law: what is issued is what the model scores -----------------------------------------------------


@pytest.mark.each_value
@SOON
@pytest.mark.parametrize(
    ("bounds", "chunks", "condition_on", "dtype"),
    pairwise(
        ["auto", (0, None), (None, 60.0), (0, 60.0)],
        [None, {"lat": 1}, {"lat": 1, "time": 7}],
        [None, "season"],
        [np.float64, np.float32],
    ),
)
def test_issued_forecasts_are_those_of_the_model(bounds, chunks, condition_on, dtype):
    hindcast, truth = (array.astype(dtype) for array in (HINDCAST, TRUTH))
    new, verified = (array.astype(dtype) for array in (NEW, VERIFIED))
    method = xrecal.EMOS(bounds=bounds, condition_on=condition_on)
    given = new if chunks is None else new.chunk(chunks)
    model = (hindcast if chunks is None else hindcast.chunk(lat=1)).recal.fit(truth, method)
    issued = model.apply(given)
    assert set(issued) == {"rain_loc", "rain_scale", "rain_lower", "rain_upper"}
    assert set(issued.dtypes.values()) == {np.dtype(dtype)}
    scores, quantiles = issued.recal.crps(verified), issued.recal.quantile(LEVELS)["rain"]
    assert (scores.chunks is not None) == (chunks is not None)
    expected = model.quantile(given, LEVELS), model.crps(given, verified)
    mean = issued.recal.mean()["rain"]
    quantiles, scores, mean, *expected = dask.compute(quantiles, scores, mean, *expected)
    assert scores.notnull().all()
    xr.testing.assert_equal(quantiles.transpose(*expected[0].dims), expected[0])
    xr.testing.assert_equal(scores.drop_vars("quantile", errors="ignore"), expected[1])
    if bounds != (None, 60.0):
        dry = (quantiles == 0).isel(quantile=0)
        assert dry.isel(lat=1).any()
        assert (quantiles >= 0).all()
        assert (mean >= 0).all()


def test_statistics_at_each_point_are_the_closed_forms():
    issued = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).apply(NEW)
    scores = issued.recal.crps(VERIFIED)
    mean, std = issued.recal.mean()["rain"], issued.recal.std()["rain"]
    quantiles = issued.recal.quantile(LEVELS)["rain"]
    assert np.isinf(issued.rain_lower).to_numpy().tolist() == [[True] + [False] * 2, [False] * 3]
    for i, j in np.ndindex(2, 3):
        at = {"lat": i, "lon": j}
        parts = [issued[f"rain_{part}"].isel(at).to_numpy() for part in ("loc", "scale")]
        parts += [float(issued[f"rain_{part}"].isel(at)) for part in ("lower", "upper")]
        expected = arrays.censored_normal_crps(VERIFIED.isel(at).to_numpy(), *parts)
        np.testing.assert_array_equal(scores.isel(at), expected)
        moments = arrays.censored_normal_mean_std(*parts)
        np.testing.assert_array_equal(mean.isel(at), moments[0])
        np.testing.assert_array_equal(std.isel(at), moments[1])
        expected = arrays.censored_normal_quantile(LEVELS, *parts)
        np.testing.assert_array_equal(quantiles.isel(at), expected)


def test_mean_of_a_normal_cut_at_zero():
    """E max(Z, 0) of a standard normal is its density at 0; half of all quantiles are the bound."""
    standard = xrecal.gaussian(0 * TRUTH.rename("rain"), 0 * TRUTH + 1, lower=0.0)
    np.testing.assert_allclose(standard.recal.mean()["rain"], scipy.stats.norm.pdf(0), rtol=1e-14)
    quantiles = standard.recal.quantile([0.2, 0.5, 0.8])["rain"]
    assert (quantiles.isel(quantile=slice(2)) == 0).all()
    np.testing.assert_allclose(quantiles.isel(quantile=2), scipy.stats.norm.ppf(0.8))


# reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [("lower",), ("upper",), ("lower", "upper")])
def test_one_bound_is_enough(ends):
    whole = censored(lower=0.0, upper=3.0)
    assert list(only(whole).parts) == ["loc", "scale", "lower", "upper"]
    dataset = whole.drop_vars([f"rain_{end}" for end in ("lower", "upper") if end not in ends])
    form = only(dataset)
    assert (form.kind, form.name, form.dims) == ("censored", "rain", TRUTH.dims)
    assert list(form.parts) == ["loc", "scale", *ends]
    infinite = {"lower": -np.inf, "upper": np.inf}
    filled = dataset.assign(
        {f"rain_{end}": xr.DataArray(bound) for end, bound in infinite.items() if end not in ends}
    )
    assert dataset.recal.crps(TRUTH).equals(filled.recal.crps(TRUTH))
    median = dataset.recal.quantile(0.5)["rain"]
    bounds = {end: {"lower": 0.0, "upper": 3.0}[end] for end in ends}
    expected = (TRUTH - 1).clip(bounds.get("lower"), bounds.get("upper"))
    np.testing.assert_array_equal(median, expected)


def test_bounds_broadcast_over_what_they_lack():
    lower = xr.DataArray([0.0, 1.0], {"lat": TRUTH.lat}, ["lat"])
    upper = xr.DataArray(np.full(90, 5.0), {"time": TRUTH.time}, ["time"])
    narrow, wide = (
        censored(a, b)
        for a, b in ((lower, upper), (lower.broadcast_like(TRUTH), upper.broadcast_like(TRUTH)))
    )
    assert narrow.rain_lower.dims == ("lat",)
    for name, arguments in {"crps": (TRUTH,), "quantile": (LEVELS,), "std": ()}.items():
        expected = getattr(wide.recal, name)(*arguments)
        assert getattr(narrow.recal, name)(*arguments).identical(expected)
        for chunks in ({"lat": 1}, {"time": 40, "lon": 1}):
            lazy = getattr(narrow.chunk(chunks).recal, name)(*arguments)
            assert lazy.compute().identical(expected)


def test_bounds_may_be_wider_than_the_distribution():
    single = xrecal.gaussian(
        xr.DataArray(0.0, name="rain"), xr.DataArray(1.0), lower=xr.DataArray([-1.0, 0.0], dims="x")
    )
    assert single.recal.quantile(0.01)["rain"].to_numpy().tolist() == [-1.0, 0.0]


def test_a_component_of_its_own_is_no_mixture():
    whole = censored().expand_dims("component", axis=-1)
    plain = whole.assign(rain_lower=whole.rain_lower.isel(component=0))
    assert plain.recal.crps(TRUTH).equals(censored().recal.crps(TRUTH))


def test_gaussian_names_and_links_bounds():
    dataset = xrecal.gaussian(random("time"), abs(random("time")), lower=0, upper=random("time"))
    assert set(dataset) == {"t2m_loc", "t2m_scale", "t2m_lower", "t2m_upper"}
    assert dataset.t2m_lower.dtype == np.float64
    small = xrecal.gaussian(TRUTH.astype("f4"), TRUTH.astype("f4"), lower=0.1)
    assert small.forecast_lower.dtype == np.float32
    assert small.forecast_lower.attrs == {"units": "mm"}


def test_a_quantity_of_that_name_stays_a_variable():
    snow = {"snow": random("time", "member"), "snow_lower": random("time", "member", seed=1)}
    assert {name: form.kind for name, form in read_forms(xr.Dataset(snow)).items()} == {
        "snow": "ensemble",
        "snow_lower": "ensemble",
    }
    beside = xrecal.gaussian(random("time", name="snow"), abs(random("time"))).assign(
        snow_lower=random("time", "member")
    )
    assert {name: form.kind for name, form in read_forms(beside).items()} == {
        "snow": "normal",
        "snow_lower": "ensemble",
    }
    line = xr.Dataset({"snow": random("time", "member"), "snow_lower": random("time")})
    assert list(read_forms(line)) == ["snow"]
    assert list(line.recal.mean()) == ["snow"]


def test_values_that_cannot_be_are_nan_and_leave_others_alone():
    whole, truth = censored(lower=0 * TRUTH, upper=0 * TRUTH + 9), TRUTH
    bad = whole.copy(deep=True)
    changes = {"lower": np.inf, "upper": -1.0, "loc": np.inf, "scale": -1.0}
    for i, (part, value) in enumerate(changes.items()):
        bad[f"rain_{part}"][i, 0, 0] = value
    bad["rain_upper"][4, 0, 0] = np.nan
    for name, arguments in {"crps": (truth,), "mean": (), "std": (), "quantile": (0.5,)}.items():
        found, expected = (getattr(d.recal, name)(*arguments) for d in (bad, whole))
        found, expected = (d if name == "crps" else d["rain"] for d in (found, expected))
        assert found[:5, 0, 0].isnull().all()
        assert int(found.isnull().sum()) == 5
        np.testing.assert_array_equal(found[5:], expected[5:])


def test_attributes_are_those_of_the_variable():
    issued = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).apply(NEW)
    assert issued.rain_lower.attrs["units"] == "mm"
    assert issued.rain_lower.dims == ("lat", "lon")
    cell_methods = {"cell_methods": "realization: mean"}
    assert issued.recal.mean()["rain"].attrs == HINDCAST.attrs | cell_methods
    assert issued.recal.crps(VERIFIED).attrs["units"] == "mm"


# what is refused ----------------------------------------------------------------------------------


def mixture(**attrs):
    loc = random("time", "component")
    return xrecal.gaussian(loc, abs(loc) + 1).assign(t2m_lower=random("time").assign_attrs(attrs))


ERRORS = {
    "mixture": (
        lambda: mixture().recal.mean(),
        r"forecast has bounds, \['t2m_lower'\], of a mixture .* along 'component'; only a single ",
    ),
    "mixture that is made": (
        lambda: xrecal.gaussian(random("time", "component"), abs(random("time")), upper=3.0),
        r"bounds, \['t2m_upper'\], of a mixture",
    ),
    "weights": (
        lambda: xrecal.gaussian(
            random("time"), abs(random("time")), xr.DataArray([1.0], dims="component"), lower=0.0
        ),
        r"bounds, \['t2m_lower'\], of a mixture",
    ),
    "bound of a component": (
        lambda: xrecal.gaussian(random("time"), abs(random("time")), lower=random("component")),
        "lower has the dimension 'component', but a whole distribution has one bound",
    ),
    "units": (
        lambda: censored(lower=xr.DataArray(0.0, attrs={"units": "m"})),
        r"forecast\['rain_loc'\] is in mm but forecast\['rain_lower'\] is in m",
    ),
    "labels": (
        lambda: censored(lower=TRUTH.assign_coords(lat=[45.0, 47.0])),
        "labels along 'lat' differ",
    ),
    "fit": (
        lambda: censored(upper=9.0).recal.fit(TRUTH),
        r"hindcast holds censored normal distributions \(bounds rain_lower, rain_upper\), whose "
        r"distances have no closed form; use quantiles of them, hindcast.recal.quantile\(np.arange"
        r"\(0.0025, 1, 0.005\)\), or hindcast.drop_vars\(\['rain_lower', 'rain_upper'\]\)",
    ),
    "apply": (
        lambda: HINDCAST.recal.fit(TRUTH).apply(censored()),
        r"forecast holds .*forecast.recal.quantile",
    ),
    "apply to normals": (
        lambda: censored().drop_vars("rain_lower").recal.fit(TRUTH).apply(censored()),
        r"forecast holds .*forecast.drop_vars\(\['rain_lower'\]\)",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_bounds_of_other_types():
    with pytest.raises(TypeError, match="lower must be a number or a DataArray, got list"):
        xrecal.gaussian(random("time"), abs(random("time")), lower=[0.0])
    with pytest.raises(TypeError, match=r"\['t2m_upper'\] has dtype int64; recalibration needs"):
        xrecal.gaussian(random("time"), abs(random("time")), upper=xr.DataArray(3))


def test_what_the_message_says_works():
    issued = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).apply(HINDCAST)
    hindcast = issued.recal.quantile(np.arange(0.0025, 1, 0.005))
    again = hindcast.recal.fit({"rain": TRUTH}, xrecal.EMOS())
    assert (again.crps(hindcast, {"rain": TRUTH}, "time")["rain"] < 2).all()
    bare = issued.drop_vars(["rain_lower", "rain_upper"])
    assert bare.recal.fit(TRUTH, xrecal.EMOS()).variables["rain"].kind == "normal"
