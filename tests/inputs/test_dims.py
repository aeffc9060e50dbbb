"""Labels along dimensions, and levels."""

import re

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from tests.strategies import ensemble_and_truth
from xrecal.inputs.dims import at_scalars, read_inner_levels, read_levels

NAMES = ("forecast", "observations")

PLACES = {"lat": [10.0, 20.0, 30.0], "station": ["a", "b", "c"]}

FORECASTS = random("time", "lat", "station", "member", **PLACES)

OBSERVATIONS = random("station", "time", "lat", seed=1, **PLACES)


def test_nothing_is_computed():
    with forbid_compute():
        lazy = OBSERVATIONS.chunk(lat=1)
        at_scalars(lazy, FORECASTS.isel(lat=0), names=NAMES)


def test_dimensions_that_stay():
    one = FORECASTS.isel(lat=0, station=0)
    assert at_scalars(OBSERVATIONS, one, names=NAMES, dims=["station"]).dims == ("time", "lat")
    assert at_scalars(OBSERVATIONS, FORECASTS, names=NAMES).dims == OBSERVATIONS.dims
    bare = FORECASTS.isel(lat=0, station=0, drop=True)
    assert at_scalars(OBSERVATIONS, bare, names=NAMES).dims == OBSERVATIONS.dims


@pytest.mark.parametrize("calendar", ["standard", "noleap"])
def test_date_without_observation_is_missing(calendar):
    dates = xr.date_range(
        "2000-01-01", periods=30, calendar=calendar, use_cftime=calendar != "standard"
    )
    one = random("time", "member", time=dates).isel(time=29)
    observed = random("time", seed=1, time=dates)
    assert at_scalars(observed, one, names=NAMES) == observed[29]
    assert np.isnan(at_scalars(observed[:29], one, names=NAMES))


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (
            OBSERVATIONS.sel(station=["b", "c"]),
            "is at station=a, which observations lack; they have b, c; select a label",
        ),
        (OBSERVATIONS.sel(station=["a", "a"]), "of observations must be unique, but a occurs"),
    ],
)
def test_errors(observed, message):
    with pytest.raises(ValueError, match=message):
        FORECASTS.sel(station="a").recal.crps(observed)


@pytest.mark.parametrize(
    "observed", [OBSERVATIONS.sel(station="b"), OBSERVATIONS.sel(station="b").sel(lat=10.0)]
)
def test_places_of_other_names_are_warned_of(observed):
    with pytest.warns(
        UserWarning, match=r"forecast is at station a, but observations at b: do they"
    ):
        FORECASTS.sel(station="a").recal.crps(observed)
    with pytest.warns(
        UserWarning, match=r"forecast is at station a, b, c, but observations at b: do"
    ):
        FORECASTS.recal.crps(observed)


def test_coordinates_of_a_station_beside_a_point_of_the_grid_are_fine():
    point = FORECASTS.sel(lat=10.0, station="a")
    crps = point.recal.crps(OBSERVATIONS.sel(lat=20.0, station="a"))
    assert crps.notnull().all()


DAYS = xr.date_range("2000-01-01", periods=30)

MONTHS = xr.date_range("2000-01-01", periods=30, freq="MS")


@pytest.mark.parametrize(
    ("theirs", "mine", "message"),
    [
        (DAYS, DAYS + np.timedelta64(6, "h"), r"the day alone, .* \+ np.timedelta64\(6, 'h'\)\)"),
        (MONTHS + np.timedelta64(14, "D"), MONTHS, r"day of the month alone, .*\(-336, 'h'\)\)"),
        (MONTHS[1:] - np.timedelta64(1, "D"), MONTHS, "month alone: if they mean the same, use"),
    ],
)
def test_dates_that_nearly_agree(theirs, mine, message):
    forecasts = random("time", "member", time=mine)
    observed = random("time", time=theirs, sizes={"time": len(theirs)})
    with pytest.raises(ValueError, match=message) as error:
        forecasts.recal.crps(observed)
    typed = str(error.value).partition("use observations.assign_coords(time=")[2]
    if typed:
        times = eval(typed.removesuffix(")"), {"observations": observed, "np": np})
        forecasts.recal.crps(observed.assign_coords(time=times))


def test_other_dates_are_only_told():
    forecasts = random("time", "member", time=DAYS + np.timedelta64(400, "D"))
    with pytest.raises(ValueError, match=r"\(first: 2000-01-01 00:00:00, .*00:00:00\)$"):
        forecasts.recal.crps(random("time", time=DAYS))


NORTHWARD = np.array([45.0, 45.5, 46.0])

GRIDS = {
    "more": ("lat", np.append(NORTHWARD, 46.5), "3 against 4 labels; select the same labels, "),
    "rounding": (
        "lat",
        NORTHWARD + 1e-7,
        "they agree up to rounding, so if they mean the same, use ",
    ),
    "an offset": ("lat", NORTHWARD + 0.1, "all are within 0.1 of each other, less than half a st"),
    "both": ("lat", NORTHWARD[::-1] - 0.24, "all are within 0.24 of each other, less than half a"),
    "rounding and another order": ("lat", NORTHWARD[::-1] + 1e-7, "all are within 1e-07 of each"),
    "a name of xarray": ("size", NORTHWARD + 0.1, "all are within 0.1 of each other, less than"),
    "no name of Python": ("my lat", NORTHWARD + 0.1, "all are within 0.1 of each other, less th"),
}


