from functools import cache

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import xrecal
from tests.strategies import FORMS
from xrecal import plot
from xrecal.plot.case import heaviest

from .evidence import calibrated, ensemble, one

FORECAST, TRUTH = one()
CASE = {"time": 83}
FRESH, Y = FORECAST.isel(CASE), TRUTH.isel(CASE)


@cache
def recalibrated():
    return calibrated().isel(time=3)


def curve(ax):
    """Points of the distribution drawn last."""
    return [line for line in ax.lines if len(line.get_xdata()) > 2][-1].get_xydata().T


def names(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


# cdf ----------------------------------------------------------------------------------------------


def test_steps_are_the_weights_of_past_cases():
    ax = plot.cdf(recalibrated())
    x, y = curve(ax)
    weights, values = recalibrated().t2m_weight.to_numpy(), recalibrated().t2m.to_numpy()
    used = weights > 0
    order = np.argsort(values[used])
    np.testing.assert_allclose(x[1:-1], values[used][order])
    np.testing.assert_allclose(y[1:-1], np.cumsum(weights[used][order]))
    assert y[0] == 0
    assert y[-1] == 1
    assert [line for line in ax.lines if len(line.get_xdata()) > 2][
        -1
    ].get_drawstyle() == "steps-post"
    assert ax.get_xlabel() == "2 m temperature (K)"


def test_the_heaviest_past_cases_are_named():
    ax = plot.cdf(recalibrated())
    found = names(ax)
    assert 2 <= len(found) <= 5
    by_weight = recalibrated().calibration_time[np.argsort(-recalibrated().t2m_weight.to_numpy())]
    assert found[0] == str(by_weight[0].to_numpy())[:10]
    known = {str(label)[:10]: float(w) for label, w in zip(
        recalibrated().calibration_time.to_numpy(), recalibrated().t2m_weight, strict=True
    )}  # fmt: skip
    shares = [known[name] for name in found]
    assert shares == sorted(shares, reverse=True)
    heights = [text.xy[1] for text in ax.texts]
    assert min(abs(a - b) for i, a in enumerate(heights) for b in heights[:i]) >= 0.07


def test_names_keep_apart():
    masses = np.array([0.3, 0.29, 0.2, 0.01])
    at = np.array([0.5, 0.55, 0.9, 0.1])
    assert heaviest(masses, at, "abcd", 0.07) == [0, 2, 3]
    assert heaviest(masses, at, "abcd", 0.01) == [0, 1, 2, 3]
    assert heaviest(masses, at, ["a", "", "a", "b"], 0.01) == [0, 3]
    assert len(heaviest(np.ones(50), np.arange(50.0), list(map(str, range(50))), 0.5)) == 5


@pytest.mark.parametrize("figure", [plot.cdf, plot.density])
def test_members_of_a_pool_are_named_by_their_dates_alone(figure):
    """A date has a member in each component that keeps cases; quantiles of others have none."""
    dates = xr.date_range("2001-03-01", periods=4).to_numpy()
    labels = np.concatenate([dates, dates, np.full(20, np.datetime64("NaT"))])
    members = xr.DataArray(
        np.concatenate([np.arange(4.0), np.arange(4.0) + 0.5, np.linspace(-2, 7, 20)]),
        {"calibration_time": ("member", labels)},
        "member",
        "t2m",
    )
    masses = np.concatenate([[0.1, 0.08, 0.06, 0.04], [0.09, 0.07, 0.05, 0.03], np.full(20, 0.024)])
    ax = figure(xrecal.weighted(members, xr.DataArray(masses, dims="member")))
    assert names(ax) == ["2001-03-01", "2001-03-02", "2001-03-03", "2001-03-04"]
    if figure is plot.density:
        (stems,) = [c for c in ax.collections if c.get_label() == "weight of past cases"]
        assert len(stems.get_segments()) == 8
    else:
        assert len(ax.collections[0].get_offsets()) == 8


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_its_own_distribution(form):
    forecast = FORMS[form](ensemble(m=5)[0].isel(lat=[1], lon=[3]))
    one_case = forecast.isel(CASE | {"lat": 0, "lon": 0})
    ax = plot.cdf(one_case)
    x, y = curve(ax)
    assert y[0] == pytest.approx(0, abs=0.01)
    assert y[-1] == pytest.approx(1, abs=0.01)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= -1e-12).all()
    inside = slice(2, -2, 7)
    probability = one_case.recal.cdf(x[inside])
    probability = probability["t2m"] if isinstance(probability, xr.Dataset) else probability
    np.testing.assert_allclose(y[inside], probability, atol=1e-6)
    plot.density(one_case)


def test_censored_distributions_jump_at_their_bounds():
    loc = xr.DataArray(0.5, name="rain", attrs={"units": "mm"})
    forecast = xrecal.gaussian(loc, xr.DataArray(1.0), lower=0.0)
    x, y = curve(plot.cdf(forecast))
    dry = scipy.stats.norm.cdf(-0.5)
    assert y[x < 0].max() == 0
    assert y[x == 0] == pytest.approx(dry)
    ax = plot.density(forecast)
    assert names(ax) == [f"P = {dry:.1%}"]
    wet = next(line for line in ax.lines if len(line.get_xdata()) > 2).get_xydata().T
    assert wet[0].min() == 0
    np.testing.assert_allclose(wet[1], scipy.stats.norm.pdf(wet[0], 0.5), rtol=1e-12)


