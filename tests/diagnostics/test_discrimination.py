import numpy as np
import pytest
import xarray as xr

from tests.strategies import points
from xrecal import arrays

from .calls import FORMS, THRESHOLDS, hindcast

ENSEMBLE, TRUTH = hindcast(n=24)
RATIOS, LEVELS = [0.2, 0.5, 0.8], [0.0, 0.4, 0.8]


@pytest.mark.parametrize("form", FORMS)
def test_curve_area_and_value_at_each_point(form):
    forecast = FORMS[form](ENSEMBLE)
    probability = forecast.recal.exceedance(THRESHOLDS)
    if isinstance(probability, xr.Dataset):
        (probability,) = probability.values()
    roc = forecast.recal.roc(TRUTH, THRESHOLDS, levels=LEVELS)
    value = forecast.recal.economic_value(TRUTH, THRESHOLDS, cost_loss=RATIOS)
    for point in points(TRUTH):
        for k, threshold in enumerate(THRESHOLDS):
            p = probability.isel({**point, "threshold": k}).to_numpy()
            events = (TRUTH.isel(point).to_numpy() > threshold).astype(float)
            at = {**point, "threshold": k}
            area = arrays.roc_area(p, events)
            curve = arrays.roc_curve(p, events, LEVELS)
            np.testing.assert_allclose(roc.area.isel(at), area.area, rtol=1e-12)
            np.testing.assert_allclose(roc.hit_rate.isel(at), curve[0])
            np.testing.assert_allclose(roc.false_alarm_rate.isel(at), curve[1])
            error = arrays.standard_error(area.influence)
            np.testing.assert_allclose(roc.area_error.isel(at), error, rtol=1e-10)
            expected = arrays.economic_value(p, events, RATIOS)
            np.testing.assert_allclose(value.value.isel(at), expected[0], rtol=1e-10)
            np.testing.assert_allclose(value.potential_value.isel(at), expected[1], rtol=1e-10)
            assert value.base_rate.isel(at) == roc.base_rate.isel(at) == events.mean()


@pytest.mark.parametrize("form", FORMS)
def test_generalised_discrimination_at_each_point(form):
    forecast = FORMS[form](ENSEMBLE)
    members = ENSEMBLE if form == "ensemble" else forecast.recal.quantile(np.arange(0.005, 1, 0.01))
    if isinstance(members, xr.Dataset):
        (members,) = members.values()
    found = forecast.recal.generalised_discrimination(TRUTH)
    for point in points(TRUTH):
        y = TRUTH.isel(point).to_numpy()
        m = members.isel(point).transpose("time", ...).to_numpy()
        expected = arrays.generalised_discrimination(y, m)
        # A hundred quantiles tell all pairs apart but for some whose odds are nearly even.
        tolerance = 1e-12 if form == "ensemble" else 4 / 276
        assert abs(found.discrimination.isel(point) - expected.score) <= tolerance
        if form == "ensemble":
            error = arrays.standard_error(expected.influence)
            np.testing.assert_allclose(found.discrimination_error.isel(point), error, rtol=1e-10)


def test_generalised_discrimination_of_shared_members():
    """As of members that each case has for itself."""
    found = FORMS["shared"](ENSEMBLE).recal.generalised_discrimination(TRUTH)
    whole = FORMS["shared"](ENSEMBLE)
    loc = whole.t2m.broadcast_like(whole.t2m_weight)
    expected = whole.assign(t2m=loc.assign_attrs(whole.t2m.attrs))
    expected = expected.recal.generalised_discrimination(TRUTH)
    np.testing.assert_allclose(found.discrimination, expected.discrimination)
    normal = FORMS["normal"](ENSEMBLE).recal.generalised_discrimination(TRUTH)
    assert "of 200 quantiles" in normal.discrimination.attrs["estimator"]


