"""Places that share regrets: fits, updates and replays, in any order and any chunks."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.arrays.online.test_in_common import expected_standard
from tests.marks import forbid_compute
from tests.methods.test_online_pool import METHOD, SMALL, N, assert_same_state, fit, stream
from xrecal.arrays.online.state import FORGETTING
from xrecal.fit import common_regrets

FORECASTS, OBSERVED = stream(n_places=3)
BEGIN, LATER = slice(0, 50), slice(50, None)
Q = [0.1, 0.5, 0.9]
OTHER = [2, 0, 1]


@cache
def begun():
    return fit(BEGIN, METHOD, FORECASTS, OBSERVED)


def each_alone(observed):
    """The begun model where places share regrets and no choices."""
    return FORECASTS[BEGIN].recal.fit(observed[BEGIN], METHOD, choose="each")


@cache
def learned():
    return begun().update(FORECASTS[LATER], OBSERVED)


def assert_places_alike(model, moved):
    """States are equal but for the order of places."""
    assert list(model.state.data_vars) == list(moved.state.data_vars)
    for name, array in model.state.data_vars.items():
        own = array.isel(place=OTHER) if "place" in array.dims else array
        np.testing.assert_array_equal(own, moved.state[name], err_msg=str(name))


def comparable(state):
    """Regrets in units of the mean CRPS of the best own strategy, at most the number of cases."""
    least = state["score"][: len(FORGETTING)].min() / state["n_scored"]
    return (state["regret"] / least).clip(-state["n_scored"], state["n_scored"])


def test_common_regrets_are_the_mean_of_the_regrets_of_places():
    each = each_alone(OBSERVED)
    for model in (each, each.update(FORECASTS[LATER], OBSERVED)):
        state, n = model.state, len(FORGETTING)
        expected = np.mean([comparable(state.isel(place=place)) for place in range(3)], axis=0)
        np.testing.assert_allclose(state["common_regret"], expected, atol=1e-8)
        own = state["score"].values
        assert (own[:, n:-1] != np.tile(own[:, :n], 2)).all()


def test_places_that_learn_alone_know_no_errors_of_others():
    at = {"place": FORECASTS["place"].values[1]}
    alone = FORECASTS[BEGIN].sel(at).recal.fit(OBSERVED[BEGIN].sel(at), METHOD)
    for name in ("common_regret", "last_in_common", "known_in_common"):
        assert np.isnan(alone.state[name]).all()
    score = alone.state["score"].values
    n = len(FORGETTING)
    np.testing.assert_array_equal(score[:-1], np.tile(score[:n], 3))


def in_units(values, earlier):
    """Values in sizes of what came before, around its mean."""
    centre, size = earlier
    return ((values - centre) / size).clip(-3, 3)


def own_predictors(forecasts, observed, known):
    """Departure, change and spread of each forecast of a place, from the last known case."""
    means, last = forecasts.mean(-1), np.array(known) - 1
    departure = np.where(last >= 0, means - observed[last], np.nan)
    change = np.where(last >= 0, means - means[last], np.nan)
    return np.stack([departure, change, forecasts.std(-1)])


def test_each_case_knows_what_places_have_in_common():
    whole = FORECASTS.transpose("place", "time", "member").values
    gaps = OBSERVED.transpose("place", "time").values - whole.mean(-1)
    errors = np.mean([in_units(one, expected_standard(one)[:, :-1]) for one in gaps], axis=0)
    state = learned().state
    np.testing.assert_allclose(state["last_in_common"], [errors[-1], np.nan], rtol=1e-8, atol=1e-9)
    own = [
        own_predictors(one, observed, np.arange(N))
        for one, observed in zip(whole, OBSERVED.transpose("place", "time").values, strict=True)
    ]
    each = [[in_units(p, expected_standard(p)[:, :-1]) for p in place] for place in own]
    expected = np.mean(each, axis=0).T
    for place in range(3):
        case = state["error_case"][place].values
        known = state["known_in_common"][place].values[case >= 0]
        case = case[case >= 0]
        np.testing.assert_allclose(known[:, 0], errors[case - 1], rtol=1e-8, atol=1e-9)
        assert np.isnan(known[:, 1]).all()  # all leads are equal
        np.testing.assert_allclose(known[:, 2:], expected[case], rtol=1e-7, atol=1e-9)


def test_the_order_of_places_changes_nothing():
    moved = fit(BEGIN, METHOD, FORECASTS[:, OTHER], OBSERVED[:, OTHER])
    assert_places_alike(begun(), moved)
    assert_places_alike(learned(), moved.update(FORECASTS[LATER][:, OTHER], OBSERVED[:, OTHER]))


def test_chunks_change_nothing():
    forecasts, observed = FORECASTS.chunk(place=2), OBSERVED.chunk(place=1)
    with forbid_compute():
        first = fit(BEGIN, METHOD, forecasts, observed)
        lazy = first.update(forecasts[LATER], observed[LATER])
    assert_same_state(first.compute(), begun())
    assert_same_state(lazy.compute(), learned())


def test_twenty_days_at_once_are_twenty_updates():
    daily = begun()
    for day in range(50, N):
        daily = daily.update(FORECASTS[day : day + 1], OBSERVED)
    assert_same_state(daily, learned())


def test_one_place_alone_uses_what_was_last_known(tmp_path):
    begun().save(tmp_path / "all.nc")
    with xr.open_dataset(tmp_path / "all.nc", decode_cf=False) as whole:
        whole.isel(place=[1]).to_netcdf(tmp_path / "one.nc")
    one = xrecal.open_recalibrator(tmp_path / "one.nc")
    at = {"place": [1]}
    with_known = one.update(FORECASTS[LATER].isel(at), OBSERVED.isel(at))
    assert_known = np.testing.assert_array_equal
    for name in ("common_regret", "last_in_common"):
        assert_known(with_known.state[name], begun().state[name])
    known = with_known.state["known_in_common"][0].values
    assert_known(np.isnan(known[-(N - 50) :]), True)  # what others have is not of today
    assert_known(known[: -(N - 50)], begun().state["known_in_common"][1].values[N - 50 :])
    scores = with_known.state["score"][0].values
    n = len(FORGETTING)
    assert (scores[n:-1] != np.tile(scores[:n], 2)).all()
    assert (scores[n:-1] != learned().state["score"][1].values[n:-1]).all()


def replayed(forecasts=FORECASTS, observed=OBSERVED):
    return forecasts.recal.cross_validate(
        observed, METHOD, by="rolling", every=1, window=50, q=Q
    ).transpose("time", "place", "quantile")


def test_replays_are_updates_in_any_order_and_chunks():
    whole = replayed()
    model = begun()
    for day in range(50, N):
        now = slice(day, day + 1)
        issued = model.quantile(FORECASTS[now], Q).transpose("time", "place", "quantile")
        np.testing.assert_allclose(whole[now], issued, rtol=1e-12)
        model = model.update(FORECASTS[now], OBSERVED)
    lazy = replayed(FORECASTS.chunk(place=1), OBSERVED.chunk(place=1)).compute()
    np.testing.assert_array_equal(lazy, whole)
    moved = replayed(FORECASTS[:, OTHER], OBSERVED[:, OTHER])
    np.testing.assert_array_equal(moved, whole[:, OTHER])


def test_no_place_knows_what_verifies_later_at_another_one():
    """A marker in one observation of another place changes no forecast up to that day."""
    marked = OBSERVED.copy()
    marked[60, 2] += 1000
    before, after = replayed(), replayed(observed=marked)
    np.testing.assert_array_equal(before[:61], after[:61])
    assert (before[61:, :2] != after[61:, :2]).any()
    late = xrecal.OnlinePool(SMALL, refit=12, bounds=None, delay=3)
    before, after = (
        FORECASTS.recal.cross_validate(o, late, by="rolling", every=1, window=50, q=Q)
        for o in (OBSERVED, marked)
    )
    np.testing.assert_array_equal(before.isel(time=slice(64)), after.isel(time=slice(64)))
    assert (before != after).isel(time=slice(64, None), place=slice(2)).any()


def test_a_place_finds_only_earlier_cases_of_others_in_its_warm_up():
    """The last observation of one place moves no score of another one, only common regrets."""
    marked = OBSERVED.copy()
    marked[49, 2] += 1000
    first, other = (each_alone(o) for o in (OBSERVED, marked))  # choices are from all cases
    for name in ("score", "known_in_common"):
        np.testing.assert_array_equal(other.state[name][:2], first.state[name][:2])
    for name in ("common_regret", "last_in_common"):
        assert (other.state[name] != first.state[name]).any()


def of_leads(dim, *leads):
    """Forecasts of one place at some leads in days, over starts or valid times."""
    one = FORECASTS.rename(time=dim).isel(place=0)
    both = xr.concat([one + 0.3 * i for i in range(len(leads))], "lead")
    label = xr.Variable("lead", [*leads], {"units": "days"})
    return both.transpose(dim, "lead", ...).assign_coords(lead=label).assign_attrs(units="K")


def test_positions_at_several_leads_share():
    forecasts, observed = of_leads("init", 1, 4), OBSERVED.isel(place=0)
    model = forecasts[BEGIN].recal.fit(observed[BEGIN], METHOD)
    whole = model.update(forecasts[:60], observed[:60])
    daily = model
    for day in range(50, 60):
        daily = daily.update(forecasts[: day + 1], observed[: day + 1])
    assert_same_state(daily, whole)
    assert np.isfinite(whole.state["common_regret"]).all()


@pytest.mark.parametrize("late", [0, 2])
def test_a_forecast_uses_what_its_case_is_said_to_have_known(late):
    method = xrecal.OnlinePool(SMALL, refit=12, bounds=None, delay=f"{late}D")
    forecasts, observed, said = of_leads("init", 1, 4)[::2], OBSERVED.isel(place=0), {}
    model = forecasts[:25].recal.fit(observed[: 51 - late], method)
    replay = forecasts[:30].recal.cross_validate(
        observed, method, by="rolling", every=1, window=25, q=Q
    )
    for start in range(25, 30):
        if start > 25:
            model = model.update(forecasts[:start], observed[: 2 * start + 1 - late])
        said[start] = model.state["last_in_common"].values
        issued = model.quantile(forecasts[start : start + 1], Q).transpose(*replay.dims)
        xr.testing.assert_allclose(issued, replay.isel(init=slice(start, start + 1)), rtol=1e-12)
    state = model.update(forecasts, observed).state
    for lead in range(2):
        cases = state["error_case"][lead].values
        for start, expected in said.items():
            (known,) = state["known_in_common"][lead].values[cases == start]
            np.testing.assert_array_equal(known[:2], expected)


def test_a_place_that_starts_later_disturbs_no_day_before():
    late = OBSERVED.copy()
    late[:53, 2] = np.nan
    model = fit(BEGIN, METHOD, FORECASTS, late)
    whole, daily, replay = model.update(FORECASTS[LATER], late), model, replayed(observed=late)
    for day in range(50, N):
        now = slice(day, day + 1)
        issued = daily.quantile(FORECASTS[now], Q).transpose("time", "place", "quantile")
        np.testing.assert_allclose(replay[now, :2], issued[:, :2], rtol=1e-12)
        daily = daily.update(FORECASTS[now], late)
    assert_same_state(daily, whole)
    never = replayed(observed=late.where(late["place"] != late["place"][2]))
    np.testing.assert_array_equal(never[:53, :2], replay[:53, :2])


def test_leads_of_equal_valid_times_share_nothing():
    """A case of a short lead would tell long leads what they cannot know yet."""
    forecasts, observed = of_leads("valid_time", 1, 4), OBSERVED.isel(place=0)
    observed = observed.rename(time="valid_time")
    marked = observed.copy()
    marked[55] += 1000
    with pytest.warns(UserWarning, match=r"'valid_time' are valid times.*label the cases by their"):
        before, after = (
            forecasts.recal.cross_validate(o, METHOD, by="rolling", every=1, window=50, q=Q)
            for o in (observed, marked)
        )
    for lead, days in enumerate((1, 4)):
        same = (before == after).isel(lead=lead).all("quantile").values[50:]
        np.testing.assert_array_equal(same, np.arange(50, N) < 55 + days)
    with pytest.warns(UserWarning, match="share no regrets"):
        model = forecasts[BEGIN].recal.fit(observed, METHOD)
    for name in ("common_regret", "last_in_common", "known_in_common"):
        assert np.isnan(model.state[name]).all()


def test_a_sample_stands_for_all(monkeypatch):
    of_all = begun()
    monkeypatch.setattr(common_regrets, "SAMPLE", 2)
    models = [
        fit(BEGIN, METHOD, FORECASTS[:, order], OBSERVED[:, order]) for order in ([0, 1, 2], OTHER)
    ]
    assert_places_alike(*models)
    found = models[0].state["common_regret"]
    assert (found != of_all.state["common_regret"]).any()
    own = [comparable(models[0].state.isel(place=place)) for place in range(3)]
    errors = [float(abs((a + b) / 2 - found).max()) for a, b in combinations(own, 2)]
    assert min(errors) < 1e-8


def test_places_without_observations_share_nothing():
    gone = OBSERVED.copy()
    gone[:, 2] = np.nan
    model = fit(BEGIN, METHOD, FORECASTS, gone)
    two = fit(BEGIN, METHOD, FORECASTS[:, :2], OBSERVED[:, :2])
    np.testing.assert_array_equal(model.state["common_regret"], two.state["common_regret"])
    assert int(model.state["status"][2]) == 1
    nowhere = fit(BEGIN, METHOD, FORECASTS, gone.where(False))
    assert np.isnan(nowhere.state["common_regret"]).all()


@pytest.mark.parametrize("pool", ["place", {"place": 3}])
def test_pooled_fits_share_nothing(pool):
    model = FORECASTS[BEGIN].recal.fit(OBSERVED[BEGIN], METHOD, pool=pool)
    model = model.update(FORECASTS[50:53], OBSERVED)
    assert np.isnan(model.state["common_regret"]).all()
    assert np.isfinite(model.quantile(FORECASTS[53:], 0.5)).all()
