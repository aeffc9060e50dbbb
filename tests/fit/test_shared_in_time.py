"""An online pool with the law of all places as one expert: what it said, and what it learns."""

from functools import cache

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.shared.network import draw_dates, draw_network
from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.arrays.shared.issuing import issue
from xrecal.arrays.shared.network import Cases
from xrecal.arrays.shared.packed import unpack
from xrecal.inputs import pool as pooling
from xrecal.methods import SharedCKME
from xrecal.methods.experts import LEVELS

from .networks import labelled

P, DATES, LATER, M = 6, 40, 9, 4
FEW = 100
"""Cases beyond which places share here, so that tests are fast."""
SMALL = (xrecal.Climatology(), xrecal.EMOS(bounds=None))
SHARED = "ckme_shared"
Q = [0.1, 0.5, 0.9]


def draw(n_places, n_dates, seed=3):
    """Daily forecasts and observations of a network, in double precision."""
    network = draw_network(n_places, seed)
    members, observed = draw_dates(network, 0, n_dates, M, seed)
    time = np.datetime64("2001-01-01", "ns") + np.arange(n_dates) * np.timedelta64(1, "D")
    return labelled(network, members, observed, time)


FORECASTS, OBSERVED = map(freeze, draw(P, DATES + LATER))
NEW = FORECASTS[DATES:]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)


def method(**settings):
    return xrecal.OnlinePool(SMALL, **{"refit": 100, "bounds": None, **settings})


def fit(settings=None, hindcast=FORECASTS[:DATES], truth=OBSERVED[:DATES], **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        given = {"pool": "station", "min_samples": 10, **options}
        return hindcast.recal.fit(truth, settings or method(), **given)


@cache
def begun(delay=0):
    """The model of most tests, which never changes."""
    return fit(method(delay=delay))


def assert_same_state(a, b):
    found, expected = dask.compute(a.state, b.state)
    assert list(found.data_vars) == list(expected.data_vars)
    for name in found.variables:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=str(name))


def said_in_update(monkeypatch, model, observed):
    """Quantiles (case, place, level) that the law had said, as an update learns from them."""
    found = np.full((LATER, P, LEVELS.size), np.nan)
    said = SharedCKME.said

    def noted(self, cases, which, known, levels):
        quantiles = said(self, cases, which, known, levels)
        found[which - DATES, int(cases.shared.place[0])] = quantiles
        return quantiles

    with monkeypatch.context() as patch:
        patch.setattr(SharedCKME, "said", noted)
        model.update(NEW, observed)
    return found


def law_of(model):
    """The law as the state has it."""
    prefix = f"{SHARED}_"
    arrays = {n.removeprefix(prefix): a for n, a in model.state.items() if n.startswith(prefix)}
    return unpack({name: a.to_numpy() for name, a in arrays.items()})


@pytest.mark.parametrize("delay", [0, 3])
def test_it_learns_from_what_the_law_had_said_as_it_stood_at_the_issue(monkeypatch, delay):
    model = begun(delay)
    found = said_in_update(monkeypatch, model, OBSERVED)
    assert np.isnan(found[:delay]).all()  # the fit had seen more than was known then
    for case in (delay, delay + 1, LATER - 1):
        known = case - delay
        then = model.update(NEW[:known], OBSERVED) if known else model
        cases = Cases(
            np.sort(NEW[case].to_numpy(), axis=-1),
            np.full(P, np.nan),
            np.arange(P),
            np.zeros(P, int),
            np.empty((P, 0)),
            np.ones(P),
        )
        expected = issue(law_of(then), cases, np.empty((P, 3)), LEVELS).quantiles
        np.testing.assert_allclose(found[case], expected, rtol=1e-9, atol=1e-9)


def test_nothing_that_verifies_later_reaches_what_was_said(monkeypatch):
    marked = OBSERVED.copy(deep=True)
    marked[DATES + 4 :] += 50.0
    found, other = (said_in_update(monkeypatch, begun(3), o) for o in (OBSERVED, marked))
    np.testing.assert_array_equal(found[: 4 + 3 + 1], other[: 4 + 3 + 1])
    assert (abs(found[4 + 3 + 1 :] - other[4 + 3 + 1 :]) > 0.1).any()


@pytest.mark.parametrize("delay", [0, 3])
def test_many_days_at_once_are_as_many_updates(delay):
    once = begun(delay).update(NEW, OBSERVED)
    each = begun(delay)
    for day in range(LATER):
        each = each.update(NEW[day : day + 1], OBSERVED)
    assert_same_state(each, once)
    assert int(once.state[f"{SHARED}_summed"]) == DATES + LATER - 1 - delay
    gained = once.state[f"{SHARED}_sum_weight"] - begun(delay).state[f"{SHARED}_sum_weight"]
    np.testing.assert_allclose(gained[0], P * (LATER - 1 - delay))


