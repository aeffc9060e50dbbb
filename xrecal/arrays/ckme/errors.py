"""Errors of the calibration cases around their centres, for any array library."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import is_on_device, namespace
from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.arrays.distributions.tails import Tails, fit_tails
from xrecal.arrays.kernels.kernel import Features
from xrecal.typing import FloatArray

from .centre import OBSERVATIONS, RATIO
from .embedding import FittedCKME


def case_tails(
    cases: Forecasts, observations: FloatArray, features: Features | None, fitted: FittedCKME
) -> tuple[Tails, FloatArray]:
    """Return the tails of the errors at L locations, and the bounds (L, 2) of the variable.

    A location with past observations as its support has no tails.
    """
    xp = namespace(fitted.lower)
    bounds = xp.stack([fitted.lower, fitted.upper], axis=-1)
    open_sides = xp.isinf(bounds) & (fitted.support != OBSERVATIONS)[:, None]
    return fit_tails(errors_of(cases, observations, features, fitted), open_sides), bounds


def errors_of(
    cases: Forecasts, observations: FloatArray, features: Features | None, fitted: FittedCKME
) -> FloatArray:
    """Return errors (L, n) of cases in units of their spread; see :mod:`.centre`.

    The error of an observation on a bound is infinite. The error of a case from which the fit
    cannot learn is NaN.
    """
    xp = namespace(observations)
    if is_on_device(cases.loc):
        from xrecal.arrays.device.cases import moments_of
        from xrecal.arrays.device.ensembles import arrange

        mean, variance = moments_of(arrange(cases.loc, cases.weights))
    else:
        mean, variance = moments(cases)
    centre = fitted.centre[:, None, :]
    squared = xp.where((fitted.support == RATIO)[:, None], mean**2, variance)
    location = centre[..., 0] + centre[..., 1] * mean
    spread = xp.sqrt(centre[..., 2] ** 2 + centre[..., 3] ** 2 * squared)
    if features is not None:
        k = features.circular.size
        location = location + _sum(xp, features.values, centre[..., 4 : 4 + k])
        spread = spread * xp.exp(_sum(xp, features.values, centre[..., 4 + k :]))
    error = (observations - location) / spread
    error = xp.where(observations <= fitted.lower[:, None], -float("inf"), error)
    errors: FloatArray = xp.where(observations >= fitted.upper[:, None], float("inf"), error)
    return errors


def _sum(xp: Any, values: Any, coefficients: Any) -> Any:
    """Multiply covariates (L, n, k) by coefficients (L, 1, k), and return the sums over k, (L, n).

    A covariate with the coefficient 0 adds 0, even if it is NaN.
    """
    return xp.sum(xp.where(coefficients == 0, 0.0, values * coefficients), axis=-1)