@pytest.mark.parametrize("call", ["fit", "crps"])
@pytest.mark.parametrize("case", GRIDS)
def test_grids_that_nearly_agree(case, call):
    dim, theirs, message = GRIDS[case]
    forecasts = random("time", dim, "member", **{dim: NORTHWARD})
    observed = random("time", dim, seed=1, sizes={dim: theirs.size}, **{dim: theirs})
    run = getattr(forecasts.recal, call)
    with pytest.raises(ValueError, match=message) as error:
        run(observed)
    name = "hindcast" if call == "fit" else "forecast"
    typed = str(error.value)[str(error.value).index("observations.") :]
    names = {"observations": observed, name: forecasts}
    moved = eval(typed, names)
    nearest = [abs(theirs - lat).argmin() for lat in NORTHWARD]
    np.testing.assert_array_equal(moved, observed.isel({dim: nearest}))
    run(moved)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (NORTHWARD, NORTHWARD + 0.25),
        (NORTHWARD, NORTHWARD + 0.3),
        (NORTHWARD, [45.0, 46.1, 45.5]),
        ([45.0], [45.1]),  # a single label has no step
    ],
)
def test_other_grids_are_only_told(mine, theirs):
    sizes = {"lat": len(mine)}
    forecasts = random("time", "lat", "member", lat=mine, sizes=sizes)
    with pytest.raises(ValueError, match=r"; bring both to the same locations$"):
        forecasts.recal.crps(random("time", "lat", lat=theirs, sizes=sizes))


def test_forecasts_beside_a_model():
    forecasts = random("time", "lat", "member", lat=NORTHWARD)
    model = forecasts.recal.fit(random("time", "lat", lat=NORTHWARD), xrecal.EMOS())
    with pytest.raises(ValueError, match=r"same, use forecast\.sel\(") as error:
        model.mean(forecasts.assign_coords(lat=NORTHWARD + 0.1))
    assert str(error.value).endswith(
        'forecast.sel(lat=model.state.lat, method="nearest").assign_coords(lat=model.state.lat)'
    )


def test_unknown_labels_of_other_sizes_are_named():
    model = FORECASTS.recal.fit(OBSERVATIONS, xrecal.EMOS())
    match = (
        "model.state and forecast differ along 'lat': 3 against 1 labels; select the same labels. "
        "model.state lacks 89.0; it has 10.0, 20.0, 30.0"
    )
    for one in (FORECASTS.isel(lat=[0]), FORECASTS.isel(lat=0, drop=True).expand_dims("lat")):
        with pytest.raises(ValueError, match=re.escape(match)):
            model.mean(one.assign_coords(lat=[89.0]))


HINDCAST, TRUTH = ensemble_and_truth()

MODEL = HINDCAST.recal.fit(TRUTH, xrecal.Climatology())

CALLS = {
    "ensembles": lambda q: HINDCAST.recal.quantile(q),
    "model": lambda q: MODEL.quantile(HINDCAST, q),
    "cross-validation": lambda q: HINDCAST.recal.cross_validate(
        TRUTH, xrecal.Climatology(), by="block", q=q
    ),
    "score": lambda q: HINDCAST.recal.quantile_score(TRUTH, q),
    "reliability": lambda q: HINDCAST.recal.quantile_reliability(TRUTH, q),
}


@pytest.mark.parametrize("call", CALLS)
def test_levels_are_answered_in_their_order_or_refused(call):
    found, ascending = CALLS[call]([0.9, 0.2, 0.5]), CALLS[call]([0.2, 0.5, 0.9])
    np.testing.assert_array_equal(found["quantile"], [0.9, 0.2, 0.5])
    assert found["quantile"].attrs == {"long_name": "quantile", "units": "1"}
    xr.testing.assert_identical(found.sortby("quantile"), ascending)
    assert not found.equals(ascending)
    for levels, kind, message in (
        ([0.5, 0.2, 0.9, 0.2, 0.5], ValueError, "levels more than once: 0.2, 0.5; give each level"),
        ([0.5, np.nan], ValueError, "q must hold levels between 0 and 1"),
        ("0.5", TypeError, "q must hold numbers between 0 and 1, got "),
        (["0.5"], TypeError, "q must hold numbers between 0 and 1, got "),
    ):
        with pytest.raises(kind, match=message):
            CALLS[call](levels)


def test_arrays_of_levels():
    np.testing.assert_array_equal(read_levels(0.5), [0.5])
    assert read_levels([]).size == 0
    np.testing.assert_array_equal(read_inner_levels(np.array([0.2, 0.8])), [0.2, 0.8])
    for bad in ([0.8, 0.2], [0.0, 0.5], [0.5, 1.0], []):
        with pytest.raises(ValueError, match="q must hold increasing levels between 0 and 1, ends"):
            read_inner_levels(bad)
