"""Tails of recalibrated forecasts: slots, products, and where there are none."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.arrays.ckme.embedding import complete_fit
from xrecal.arrays.ckme.errors import errors_of
from xrecal.arrays.distributions.tails import POINTS
from xrecal.methods.beyond import TAIL, tails_of_mixture

SMALL = (xrecal.CKME(support="auto"), xrecal.EMOS(), xrecal.Climatology())
WITH_TAILS = (
    xrecal.CKME(support="errors"),
    xrecal.CKME(support="errors", compare="shapes"),
    xrecal.CKME(support="auto", half_life=900.0),
    xrecal.LinearPool(SMALL),
)


def data(n=90, zeros=False, seed=1):
    rng = np.random.default_rng(seed)
    time = np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(15, "D")
    signal = rng.normal(size=(n, 2))
    drawn = signal[:, np.newaxis] + 0.5 + 0.4 * rng.normal(size=(n, 6, 2))
    observed = signal + 0.6 * rng.standard_t(4, size=(n, 2))
    if zeros:
        drawn, observed = np.maximum(drawn, 0), np.maximum(observed, 0)
    forecasts = xr.DataArray(drawn, {"time": time}, ("time", "member", "x"), name="t")
    return forecasts, xr.DataArray(observed, {"time": time}, ("time", "x"))


def in_tails(issued):
    """The part of an issued ensemble that is no past case."""
    return issued.isel(member=(issued.component == TAIL).to_numpy())


@pytest.mark.parametrize("method", WITH_TAILS, ids=repr)
def test_tails_have_slots_of_their_own_and_reach_beyond_all_errors(method):
    forecasts, observed = data()
    issued = forecasts[:70].recal.fit(observed[:70], method).apply(forecasts[70:])
    tail = in_tails(issued)
    assert tail.sizes["member"] == 2 * POINTS
    assert tail["calibration_time"].isnull().all()
    others = issued.isel(member=slice(-2 * POINTS))
    others = others["t"].where(others["t_weight"] > 0)
    np.testing.assert_allclose(issued["t_weight"].sum("member"), 1)
    mass = tail["t_weight"].sum("member")
    assert ((abs(mass - 0.2) < 1e-6) | (mass == 0)).all()
    reaches = (tail["t"].max("member") > others.max("member")) | (mass == 0)
    assert reaches.all()
    assert (mass > 0).any()


@pytest.mark.parametrize("method", WITH_TAILS, ids=repr)
def test_no_tail_lies_beyond_a_bound(method):
    forecasts, observed = data(zeros=True)
    issued = forecasts[:70].recal.fit(observed[:70], method).apply(forecasts[70:])
    lower = in_tails(issued).isel(member=slice(POINTS))
    assert (lower["t_weight"] == 0).all()
    assert lower["t"].isnull().all()
    assert issued["t"].min() >= 0


@pytest.mark.parametrize("method", WITH_TAILS, ids=repr)
def test_all_products_are_those_of_the_issued_ensemble(method):
    forecasts, observed = data()
    model, new = forecasts[:70].recal.fit(observed[:70], method), forecasts[70:]
    issued, levels = model.apply(new), [0.001, 0.05, 0.5, 0.95, 0.999]
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(
        model.quantile(new, levels), issued.recal.quantile(levels)["t"], **close
    )
    np.testing.assert_allclose(
        model.exceedance(new, 1.5), issued.recal.exceedance(1.5)["t"], **close
    )
    np.testing.assert_allclose(model.mean(new), issued.recal.mean()["t"], **close)
    np.testing.assert_allclose(
        model.crps(new, observed[70:]), issued.recal.crps(observed[70:]), **close
    )
    assert not np.isnan(model.members(new, 7)).any()


@pytest.mark.parametrize("method", WITH_TAILS, ids=repr)
def test_a_stored_model_issues_the_same_tails(method, tmp_path):
    forecasts, observed = data()
    model = forecasts[:70].recal.fit(observed[:70], method)
    model.save(tmp_path / "model.nc")
    xr.testing.assert_identical(
        xrecal.open_recalibrator(tmp_path / "model.nc").apply(forecasts[70:]).drop_attrs(),
        model.apply(forecasts[70:]).drop_attrs(),
    )


def test_without_tails_forecasts_end_with_the_largest_error():
    forecasts, observed = data()
    method = xrecal.CKME(support="errors", tails=None)
    model = forecasts[:70].recal.fit(observed[:70], method)
    issued = model.apply(forecasts[70:])
    assert issued.sizes["member"] == 70
    assert "component" not in issued.coords
    with_tails = forecasts[:70].recal.fit(observed[:70], xrecal.CKME(support="errors"))
    xr.testing.assert_equal(
        with_tails.apply(forecasts[70:])["t"].isel(member=slice(70)).drop_vars("component"),
        issued["t"],
    )
    pool = xrecal.LinearPool(SMALL, tails=None)
    assert "tail_excess" not in forecasts[:70].recal.fit(observed[:70], pool).state


def test_the_text_of_a_model_has_the_tails_of_each_side():
    forecasts, observed = (given.isel(x=0) for given in data())
    model = forecasts[:70].recal.fit(observed[:70], xrecal.LinearPool(SMALL))
    lower, upper = model.state["tail_shape"].values.ravel()
    assert f"tail_shape       lower {lower:.4g}; upper {upper:.4g}\n" in repr(model)
    bounded = xrecal.LinearPool(bounds=(observed[:70].min().item() - 1, None))
    model = forecasts[:70].recal.fit(observed[:70], bounded)
    lower, upper = model.state["tail_shape"].values.ravel()
    assert np.isnan(lower)
    assert f"tail_shape       upper {upper:.4g}\n" in repr(model)


def test_past_observations_have_no_tails():
    forecasts, observed = data()
    for method in (xrecal.CKME(support="observations"), xrecal.Climatology(), xrecal.IDR()):
        issued = forecasts[:70].recal.fit(observed[:70], method).apply(forecasts[70:])
        assert issued.sizes["member"] == 70
        assert "component" not in issued.coords


def test_errors_are_those_around_the_centres_of_the_fit(rng):
    forecasts, observed = data(zeros=True)
    method = xrecal.CKME(support="errors", bounds=(0, None))
    state = forecasts.recal.fit(observed, method).state
    fitted = complete_fit({n: state[n].to_numpy() for n in state.data_vars}, 0)
    cases = xrecal.arrays.Forecasts(forecasts.transpose("x", "time", "member").to_numpy())
    errors = errors_of(cases, observed.to_numpy().T, None, fitted)
    for cell in range(2):
        mean, variance = cases.loc[cell].mean(-1), cases.loc[cell].var(-1)
        a, b, c, d = fitted.centre[cell, :4]
        spread = np.hypot(c, d * (mean if fitted.support[cell] == 4 else np.sqrt(variance)))
        y = observed.to_numpy()[:, cell]
        expected = np.where(y <= 0, -np.inf, (y - a - b * mean) / spread)
        np.testing.assert_allclose(errors[cell], expected, rtol=1e-12)


def test_tails_of_a_mixture_come_from_cases_beyond_held_out_forecasts(rng):
    n, q = 400, 50
    levels = np.linspace(-2, 2, q)
    y = rng.standard_t(3, size=(1, n))
    quantiles = np.broadcast_to(levels, (1, 2, n, q)).copy()
    quantiles[0, 1] += 5.0  # of no weight
    quantiles[0, 0, 3] = np.nan
    y[0, 7] = np.nan
    tails = tails_of_mixture(quantiles, np.array([[1.0, 0.0]]), y, np.array([[-np.inf, np.inf]]))
    last = int(0.1 * q)  # the tail begins between two of them
    threshold = levels[[-last, -last - 1]].mean()
    known = np.isfinite(y[0]) & np.isfinite(quantiles[0, 0, :, 0])
    beyond = (y[0][known & (y[0] > threshold)] - threshold) / levels.std()
    assert tails.excess[0, 1] == pytest.approx(beyond.mean())
    assert tails.mass[0] == pytest.approx(0.1)


def test_tails_are_auto_or_none():
    with pytest.raises(ValueError, match="tails must be one of 'auto', None, got 7"):
        xrecal.CKME(tails=7)
    with pytest.raises(ValueError, match="tails must be one of 'auto', None, got 'gpd'"):
        xrecal.LinearPool(tails="gpd")


@pytest.mark.parametrize("methods", [(xrecal.Raw(), xrecal.Climatology()), None])
def test_members_that_agree_to_rounding_make_no_tail_endless(methods):
    rng = np.random.default_rng(0)
    time = np.datetime64("2001-01-01", "ns") + np.arange(200) * np.timedelta64(10, "D")
    flow = 40 + 5 * rng.normal(size=200)
    members = flow[:, np.newaxis] + 0.05 * rng.normal(size=(200, 6))
    members[::2] = np.linspace(-1e-14, 1e-14, 6) + flow[::2, np.newaxis]
    observed = xr.DataArray(flow + 0.05 * rng.normal(size=200), {"time": time}, ["time"])
    forecasts = xr.DataArray(members, {"time": time}, ["time", "member"])
    model = forecasts[:150].recal.fit(observed, xrecal.LinearPool(methods, bounds="auto"))
    assert model.state["pool_weight"].sel(component="raw") > 0
    ends = model.quantile(forecasts[150:], [0.001, 0.999])
    assert float(abs(ends - forecasts[150:].mean("member")).max()) < 3 * float(observed.std())
