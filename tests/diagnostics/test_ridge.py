import numpy as np
import pytest

import xrecal
from tests.strategies import FORMS, points
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import MEANINGS, TOO_FEW
from xrecal.chunks.blockwise import one_blas_thread

from .calls import hindcast

ENSEMBLE, TRUTH = hindcast(n=60)


def expected_at(point, settings=None, **known):
    members, y = ENSEMBLE.isel(point).to_numpy(), TRUTH.isel(point).to_numpy()
    with one_blas_thread():
        return arrays.ridge_losses(
            Forecasts(members[np.newaxis]), y[np.newaxis], settings or arrays.Settings(), **known
        )


def test_the_array_function_at_each_point():
    found = ENSEMBLE.recal.ridge_curve(TRUTH, xrecal.CKME(support="observations", folds="block"))
    assert found.loss.dims == ("lat", "lon", "ridge")
    np.testing.assert_allclose(found.ridge, 10 ** np.arange(-6, 0.1, 0.5))
    for point in points(TRUTH):
        expected = expected_at(point)
        np.testing.assert_array_equal(found.loss.isel(point), expected.loss[0])
        assert found.chosen_ridge.isel(point) == expected.ridge[0]
        assert found.n_cases.isel(point) == 60


def test_the_chosen_ridge_is_that_of_the_fit():
    method = xrecal.CKME(support="errors", condition_on="season")
    found = ENSEMBLE.recal.ridge_curve(TRUTH, method)
    fitted = ENSEMBLE.recal.fit(TRUTH, method, choose="each")
    np.testing.assert_array_equal(found.chosen_ridge, fitted.state.ridge)
    np.testing.assert_array_equal(found.status, fitted.state.status)
    by_argument = ENSEMBLE.recal.ridge_curve(
        TRUTH, xrecal.CKME(support="errors"), condition_on="season"
    )
    np.testing.assert_array_equal(by_argument.loss, found.loss)


@pytest.mark.parametrize("form", ["weighted", "quantile", "normal"])
def test_other_forms(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.ridge_curve(TRUTH)
    fitted = forecast.recal.fit(TRUTH, choose="each")
    np.testing.assert_array_equal(found.chosen_ridge, fitted.state.ridge)
    smallest = found.ridge[found.loss.argmin("ridge")]
    assert (abs(np.log10(found.chosen_ridge / smallest)) <= 0.5).all()


def test_missing_data():
    truth = TRUTH.copy()
    truth[3, 0, 0], truth[5:, 1, 1] = np.nan, np.nan
    found = ENSEMBLE.recal.ridge_curve(truth)
    np.testing.assert_array_equal(found.n_cases, [[59, 60], [60, 5]])
    assert found.loss[1, 1].isnull().all()
    assert found.chosen_ridge[1, 1].isnull()
    assert found.status[1, 1] == TOO_FEW
    whole = ENSEMBLE.recal.ridge_curve(TRUTH)
    np.testing.assert_array_equal(found.loss[1, 0], whole.loss[1, 0])
    assert (found.loss[0, 0] != whole.loss[0, 0]).all()


def test_attributes():
    found = ENSEMBLE.recal.ridge_curve(TRUTH)
    assert found.loss.attrs == {"long_name": "mean held-out CRPS", "units": "K"}
    assert found.ridge.attrs["units"] == "1"
    assert found.status.attrs["flag_meanings"] == " ".join(MEANINGS.values())
    assert found.attrs["method"] == repr(xrecal.CKME())
    assert found.attrs["history"] == "xrecal: held-out loss by ridge over 'time'"
    laplace = ENSEMBLE.recal.ridge_curve(TRUTH, xrecal.CKME(support="observations", loss="laplace"))
    assert laplace.loss.attrs["units"] == "1"


def test_what_has_no_curve():
    with pytest.raises(
        TypeError, match=r"a ridge curve needs a CKME, got EMOS\(.*give xrecal.CKME\(...\)"
    ):
        ENSEMBLE.recal.ridge_curve(TRUTH, xrecal.EMOS())
    with pytest.raises(ValueError, match=r"has a dimension 'ridge'.*forecast.rename\(ridge=...\)"):
        ENSEMBLE.rename(lat="ridge").recal.ridge_curve(TRUTH.rename(lat="ridge"))
