"""Values that stand for missing ones: as if they were missing, with a warning and a status."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from xrecal.arrays.distributions.missing import absurd_among
from xrecal.arrays.status import FILL

N, PLACES, MEMBERS = 60, 3, 5
RNG = np.random.default_rng(0)
SIGNAL = 280 + RNG.normal(size=(N, PLACES))
OBSERVED = xr.DataArray(SIGNAL + RNG.normal(size=SIGNAL.shape), dims=["time", "x"], name="t2m")
HINDCAST = xr.DataArray(
    SIGNAL[..., np.newaxis] + RNG.normal(size=(N, PLACES, MEMBERS)),
    dims=["time", "x", "member"],
    name="t2m",
)
HELD = "count as missing values, as they are more than a million times all others"


def with_values(array, *values, place=1):
    """The array with values at one place, in other cases each, and with these missing."""
    filled, missing = array.copy(deep=True), array.copy(deep=True)
    for case, value in enumerate(values):
        at = {"time": case, "x": place} | ({"member": case} if "member" in array.dims else {})
        filled[at], missing[at] = value, np.nan
    return filled, missing


# which ones they are ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "others", "found"),
    [
        ([1e20, 9.96921e36, -1e20], [1.0, 2.0, 3.0, 4.0], 3),
        ([1e15, 3e8], [280.0, 281.0, 290.0], 2),  # neither hides the other
        ([2.5e8], [280.0, 281.0, 290.0], 0),  # less than a million times
        ([-9999.0], [0.002, 0.005], 1),
        ([-9999.0], [0.02, 0.05], 0),  # may be a value: there is a warning
        ([400.0], [1e-9, 0.0, 0.0], 0),  # rain after a season whose zeros are rounded
        ([1e20], [0.0, 0.0, 0.0], 0),  # beside nothing but zeros no size is absurd
        ([1e9, 1e9, 1e9], [280.0, 290.0], 0),  # most values are no outliers
        ([1e9], [280.0], 0),
        ([], [1e8, 1.01e8], 0),
        ([], [np.inf, 1.0, np.nan], 0),  # invalid, which is another matter
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_stands_for_missing_values(values, others, found, dtype):
    array = np.array([[*values, *others]], dtype)
    (mask,) = absurd_among(array)
    np.testing.assert_array_equal(mask[0], np.arange(array.size) < found)
    split = absurd_among(array[:, :1], array[:, 1:])  # of the same variable
    np.testing.assert_array_equal(np.concatenate(split, axis=1), mask)


def test_locations_are_judged_alone():
    wet, dry = [1e9, 2e9, 3e9], [1e9, 0.1, 0.2]
    (mask,) = absurd_among(np.array([wet, dry]))
    assert mask.tolist() == [[False] * 3, [True, False, False]]


# fits ---------------------------------------------------------------------------------------------

METHODS = [xrecal.CKME(), xrecal.EMOS(), xrecal.LinearPool((xrecal.IDR(), xrecal.Climatology()))]


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("where", ["members", "observations"])
def test_fill_values_are_as_missing(method, where):
    values = (9.96921e36, 1e9, -1e20)
    hindcast, expected, observed, known = HINDCAST, HINDCAST, OBSERVED, OBSERVED
    if where == "members":
        hindcast, expected = with_values(HINDCAST, *values)
        message = (
            rf"3 members of hindcast and 0 observations {HELD}: -1e\+20, 1e\+09, 9\.96921e\+36"
        )
    else:
        observed, known = with_values(OBSERVED, *values)
        message = f"0 members of hindcast and 3 observations {HELD}"
    with pytest.warns(UserWarning, match=message):
        model = hindcast.recal.fit(observed, method)
    same = expected.recal.fit(known, method)
    np.testing.assert_array_equal(model.state["status"] & FILL, [0, FILL, 0])
    assert "fill_values_taken_as_missing: 1" in repr(model)
    xr.testing.assert_equal(model.state.drop_vars("status"), same.state.drop_vars("status"))
    with forbid_compute():
        lazy = hindcast.chunk(x=1).recal.fit(observed, method)
    xr.testing.assert_equal(lazy.compute().state, model.state)


def test_the_warning_says_what_to_type():
    filled, missing = with_values(HINDCAST, 9.96921e36, 3e9)
    with pytest.warns(UserWarning, match=r"use hindcast\.where\(abs\(hindcast\) < 1e\+09\)"):
        filled.recal.fit(OBSERVED, xrecal.EMOS())
    xr.testing.assert_equal(filled.where(abs(filled) < 1e9), missing)


def test_held_out_forecasts_know_nothing_of_them():
    filled, missing = with_values(HINDCAST, 1e20, 1e20)
    options = {"by": "block", "output": "crps"}
    with pytest.warns(UserWarning, match=HELD):
        found = filled.recal.cross_validate(OBSERVED, xrecal.EMOS(), **options)
    expected = missing.recal.cross_validate(OBSERVED, xrecal.EMOS(), **options)
    xr.testing.assert_equal(found, expected)


def test_vectors_without_them():
    filled, missing = with_values(HINDCAST, 1e20)
    other = (HINDCAST * 300).rename("pressure")  # values of another size
    both, observed = (
        (xr.Dataset({"t2m": one, "pressure": other}) for one in (filled, missing)),
        xr.Dataset({"t2m": OBSERVED, "pressure": OBSERVED * 300}),
    )
    found, expected = both
    options = {"jointly": ["t2m", "pressure"]}
    with pytest.warns(UserWarning, match=HELD):
        model = found.recal.fit(observed, **options)
    same = expected.recal.fit(observed, **options)
    xr.testing.assert_equal(model.crps(expected, observed), same.crps(expected, observed))


def test_pressure_in_pascal_is_no_fill_value():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = (HINDCAST * 360).recal.fit(OBSERVED * 360, xrecal.EMOS())
    assert (model.state["status"] == 0).all()


# in new forecasts ---------------------------------------------------------------------------------

DATES = {"time": np.datetime64("2020-01-01", "ns") + np.arange(N) * np.timedelta64(10, "D")}
FORECASTS, VERIFIED = HINDCAST.assign_coords(DATES), OBSERVED.assign_coords(DATES)
METHODS = [
    xrecal.EMOS(),
    xrecal.CKME(),
    xrecal.LinearPool((xrecal.EMOS(), xrecal.Raw())),
    xrecal.OnlinePool((xrecal.EMOS(), xrecal.Raw())),
    xrecal.IDR(),
]


BESIDE = (
    "count as missing values, as they are more than a million times the largest that the model "
    "has seen"
)


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("value", [1e20, -9.96921e36, 1e15, 4e8])
def test_members_of_new_forecasts_beyond_all_that_was_seen_are_missing(method, value):
    model = FORECASTS[:50].recal.fit(VERIFIED, method)
    filled, missing = with_values(FORECASTS[50:], value, value)
    with pytest.warns(UserWarning, match=rf"2 members of forecast\['t2m'\] {BESIDE}"):
        issued = model.quantile(filled, [0.1, 0.9])
    xr.testing.assert_identical(issued, model.quantile(missing, [0.1, 0.9]))
    with pytest.warns(UserWarning, match="forecast.*where"):
        crps = model.crps(filled, VERIFIED)
    xr.testing.assert_identical(crps, model.crps(missing, VERIFIED))


def test_observations_are_judged_as_members_are():
    model = FORECASTS[:50].recal.fit(VERIFIED, xrecal.EMOS())
    filled, missing = with_values(VERIFIED[50:], 1e15, -3e9)
    for call in (model.crps, model.pit):
        with pytest.warns(UserWarning, match=f"2 observations {BESIDE}"):
            found = call(FORECASTS[50:], filled)
        xr.testing.assert_identical(found, call(FORECASTS[50:], missing))
        lazy = call(FORECASTS[50:].chunk(time=3), filled.chunk(time=4))
        np.testing.assert_array_equal(lazy, found)


def test_what_is_large_beside_the_model_is_no_reason_below_a_million_times():
    model = FORECASTS[:50].recal.fit(VERIFIED, xrecal.EMOS())
    odd = FORECASTS[50:].copy()
    odd[0, 1, 0] = 1e8
    alone = model.mean(odd[[0]])
    np.testing.assert_array_equal(alone, model.mean(odd)[[0]])
    assert alone[0, 1] > 1e6


def test_lazy_forecasts_are_cleaned_without_a_warning():
    model = FORECASTS[:50].recal.fit(VERIFIED, xrecal.EMOS())
    filled, missing = with_values(FORECASTS[50:], 1e20)
    with forbid_compute(), warnings.catch_warnings():
        warnings.simplefilter("error")
        issued = model.mean(filled.chunk(x=1))
    np.testing.assert_array_equal(issued.compute(), model.mean(missing))


def test_an_update_warns_as_a_fit_does():
    model = FORECASTS[:40].recal.fit(VERIFIED, xrecal.EMOS())
    filled, missing = with_values(VERIFIED[40:], 1e20)
    with pytest.warns(UserWarning, match="0 members of hindcast and 1 observations count as"):
        updated = model.update(FORECASTS[40:], filled)
    expected = model.update(FORECASTS[40:], missing)
    np.testing.assert_array_equal(updated.state["slope"], expected.state["slope"])
    assert updated.state["status"][1] & FILL


def test_an_update_compares_with_what_the_model_has_seen():
    model = FORECASTS[:40].recal.fit(VERIFIED, xrecal.CKME(gap="30D"))
    new, seen = FORECASTS[40:44].copy(), VERIFIED.copy()
    new[:, 1] = 1e12  # nothing beside them is smaller
    seen[40:44, 1] = 1e12
    updated = model.update(new, seen)
    expected = model.update(FORECASTS[40:44].where(new < 1e9), VERIFIED.where(seen < 1e9))
    np.testing.assert_array_equal(updated.state["loc"], expected.state["loc"])
    np.testing.assert_array_equal(updated.state["observations"], expected.state["observations"])
    np.testing.assert_array_equal(updated.state["n_cases"], [44, 40, 44])


# without a model ----------------------------------------------------------------------------------

CALLS = {
    "crps": lambda f, o: f.recal.crps(o),
    "pit": lambda f, o: f.recal.pit(o),
    "summary": lambda f, o: f.recal.summary(o),
    "rank_histogram": lambda f, o: f.recal.rank_histogram(o),
    "skce": lambda f, o: f.recal.skce(o),
    "brier_score": lambda f, o: f.recal.brier_score(o, 280.0),
    "reliability": lambda f, o: f.recal.reliability(o, 280.0),
    "quantile": lambda f, o: f.recal.quantile([0.1, 0.9]),
    "std": lambda f, o: f.recal.std(),
    "compare": lambda f, o: xrecal.compare(f, o, [xrecal.EMOS()], by="block", gap="30D").crps,
    "rolling": lambda f, o: f.recal.cross_validate(
        o, xrecal.EMOS(), by="rolling", every=10, refit=30, output="crps"
    ),
}
ABSURD = (1e15, -9.96921e36, 2e9)


@pytest.mark.filterwarnings("ignore:.* count as missing values", "ignore:the first 10 cases")
@pytest.mark.parametrize("call", CALLS)
def test_absurd_values_are_missing_in_every_call(call):
    members, without = with_values(FORECASTS, *ABSURD)
    observed, known = with_values(VERIFIED, *ABSURD, place=2)
    with pytest.warns(UserWarning, match=r"3 members of \w+.* a million times"):
        found = CALLS[call](members, observed)
    expected = CALLS[call](without, known)
    xr.testing.assert_allclose(found, expected, rtol=0, atol=0)


def declared(array, how, value=-9999.0):
    """NaN of an array as a value that the variable declares."""
    filled = array.fillna(value)
    if how == "attrs":
        return filled.assign_attrs(missing_value=np.array([1e20, value], np.float32))
    filled.encoding["_FillValue"] = np.float32(value)
    return filled


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:the first 10 cases")
@pytest.mark.parametrize("call", [*CALLS, "lazy", "fit", "apply"])
@pytest.mark.parametrize("how", ["attrs", "encoding"])
def test_declared_values_are_missing_in_every_call(call, how):
    of_models = {
        "lazy": lambda f, o: f.chunk(time=7).recal.crps(o.chunk(time=7)),
        "fit": lambda f, o: f.recal.fit(o, xrecal.EMOS()).crps(FORECASTS, VERIFIED),
        "apply": lambda f, o: FORECASTS.recal.fit(VERIFIED, xrecal.EMOS()).crps(f, o),
    }
    function = {**CALLS, **of_models}[call]
    _, without = with_values(FORECASTS, -99.9, -99.9)
    _, known = with_values(VERIFIED, -99.9, place=2)
    filled, observed = (declared(a, how, -99.9) for a in (without, known))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*(often|count as)")
        found = function(filled, observed)
    xr.testing.assert_allclose(found.drop_attrs(), function(without, known).drop_attrs(), rtol=0)


def test_a_packed_fill_value_is_no_value_of_the_variable():
    packed = HINDCAST.copy()
    packed.encoding.update(_FillValue=280.0, scale_factor=0.01, add_offset=100.0)
    packed[0, 0, 0] = 280.0
    np.testing.assert_array_equal(packed.recal.mean(), HINDCAST.copy(data=packed).recal.mean())


def test_lazy_forecasts_do_not_depend_on_chunks():
    members, without = with_values(FORECASTS, *ABSURD)
    observed, known = with_values(VERIFIED, *ABSURD, place=2)
    expected = without.recal.crps(known)
    for chunks in ({"time": 1, "x": 1}, {"time": 7}, {"x": 2}, {}):
        with forbid_compute(), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = members.chunk(chunks).recal.crps(observed.chunk({"time": 5}))
        np.testing.assert_array_equal(found.compute(), expected)


@pytest.mark.parametrize("value", [-9999.0, -999.0, 9999.0, -99.9, 1e20])
def test_customary_numbers_raise_a_warning_and_stay(value):
    rain = abs(HINDCAST - 280).assign_coords(DATES)
    rain = rain * 0 if value > 1e19 else rain  # beside zeros no size is absurd
    filled, _ = with_values(rain, value, value)
    told = rf"forecast holds {value:.7g} \(2 times\).*use forecast\.where\(forecast != "
    with pytest.warns(UserWarning, match=told.replace("+", r"\+")):
        found = filled.recal.mean()
    assert float(abs(found).max()) > 10
    with pytest.warns(UserWarning, match="hindcast holds"):
        filled.recal.fit(rain.mean("member"), xrecal.EMOS())
    model = rain.recal.fit(rain.mean("member"), xrecal.EMOS())
    with pytest.warns(UserWarning, match=r"forecast\['t2m'\] holds"):
        model.mean(filled)


def test_a_customary_number_within_the_range_is_a_value():
    flow = abs(HINDCAST - 280) * 9000
    flow[0, 0, 0] = 9999.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = flow.recal.mean()
    np.testing.assert_allclose(found, flow.mean("member"), rtol=1e-6)