def test_generalised_discrimination_of_several_dimensions_of_cases():
    gaps = TRUTH.where(TRUTH > 277.5)
    assert (
        ENSEMBLE.recal.generalised_discrimination(gaps).n_cases == gaps.notnull().sum("time")
    ).all()
    together = ENSEMBLE.recal.generalised_discrimination(gaps, ["time", "lat"])
    forecast, truth = (
        a.stack(case=["time", "lat"]).drop_vars(["case", "time", "lat"]) for a in (ENSEMBLE, gaps)
    )
    alone = forecast.recal.generalised_discrimination(truth, "case")
    np.testing.assert_allclose(together.discrimination, alone.discrimination, rtol=1e-12)


def test_errors_of_many_places_count_dates():
    """A place beside its copy is no more evidence than that place alone."""
    one = {"lat": slice(1), "lon": slice(1)}
    twice = [
        xr.concat([a.isel(one)] * 2, "lat").assign_coords(lat=[1.0, 2.0]) for a in (ENSEMBLE, TRUTH)
    ]
    for call in (
        lambda f, y, dim: f.recal.roc(y, 280.0, dim).area_error,
        lambda f, y, dim: f.recal.anomaly_correlation(y, None, dim).correlation_error,
    ):
        alone = call(ENSEMBLE.isel(one), TRUTH.isel(one), "time").squeeze()
        both = call(*twice, ["time", "lat"]).squeeze()
        np.testing.assert_allclose(both, alone, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ENSEMBLE.recal.roc(TRUTH, 280.0, levels=[1.2]), r"levels must hold numbers in \["),
        (lambda: ENSEMBLE.recal.roc(TRUTH, 280.0, levels=[]), "levels must hold numbers"),
        (
            lambda: ENSEMBLE.recal.economic_value(TRUTH, 280.0, cost_loss=[0.0, 0.5]),
            "cost_loss must hold numbers between 0 and 1",
        ),
        (
            lambda: ENSEMBLE.recal.anomaly_correlation(TRUTH, centred=False),
            "centred=False needs a climatology",
        ),
        (
            lambda: ENSEMBLE.recal.anomaly_correlation(TRUTH, [279.0, 280.0]),
            "climatology must have one value per case, but has several along 'threshold'",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_single_ratio_has_no_dimension():
    found = ENSEMBLE.recal.economic_value(TRUTH, 280.0, cost_loss=0.3)
    assert "cost_loss" not in found.dims
    assert found.cost_loss == 0.3


# correlation --------------------------------------------------------------------------------------


def test_correlation_at_each_point():
    season = TRUTH.groupby("time.season").mean()
    found = ENSEMBLE.recal.anomaly_correlation(TRUTH)
    anomalies = ENSEMBLE.recal.anomaly_correlation(TRUTH, season, centred=False)
    mean = ENSEMBLE.mean("member").transpose("time", "lat", "lon")
    usual = season.sel(season=TRUTH.time.dt.season).drop_vars("season")
    for point in points(TRUTH):
        f, o = mean.isel(point).to_numpy(), TRUTH.isel(point).to_numpy()
        expected = arrays.anomaly_correlation(f, o)
        np.testing.assert_allclose(found.correlation.isel(point), expected.correlation, rtol=1e-11)
        u = usual.isel(point).to_numpy()
        expected = arrays.anomaly_correlation(f - u, o - u, centred=False)
        np.testing.assert_allclose(
            anomalies.correlation.isel(point), expected.correlation, rtol=1e-10
        )


def test_pattern_correlation_of_each_date():
    found = ENSEMBLE.recal.anomaly_correlation(TRUTH, TRUTH.mean("time"), ["lat", "lon"])
    assert found.correlation.dims == ("time",)
    anomalies = [a - TRUTH.mean("time") for a in (ENSEMBLE.mean("member"), TRUTH)]
    expected = xr.corr(*anomalies, ["lat", "lon"])
    np.testing.assert_allclose(found.correlation, expected, rtol=1e-9)
