import cftime
import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import (
    FORMS,
    METHODS,
    PAIRS,
    PAPER,
    close,
    ensemble_and_truth,
    model_of,
    new_cases,
    points,
    recalibrate_point,
)

HINDCAST, TRUTH = ensemble_and_truth()
INDEX = TRUTH.indexes["time"]


def decoded(state):
    """Names of the flags at each location, as CF's ``flag_masks`` and ``flag_meanings`` say."""
    masks, names = state.status.attrs["flag_masks"], state.status.attrs["flag_meanings"].split()
    assert masks.dtype == state.status.dtype
    return [
        {name for mask, name in zip(masks, names, strict=True) if value & mask}
        for value in state.status.to_numpy().ravel()
    ]


# law: a fit is that of each point on its own ------------------------------------------------------


@settings(max_examples=12)
@given(
    st.permutations(HINDCAST.dims),
    st.permutations(TRUTH.dims),
    st.sampled_from([None, {"lat": 1}, {"lon": 1}, {"lat": 1, "lon": 1}, {"lat": 2}]),
)
def test_each_location_is_fitted_on_its_own(dims, observed_dims, chunks):
    hindcast, truth = HINDCAST.transpose(*dims), TRUTH.transpose(*observed_dims)
    if chunks is not None:
        hindcast = hindcast.chunk(chunks)
    state = hindcast.recal.fit(truth, PAPER, choose="each").compute().state
    for point in points(TRUTH):
        members = HINDCAST.isel(point).to_numpy()
        expected = recalibrate_point(
            members, TRUTH.isel(point).to_numpy(), members[:1], np.zeros(1)
        )
        assert state.ridge.isel(point) == expected["ridge"]
        assert state.bandwidth.isel(point) == expected["bandwidth"]
        np.testing.assert_array_equal(
            state["loc"].isel(point).transpose("calibration", ...), np.sort(members, axis=1)
        )


@pytest.mark.each_value
@pytest.mark.parametrize(("form", "method"), PAIRS)
def test_dask_gives_the_same_state_and_announces_it(form, method):
    hindcast = FORMS[form](HINDCAST)
    eager = model_of(method, form).state
    with forbid_compute():
        lazy = hindcast.chunk({"lat": 1}).recal.fit(TRUTH.chunk({"lon": 1}), METHODS[method]).state
    known = ("season", "calendar_day", "days_ahead")  # without computing
    dates = {f"covariate_{name}" for name in known}
    assert all(
        variable.chunks is not None for variable in lazy.drop_vars(dates, errors="ignore").values()
    )
    named = lazy.drop_vars(dates, errors="ignore").data_vars
    blocks = {  # not optimised one by one, as each would be fitted again
        name: list(variable.data.to_delayed(optimize_graph=False).ravel())
        for name, variable in named.items()
    }
    computed, blocks = dask.compute(lazy, blocks)
    assert computed.identical(eager)
    for name, variable in named.items():
        assert (variable.shape, variable.dtype) == (computed[name].shape, computed[name].dtype)
    for name, found in blocks.items():
        assert {block.dtype for block in found} == {lazy[name].dtype}


@pytest.mark.parametrize("form", FORMS)
def test_order_of_the_cases_does_not_matter(form, rng):
    hindcast, shuffled = FORMS[form](HINDCAST), rng.permutation(TRUTH.sizes["time"])
    expected = hindcast.recal.fit(TRUTH, PAPER).state
    for chunks in ({}, {"lat": 1}):
        model = hindcast.isel(time=shuffled).chunk(chunks).recal.fit(TRUTH, PAPER)
        assert model.compute().state.identical(expected)


def test_mixed_types_keep_theirs():
    weights = xr.full_like(HINDCAST, 2.0)
    hindcast = xrecal.weighted(HINDCAST.astype("float32"), weights)
    for chunks in (None, {"lat": 1}):
        found = hindcast if chunks is None else hindcast.chunk(chunks)
        state = found.recal.fit(TRUTH.astype("float32"), PAPER).compute().state
        dtypes = {name: str(dtype) for name, dtype in state.dtypes.items()}
        assert dtypes["loc"] == dtypes["observations"] == "float32"
        assert dtypes["weights"] == dtypes["ridge"] == "float64"


# what the state says ------------------------------------------------------------------------------


