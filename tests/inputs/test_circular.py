from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal import arrays
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.vector_ckme import Vectors, fit_vector_ckme, vector_ckme_weights

N, M, NEW = 40, 5, 6


def directions(n=N, seed=0, start="2001-01-15"):
    """Ensembles of wind directions (time, member, lat), turned by 30 degrees, and the truth."""
    rng = np.random.default_rng(seed)
    times = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(30, "D")
    coords, attrs = {"time": times, "lat": [45.0, 46.0]}, {"units": "degree"}
    signal = rng.uniform(0, 360, (n, 2))
    members = (signal[:, np.newaxis] + 30 + 8 * rng.normal(size=(n, M, 2))) % 360
    truth = (signal + 20 * rng.normal(size=(n, 2))) % 360
    return (
        freeze(xr.DataArray(members, coords, ["time", "member", "lat"], "wind", attrs)),
        freeze(xr.DataArray(truth, coords, ["time", "lat"], "wind", attrs)),
    )


HINDCAST, TRUTH = directions()
FORECAST, VERIFIED = directions(NEW, seed=1, start="2011-01-15")


@cache
def fit():
    """The fit of directions."""
    return HINDCAST.recal.fit(TRUTH, period=360)


@settings(max_examples=8)
@given(
    st.permutations(HINDCAST.dims), st.permutations(TRUTH.dims), st.sampled_from([None, {"lat": 1}])
)
def test_each_place_has_the_weights_of_points_on_a_circle(dims, observed_dims, chunks):
    hindcast, truth, forecast = (
        HINDCAST.transpose(*dims),
        TRUTH.transpose(*observed_dims),
        FORECAST.transpose(*dims),
    )
    if chunks is not None:
        hindcast, forecast = hindcast.chunk(chunks), forecast.chunk(chunks)
    model = hindcast.recal.fit(truth, period=360, choose="each")
    found = forecast.recal.apply(model).compute()
    for i in range(2):
        y = TRUTH.isel(lat=i).to_numpy()[np.newaxis, :, np.newaxis]
        cases, new = (
            Vectors(d.isel(lat=i).transpose("time", "member").to_numpy()[np.newaxis, :, np.newaxis])
            for d in (HINDCAST, FORECAST)
        )
        fitted, scale = fit_vector_ckme(cases, y, (360.0,), Settings(loss="energy"))
        usable = np.ones((1, N), bool)
        expected = vector_ckme_weights(new, cases, usable, fitted, scale, (360.0,))[0]
        weights = found["wind_weight"].isel(lat=i).transpose("time", "member")
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(found["wind"].isel(lat=i), TRUTH.isel(lat=i))


def test_statistics_are_those_of_directions():
    whole = issued()
    assert whole["wind"].attrs["circular_period"] == 360
    members = whole["wind"].transpose("lat", "member").to_numpy()
    weights = whole["wind_weight"].transpose("lat", "time", "member").to_numpy()
    y = VERIFIED.transpose("lat", "time").to_numpy()
    known = {"period": 360.0}
    expected = {
        "mean": arrays.circular_mean(members, weights, **known),
        "std": arrays.circular_std(members, weights, **known),
        "crps": arrays.circular_crps(y, members, weights, **known),
    }
    found = {
        "mean": (fit().mean(FORECAST), whole.recal.mean()["wind"]),
        "std": (fit().std(FORECAST), whole.recal.std()["wind"]),
        "crps": (fit().crps(FORECAST, VERIFIED), whole.recal.crps(VERIFIED)),
    }
    for name, values in expected.items():
        for result in found[name]:
            np.testing.assert_allclose(result.transpose("lat", "time"), values, rtol=1e-9)
    eight = fit().members(FORECAST, 8)
    assert eight.attrs["circular_period"] == 360
    members = arrays.circular_members(members, weights, 8, **known)
    np.testing.assert_array_equal(
        np.sort(eight.transpose("lat", "time", "member")), np.sort(members)
    )


def test_forecasts_that_bear_a_period_are_scored_on_the_circle():
    raw = FORECAST.assign_attrs(circular_period=360.0)
    found = raw.recal.crps(VERIFIED)
    expected = arrays.circular_crps(
        VERIFIED.to_numpy(), FORECAST.transpose("time", "lat", "member").to_numpy(), period=360.0
    )
    np.testing.assert_allclose(found, expected)
    assert float(fit().crps(FORECAST, VERIFIED, "time").mean()) < float(found.mean())
    assert raw.recal.members(3).attrs["circular_period"] == 360
    named = HINDCAST.assign_attrs(circular_period=360.0).recal.fit(TRUTH)
    xr.testing.assert_identical(
        named.apply(FORECAST).drop_attrs(), fit().apply(FORECAST).drop_attrs()
    )


def test_where_north_is_makes_no_difference():
    turned = [((d + 77) % 360).assign_attrs(d.attrs) for d in (HINDCAST, TRUTH, FORECAST)]
    model = turned[0].recal.fit(turned[1], period=360)
    found = (model.mean(turned[2]) - 77) % 360
    xr.testing.assert_allclose(found.drop_attrs(), fit().mean(FORECAST).drop_attrs(), rtol=1e-4)


