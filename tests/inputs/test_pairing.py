"""Cases and locations: labels of forecasts and observations."""

from contextlib import nullcontext

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import DATES, freeze, random
from tests.marks import forbid_compute
from xrecal.inputs.forms import read_forms
from xrecal.inputs.pairing import in_order, pair_cases


def pair(forecasts, observations, dim=None, member_dim=None, **kwargs):
    (form,) = read_forms(forecasts, member_dim).values()
    return pair_cases(form, observations, dim, name="hindcast", **kwargs)


def obs(*dims, **kwargs):
    return random(*(dims or ("time",)), seed=1, name="obs", **kwargs)


def test_equal_labels():
    forecasts, observations = random("time", "member", "lat"), obs("lat", "time")
    pairs = pair(forecasts, observations)
    assert (pairs.dim, pairs.n_matched) == ("time", 30)
    assert pairs.note == "paired by position along 'lat'"
    xr.testing.assert_identical(pairs.observations, observations)
    xr.testing.assert_identical(pairs.form.loc, forecasts)


LABELS = {
    "dates": DATES,
    "noleap": xr.date_range("2000-01-01", periods=30, calendar="noleap", use_cftime=True),
    "360_day": xr.date_range("2000-02-01", periods=30, calendar="360_day", use_cftime=True),
    "numbers": np.arange(30),
    "names": [f"case {i:02d}" for i in range(30)],
}


@pytest.mark.each_value
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("chunked", [False, True])
def test_observations_come_to_the_labels_of_the_forecasts(labels, dtype, chunked):
    """Further ones are ignored, missing ones become NaN and are counted."""
    forecasts = random("time", "lat", "member", time=labels).isel(time=slice(0, 20))
    observations = obs("time", "lat", time=labels).astype(dtype).isel(time=slice(8, None))
    shuffled = observations.isel(time=np.random.default_rng(0).permutation(22))
    if chunked:
        forecasts, shuffled = forecasts.chunk(lat=1), shuffled.chunk(lat=1)
    with forbid_compute():
        pairs = pair(forecasts, shuffled)
    assert pairs.n_matched == 12
    found = pairs.observations.transpose("time", "lat")
    assert found.dtype == dtype
    assert (found.chunks is not None) == chunked
    assert found.indexes["time"].equals(forecasts.indexes["time"])
    assert found[:8].isnull().all()
    np.testing.assert_array_equal(found[8:], observations[:12])


def test_standard_calendar_matches_datetimes():
    forecasts = random(
        "time", "member", time=xr.date_range("2000-01-01", periods=30, use_cftime=True)
    )
    pairs = pair(forecasts, obs().isel(time=slice(3, None)))
    assert pairs.n_matched == 27
    assert pairs.observations.notnull().sum() == 27


def test_stacked_labels():
    inits = random("init", "lead", "member", init=np.arange(30), lead=[1, 2, 3])
    forecasts = inits.stack(time=("init", "lead"))
    observations = forecasts.isel(member=0, time=slice(9, None))
    pairs = pair(forecasts, observations)
    assert pairs.n_matched == 81
    np.testing.assert_array_equal(pairs.observations[9:], observations)


def test_less_than_half_matched_warns_where_the_user_called():
    for call in (
        lambda observed: ENS.recal.fit(observed, xrecal.EMOS(), min_samples=5),
        ENS.recal.crps,
        lambda observed: pair(ENS, observed),
    ):
        call(obs()[:15])  # warnings are errors
        with pytest.warns(UserWarning, match="only 14 of 30 forecasts along 'time' have") as found:
            call(obs()[:14])
        assert found[0].filename == __file__


def test_forecasts_without_match_are_counted_by_the_model():
    model = random("time", "member").recal.fit(obs()[5:], xrecal.EMOS())
    assert "25 of 30 matched" in repr(model)
    assert model.state["n_cases"] == 25