@pytest.mark.parametrize("figure", [plot.cdf, plot.density])
def test_the_observation_is_a_line(figure):
    ax = figure(recalibrated(), observations=Y)
    (line,) = [line for line in ax.lines if line.get_label() == "observed"]
    np.testing.assert_array_equal(line.get_xdata(), [Y, Y])
    missing = figure(recalibrated(), observations=Y.where(False))
    assert "observed" not in [line.get_label() for line in missing.lines]


def test_the_raw_ensemble_beside_it():
    ax = plot.cdf(recalibrated(), raw=FRESH)
    raw = next(line for line in ax.lines if line.get_label() == "raw ensemble")
    np.testing.assert_array_equal(raw.get_xdata()[1:-1], np.sort(FRESH))
    ax = plot.density(recalibrated(), raw=FRESH)
    raw = next(line for line in ax.lines if line.get_label() == "raw ensemble")
    np.testing.assert_array_equal(raw.get_xdata(), np.sort(FRESH))


# density ------------------------------------------------------------------------------------------


def test_the_histogram_has_the_mass_of_the_members():
    ax = plot.density(recalibrated())
    heights, edges, _ = ax.patches[0].get_data()
    values, weights = recalibrated().t2m.to_numpy(), recalibrated().t2m_weight.to_numpy()
    expected, _ = np.histogram(values, edges, weights=weights)
    np.testing.assert_allclose(heights * np.diff(edges), expected, atol=1e-12)
    assert ax.get_ylabel() == "probability density (per K)"


def test_stems_are_as_high_as_the_weights():
    ax = plot.density(recalibrated())
    stems = np.array(ax.collections[0].get_segments())
    weights = recalibrated().t2m_weight.to_numpy()
    weights, values = weights[weights > 0], recalibrated().t2m.to_numpy()[weights > 0]
    order = np.argsort(values)
    np.testing.assert_allclose(stems[:, 0, 0], values[order])
    ratio = stems[:, 1, 1] / weights[order]
    np.testing.assert_allclose(ratio, ratio[0])
    assert 2 <= len(names(ax)) <= 5


def test_normal_densities():
    forecast = FORMS["mixture"](ensemble()[0].isel(lat=[1], lon=[3])).isel(CASE).isel(lat=0, lon=0)
    ax = plot.density(forecast)
    x, y = ax.lines[0].get_xydata().T
    loc = forecast.t2m_loc.to_numpy()
    parts = [
        w * scipy.stats.norm.pdf(x, m, 1.5) for w, m in zip([0.5, 0.25, 0.25], loc, strict=True)
    ]
    np.testing.assert_allclose(y, sum(parts))


def test_members_that_are_all_the_same():
    ax = plot.density(xr.full_like(FRESH, 280.0))
    heights, edges, _ = ax.patches[0].get_data()
    assert (heights * np.diff(edges)).sum() == pytest.approx(1)
    x, _ = curve(plot.cdf(xr.full_like(FRESH, 280.0)))
    assert x[0] < 280 < x[-1]


# errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", [plot.cdf, plot.density])
def test_what_is_no_single_case(figure):
    name = figure.__name__
    with pytest.raises(
        ValueError, match=rf"{name} shows one location and case, .* 40 along 'time'"
    ):
        figure(calibrated())
    with pytest.raises(ValueError, match=rf"{name} shows one .*there are 20 along 'lat' and 'lon'"):
        figure(ensemble()[0].isel(time=0))
    with pytest.raises(ValueError, match=f"{name}: the forecast is missing at this case; select"):
        figure(FRESH.where(False))
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        figure(recalibrated(), observations=Y.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="forecast is in K but raw is in degC"):
        figure(recalibrated(), raw=FRESH.assign_attrs(units="degC"))
    message = "raw= takes a plain ensemble, whose members are drawn, but 't2m' is"
    with pytest.raises(ValueError, match=message):
        figure(recalibrated(), raw=recalibrated())
    with pytest.raises(ValueError, match=r"observations shows one location and case, .* 120"):
        figure(recalibrated(), observations=TRUTH)


def test_members_of_hardly_any_weight_do_not_squeeze_the_others():
    values = np.append(np.linspace(0, 1, 99), 100.0)
    weights = np.append(np.full(99, 1.0), 0.01)
    forecast = xrecal.weighted(
        xr.DataArray(values, dims="member", name="t2m"), xr.DataArray(weights, dims="member")
    )
    for figure in (plot.cdf, plot.density):
        low, high = figure(forecast).get_xlim()
        assert -0.2 < low <= 0
        assert 1 <= high < 1.2
        assert figure(forecast, observations=xr.DataArray(7.0)).get_xlim()[1] > 7
        raw = xr.DataArray([0.0, 9.0], dims="member", name="t2m")
        assert figure(forecast, raw=raw).get_xlim()[1] > 9
    heights, edges = plot.density(forecast).patches[0].get_data()[:2]
    assert (heights * np.diff(edges)).sum() == pytest.approx(99 / 99.01)
    ax = plot.cdf(xr.DataArray([-5.0, 0.0], dims="member", name="t2m"))
    low, high = plot.cdf(forecast, ax=ax).get_xlim()
    assert low < -5
    assert 1 < high < 1.2
