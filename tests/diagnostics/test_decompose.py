import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import points
from xrecal import arrays
from xrecal.arrays.distributions.forms import Empirical
from xrecal.arrays.scores.decomposition import half_squared_distance
from xrecal.arrays.status import TOO_FEW

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=60)
PARTS = ("miscalibration", "miscalibration_error", "rest", "rest_error", "crps")
CLIMATE = xrecal.Climatology()


@pytest.mark.parametrize(
    ("method", "by"),
    [
        (xrecal.EMOS(), {"by": "year"}),
        (xrecal.PITRecalibration(), {"blocks": 3, "gap": 2}),
        (CLIMATE, {}),
    ],
)
def test_the_array_function_on_scores_of_cross_validation(method, by):
    found = ENSEMBLE.recal.decompose(TRUTH, method, **by)
    options = {"by": "block"} | by
    issued = ENSEMBLE.recal.crps(TRUTH)
    predicted = ENSEMBLE.recal.cross_validate(TRUTH, method, output="crps", **options)
    n = 200 if isinstance(method, xrecal.EMOS) else 1000
    levels = (np.arange(n) + 0.5) / n
    sampled = ENSEMBLE.recal.cross_validate(TRUTH, method, q=levels, **options)
    sampled = sampled.transpose("time", "quantile", "lat", "lon")
    for point in points(TRUTH):
        r, q = sampled.isel(point).to_numpy(), ENSEMBLE.isel(point).to_numpy()
        distance = half_squared_distance(Empirical(q), Empirical(r))
        s = [array.isel(point).to_numpy() for array in (issued, predicted)]
        for name, value in zip(PARTS, arrays.decompose(*s, distance), strict=True):
            # Quantiles at many levels stand for R in the distance, which decompose has exactly.
            tolerance = 1e-10 if n == 200 else 3e-3
            assert found[name].isel(point).item() == pytest.approx(value, abs=tolerance), name


@pytest.mark.parametrize("form", FORMS)
def test_parts_add_up_for_every_form(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.decompose(TRUTH, CLIMATE)
    score = forecast.recal.crps(TRUTH, "time")
    rtol = 1e-2 if form == "censored" else 1e-12  # by 200 quantiles
    np.testing.assert_allclose(found.crps, score.transpose("lat", "lon"), rtol=rtol)
    np.testing.assert_allclose(found.miscalibration + found.rest, found.crps, rtol=1e-12)


def test_recalibration_gains_where_forecasts_are_wrong():
    rng = np.random.default_rng(5)
    signal = rng.normal(size=(600, 1))
    members = xr.DataArray(
        signal[:, None] + rng.normal(size=(600, 40, 1)), dims=["time", "member", "x"]
    )
    truth = xr.DataArray(signal + rng.normal(size=(600, 1)), dims=["time", "x"])
    right = members.recal.decompose(truth, xrecal.EMOS())
    assert abs(right.miscalibration).item() < 0.02
    biased = (members + 1).recal.decompose(truth, xrecal.EMOS())
    assert biased.miscalibration.item() > 0.2
    assert biased.miscalibration > 5 * biased.miscalibration_error
    assert biased.rest.item() == pytest.approx(right.rest.item(), abs=0.02)


def test_missing_cases_and_places():
    truth = TRUTH.copy()
    truth[3, 0, 0], truth[:, 1, 1] = np.nan, np.nan
    found = ENSEMBLE.recal.decompose(truth, CLIMATE)
    np.testing.assert_array_equal(found.n_cases, [[59, 60], [60, 0]])
    np.testing.assert_array_equal(found.status, [[0, 0], [0, TOO_FEW]])
    whole = ENSEMBLE.recal.decompose(TRUTH, CLIMATE)
    for name in PARTS:
        assert np.isnan(found[name][1, 1])
        np.testing.assert_array_equal(found[name][:, 0][1:], whole[name][:, 0][1:])
    one = ENSEMBLE[:22].recal.decompose(TRUTH, CLIMATE, by="rolling", every=1, window=21)
    assert (one.n_cases == 1).all()
    assert (one.status == TOO_FEW).all()
    assert one[list(PARTS)].to_dataarray().isnull().all()


def test_attributes():
    found = ENSEMBLE.recal.decompose(TRUTH, CLIMATE)
    assert {found[name].attrs["units"] for name in PARTS} == {"K"}
    assert found.attrs["method"] == repr(CLIMATE)
    assert found.attrs["cross_validation"] == "by='block', gap=0, blocks=5"
    assert "xrecal: decomposition of the CRPS by Climatology(" in found.attrs["history"]


def test_conditions_count_as_miscalibration():
    """A recalibration that knows the season gains more where the error has one."""
    season = xr.DataArray(3 * np.sin(np.arange(60) * np.pi / 6), dims="time")
    truth = TRUTH + season.assign_coords(time=TRUTH.time)
    plain = ENSEMBLE.recal.decompose(truth, xrecal.EMOS())
    known = ENSEMBLE.assign_coords(phase=("time", np.sin(np.arange(60) * np.pi / 6)))
    knowing = known.recal.decompose(truth, xrecal.EMOS(), condition_on="phase")
    assert (knowing.miscalibration > plain.miscalibration + 0.3).all()
    given = ENSEMBLE.recal.decompose(
        truth, xrecal.EMOS(), condition_on="phase", covariates={"phase": known.phase}
    )
    np.testing.assert_array_equal(given.miscalibration, knowing.miscalibration)


def test_what_cannot_be_split():
    with pytest.raises(ValueError, match="by is 'month'; give one of"):
        ENSEMBLE.recal.decompose(TRUTH, by="month")
    with pytest.raises(ValueError, match="dim='x', but forecast has no dimension 'x'"):
        ENSEMBLE.recal.decompose(TRUTH, dim="x")
    with pytest.raises(TypeError, match=r"method must be settings such as xrecal\.EMOS"):
        ENSEMBLE.recal.decompose(TRUTH, xrecal.EMOS)