ALIKE = xr.date_range("2000-01-01", periods=30, calendar="360_day", use_cftime=True)
TWICE = DATES[[0, *range(29)]]
ENS, BARE = random("time", "member"), random("time", "member", time=None)
LABEL_ERRORS = [
    (
        ENS,
        obs(time=DATES + np.timedelta64(30, "D")),
        r"no label along 'time' is common to hindcast \(first: 2000-01-01 00:00:00, 2000-01-02 00:"
        r"00:00, 2000-01-03 00:00:00\) and observations \(first: 2000-01-31 00:00:00, 2000-02-01",
    ),
    (
        ENS,
        obs(time=np.arange(30)),
        r"first: 2000-01-01 00:00:00, .*, Timestamp\) and observations \(first: 0, 1, 2, int",
    ),
    (
        random("time", "member", time=LABELS["noleap"]),
        obs(time=ALIKE),
        r"00, DatetimeNoLeap\) and .*00, Datetime360Day\)",
    ),
    (
        ENS,
        obs(time=TWICE),
        "labels along 'time' of observations must be unique, but 2000-01-01 00:00:00 occurs "
        r"more than once; use observations.drop_duplicates\('time'\)",
    ),
    (random("time", "member", time=TWICE), obs(), r"of hindcast must be unique.*hindcast.drop_dup"),
    (ENS, obs(time=None), "observations have no labels along 'time' to match by; add"),
    (BARE, obs(), "hindcast have no labels along 'time' to match by; add"),
    (
        BARE,
        obs(time=None)[:29],
        "hindcast has 30 cases along 'time', observations have 29, and neither has labels",
    ),
    (ENS, obs()[:0], r"no label .* and observations \(first: none"),
]


DIM_ERRORS = [
    (
        ("x", "member"),
        ("x",),
        r"has none of the known calibration dimensions \(.*, ...\) among \['x'\]; name it: dim=",
    ),
    (("time", "init", "member"), ("time", "init"), r"several calibration dimensions, \['time'"),
    (("time", "member"), ("lat",), r"dimensions \['lat'\] that hindcast lacks; hindcast has "),
    (("time", "lat", "member"), ("lat",), r"observations lack the calibration dimension 'time'"),
    (("time", "member"), ("time", "member"), "the member dimension 'member' of hindcast; pass"),
    (("time", "lat", "member"), ("time", "latitude"), r"ns.rename\(latitude='lat'\)$"),
    (("time", "longitude", "member"), ("time", "lon"), r"ns.rename\(lon='longitude'\)$"),
]


@pytest.mark.parametrize(
    ("forecasts", "observations", "message"),
    [*LABEL_ERRORS, *((random(*mine), obs(*theirs), told) for mine, theirs, told in DIM_ERRORS)],
)
def test_errors_of_labels_and_dimensions(forecasts, observations, message):
    with pytest.raises(ValueError, match=message):
        pair(forecasts, observations)


def test_without_labels_on_either_side_cases_pair_by_position():
    assert pair(BARE, obs(time=None)).n_matched == 30


def test_named_dimensions():
    pairs = pair(random("x", "y", "time"), obs("x", "time"), "x", "y")
    assert (pairs.dim, pairs.form.member_dim) == ("x", "y")
    lagged = pair(random("time", "init"), obs(), member_dim="init")  # members are no candidate
    assert lagged.dim == "time"
    for dim in ("y", "member"):
        with pytest.raises(ValueError, match=rf"hindcast has no dimension '{dim}' \(dim\); it h"):
            pair(random("x", "member"), obs("x"), dim)


