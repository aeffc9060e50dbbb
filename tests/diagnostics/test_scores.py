import numpy as np
import properscoring
import pytest
import xarray as xr

import xrecal
from tests.strategies import FORMS, LEVELS, close, ensemble_and_truth, points
from xrecal import arrays

from .calls import FORMS as EVERY_FORM
from .calls import MEMBERS, hindcast

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)


def test_plain_ensembles_as_properscoring():
    members = ENSEMBLE.transpose("time", "lat", "lon", "member").to_numpy()
    expected = properscoring.crps_ensemble(TRUTH.to_numpy(), members)
    np.testing.assert_allclose(ENSEMBLE.recal.crps(TRUTH), expected, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_closed_and_sampled_scores_are_near(form):
    """A forecast and many of its own quantiles have nearly the same score."""
    forecast = FORMS[form](ENSEMBLE)
    levels = (np.arange(400) + 0.5) / 400
    sampled = forecast.recal.quantile(levels)
    sampled = sampled["t2m"] if isinstance(sampled, xr.Dataset) else sampled
    found = sampled.drop_vars("quantile").rename(quantile="member").recal.crps(TRUTH)
    expected = forecast.recal.crps(TRUTH)
    np.testing.assert_allclose(found.transpose(*expected.dims), expected, atol=0.02)


def test_means_are_bit_equal_over_location_chunks_and_near_over_cases():
    forecast, truth = hindcast(n=40)
    for dim, chunks in (("time", {"lat": 1, "lon": 1}), (["time", "lat"], {"lon": 1})):
        expected = forecast.recal.crps(truth, dim)
        found = forecast.chunk(chunks).recal.crps(truth, dim)
        assert found.chunks is not None
        xr.testing.assert_identical(found.compute(), expected)
        split = forecast.chunk(time=7, lat=1).recal.crps(truth, dim)
        close(split.compute(), expected)
    assert forecast.recal.crps(truth, []).identical(forecast.recal.crps(truth))


def test_means_keep_what_belongs_to_places():
    forecast = ENSEMBLE.assign_coords(height=("lat", [1.0, 2.0]), month=ENSEMBLE.time.dt.month)
    found = forecast.recal.crps(TRUTH, "time")
    assert set(found.coords) == {"lat", "lon", "height"}
    assert found.dims == ("lat", "lon")
    with pytest.raises(ValueError, match="dim='member' is not among the dimensions of the scores"):
        ENSEMBLE.recal.crps(TRUTH, "member")
    with pytest.raises(ValueError, match="dim='x' is not among the dimensions of the scores"):
        ENSEMBLE.recal.brier_score(TRUTH, 280.0, "x")


def test_means_of_float32_are_summed_in_float64():
    members = xr.DataArray(np.full((1, 3_000_000, 1), 0.1, "f4"), dims=["member", "time", "x"])
    verified = xr.DataArray(np.zeros((3_000_000, 1), "f4"), dims=["time", "x"])
    found = members.recal.crps(verified, "time")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.float32(0.1))


def test_single_forecast():
    scores = ENSEMBLE.recal.crps(TRUTH)
    found = ENSEMBLE.isel(time=3).recal.crps(TRUTH.isel(time=3))
    xr.testing.assert_identical(found, scores.isel(time=3))


def test_invalid_forecasts_are_nan_and_leave_the_others_alone():
    weights = xr.ones_like(ENSEMBLE)
    scores = xrecal.weighted(ENSEMBLE, weights).recal.crps(TRUTH)
    weights[{"time": 3, "lat": 0, "lon": 0}] = -1.0
    bad = xrecal.weighted(ENSEMBLE, weights)
    for result in (bad.recal.crps(TRUTH), bad.recal.mean().to_dataarray()[0]):
        assert int(result.isnull().sum()) == 1
        assert np.isnan(result[{"time": 3, "lat": 0, "lon": 0}])
    found = bad.recal.crps(TRUTH)
    xr.testing.assert_allclose(found, scores.where(found.notnull()))


# fair, between thresholds, with weighted levels ---------------------------------------------------


def test_fair_scores_do_not_depend_on_the_number_of_members():
    assert ENSEMBLE[:, :1].recal.crps(TRUTH, fair=True).isnull().all()
    forecast, truth = hindcast(n=400, m=20)
    few = forecast[:, :3]
    assert few.recal.crps(truth, ...) > 1.1 * forecast.recal.crps(truth, ...)
    fair = [f.recal.crps(truth, ..., fair=True).item() for f in (few, forecast)]
    assert fair[0] == pytest.approx(fair[1], rel=0.04)


@pytest.mark.parametrize("form", [form for form in EVERY_FORM if form != "ensemble"])
def test_fair_scores_need_plain_ensembles(form):
    message = (
        r"fair=True is for plain ensembles, but '?t2m'? is a forecast of the form '\w+'; leave"
    )
    for score in (
        lambda f: f.recal.crps(TRUTH, fair=True),
        lambda f: f.recal.brier_score(TRUTH, 280.0, fair=True),
    ):
        with pytest.raises(ValueError, match=message):
            score(EVERY_FORM[form](ENSEMBLE))