def test_state_describes_itself():
    grid = {"latitude": (("lat", "lon"), np.ones((2, 2))), "height": 2.0}
    state = HINDCAST.assign_coords(grid).recal.fit(TRUTH, PAPER).state
    assert state["loc"].sizes == {"lat": 2, "lon": 2, "calibration": 48, "calibration_member": 5}
    np.testing.assert_array_equal(state.calibration_time, INDEX)
    assert set(state.coords) == {"lat", "lon", "latitude", "height", "calibration_time"}
    assert state.status.dims == ("lat", "lon")
    assert decoded(state) == [set()] * 4
    assert state.bandwidth.attrs["units"] == state.observations.attrs["units"] == "K"
    assert "units" not in state.ridge.attrs


def test_baselines_keep_no_cases():
    for method in (xrecal.EMOS(), xrecal.Climatology()):
        assert "loc" not in HINDCAST.recal.fit(TRUTH, method).state


def test_cases_are_named_by_dates_of_other_calendars():
    dates = [cftime.DatetimeNoLeap(2001 + i // 12, 1 + i % 12, 15) for i in range(48)]
    hindcast, truth = (array.assign_coords(time=dates) for array in (HINDCAST, TRUTH))
    assert list(hindcast.recal.fit(truth, PAPER).state.calibration_time.to_numpy()) == dates


def test_cases_without_labels_have_no_names():
    model = HINDCAST.drop_vars("time").recal.fit(TRUTH.drop_vars("time"), PAPER)
    assert "calibration_time" not in model.state.coords


def test_single_point_needs_no_location():
    hindcast, truth = HINDCAST[:, :, 0, 0], TRUTH[:, 0, 0]
    lazy = hindcast.chunk().recal.fit(truth, PAPER)
    assert lazy.compute().state.identical(hindcast.recal.fit(truth, PAPER).state)


@pytest.mark.parametrize("chunks", [{}, {"lat": 1, "lon": 1}])
def test_observations_may_lack_a_location(chunks):
    for lacking in ("lat", "lon"):
        shared = TRUTH.isel({lacking: 0}, drop=True)
        expected = HINDCAST.recal.fit(shared.broadcast_like(TRUTH), PAPER).state
        assert HINDCAST.chunk(chunks).recal.fit(shared, PAPER).compute().state.identical(expected)


def test_unused_slots_are_nan():
    state = HINDCAST.recal.fit(TRUTH[8:], PAPER).state
    assert state.sizes["calibration"] == 48
    assert np.isnan(state.observations[..., :8]).all()
    assert (state.n_cases == 40).all()


# missing data -------------------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
@pytest.mark.parametrize("method", METHODS)
def test_a_missing_location_disturbs_no_other(method, chunks):
    hindcast, truth, (new, verified) = HINDCAST.copy(), TRUTH.copy(), new_cases()
    hindcast[:, :, 0, 1] = np.nan
    truth[12:, 1, 0] = np.nan
    whole = model_of(method, choose="each")
    given = hindcast if chunks is None else hindcast.chunk(chunks)
    model = given.recal.fit(truth, METHODS[method], choose="each").compute()
    few, alone = {"too_few_cases"}, decoded(whole.state)
    assert decoded(model.state) == [alone[0], few, few, alone[3]]
    np.testing.assert_array_equal(model.state.n_cases, [[48, 0], [12, 48]])
    scores, expected = model.crps(new, verified), whole.crps(new, verified)
    if METHODS[method].in_common:  # corrections depend on other locations, errors do not
        scores, expected = (
            one.state["error"].transpose(..., "lat", "lon") for one in (model, whole)
        )
        scores = scores.where(model.state["n_cases"] > 12)
    for i in range(2):
        np.testing.assert_array_equal(scores[..., i, i], expected[..., i, i])
        assert np.isnan(scores[..., i, 1 - i]).all()


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
def test_identical_forecasts_give_climatology(chunks):
    dry = xr.zeros_like(HINDCAST)
    model = (dry if chunks is None else dry.chunk(chunks)).recal.fit(TRUTH, PAPER).compute()
    assert decoded(model.state) == [{"identical_forecasts"}] * 4
    new, verified = new_cases()
    climatology = dry.recal.fit(TRUTH, xrecal.Climatology())
    close(model.crps(0 * new, verified), climatology.crps(0 * new, verified))


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
@pytest.mark.parametrize("method", METHODS)
def test_infinities_are_left_out_with_a_status(method, chunks):
    infinite, missing, truth = HINDCAST[:30].copy(), HINDCAST[:30].copy(), TRUTH[:30].copy()
    infinite[3, 0, 0, 0], missing[3, :, 0, 0] = np.inf, np.nan
    truth[5, 1, 1] = -np.inf
    given = infinite if chunks is None else infinite.chunk(chunks)
    state = given.recal.fit(truth, METHODS[method]).compute().state
    expected = missing.recal.fit(truth.where(np.isfinite(truth)), METHODS[method]).state
    invalid, alone = {"invalid_values_left_out"}, decoded(expected)
    assert not any(invalid & names for names in alone)
    assert decoded(state) == [alone[0] | invalid, alone[1], alone[2], alone[3] | invalid]
    for name in ("observations", "n_cases", *METHODS[method].parameters(0)):
        np.testing.assert_array_equal(state[name], expected[name])


def test_missing_members_are_left_out():
    padded = xr.concat([HINDCAST, HINDCAST[:, :2] * np.nan], "member")
    state, expected = padded.recal.fit(TRUTH, PAPER).state, HINDCAST.recal.fit(TRUTH, PAPER).state
    close(state.drop_vars("loc"), expected.drop_vars("loc"))


# inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_inputs_may_be_read_only_and_stay_as_they_are(form):
    hindcast, truth = FORMS[form](HINDCAST).copy(deep=True), TRUTH.copy(deep=True)
    before = hindcast.copy(deep=True), truth.copy(deep=True)
    model = freeze(hindcast).recal.fit(freeze(truth), PAPER)
    freeze(model.state)
    model.crps(hindcast, truth)
    model.apply(hindcast)
    model.quantile(hindcast, 0.5)
    assert hindcast.identical(before[0])
    assert truth.identical(before[1])


TOO_LATE = TRUTH.isel(time=slice(None, 20))
ERRORS = {
    "time in chunks": (
        lambda: HINDCAST.chunk(time=24).recal.fit(TRUTH, PAPER),
        r"hindcast has 'time' in 2 chunks, .*use hindcast.chunk\(\{'time': -1\}\)",
    ),
    "members in chunks": (
        lambda: HINDCAST.chunk(time=24, member=2).recal.fit(TRUTH, PAPER),
        r"'time' in 2 chunks and 'member' in 3 chunks.*\{'time': -1, 'member': -1\}",
    ),
    "observations in chunks": (
        lambda: HINDCAST.recal.fit(TRUTH.chunk(time=24), PAPER),
        r"observations have 'time' in 2 chunks.*observations.chunk\(\{'time': -1\}\)",
    ),
    "too few labels": (
        lambda: HINDCAST.recal.fit(TRUTH, PAPER, min_samples=49),
        "only 48 cases along 'time' .* fewer than min_samples=49",
    ),
    "min_samples": (
        lambda: HINDCAST.recal.fit(TRUTH, PAPER, min_samples=1),
        "min_samples must be a whole number, at least 2, got 1",
    ),
    "units": (
        lambda: HINDCAST.recal.fit((TRUTH - 273.15).assign_attrs(units="degC"), PAPER),
        r"hindcast is in K but observations are in degC.*observations \+ 273.15",
    ),
    "no members": (
        lambda: HINDCAST[:, 0].recal.fit(TRUTH, PAPER),
        "hindcast has no member dimension.*member_dim=",
    ),
    "no dates": (
        lambda: HINDCAST.drop_vars("time").recal.fit(
            TRUTH.drop_vars("time"), xrecal.Climatology(window=30)
        ),
        r"Climatology\(window=30\) needs dates",
    ),
    "other locations": (
        lambda: HINDCAST.recal.fit(TRUTH.assign_coords(lat=[45, 47.0]), PAPER),
        "labels along 'lat' differ, first at position 1: 46.0 in hindcast, 47.0 in observations",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_settings_not_their_class():
    with pytest.raises(TypeError, match=r"settings such as xrecal.EMOS\(\), got <class"):
        HINDCAST.recal.fit(TRUTH, xrecal.EMOS)
    with pytest.raises(TypeError, match=r"such as xrecal.CKME\(\), got 'CKME'"):
        HINDCAST.recal.fit(TRUTH, "CKME")


@pytest.mark.parametrize("name", ["calibration", "status", "ridge"])
def test_location_names_that_tasks_use_are_refused(name):
    with pytest.raises(ValueError, match=f"dimension '{name}' has a name that xrecal uses"):
        HINDCAST.rename(lat=name).recal.fit(TRUTH.rename(lat=name), PAPER)
