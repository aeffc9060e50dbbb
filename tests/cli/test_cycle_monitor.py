"""The monitor of the daily cycle: of the same lags, however files tell the leads."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.runs.watching import Watch
from xrecal.runs.watching import watched as of_scores

from .days import LEADS, Days, drifting, write
from .files import run, succeed

OPTIONS = ["--restart", "never", "--keep", 200]


def watched(folder, leads, mornings, first, calls, single=False):
    """What the cycle's monitor says after mornings, some in each call; its scores, and results."""
    forecasts, truth, learned = drifting(leads, mornings, first)
    forecasts = forecasts.isel(lead=1) if single else forecasts
    folder.mkdir(exist_ok=True)
    days = Days(*(folder / n for n in ("", "model.nc", "out", "forecasts.nc", "observations.nc")))
    write(forecasts[: learned - 3], days.forecasts)
    write(truth, days.observations)
    succeed("fit", days.forecasts, days.observations, days.model, "--method", "emos")
    results = []
    for last in np.linspace(0, mornings, calls + 1, dtype=int)[1:] + learned - 1:
        write(forecasts[learned : last + 1], days.forecasts)
        write(truth[: last + 1], days.observations)
        now = str(forecasts["init"].to_numpy()[last].astype("M8[s]"))
        results.append(run(*days.args(now, *OPTIONS)))
    with (
        xr.open_dataset(days.output / "monitor.nc", decode_timedelta=False) as seen,
        xr.open_dataset(days.output / "scores.nc", decode_timedelta=False) as scores,
    ):
        return seen.load(), scores.load(), results


def assert_of_the_lags(seen, scores):
    """E-values and changes are those of transforms at leads of one and three cases."""
    pit = scores["t2m_pit"].transpose("lead", "init").to_numpy().astype(np.float64)
    lags = np.array([1, 3])
    e_values = xrecal.arrays.calibration_e_values(pit[:, np.newaxis], lags)
    found = seen["t2m_e_value"].transpose("lead", "init")
    np.testing.assert_allclose(found, e_values, rtol=1e-6)
    statistic, _ = xrecal.arrays.calibration_changes(pit[:, np.newaxis], 3650, lags)
    found = seen["t2m_change_statistic"].transpose("lead", "init")
    np.testing.assert_allclose(found, statistic, rtol=1e-6)


def first_of(seen, name):
    """The first morning with an alarm or a change at each lead."""
    return seen[name].transpose("lead", "init").to_numpy().argmax(-1)


def test_lags_are_those_of_the_leads_and_a_change_is_reported(tmp_path):
    seen, scores, results = watched(tmp_path, "hours", 24, 8, calls=1)
    assert results[-1].code == 10
    assert_of_the_lags(seen, scores)
    assert seen["lead"].attrs == scores["lead"].attrs == {"units": "hours"}
    for name in ("t2m_alarm", "t2m_change"):
        found = first_of(seen, name)
        assert ((found >= 8 - 3) & (found < 8 + 15)).all()


@pytest.fixture(scope="module")
def hours(tmp_path_factory):
    return watched(tmp_path_factory.mktemp("hours"), "hours", 5, 2, calls=1)[:2]


@pytest.mark.parametrize("leads", [leads for leads in LEADS if leads != "hours"])
def test_leads_in_other_words_have_the_same_monitor(leads, hours, tmp_path):
    expected, _ = hours
    seen, scores, _ = watched(tmp_path, leads, 5, 2, calls=1)
    assert_of_the_lags(seen, scores)
    for name in expected:
        np.testing.assert_array_equal(seen[name], expected[name])


@pytest.mark.parametrize("leads", ["hours", "valid times"])
def test_a_lead_beside_the_dimensions_is_not_lost(leads, tmp_path):
    seen, scores, _ = watched(tmp_path, leads, 5, 2, calls=1, single=True)
    pit = scores["t2m_pit"].to_numpy().clip(2.0**-53, 1 - 2.0**-53)
    expected, other = (
        xrecal.arrays.calibration_e_values(pit[np.newaxis], np.array(lag)) for lag in (3, 1)
    )
    np.testing.assert_allclose(seen["t2m_e_value"], expected, rtol=1e-6)
    assert (expected != other).any()


@pytest.mark.parametrize("calendar", ["standard", "noleap"])
def test_dates_of_other_calendars_have_the_same_lags(calendar):
    forecasts, truth, _ = drifting("hours", 24, 8)
    dates = xr.date_range("2021-01-01", periods=truth.size, calendar=calendar, use_cftime=True)
    dated = forecasts.assign_coords(init=dates[: forecasts.sizes["init"]])
    found = dated.recal.monitor(truth.assign_coords(time=dates), restart=None)
    expected = forecasts.recal.monitor(truth, restart=None)
    np.testing.assert_array_equal(found["e_value"], expected["e_value"])


@pytest.mark.parametrize("leads", LEADS)
def test_the_monitor_of_forecasts_has_the_same_lags(leads):
    forecasts, truth, _ = drifting(leads, 24, 8)
    found = forecasts.recal.monitor(truth, restart=None)
    expected = drifting("hours", 24, 8)[0].recal.monitor(truth, restart=None, lag=3)
    np.testing.assert_array_equal(found["e_value"][:, 1], expected["e_value"][:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("leads", ["hours", "lengths", "standard"])
def test_sixty_mornings(leads, tmp_path):
    """A bias of three standard deviations of the errors from the thirtieth on."""
    seen, scores, results = watched(tmp_path, leads, 60, 30, calls=60)
    assert_of_the_lags(seen, scores)
    for name in ("t2m_alarm", "t2m_change"):
        found = first_of(seen, name)
        assert ((found >= 30 - 3) & (found < 30 + 15)).all()
    assert [done.code for done in results].index(10) in range(30, 45)


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_observations_outside_all_members_count_at_both_ends(end):
    """As stored, in single precision, in which 1 - 2**-53 is 1."""
    dates = np.datetime64("2021-01-01", "ns") + np.arange(30) * np.timedelta64(1, "D")
    pit = np.append((np.arange(20) * 0.618) % 1, np.full(10, end)).astype(np.float32)
    scores = xr.Dataset({"t_pit": ("init", pit), "t_valid_time": ("init", dates)}, {"init": dates})
    seen = of_scores(scores, ["t"], "init", Watch(0.01, 3650, None))
    expected = xrecal.arrays.calibration_e_values(pit[np.newaxis])
    np.testing.assert_allclose(seen["t_e_value"], expected, rtol=1e-12)
    assert seen["t_alarm"][-1]
    assert seen["t_change"].any()
