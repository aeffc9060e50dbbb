import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import points
from xrecal import arrays
from xrecal.arrays.calibration.dependence import distance_correlation

from .calls import FORMS, hindcast
from .test_pit import number
from .test_reliability import calibrated

ENSEMBLE, TRUTH = hindcast(n=30, step=0.5)
LEVELS = [0.5, 0.8, 0.9]


@pytest.mark.parametrize("seed", [0, 3])
def test_intervals_at_each_point(seed):
    found = ENSEMBLE.recal.coverage(TRUTH, seed=seed)
    assert found.coverage.dims == ("lat", "lon", "level")
    np.testing.assert_array_equal(found.level, LEVELS)
    pit = ENSEMBLE.recal.pit(TRUTH, seed=seed)
    for point in points(TRUTH):
        y, x = TRUTH.isel(point).to_numpy(), ENSEMBLE.isel(point).to_numpy()
        u = arrays.hash_uniform(seed, number(point), 30)
        ranks = ((x < y[:, None]).sum(-1) + u[0] * (x == y[:, None]).sum(-1)) / 5
        np.testing.assert_allclose(pit.isel(point), ranks, atol=1e-15)
        for i, level in enumerate(LEVELS):
            ends = arrays.weighted_quantile(x, [(1 - level) / 2, (1 + level) / 2])
            here = found.isel(level=i, **point)
            share, width, n = arrays.interval_coverage(y, *ends.T)
            assert (here.coverage, here.width, here.n_cases) == (share, width, n)
            score = arrays.interval_score(y, *ends.T, level)
            assert here.interval_score.item() == pytest.approx(score.mean(), rel=1e-14)
            ranks = pit.isel(point).to_numpy()[:, np.newaxis]
            assert here.dependence == distance_correlation(ends, ranks)


@pytest.mark.parametrize("form", FORMS)
def test_ends_are_quantiles(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.coverage(TRUTH, level=0.6)
    ends = forecast.recal.quantile([0.2, 0.8])
    ends = ends["t2m"] if isinstance(ends, xr.Dataset) else ends
    low, high = (ends.isel(quantile=i, drop=True) for i in range(2))
    xr.testing.assert_allclose(found.width.drop_vars("level"), (high - low).mean("time"))
    inside = ((low <= TRUTH) & (high >= TRUTH)).mean("time")
    np.testing.assert_allclose(found.coverage, inside.transpose("lat", "lon"), rtol=1e-14)


@pytest.mark.parametrize("form", ["quantile", "percentile"])
@pytest.mark.filterwarnings("error")
def test_intervals_beyond_the_levels_of_quantiles_are_not_known(form):
    forecast = ENSEMBLE.recal.quantile([0.1, 0.25, 0.75, 0.9])  # 1 - 0.8 is not 0.2 in floats
    if form == "percentile":
        forecast = forecast.assign_coords(quantile=[10, 25, 75, 90]).rename(quantile="percentile")
    for cut in (forecast, forecast.chunk(lat=1)):
        found = cut.recal.coverage(TRUTH).compute()
        for name in ("coverage", "width", "interval_score", "dependence"):
            known = found[name].notnull().all(("lat", "lon"))
            np.testing.assert_array_equal(known, [True, True, False])
            assert found[name].isel(level=2).isnull().all()
            told = "not known from these quantiles: 0.9"
            assert found[name].attrs["comment"] == told
        assert (found.n_cases == 30).all()
        inside = ENSEMBLE.recal.coverage(TRUTH, level=[0.5, 0.8])
        xr.testing.assert_equal(found.coverage.isel(level=[0, 1]), inside.coverage)
        lopsided = cut.isel({cut.dims[1]: [1, 2, 3]}).recal.coverage(TRUTH, level=[0.5, 0.8])
        np.testing.assert_array_equal(lopsided.width.notnull().all(("lat", "lon")), [True, False])
    assert "comment" not in inside.coverage.attrs


def test_one_level_has_no_dimension():
    one, several = (ENSEMBLE.recal.coverage(TRUTH, level=level) for level in (0.8, [0.8]))
    assert one.coverage.dims == ("lat", "lon")
    assert one.level.item() == 0.8
    xr.testing.assert_identical(one, several.isel(level=0))
    units = {name: array.attrs.get("units") for name, array in one.data_vars.items()}
    expected = {"coverage": "1", "width": "K", "interval_score": "K", "dependence": "1"}
    assert units == expected | {"n_cases": None, "status": None}


def test_calibrated_forecasts_cover_their_level_and_err_evenly():
    forecast, truth = calibrated(1500)
    found = forecast.recal.coverage(truth, ...)
    np.testing.assert_allclose(found.coverage, LEVELS, atol=0.025)
    np.testing.assert_allclose(found.width, 2 * np.array([0.67449, 1.28155, 1.64485]), rtol=1e-4)
    assert (abs(found.dependence) < 0.01).all()


def test_dependence_tells_errors_that_depend_on_the_forecast():
    """Too low where the forecast is low, too high where it is high: right on average."""
    forecast, truth = calibrated(1500)
    wrong = xrecal.gaussian(1.8 * forecast.wind_loc, 0 * forecast.wind_loc + 1.28)
    found = wrong.recal.coverage(truth)
    np.testing.assert_allclose(found.coverage, np.tile(LEVELS, (2, 1)), atol=0.05)
    assert (found.dependence > 0.1).all()


def test_ends_so_close_that_rounding_could_cross_them():
    found = FORMS["mixture"](ENSEMBLE).recal.coverage(TRUTH, level=1e-15)
    assert (found.width < 1e-9).all()
    assert (found.width >= 0).all()


@pytest.mark.parametrize("level", [0, 1, [0.5, 1.0], [], [[0.5]], 90, np.nan])
def test_levels_that_cannot_be(level):
    with pytest.raises(ValueError, match="level must hold probabilities between 0 and 1, got"):
        ENSEMBLE.recal.coverage(TRUTH, level=level)


@pytest.mark.parametrize("level", ["0.9", ["a"], None, 90, []])
def test_levels_are_numbers_between_0_and_1(level):
    with pytest.raises(ValueError, match="level must hold probabilities between 0 and 1, got"):
        ENSEMBLE.recal.coverage(TRUTH, level=level)