BY_PLACE = xr.DataArray(
    [[279.0, 280.0], [281.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)


def test_scores_between_thresholds_at_each_point():
    members, weighted = ENSEMBLE, FORMS["weighted"](ENSEMBLE)
    normal = FORMS["normal"](ENSEMBLE)
    for upper in (283.0, BY_PLACE + 3):
        options = {"lower": 279.5, "upper": upper}
        found = {
            f: x.recal.crps(TRUTH, **options)
            for f, x in zip(
                ("plain", "weighted", "normal"), (members, weighted, normal), strict=True
            )
        }
        for point in points(TRUTH):
            y = TRUTH.isel(point).to_numpy()
            top = upper if isinstance(upper, float) else upper.isel(point).item()
            ends = {"lower": 279.5, "upper": top}
            x = members.isel(point).to_numpy()
            expected = arrays.threshold_weighted_crps(y, x, **ends)
            np.testing.assert_array_equal(found["plain"].isel(point), expected)
            w = weighted.t2m_weight.isel(point).to_numpy()
            expected = arrays.threshold_weighted_crps(y, x, w, **ends)
            np.testing.assert_array_equal(found["weighted"].isel(point), expected)
            loc, scale = (
                normal[f"t2m_{p}"].isel(point).to_numpy()[:, None] for p in ("loc", "scale")
            )
            expected = arrays.normal_threshold_crps(y, loc, scale, np.ones(1), **ends)
            np.testing.assert_array_equal(found["normal"].isel(point), expected)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_scores_between_thresholds_add_up(form):
    forecast = EVERY_FORM[form](ENSEMBLE)
    whole = forecast.recal.crps(TRUTH)
    cut = BY_PLACE.fillna(282.0)
    parts = [forecast.recal.crps(TRUTH, upper=cut), forecast.recal.crps(TRUTH, lower=cut)]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-6, atol=1e-9)
    assert (parts[0] < whole).any()
    assert parts[0].attrs["estimator"].endswith("; values below a threshold by place count")
    both = forecast.recal.crps(TRUTH, lower=1.0, upper=280)
    assert both.attrs["estimator"].endswith("; values above 1.0 and below 280 count")


@pytest.mark.parametrize("form", MEMBERS)
def test_weighted_levels_add_up(form):
    forecast = FORMS[form](ENSEMBLE)
    parts = [forecast.recal.quantile_weighted_crps(TRUTH, emphasis=e) for e in ("tails", "center")]
    np.testing.assert_allclose(parts[0] + 4 * parts[1], forecast.recal.crps(TRUTH), rtol=1e-10)


@pytest.mark.parametrize("form", ["normal", "mixture", "censored"])
def test_weighted_levels_of_other_forms_are_those_of_200_quantiles(form):
    forecast = EVERY_FORM[form](ENSEMBLE)
    levels = (np.arange(200) + 0.5) / 200
    members = forecast.recal.quantile(levels).t2m.drop_vars("quantile").rename(quantile="member")
    found = forecast.recal.quantile_weighted_crps(TRUTH)
    np.testing.assert_allclose(found, members.recal.quantile_weighted_crps(TRUTH), rtol=1e-10)


# log score ----------------------------------------------------------------------------------------


def test_log_scores_of_other_forms_at_each_point():
    found = {
        form: EVERY_FORM[form](ENSEMBLE).recal.log_score(TRUTH)
        for form in ("quantile", "percentile", "normal", "mixture", "censored")
    }
    quantiles = EVERY_FORM["quantile"](ENSEMBLE)
    for point in points(TRUTH):
        y, members = (a.isel(point).to_numpy() for a in (TRUTH, ENSEMBLE))
        loc, scale = members.mean(-1), members.std(-1)
        expected = {
            "quantile": arrays.quantile_log_score(
                y, quantiles.isel(point).transpose("time", "quantile").to_numpy(), LEVELS
            ),
            "percentile": arrays.quantile_log_score(y, members, [0.05, 0.3, 0.5, 0.7, 0.9]),
            "normal": arrays.normal_log_score(y, loc, scale),
            "mixture": arrays.normal_log_score(
                y, members[:, :3], np.full((1, 3), 1.5), [0.5, 0.25, 0.25]
            ),
            "censored": arrays.censored_normal_log_score(y, loc, scale, 278.0, 283.0),
        }
        for form, scores in expected.items():
            np.testing.assert_allclose(found[form].isel(point), scores, rtol=1e-10)


def test_log_scores_of_samples_are_near_those_of_the_density():
    ensemble, truth = hindcast()
    normal = FORMS["normal"](ensemble)
    levels = np.arange(0.005, 1, 0.01)
    sampled = normal.recal.quantile(levels).t2m
    expected = normal.recal.log_score(truth)
    members = sampled.drop_vars("quantile").rename(quantile="member")
    near = expected < 1.5
    assert near.sum() > 10
    for forecast in (sampled, members):
        found = forecast.recal.log_score(truth).where(near)
        np.testing.assert_allclose(found, expected.where(near), atol=0.15)


def test_log_scores_without_a_density():
    """Members that are all equal are a point: inf off it, and in the mean, NaN on it."""
    dry = xr.zeros_like(ENSEMBLE)
    truth = xr.zeros_like(TRUTH)
    assert dry.recal.log_score(truth).isnull().all()
    truth[4] = 1.0
    assert (dry.recal.log_score(truth)[4] == np.inf).all()
    assert (dry.recal.log_score(truth, "time") == np.inf).all()


def test_settings_that_cannot_be():
    with pytest.raises(ValueError, match="fair=True has no thresholds"):
        ENSEMBLE.recal.crps(TRUTH, fair=True, lower=280.0)
    with pytest.raises(ValueError, match=r"lower must not exceed upper, found 281 and 280\.5"):
        ENSEMBLE.chunk(lat=1).recal.crps(TRUTH, lower=281, upper=280.5)
    with pytest.raises(ValueError, match="there are several along 'threshold'; select one"):
        ENSEMBLE.recal.crps(TRUTH, lower=[280.0, 281.0])
    with pytest.raises(ValueError, match="forecast is in K but threshold is in degC"):
        ENSEMBLE.recal.crps(TRUTH, lower=BY_PLACE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="emphasis is 'middle'; give one of"):
        ENSEMBLE.recal.quantile_weighted_crps(TRUTH, emphasis="middle")
