"""From a fit to scores and storage, for forecasts over starts and leads."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from xrecal.inputs.dates import case_axis

from .test_valid_time_lookup import AT_LEADS, HINDCAST, LEADS, OBSERVED, STARTS, TIMES, N, hindcast

NEW = hindcast(seed=5).isel(init=slice(0, 12))
FIXED = xrecal.CKME(support="observations", ridge=0.05, bandwidth=1.5)
SEASON = xrecal.CKME(ridge=0.05, bandwidth=1.5, folds="block", condition_on="season")
Q = [0.1, 0.5, 0.9]


def fit(method=FIXED, forecasts=HINDCAST, observations=OBSERVED, **options):
    return forecasts.recal.fit(observations, method, **options)


def same(found, expected):
    """Equal values, labels and attributes, but for the history."""
    for obj in (found, expected):
        obj.attrs.pop("history", None)
    xr.testing.assert_identical(found, expected)


CALLS = {
    "over leads": lambda observations: HINDCAST.recal.pit_test(observations, ["init", "lead"]),
    "ranks": lambda observations: HINDCAST.recal.rank_histogram(observations),
    "reliability": lambda observations: HINDCAST.recal.reliability(observations, 0.0),
    "skce": lambda observations: HINDCAST.recal.skce(observations),
    "state": lambda observations: fit(observations=observations).state,
}


@pytest.mark.parametrize("call", CALLS)
def test_observations_are_found_at_the_valid_time(call):
    """Of these calls, which the law of ``tests/labels`` does not have."""
    same(CALLS[call](OBSERVED), CALLS[call](AT_LEADS))


def test_plans():
    plans = [
        xrecal.plan(HINDCAST.chunk(lat=1), observations, FIXED, probe=False)
        for observations in (OBSERVED, AT_LEADS)
    ]
    assert plans[0].variables == plans[1].variables


def test_nothing_is_computed_before_it_is_asked_for():
    with forbid_compute():
        model = fit(SEASON, HINDCAST.chunk(lat=1), OBSERVED.chunk(time=100))
        scores = model.crps(NEW.chunk(lat=1), OBSERVED.chunk(time=100))
        raw = NEW.chunk(lat=1).recal.crps(OBSERVED.chunk(time=100))
        assert f"3 (lead 1 to 20 days), 39 to {N} of {N} pairs each" in repr(model)
    xr.testing.assert_allclose(scores.compute(), fit(SEASON).crps(NEW, OBSERVED))
    xr.testing.assert_allclose(raw.compute(), NEW.recal.crps(OBSERVED))


def test_products_keep_the_units_of_the_leads():
    for method in (FIXED, xrecal.CKME(ridge=0.1, support="errors"), xrecal.EMOS()):
        calibrated = fit(method).apply(NEW)
        assert calibrated.lead.attrs == {"units": "days"}
    assert NEW.recal.mean().lead.attrs == {"units": "days"}
    assert fit().quantile(NEW, Q).lead.attrs == {"units": "days"}


# season -------------------------------------------------------------------------------------------


def of_one_lead(array, j):
    """Forecasts of one lead, dated by their valid times."""
    one = array.isel(lead=j, drop=True)
    return one.assign_coords(init=one.init + np.timedelta64(LEADS[j], "D")).rename(init="time")


@pytest.mark.each_value
@pytest.mark.parametrize("j", range(3))
@pytest.mark.parametrize(
    "method", [SEASON, xrecal.EMOS(condition_on="season"), xrecal.Climatology(window=60)], ids=repr
)
def test_the_season_of_a_lead_is_that_of_its_valid_times(method, j):
    model = fit(method, choose="lat")
    alone = of_one_lead(HINDCAST, j).recal.fit(OBSERVED, method)
    for name in alone.state:
        np.testing.assert_array_equal(model.state[name].isel(lead=j), alone.state[name])
    found = model.quantile(NEW, Q).isel(lead=j)
    expected = alone.quantile(of_one_lead(NEW, j), Q)
    np.testing.assert_allclose(found, expected.transpose(*("time", "lat", "quantile")), rtol=1e-12)
    by_start = (
        HINDCAST.drop_attrs()
        .isel(lead=j, drop=True)
        .recal.fit(AT_LEADS.isel(lead=j, drop=True), method)
    )
    (name,) = (n for n in alone.state if n.startswith("covariate_"))
    assert np.abs(by_start.state[name] - alone.state[name]).max() > 1 / 400


def test_the_season_of_a_coordinate_of_valid_times():
    valid = HINDCAST.init + xr.DataArray([100, 101, 102], dims="lead").astype("m8[D]")
    dated = HINDCAST.drop_attrs().assign_coords(valid_time=valid)
    season = fit(SEASON, dated, AT_LEADS).state.covariate_season
    for j in range(3):
        expected = case_axis(valid.isel(lead=j).rename("init").drop_vars("init").assign_coords(
            init=valid.isel(lead=j).to_numpy()), "init").season  # fmt: skip
        np.testing.assert_array_equal(season.isel(lead=j), expected)


def test_leads_that_tell_no_valid_time_have_the_season_of_the_start():
    bare = HINDCAST.assign_coords(lead=[1, 2, 3])
    season = fit(SEASON, bare, AT_LEADS.assign_coords(lead=[1, 2, 3])).state.covariate_season
    np.testing.assert_array_equal(season, case_axis(HINDCAST, "init").season)


@pytest.mark.parametrize("pool", [None, "lead"])
def test_forecasts_must_tell_the_season_as_the_hindcast_did(pool):
    bare, bare_new = (a.assign_coords(lead=LEADS) for a in (HINDCAST, NEW))
    method = xrecal.Climatology(window=60)
    model = fit(method, pool=pool)
    with pytest.raises(ValueError, match=r"'lead' of forecast have no units; set them: forecast"):
        model.quantile(bare_new, Q)
    plain = fit(method, bare, AT_LEADS, pool=pool)
    with pytest.raises(ValueError, match="forecast has the valid time of each lead, but the hi"):
        plain.quantile(NEW, Q)
    assert plain.quantile(bare_new, Q).notnull().all()
    day = xr.DataArray(0.5, attrs={"period": 1.0})
    for fitted, new in ((model, bare_new), (plain, NEW)):
        fitted.quantile(new, Q, covariates={"calendar_day": day})
    if pool is None:
        later = bare.assign_coords(init=HINDCAST.init + np.timedelta64(999, "D"))
        known = AT_LEADS.assign_coords(init=later.init)
        with pytest.raises(ValueError, match="'lead' of hindcast have no units"):
            model.update(later, known)


def test_updated_and_stored_models_know_the_season_of_each_lead(tmp_path):
    whole = fit(SEASON)
    first, rest = HINDCAST.isel(init=slice(30)), HINDCAST.isel(init=slice(30, None))
    updated = fit(xrecal.Climatology(window=60), first).update(rest, OBSERVED)
    expected = fit(xrecal.Climatology(window=60))
    xr.testing.assert_equal(
        updated.state.covariate_calendar_day.transpose("lead", "calibration"),
        expected.state.covariate_calendar_day,
    )
    np.testing.assert_array_equal(updated.quantile(NEW, Q), expected.quantile(NEW, Q))
    assert updated.variables["t2m"].leads == expected.variables["t2m"].leads
    whole.save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    same(opened.quantile(NEW, Q), whole.quantile(NEW, Q))
    assert opened.variables["t2m"].leads == whole.variables["t2m"].leads
    assert repr(opened) == repr(whole)


# pooled leads -------------------------------------------------------------------------------------


def stacked(array):
    """Cases by start, then by lead, as one unlabelled dimension."""
    found = array.stack(cases=("init", "lead")).reset_index("cases", drop=True)
    return found.drop_vars([c for c in found.coords if "cases" in found[c].dims])


@pytest.mark.parametrize(
    "method", [xrecal.EMOS, xrecal.Climatology, xrecal.IDR, xrecal.PITRecalibration]
)
def test_pooled_leads_with_the_lead_as_a_covariate(method):
    method = method(condition_on="lead")
    model = fit(method, pool="lead")
    days = (0 * AT_LEADS.isel(lat=0, drop=True).fillna(0) + HINDCAST.lead).astype(float)
    alone = stacked(HINDCAST).recal.fit(
        stacked(AT_LEADS), method, dim="cases", covariates={"lead": stacked(days)}
    )
    for name in alone.state:
        np.testing.assert_array_equal(model.state[name], alone.state[name])
    found = model.quantile(NEW, Q)
    new_days = (0 * NEW.isel(lat=0, member=0, drop=True) + NEW.lead).astype(float)
    expected = alone.quantile(stacked(NEW), Q, covariates={"lead": stacked(new_days)})
    np.testing.assert_allclose(
        stacked(found).transpose(*expected.dims), expected, rtol=1e-12, atol=1e-14
    )
    assert "pooled over lead" in repr(model)
    assert "condition_on     lead" in repr(model)
    assert f"leads            3 (lead 1 to 20 days), 39 to {N} of {N} pairs" in repr(model)


@pytest.mark.parametrize("pool", ["lead", {"lead": 3}])
def test_leads_as_lengths_of_time_are_days(pool):
    lengths = np.array(LEADS, "m8[D]").astype("m8[ns]")
    method = xrecal.EMOS(condition_on="lead")
    model = fit(method, HINDCAST.assign_coords(lead=lengths), pool=pool)
    expected = fit(method, pool=pool)
    np.testing.assert_array_equal(
        model.quantile(NEW.assign_coords(lead=lengths), Q), expected.quantile(NEW, Q)
    )
    assert "(lead 1 days to 20 days)" in repr(model)


@pytest.mark.parametrize("pool", [None, "lat"])
def test_a_covariate_that_no_pooled_case_differs_in_is_refused(pool):
    with pytest.raises(ValueError, match="a covariate varies along 'init' and perhaps locations"):
        fit(xrecal.EMOS(condition_on="lead"), pool=pool)


# what the model tells, and refuses ----------------------------------------------------------------


def test_matched_pairs_of_each_lead():
    few = OBSERVED.isel(time=slice(None, 300))
    model = fit(xrecal.EMOS(), observations=few)
    known = set(TIMES[:300])
    counts = [sum(s + np.timedelta64(lead, "D") in known for s in STARTS) for lead in LEADS]
    told = f"3 (lead 1 to 20 days), {min(counts)} to {max(counts)} of {N} pairs each"
    assert told in repr(model)
    assert f"{max(counts)} of {N} matched along 'init'" in repr(model)
    by_hand = fit(xrecal.EMOS(), observations=AT_LEADS)
    assert f"leads            3 (lead 1 to 20 days), {N} of {N} pairs each" in repr(by_hand)
    one = fit(xrecal.EMOS(), HINDCAST.isel(lead=[1]))
    assert "leads            1 (lead 4 days), " in repr(one)
    bare = fit(xrecal.EMOS(), HINDCAST.drop_vars("lead"), AT_LEADS.drop_vars("lead"))
    assert f"leads            3, {N} of {N} pairs each" in repr(bare)
    without = HINDCAST.isel(lead=0, drop=True).recal.fit(AT_LEADS.isel(lead=0), xrecal.EMOS())
    assert "leads   " not in repr(without)


def test_too_few_matches_at_every_lead():
    with (
        pytest.warns(UserWarning, match="of 120 forecasts"),
        pytest.raises(ValueError, match="only 8 cases along 'init' have a label in hindcast and"),
    ):
        fit(observations=OBSERVED.isel(time=slice(None, 85)))


def test_leads_that_the_model_does_not_have_are_named():
    wanted = NEW.isel(lead=[0, 1, 2, 2, 2]).assign_coords(lead=[1, 4, 20, 30, 40])
    message = (
        "forecast has 2 of 5 leads along 'lead' that the model was not fitted on, 30, 40; it was "
        "fitted on 1 to 20"
    )
    with pytest.raises(ValueError, match=message):
        fit().quantile(wanted, Q)