def test_the_law_that_is_issued_has_taken_in_all_days():
    """Its corrections are those of the sums over the cases of each place."""
    updated = begun().update(NEW, OBSERVED)
    alone = fit(xrecal.CKME(bounds=None))
    alone = alone.update(NEW, OBSERVED)
    for name in ("corrections", "factors", "share", "average"):
        found, expected = updated.state[f"{SHARED}_{name}"], alone.state[name]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def test_a_case_that_comes_late_joins_the_sums():
    gap = OBSERVED.copy(deep=True)
    gap[DATES, 2] = np.nan
    model = begun().update(NEW[:4], gap)
    with pytest.warns(
        UserWarning, match="1 observations arrive after the model has learned from later ones"
    ):
        updated = model.update(NEW[:5], OBSERVED)
    expected = begun().update(NEW[:5], OBSERVED)
    for name in ("sum_weight", "sum_below", "place_sums", "corrections"):
        a, b = (m.state[f"{SHARED}_{name}"] for m in (updated, expected))
        np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(("places", "scheduler"), [(1, "threads"), (4, "threads"), (-1, "sync")])
def test_lazy_stays_lazy_and_chunks_make_no_difference(places, scheduler):
    both = FORECASTS, OBSERVED
    cut = [array.chunk(station=places).assign_coords(array.coords) for array in both]
    with forbid_compute():
        model = fit(hindcast=cut[0][:DATES], truth=cut[1][:DATES])
        updated = model.update(cut[0][DATES:], cut[1])
        issued = updated.quantile(cut[0][DATES:], Q)
    assert not updated.is_computed
    state, issued = dask.compute(updated.state, issued, scheduler=scheduler)
    expected = begun().update(NEW, OBSERVED)
    assert set(state.variables) == set(expected.state.variables)
    for name, array in expected.state.variables.items():
        np.testing.assert_array_equal(state[name].transpose(*array.dims), array, err_msg=name)
    xr.testing.assert_equal(issued, expected.quantile(NEW, Q))


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_stored_and_opened_it_goes_on(tmp_path, ending):
    model = begun().update(NEW[:4], OBSERVED)
    model.save(tmp_path / f"m.{ending}")
    again = xrecal.open_recalibrator(tmp_path / f"m.{ending}")
    xr.testing.assert_equal(again.quantile(NEW, Q), model.quantile(NEW, Q))
    assert_same_state(again.update(NEW[4:], OBSERVED), model.update(NEW[4:], OBSERVED))


def test_a_station_that_opens_is_issued_by_the_law_and_then_has_weights_of_its_own():
    some = slice(P - 1)
    model = fit(hindcast=FORECASTS[:26, some], truth=OBSERVED[:26, some])
    before = model.quantile(FORECASTS[26:], Q)
    assert before.notnull().all()
    moved = OBSERVED.copy(deep=True)
    moved[:, -1] += 9.0
    few = model.update(FORECASTS[26:30], moved)
    assert few.state["status"].values.tolist() == [0] * (P - 1) + [1]
    assert few.state["expert_weight"][-1].isnull().all()
    shift = few.quantile(FORECASTS[30:], 0.5) - model.quantile(FORECASTS[30:], 0.5)
    assert (shift[:, -1] > 3).all()
    assert (abs(shift[:, :-1]) < 3).all()
    many = few.update(FORECASTS[30:], moved)
    weight = many.state["expert_weight"][-1]
    assert weight.sum() == pytest.approx(1)
    assert weight.sel(expert=SHARED) > 0
    assert many.state[f"{SHARED}_place"].values.tolist() == [*range(P - 1), -1]


def test_where_records_are_short_the_law_helps():
    """Against the same pool with experts of each place alone."""
    forecasts, observed = draw(20, 38)
    scores = []
    for pool in (None, "station"):
        options = {"hindcast": forecasts[:14], "truth": observed[:14], "pool": pool}
        model, crps = fit(method(), **options), []
        for day in range(14, 38, 8):
            week = slice(day, day + 8)
            crps.append(float(model.crps(forecasts[week], observed[week]).mean()))
            model = model.update(forecasts[week], observed)
        scores.append(np.mean(crps))
    assert scores[1] < 0.98 * scores[0]
    weight = model.state["expert_weight"].mean("station")
    assert weight.sel(expert=SHARED) == weight.max()


def test_covariates_that_break_are_replaced():
    rng = np.random.default_rng(0)
    wind = xr.DataArray(rng.normal(size=FORECASTS.shape[:2]), OBSERVED.coords, ("time", "station"))
    settings = method(condition_on="wind")
    model = fit(settings, covariates={"wind": wind[:DATES]})
    label = "ckme_shared_wind"
    assert label in model.state["expert"].values
    broken = wind[DATES:] * 1000
    gone = broken * np.nan
    with pytest.warns(UserWarning, match="wind"):
        found = model.quantile(NEW, Q, covariates={"wind": broken})
    with pytest.warns(UserWarning, match="wind"):
        expected = model.quantile(NEW, Q, covariates={"wind": gone})
    assert found.notnull().all()
    assert (abs(found - expected) < 5).all()
    with pytest.warns(UserWarning, match="wind"):
        updated = model.update(NEW, OBSERVED, covariates={"wind": broken})
    assert updated.quantile(NEW, Q, covariates={"wind": wind[DATES:]}).notnull().all()


def test_splits_are_refused_with_what_to_type():
    for options in ({"by": "rolling", "every": 5, "blocks": 2}, {"by": "block", "blocks": 3}):
        with pytest.raises(ValueError, match=r"keeps learning.*LinearPool\(\), or update"):
            FORECASTS.recal.cross_validate(OBSERVED, method(), pool="station", **options)