def test_forecast_without_cases():
    pairs = pair(random("lat", "member"), obs("lat"), require_dim=False)
    assert (pairs.dim, pairs.n_matched) == (None, 0)


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        (
            [1.0, 2, 3],
            [1.0, 2, 4],
            "labels along 'lat' differ, first at position 2: 3.0 in hindcast",
        ),
        ([1.0, 2, 3], [1.0, 1, 3], "of observations must be unique, but 1.0 occurs more"),
        ([1.0, 2, 3], [1.0, 2], "differ along 'lat': 3 against 2 labels; select the same labels"),
        (list("abc"), list("abd"), "first at position 2: c in hindcast, d in observations; bring"),
        (list("abc"), [1, 2, 3], "first at position 0: a in hindcast, 1 in observations; bring"),
        (
            np.array([0.1, 0.2, 0.3], dtype="float32"),
            [0.1, 0.2, 0.3],
            r"up to rounding, .* use observations.assign_coords\(lat=hindcast.lat\)",
        ),
    ],
)
def test_location_labels_must_be_equal(mine, theirs, message):
    forecasts = random("time", "lat", "member", lat=mine)
    with pytest.raises(ValueError, match=message):
        pair(forecasts, obs("time", "lat", lat=theirs, sizes={"lat": len(theirs)}))


def test_observations_may_lack_locations_and_their_labels():
    forecasts = random("time", "lat", "lon", "member", lat=[1, 2, 3])
    pairs = pair(forecasts, obs("time", "lat"))  # broadcast over lon, unlabelled along lat
    assert pairs.observations.dims == ("time", "lat")
    station = forecasts.assign_coords(station=("lat", list("abc")))
    with pytest.warns(UserWarning, match="hindcast is at station a, b, c, but observations at z:"):
        pairs = pair(station, obs("time").assign_coords(station="z", created=("time", DATES)))
    assert list(pairs.observations.coords) == ["time"]


@pytest.mark.parametrize("labels", [DATES, LABELS["noleap"], np.arange(30)], ids=str)
def test_unsorted_cases_are_sorted(labels):
    shuffled = np.random.default_rng(0).permutation(30)
    forecasts, observations = random("time", "member", time=labels), obs(time=labels)
    pairs = in_order(pair(forecasts.isel(time=shuffled), observations))
    xr.testing.assert_identical(pairs.form.loc, forecasts)
    xr.testing.assert_identical(pairs.observations, observations)


def test_cases_that_only_weights_have_are_sorted():
    weighted = xrecal.weighted(random("member"), abs(random("time", "member")))
    pairs = in_order(pair(weighted.isel(time=slice(None, None, -1)), obs()))
    xr.testing.assert_identical(pairs.form.weights, weighted["t2m_weight"])
    xr.testing.assert_identical(pairs.observations, obs())


def test_no_part_needs_all_dimensions():
    weighted = xrecal.weighted(random("lat", "lon", "member"), abs(random("time", "member")))
    pairs = pair(weighted, obs("time", "lat"))
    assert (pairs.dim, pairs.n_matched) == ("time", 30)


@pytest.mark.parametrize(
    ("mine", "theirs", "note"),
    [
        ("K", "kelvin", None),
        ("K", None, "units of observations not stated, taken as K"),
        (None, "K", "units of hindcast not stated, taken as K"),
    ],
)
def test_units(mine, theirs, note):
    def marked(da, units):
        return da.assign_attrs({} if units is None else {"units": units})

    told = nullcontext() if note is None else pytest.warns(UserWarning, match=f"^{note}$")
    with told:
        pairs = pair(marked(random("time", "member"), mine), marked(obs(), theirs))
    assert pairs.note == note
    with pytest.raises(
        ValueError, match=r"hindcast is in K but observations are in degC; .* convert first: "
    ):
        pair(marked(random("time", "member"), "K"), marked(obs(), "degC"))


@pytest.mark.parametrize("dtype", ["int64", "bool", "object"])
def test_types(dtype):
    with pytest.raises(TypeError, match=rf"{dtype}; .*: observations.astype\('float64'\)"):
        pair(random("time", "member"), obs().astype(dtype))
    with pytest.raises(TypeError, match="observations must be a DataArray, got ndarray"):
        pair(random("time", "member"), np.zeros(30))


def test_inputs_stay_unchanged():
    forecasts, observations = random("time", "lat", "member")[::-1], obs("lat", "time")[:, 4:]
    before = forecasts.copy(deep=True), observations.copy(deep=True)
    in_order(pair(freeze(forecasts), freeze(observations)))
    assert forecasts.identical(before[0])
    assert observations.identical(before[1])
