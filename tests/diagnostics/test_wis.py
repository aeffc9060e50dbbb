import numpy as np
import pytest
import xarray as xr

from tests.marks import forbid_compute
from tests.strategies import close, points
from xrecal import arrays
from xrecal.diagnostics.wis import HUB_LEVELS

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=9, step=0.25)
LEVELS = [0.9, 0.25, 0.5, 0.75, 0.1]
QUANTILES = ENSEMBLE.quantile(LEVELS, "member", keep_attrs=True)
OTHERS = [form for form in FORMS if form not in ("quantile", "percentile")]


def expected_at(point, levels):
    y = TRUTH.isel(point).to_numpy()
    q = QUANTILES.isel(point).transpose("time", "quantile").sel(quantile=levels).to_numpy()
    return arrays.weighted_interval_score(y, q, levels)


@pytest.mark.parametrize("forecast", [QUANTILES, QUANTILES.chunk(time=4, lon=1)])
def test_quantiles_at_each_point(forecast):
    forecast, truth = forecast.transpose("lon", "time", "quantile", "lat"), TRUTH.transpose()
    with forbid_compute():
        found = forecast.recal.wis(truth), forecast.recal.wis(truth, levels=[0.5, 0.9, 0.1])
    for point in points(TRUTH):
        for scores, levels in zip(found, (LEVELS, [0.5, 0.9, 0.1]), strict=True):
            np.testing.assert_allclose(scores.isel(point), expected_at(point, levels), rtol=1e-12)


def test_percentiles_are_quantiles():
    percent = QUANTILES.rename(quantile="percentile")
    percent = percent.assign_coords(percentile=[90, 25, 50, 75, 10])
    close(percent.recal.wis(TRUTH), QUANTILES.recal.wis(TRUTH))
    chosen = [0.25, 0.5, 0.75]
    close(percent.recal.wis(TRUTH, levels=chosen), QUANTILES.recal.wis(TRUTH, levels=chosen))


@pytest.mark.parametrize("form", OTHERS)
def test_other_forms_are_scored_by_their_quantiles(form):
    forecast = FORMS[form](ENSEMBLE)
    for levels in (None, LEVELS):
        taken = forecast.recal.quantile(list(HUB_LEVELS) if levels is None else levels)
        taken = taken["t2m"] if isinstance(taken, xr.Dataset) else taken
        found, expected = forecast.recal.wis(TRUTH, levels=levels), taken.recal.wis(TRUTH)
        np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-9, atol=1e-12)
        lazy = forecast.chunk(time=4, lat=1).recal.wis(TRUTH, levels=levels)
        close(lazy.compute(), found)


def test_many_equal_levels_give_the_crps():
    levels = (np.arange(401) + 0.5) / 401
    for form in ("normal", "weighted"):
        forecast = FORMS[form](ENSEMBLE)
        found, expected = forecast.recal.wis(TRUTH, levels=levels), forecast.recal.crps(TRUTH)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_missing_quantiles():
    gaps = QUANTILES.where((QUANTILES["quantile"] != 0.1) | (QUANTILES.lat > 45))
    assert gaps.recal.wis(TRUTH).isel(lat=0).isnull().all()
    assert gaps.recal.wis(TRUTH).isel(lat=1).notnull().all()


def test_levels_that_cannot_be():
    uneven = FORMS["quantile"](ENSEMBLE)
    with pytest.raises(ValueError, match=r"missing for 0.05, 0.3, 0.9; .*levels=\[0.5\]"):
        uneven.recal.wis(TRUTH)
    assert uneven.recal.wis(TRUTH, levels=[0.5]).notnull().all()
    with pytest.raises(ValueError, match="levels must hold the median"):
        QUANTILES.sel(quantile=[0.1, 0.9]).recal.wis(TRUTH)
    with pytest.raises(ValueError, match=r"has 0.2, 0.8, but '?t2m'? was issued at 0.9, "):
        QUANTILES.recal.wis(TRUTH, levels=[0.2, 0.5, 0.8])
    with pytest.raises(ValueError, match=r"one minus the level is missing for 0\.3;"):
        ENSEMBLE.recal.wis(TRUTH, levels=[0.3, 0.5])
    with pytest.raises(ValueError, match=r"levels more than once: 0\.5"):
        ENSEMBLE.recal.wis(TRUTH, levels=[0.5, 0.5])
