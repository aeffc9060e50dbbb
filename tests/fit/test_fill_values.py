"""Values that stand for missing ones: as if they were missing, with a warning and a status."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from xrecal.arrays.distributions.forms import fill_values
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
HELD = "stand for missing values, as they are beyond 1e19 or 1000 times all others"


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
        ([1e20], [1e18], 1),  # alone beyond the limit
        ([-9999.0], [0.2, 0.5], 1),
        ([-9999.0], [20.0, 30.0], 0),  # less than 1000 times
        ([1e7, -5e8], [280.0, 281.0, 290.0], 2),
        ([500.0], [0.001, 0.2], 0),  # no fill value is so small: a storm in a desert
        ([999.0], [0.0, 0.0, 0.0], 1),
        ([1e7, 1e7, 1e7], [280.0], 0),  # most values are no outliers
        ([], [1e5, 1.01e5], 0),
        ([], [np.inf, 1.0, np.nan], 0),  # invalid, which is another matter
        ([1e20], [np.nan, np.nan], 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_stands_for_missing_values(values, others, found, dtype):
    array = np.array([[*values, *others]], dtype)
    (mask,) = fill_values(array)
    np.testing.assert_array_equal(mask[0], np.arange(array.size) < found)
    split = fill_values(array[:, :1], array[:, 1:])  # of the same variable
    np.testing.assert_array_equal(np.concatenate(split, axis=1), mask)


def test_locations_are_judged_alone():
    wet, dry = [1e4, 2e4, 3e4], [1e4, 0.1, 0.2]
    (mask,) = fill_values(np.array([wet, dry]))
    assert mask.tolist() == [[False] * 3, [True, False, False]]


# fits ---------------------------------------------------------------------------------------------

METHODS = [xrecal.CKME(), xrecal.EMOS(), xrecal.LinearPool((xrecal.IDR(), xrecal.Climatology()))]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("where", ["members", "observations"])
def test_fill_values_are_as_missing(method, where):
    values = (9.96921e36, 1e7, -1e20)
    hindcast, expected, observed, known = HINDCAST, HINDCAST, OBSERVED, OBSERVED
    if where == "members":
        hindcast, expected = with_values(HINDCAST, *values)
        message = (
            rf"3 members of hindcast and 0 observations {HELD}: -1e\+20, 1e\+07, 9\.96921e\+36"
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
    filled, missing = with_values(HINDCAST, 9.96921e36, 3e7)
    with pytest.warns(UserWarning, match=r"use hindcast\.where\(abs\(hindcast\) < 1e\+07\)"):
        filled.recal.fit(OBSERVED, xrecal.EMOS())
    xr.testing.assert_equal(filled.where(abs(filled) < 1e7), missing)


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


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_members_of_new_forecasts_beyond_all_are_missing(method):
    model = FORECASTS[:50].recal.fit(VERIFIED, method)
    filled, missing = with_values(FORECASTS[50:], 1e20, -9.96921e36)
    with pytest.warns(UserWarning, match=r"2 members of t2m of the forecast stand for .*: -9.96"):
        issued = model.quantile(filled, [0.1, 0.9])
    xr.testing.assert_identical(issued, model.quantile(missing, [0.1, 0.9]))
    with pytest.warns(UserWarning, match="forecast.where"):
        crps = model.crps(filled, VERIFIED)
    xr.testing.assert_identical(crps, model.crps(missing, VERIFIED))


def test_what_is_large_beside_few_others_is_no_reason_in_new_forecasts():
    model = FORECASTS[:50].recal.fit(VERIFIED, xrecal.EMOS())
    odd = FORECASTS[50:].copy()
    odd[0, 1, 0] = 1e9
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
    with pytest.warns(UserWarning, match="0 members of hindcast and 1 observations stand for"):
        updated = model.update(FORECASTS[40:], filled)
    expected = model.update(FORECASTS[40:], missing)
    np.testing.assert_array_equal(updated.state["slope"], expected.state["slope"])
    assert updated.state["status"][1] & FILL