def test_a_direction_and_a_speed_are_recalibrated_jointly():
    speed = (abs(HINDCAST - 180) / 20).assign_attrs(units="m s-1")
    observed = (abs(TRUTH - 180) / 20).assign_attrs(units="m s-1")
    hindcast = xr.Dataset({"wind": HINDCAST, "speed": speed})
    truth = xr.Dataset({"wind": TRUTH, "speed": observed})
    new = xr.Dataset(
        {"wind": FORECAST, "speed": (abs(FORECAST - 180) / 20).assign_attrs(speed.attrs)}
    )
    known = {"jointly": ("speed", "wind"), "period": {"wind": 360}}
    model = hindcast.recal.fit(truth, choose="each", **known)
    issued = model.apply(new)
    assert issued["wind"].attrs["circular_period"] == 360
    assert "circular_period" not in issued["speed"].attrs
    drawn = model.members(new, 4)
    past = {tuple(pair) for pair in np.stack([observed, TRUTH], -1).reshape(-1, 2)}
    pairs = np.stack([drawn["speed"], drawn["wind"]], -1).reshape(-1, 2)
    assert {tuple(pair) for pair in pairs} <= past
    assert model["speed"].quantile(new, 0.5)["speed"].notnull().all()
    y = np.stack([TRUTH.isel(lat=0), observed.isel(lat=0)], -1)[np.newaxis, :, ::-1]
    x = np.stack([speed.isel(lat=0), HINDCAST.isel(lat=0)], 1)[np.newaxis]
    known = (None, 360.0), Settings(loss="energy")
    fitted, _ = fit_vector_ckme(Vectors(x), y, *known)
    assert model.variables["wind"].state["ridge"].isel(lat=0) == pytest.approx(fitted.ridge[0])


def test_models_of_directions_are_lazy_and_stored(tmp_path):
    with forbid_compute():
        lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, period=360).mean(FORECAST.chunk(lat=1))
    xr.testing.assert_allclose(lazy.compute(), fit().mean(FORECAST))
    fit().save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    xr.testing.assert_identical(
        opened.apply(FORECAST).drop_attrs(), fit().apply(FORECAST).drop_attrs()
    )


def test_plans_are_made_for_directions():
    (part,) = fit().plan(FORECAST).variables
    assert part.seconds_per_location > 0
    assert part.members == M


@pytest.mark.parametrize("period", ["monthly", 24, 0])
def test_a_mere_period_is_another_attribute(period):
    plain = HINDCAST.assign_attrs(period=period).recal.fit(TRUTH)
    assert plain.quantile(FORECAST, 0.5).notnull().all()


@cache
def issued():
    """What the fit issues."""
    return fit().apply(FORECAST)


def drawn():
    """A plain ensemble of directions."""
    return fit().members(FORECAST, 9)


RAW, ON_CIRCLE = (d.assign_attrs(circular_period=360) for d in (FORECAST, HINDCAST))
QUANTILES = HINDCAST.quantile([0.2, 0.5], "member")
NORMAL = xrecal.gaussian(RAW.mean("member", keep_attrs=True), FORECAST.std("member"))
TWO, BOTH = (xr.Dataset({"a": d, "b": d}) for d in (HINDCAST, TRUTH))
NO_NUMBER = "must be a positive number in its unit"
ORDER = "'wind' is circular .*values on a circle have no order"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: fit().quantile(FORECAST, 0.5), ORDER),
        (lambda: fit().exceedance(FORECAST, 90), ORDER),
        (lambda: fit().cdf(FORECAST, 90), ORDER),
        (lambda: fit().categories(FORECAST), ORDER),
        (lambda: fit().pit(FORECAST, VERIFIED), ORDER),
        (lambda: fit().members(FORECAST, coherence="ecc"), ORDER),
        (lambda: fit().members(FORECAST, 5, coherence="schaake"), ORDER),
        (lambda: issued().recal.quantile(0.5), ORDER),
        (lambda: issued().recal.crps(VERIFIED, lower=10), ORDER),
        (lambda: drawn().recal.crps(VERIFIED, fair=True), ORDER),
        (lambda: drawn().recal.log_score(VERIFIED), ORDER),
        (lambda: issued().recal.summary(VERIFIED, "time"), "diagnostics need values that have an"),
        (lambda: issued().recal.skce(VERIFIED, "time"), "diagnostics need values that have an"),
        (lambda: drawn().recal.energy_score(VERIFIED), "scores of fields need values on a line"),
        (lambda: ON_CIRCLE.recal.cross_validate(TRUTH), "only a fit with CKME can use the circle"),
        (
            lambda: HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), period=360),
            "wind is recalibrated on a circle of period 360, which EMOS cannot do; take xrecal.CK",
        ),
        (
            lambda: HINDCAST.recal.fit(TRUTH, xrecal.CKME(support="errors"), period=360),
            "support='errors' is not for wind",
        ),
        (lambda: HINDCAST.recal.fit(TRUTH, period=-1), "the period of 'wind' must be a positive"),
        (lambda: HINDCAST.recal.fit(TRUTH, period=np.timedelta64(24, "h")), NO_NUMBER),
        (lambda: HINDCAST.recal.fit(TRUTH, period=True), NO_NUMBER),
        (
            lambda: fit().apply(FORECAST.assign_attrs(circular_period=24)),
            "has the circular_period 24, but the hindcast of the model had 360; fit again",
        ),
        (lambda: HINDCAST.recal.fit(TRUTH).mean(RAW), "but the hindcast of the model was not ci"),
        (lambda: NORMAL.recal.mean(), "has the form 'normal', which has no members"),
        (
            lambda: HINDCAST.recal.fit(TRUTH, period={"gust": 360}),
            r"period names 'gust', but the forecast variables of the hindcast are \['wind'\]",
        ),
        (
            lambda: TWO.recal.fit(BOTH, period=360),
            "period=360 is for one variable, .*name the circular ones: period={'a': 360}",
        ),
        (
            lambda: QUANTILES.recal.fit(TRUTH, period=360),
            "has the form 'quantile', but only members can be recalibrated on a circle",
        ),
    ],
)
def test_what_a_circle_does_not_have_is_told(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
