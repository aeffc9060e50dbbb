"""What an online pool does with cases that come late, changed, early, or not at all."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze

N = 60
DATES = xr.date_range("2001-01-01", periods=N, freq="D", use_cftime=False)
METHOD = xrecal.OnlinePool((xrecal.Climatology(),), refit=30, bounds=None, condition_on=())


def cases(dates=DATES):
    rng = np.random.default_rng(0)
    signal = 3 * rng.normal(size=len(dates))
    observed = xr.DataArray(signal + rng.normal(size=signal.size), {"time": dates}, ["time"])
    members = signal[:, np.newaxis] + rng.normal(size=(signal.size, 3))
    return xr.DataArray(members, {"time": dates}, ["time", "member"], "t"), observed


FORECASTS, OBSERVED = cases()


@pytest.fixture(scope="module")
def model():
    return FORECASTS[:45].recal.fit(OBSERVED[:45], METHOD)


def updated(model, which, observed=OBSERVED):
    return model.update(FORECASTS[which], observed)


def changed(a, b):
    """Names of arrays in which two models differ."""
    return {
        str(name)
        for name in a.state.data_vars
        if not np.array_equal(a.state[name], b.state[name], equal_nan=True)
    }


def test_cases_in_order_need_no_remark(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = updated(model, slice(45, 50))
    assert int(after.state["n_cases"]) == int(after.state["last_learned"]) + 1 == 50


def test_known_cases_with_the_same_value_change_nothing(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = updated(model, slice(30, 45))
    assert changed(again, model) == set()


def test_another_value_is_a_revision_which_weights_do_not_learn_again(model):
    other = OBSERVED.copy()
    other[[20, 44]] += 5
    with pytest.warns(UserWarning, match="2 observations differ from the known observations"):
        revised = updated(model, slice(15, 45), other)
    assert changed(revised, model) == {"observations"}
    new = FORECASTS[50:51]
    assert (revised.quantile(new, 0.5) != model.quantile(new, 0.5)).all()
    assert int(revised.state["n_cases"]) == 45


def test_a_forecast_without_members_is_never_late(model):
    forecasts = FORECASTS.copy()
    forecasts[47] = np.nan
    known = model.update(forecasts[45:50], OBSERVED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = known.update(forecasts[45:50], OBSERVED)
    assert changed(again, known) == set()


def test_late_observations_join_the_cases_and_not_the_weights(model):
    gap = OBSERVED.copy()
    gap[47] = np.nan
    late = updated(model, slice(45, 50), gap)
    assert int(late.state["last_learned"]) == 49
    with pytest.warns(
        UserWarning, match="1 observations arrive after the model has learned from later ones"
    ):
        filled = updated(late, slice(47, 48))
    assert changed(filled, late) == {"observations", "n_cases"}
    # What comes next is forecast with it.
    both = [m.quantile(FORECASTS[50:51], [0.1, 0.9]) for m in (late, filled)]
    assert (both[0] != both[1]).all()


def test_updates_out_of_order(model):
    later = updated(model, slice(50, 55))
    with pytest.warns(
        UserWarning, match="5 observations arrive after the model has learned from later ones"
    ):
        both = updated(later, slice(45, 50))
    assert int(both.state["last_learned"]) == 54
    np.testing.assert_array_equal(both.state["regret"], later.state["regret"])
    in_order = updated(model, slice(45, 55))
    np.testing.assert_array_equal(both.state["observations"], in_order.state["observations"])
    np.testing.assert_array_equal(both.state["loc"], in_order.state["loc"])


def test_cases_before_all_others_move_the_places_that_are_kept():
    model = FORECASTS[10:].recal.fit(OBSERVED[10:], METHOD)
    with pytest.warns(
        UserWarning, match="10 observations arrive after the model has learned from later ones"
    ):
        both = updated(model, slice(0, 10))
    for name in ("last_learned", "last_fitted", "former_last_fitted"):
        assert int(both.state[name]) == int(model.state[name]) + 10
    np.testing.assert_array_equal(both.state["regret"], model.state["regret"])


def test_a_gap_of_weeks_is_told(model):
    later = xr.date_range("2001-04-01", periods=15, freq="D", use_cftime=False)
    forecasts, observed = (a[45:].assign_coords(time=later) for a in (FORECASTS, OBSERVED))
    with pytest.warns(UserWarning, match="46 days without a case come before 2001-04-01"):
        after = model.update(forecasts, observed)
    assert int(after.state["last_learned"]) == N - 1
    new = forecasts[14:]
    assert np.isfinite(after.quantile(new, 0.5)).all()


@pytest.mark.parametrize("calendar", ["standard", "noleap"])
def test_the_future_is_told(calendar):
    options = {"calendar": calendar, "use_cftime": calendar == "noleap"}
    forecasts, observed = cases(xr.date_range("2201-01-01", periods=N, freq="D", **options))
    begun = forecasts[:45].recal.fit(observed[:45], METHOD)
    with pytest.warns(UserWarning, match="3 cases are in the future, the first on 2201-02-15"):
        after = begun.update(forecasts[45:48], observed)
    assert int(after.state["last_learned"]) == 47


def test_other_methods_have_no_order():
    model = FORECASTS[10:].recal.fit(OBSERVED[10:], xrecal.EMOS())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = updated(model, slice(0, 10))
    assert int(after.state["n_cases"]) == FORECASTS.sizes["time"]


def test_lazy_models_are_not_read(model):
    later = updated(model, slice(50, 55))
    lazy = OBSERVED.expand_dims("place").chunk(place=1)
    forecasts = FORECASTS.expand_dims("place").chunk(place=1)
    begun = forecasts[:, :45].recal.fit(lazy[:, :45], METHOD).update(forecasts[:, 50:55], lazy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = begun.update(forecasts[:, 45:50], lazy)
    with pytest.warns(UserWarning, match="arrive after the model has learned from later ones"):
        eager = updated(later, slice(45, 50))
    np.testing.assert_array_equal(both.compute().state["regret"][0], eager.state["regret"])


def test_another_place_is_refused(model):
    places = FORECASTS.expand_dims(place=["a", "b"]), OBSERVED.expand_dims(place=["a", "b"])
    begun = places[0][:, :45].recal.fit(places[1][:, :45], METHOD)
    moved = [a.assign_coords(place=["a", "c"]) for a in places]
    with pytest.raises(ValueError, match="labels along 'place'"):
        begun.update(moved[0][:, 45:], moved[1])
    far = [a.assign_coords(lat=47.0) for a in (FORECASTS, OBSERVED)]
    near = FORECASTS[:45].assign_coords(lat=45.0).recal.fit(OBSERVED[:45], METHOD)
    with pytest.warns(UserWarning, match="the model was fitted at lat 45"):
        near.update(far[0][45:], OBSERVED)


def test_inputs_and_the_old_model_stay_as_they_are(model):
    before = model.state.copy(deep=True)
    forecasts, observed = freeze(FORECASTS.copy()), freeze(OBSERVED.copy())
    model.update(forecasts[45:], observed)
    xr.testing.assert_identical(model.state, before)
    assert repr(model.method).startswith("OnlinePool(methods=(Climatology(),), refit=30")
