"""The linear pool as a method."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.arrays import crps
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.components import components_of

SMALL = xrecal.LinearPool((xrecal.CKME(support="auto"), xrecal.EMOS(), xrecal.Climatology()))


def data(n=80, members=6, seed=0, start="2000-01-01", days=30, zeros=False):
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(days, "D")
    signal = rng.normal(size=n)
    forecast = signal[:, np.newaxis] + 1 + 0.3 * rng.normal(size=(n, members))
    observed = signal + 0.5 * rng.normal(size=n)
    if zeros:
        forecast, observed = np.maximum(forecast, 0), np.maximum(observed, 0)
    forecast = xr.DataArray(forecast, {"time": time}, ["time", "member"], name="x")
    return forecast, xr.DataArray(observed, {"time": time}, ["time"])


def test_defaults_hold_the_season_where_dates_allow():
    long = CaseAxis(np.arange(40) // 12 + 2000, np.arange(40) / 12 % 1, 30.0 * np.arange(40))
    method, note = xrecal.LinearPool().check(long, 40)
    assert note is None
    assert method.covariates == ("season",)
    assert [component.label for component in method.components] == [
        "ckme_season", "ckme_shapes_season", "ckme", "idr_season", "climatology", "raw",
    ]  # fmt: skip
    supports = [m.support for m in method.mixed if isinstance(m, xrecal.CKME)]
    assert supports == ["standardised", "standardised", "regression"]
    assert [m.bandwidth for m in method.mixed[:3]] == ["cv", "cv", "median"]


def test_without_dates_the_season_drops_out_and_says_so():
    method, note = xrecal.LinearPool().check(CaseAxis(), 40)
    assert method.covariates == ()
    assert "no dates" in note
    short = CaseAxis(np.full(40, 2000), np.arange(40) / 365, np.arange(40.0))
    method, note = xrecal.LinearPool().check(short, 40)
    assert method.covariates == ()
    assert "span 39 days" in note
    labels = [component.label for component in method.components]
    assert labels == ["ckme", "ckme_shapes", "idr", "climatology", "raw"]


@pytest.mark.parametrize(("width", "told"), [(0, False), (20, False), (90, True)])
def test_a_season_that_hardly_varies_tells_nothing(width, told):
    """Dates around the new year, one a year."""
    years = np.arange(30)
    date = np.linspace(-0.5, 0.5, 30) * width / 365.25
    axis = CaseAxis(2000 + years, date % 1, 365.25 * (years + date))
    method, note = xrecal.LinearPool().check(axis, 30)
    assert note is None
    assert method.covariates == ("season",) * told
    method, _ = xrecal.LinearPool(condition_on="season").check(axis, 30)
    assert method.covariates == ("season",)


def test_an_explicit_season_needs_dates():
    with pytest.raises(ValueError, match="needs dates"):
        xrecal.LinearPool(condition_on="season").check(CaseAxis(), 40)


def test_a_remark_becomes_a_warning_and_part_of_the_model():
    forecast, observed = data()
    bare = forecast.assign_coords(time=np.arange(80)), observed.assign_coords(time=np.arange(80))
    with pytest.warns(UserWarning, match="no dates, so the pool leaves the season out"):
        model = bare[0].recal.fit(bare[1], xrecal.LinearPool())
    assert "no dates" in repr(model)


def test_components_and_blocks_of_members():
    labels = [component.label for component in components_of(SMALL.mixed)]
    assert labels == [
        "ckme_observations", "ckme_mean", "ckme_regression", "ckme_standardised", "ckme_ratio",
        "emos", "climatology",
    ]  # fmt: skip
    cases, names = SMALL.slots(30)
    assert SMALL.blocks(30) == {
        "observations": 30, "ckme_mean": 30, "ckme_regression": 30, "ckme_standardised": 30,
        "ckme_ratio": 30, "emos": 200, "average": 200,
    }  # fmt: skip
    assert cases.size == len(names) == 570
    np.testing.assert_array_equal(cases[:30], np.arange(30))
    assert (cases[-420:] == -1).all()
    assert [*dict.fromkeys(names)][-3:] == ["emos", "average", "tail"]


def test_two_methods_of_one_class_have_labels_of_their_own():
    pool = xrecal.LinearPool(
        (
            xrecal.CKME(support="observations"),
            xrecal.CKME(support="observations", projection="energy"),
            xrecal.CKME(support="observations", gap=1),
        )
    )
    assert [c.label for c in pool.components] == ["ckme", "ckme_2", "ckme_3"]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ((), "one or more methods"),
        ((xrecal.CKME(support="observations"), "EMOS"), "one or more methods"),
        ((xrecal.LinearPool(),), "none of them a pool"),
        ((xrecal.EMOS(), xrecal.EMOS()), "must differ"),
        (
            (xrecal.EMOS(condition_on="season"), xrecal.IDR(condition_on="lead")),
            "the same covariates",
        ),
    ],
)
def test_bad_methods(methods, message):
    with pytest.raises(ValueError, match=message):
        xrecal.LinearPool(methods)


def test_the_forecast_is_the_mixture_of_its_components():
    forecast, observed = data()
    train, test = forecast[:60], forecast[60:]
    methods = xrecal.CKME(support="observations", ridge=0.01), xrecal.EMOS(), xrecal.Climatology()
    pool = xrecal.LinearPool(methods, average=None, tails=None, novelty=None)
    model = train.recal.fit(observed, pool)
    result = model.apply(test)
    assert result.x_weight.dims == ("time", "member")
    np.testing.assert_allclose(result.x_weight.sum("member"), 1)
    weight = model.state["pool_weight"].to_series()
    parts = {
        "ckme": train.recal.fit(observed, xrecal.CKME(support="observations", ridge=0.01)).apply(
            test
        ),
        "climatology": train.recal.fit(observed, xrecal.Climatology()).apply(test),
    }
    shared = result.isel(member=result.component.values == "observations")
    expected = sum(weight[name] * part.x_weight.values for name, part in parts.items())
    np.testing.assert_allclose(shared.x_weight, expected)
    np.testing.assert_allclose(shared.x[0], observed[:60])
    emos = result.isel(member=result.component.values == "emos")
    np.testing.assert_allclose(emos.x_weight, weight["emos"] / 200)
    levels = (np.arange(200) + 0.5) / 200
    quantiles = train.recal.fit(observed, xrecal.EMOS()).quantile(test, levels)
    np.testing.assert_allclose(emos.x.where(emos.x_weight > 0), quantiles.values)
    scores = crps(observed[60:].values, result.x.values, result.x_weight.values)
    np.testing.assert_allclose(model.crps(test, observed), scores)


def test_labels_of_members():
    forecast, observed = data()
    result = forecast[:60].recal.fit(observed, SMALL).apply(forecast[60:])
    dates = result["calibration_time"]
    assert dates.dims == ("member",)
    assert dates.isnull().sum() == 420
    np.testing.assert_array_equal(dates[:60], forecast.time[:60])


def test_bounds_and_exact_zeros():
    forecast, observed = data(n=120, zeros=True)
    model = forecast[:90].recal.fit(observed, xrecal.LinearPool())
    result = model.apply(forecast[90:])
    members = result.x.where(result.x_weight > 0)
    assert float(members.min()) == 0.0
    assert float(result.x_weight.where(result.x == 0).sum("member").mean()) > 0.2


@pytest.mark.parametrize("average", ["auto", None])
def test_forecasts_that_overshoot_the_bounds_are_kept_within(average):
    rng = np.random.default_rng(1)
    signal, dates = 50 + 60 * rng.normal(size=160), {"time": np.arange(160)}
    cover = xr.DataArray(np.clip(signal + 15 * rng.normal(size=160), 0, 100), dates, ["time"])
    members = np.clip(signal[:, np.newaxis] + 15 * rng.normal(size=(160, 8)), 0, 100)
    members = members + 3 * rng.normal(size=members.shape)
    forecast = xr.DataArray(members, dates, ["time", "member"])
    method = xrecal.LinearPool((xrecal.Raw(), xrecal.CKME(bounds=(0, 100))), average=average)
    model = forecast[:120].recal.fit(cover, method)
    assert model.state["pool_weight"].sel(component="raw") > 0
    ends = model.quantile(forecast[120:], [0, 1])
    assert (float(ends.min()), float(ends.max())) == (0.0, 100.0)
    assert (model.exceedance(forecast[120:], 100) == 0).all()
    assert model.exceedance(forecast[120:], 99).max() > 0


def test_missing_forecasts_and_few_cases():
    forecast, observed = data()
    both = xr.concat([forecast, forecast], "station")
    seen = xr.concat([observed, observed.where(np.arange(80) < 10)], "station")
    test = both[:, 60:].copy()
    test[0, 2] = np.nan
    model = both[:, :60].recal.fit(seen, SMALL)
    np.testing.assert_array_equal(model.state["status"].isel(station=1) & 1, 1)
    weights = model.apply(test).x_weight
    assert weights[1].isnull().all()
    assert weights[0, 2].isnull().all()
    assert weights[0, :2].notnull().all()


def test_lazy_and_in_any_chunks_the_same():
    forecast, observed = data()
    both = xr.concat([forecast, forecast + 1, 2 * forecast], "station")
    model = both[:, :60].recal.fit(observed, SMALL)
    lazy = both[:, :60].chunk(station=2).recal.fit(observed, SMALL)
    assert not lazy.is_computed
    expected = model.quantile(both[:, 60:], [0.1, 0.5])
    np.testing.assert_array_equal(lazy.compute().quantile(both[:, 60:], [0.1, 0.5]), expected)
    chunked = model.quantile(both[:, 60:].chunk(time=7, station=1), [0.1, 0.5])
    assert chunked.chunks is not None
    np.testing.assert_allclose(chunked, expected, rtol=1e-12)


def test_a_season_in_the_errors_is_found():
    rng = np.random.default_rng(1)
    time = np.datetime64("2000-01-01", "ns") + np.arange(400) * np.timedelta64(5, "D")
    phase = 2 * np.pi * (time - time[0]) / np.timedelta64(1, "D") / 365.25
    signal = rng.normal(size=400)
    forecast = xr.DataArray(
        signal[:, np.newaxis] + 0.2 * rng.normal(size=(400, 5)), {"time": time}, ["time", "member"]
    )
    observed = xr.DataArray(signal + np.sin(phase) + 0.3 * rng.normal(size=400), {"time": time})
    train, test = forecast[:300], forecast[300:]
    scores = {
        str(method): float(train.recal.fit(observed, method).crps(test, observed).mean())
        for method in (xrecal.LinearPool(condition_on=()), xrecal.LinearPool())
    }
    without, season = scores.values()
    assert season < 0.6 * without


SEASONAL = ["ckme_season", "ckme_shapes_season", "idr_season"]


def short_record(errors, n=300):
    """Daily forecasts with errors that change in the record."""
    rng = np.random.default_rng(0)
    time = np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    signal = 2 * rng.normal(size=n)
    members = signal[:, np.newaxis] + errors[:, np.newaxis] + rng.normal(size=(n, 8))
    forecast = xr.DataArray(members, {"time": time}, ["time", "member"])
    return forecast, xr.DataArray(signal + 0.5 * rng.normal(size=n), {"time": time}, ["time"])


def test_a_jump_in_a_short_record_is_no_season():
    day = np.arange(300)
    season = xrecal.LinearPool(condition_on="season")
    weights = {}
    for name, errors in (("jump", 3.0 * (day >= 160)), ("season", 2 * np.sin(day / 58.1))):
        forecast, observed = short_record(errors)
        state = forecast.recal.fit(observed, season).state
        np.testing.assert_allclose(state["pool_weight"].sum(), 1)
        weights[name] = float(state["pool_weight"].sel(component=SEASONAL).sum())
    assert weights["jump"] == 0
    assert weights["season"] > 0.5


def test_a_season_in_doubt_keeps_its_weight_where_nothing_else_is_recalibrated():
    forecast, observed = short_record(3.0 * (np.arange(300) >= 160))
    emos = xrecal.EMOS(condition_on="season")
    model = forecast.recal.fit(observed, xrecal.LinearPool((emos, xrecal.Climatology())))
    assert model.state["pool_weight"].sel(component="emos_season") > 0.5


def test_a_gap_and_a_start_of_the_year_reach_all_that_is_mixed():
    pool = xrecal.LinearPool(gap="40D", year_start=7)
    assert [(m.gap, m.year_start) for m in pool.mixed if isinstance(m, xrecal.CKME)] == [
        ("40D", "07-01")
    ] * 2
    own = xrecal.CKME(support="observations", gap=2, year_start="03-01")
    given = (
        own,
        xrecal.CKME(support="observations"),
        xrecal.CKME(support="observations", folds="random"),
        xrecal.EMOS(),
    )
    mixed = xrecal.LinearPool(given, gap="40D", year_start=7).mixed
    assert mixed[0] == own
    assert mixed[1] == xrecal.CKME(support="observations", gap="40D", year_start="07-01")
    assert mixed[2].gap == 0
    assert mixed[3] == xrecal.EMOS()


def test_a_gap_in_time_is_that_of_as_many_cases():
    """Cases are 30 days apart: 70 days are two of them."""
    forecast, observed = data()
    methods = (xrecal.CKME(support="observations"), xrecal.EMOS())
    days, cases, none = (
        forecast.recal.fit(observed, xrecal.LinearPool(methods, gap=gap)).state.pool_weight
        for gap in ("70D", 2, 0)
    )
    np.testing.assert_array_equal(days, cases)
    assert not np.array_equal(days, none)


def test_no_case_is_left_by_a_gap_of_all():
    forecast, observed = data(n=60)
    pool = xrecal.LinearPool((xrecal.EMOS(), xrecal.Climatology()), gap=60)
    assert forecast.recal.fit(observed, pool).state["pool_weight"].isnull().all()


# forecasts unlike past ones -----------------------------------------------------------------------


def risen(n=200, seed=0):
    """Unbiased but for a shift, with a new forecast far above all others."""
    rng = np.random.default_rng(seed)
    signal = np.append(rng.uniform(-3, 8, size=n), 30.0)
    time = np.datetime64("2000-01-01", "ns") + np.arange(n + 1) * np.timedelta64(10, "D")
    forecast = signal[:, np.newaxis] + rng.normal(size=(n + 1, 10))
    forecast = xr.DataArray(forecast, {"time": time}, ["time", "member"], name="x")
    observed = xr.DataArray(1 + signal + rng.normal(size=n + 1), {"time": time}, ["time"])
    return forecast, observed[:n]


@pytest.mark.filterwarnings("ignore:.* (far from the hindcast|are unlike):UserWarning")
@pytest.mark.parametrize("methods", [None, (xrecal.CKME(support="auto"), xrecal.Climatology())])
def test_a_forecast_beyond_all_others_is_not_of_the_past(methods):
    forecast, observed = risen()
    above = {}
    for novelty in ("auto", None):
        pool = xrecal.LinearPool(methods, novelty=novelty)
        model = forecast[:-1].recal.fit(observed, pool)
        above[novelty] = model.exceedance(forecast[-1:], 12.0).item()
        assert model.novelty(forecast[-1:]).item() > 0.85
    assert above["auto"] > 0.999
    assert above[None] <= above["auto"]


def test_ordinary_forecasts_of_a_pool_are_no_worse():
    forecast, observed = data(300)
    scores = {}
    for novelty in ("auto", None):
        pool = xrecal.LinearPool((xrecal.CKME(support="auto"), xrecal.EMOS()), novelty=novelty)
        model = forecast[:200].recal.fit(observed, pool)
        scores[novelty] = model.crps(forecast[200:], observed).mean().item()
    assert scores["auto"] < 1.01 * scores[None]


def test_novelty_is_auto_or_none():
    with pytest.raises(ValueError, match="novelty must be one of 'auto', None, got 'no'"):
        xrecal.LinearPool(novelty="no")


# averages of quantiles ----------------------------------------------------------------------------


MIXED = xrecal.CKME(support="regression"), xrecal.EMOS(), xrecal.Climatology()


def test_half_of_the_mass_is_the_average_of_the_quantiles():
    forecast, observed = data()
    train, test = forecast[:60], forecast[60:]
    plain = xrecal.LinearPool(MIXED, average=None, tails=None, novelty=None)
    without = train.recal.fit(observed, plain).apply(test)
    model = train.recal.fit(observed, dataclasses.replace(plain, average="auto"))
    issued = model.apply(test)
    average = (issued.component == "average").to_numpy()
    np.testing.assert_allclose(issued.x_weight[:, ~average], without.x_weight / 2)
    np.testing.assert_allclose(issued.x[:, ~average], without.x)
    np.testing.assert_allclose(issued.x_weight[:, average], 0.5 / 200)
    levels = (np.arange(200) + 0.5) / 200
    expected = sum(
        weight * train.recal.fit(observed, method).quantile(test, levels).values
        for weight, method in zip(
            model.state["pool_weight"].values,
            (dataclasses.replace(MIXED[0], ridge=alone(model), tails=None), *MIXED[1:]),
            strict=True,
        )
    )
    np.testing.assert_allclose(issued.x[:, average], expected, rtol=1e-6)


def alone(model):
    """Ridge that a CKME has as a component, of the grid."""
    return float(model.state["ckme_ridge"])


def test_zeros_of_the_average_have_the_mixed_probability():
    forecast, observed = data(n=120, zeros=True)
    pool = xrecal.LinearPool(MIXED, tails=None, novelty=None)
    issued = forecast[:90].recal.fit(observed, pool).apply(forecast[90:])
    zero, average = issued.x_weight.where(issued.x == 0, 0), issued.component == "average"
    mixed, averaged = (zero.isel(member=where).sum("member") for where in (~average, average))
    np.testing.assert_allclose(averaged, mixed, atol=0.5 / 200 + 1e-9)
    assert (averaged > 0).any()
    assert (issued.x.where(issued.x_weight > 0).isel(member=average) >= 0).all()


@pytest.mark.filterwarnings("ignore:.* (far from|are unlike|of their mass):UserWarning")
def test_what_gives_way_to_novelty_leaves_the_average_too():
    """Beyond the record nothing but errors around the forecast is left."""
    forecast, observed = risen()
    methods = xrecal.CKME(support="regression"), xrecal.IDR(), xrecal.Climatology()
    model = forecast[:-1].recal.fit(observed, xrecal.LinearPool(methods, tails=None))
    issued = model.apply(forecast[-1:])
    average = issued.x.isel(member=(issued.component == "average").to_numpy())
    assert float(average.min()) > 25
