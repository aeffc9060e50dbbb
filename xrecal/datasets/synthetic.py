"""Synthetic forecasts and observations; the same seed gives the same data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal.typing import FloatArray, IntArray

_DAYS_PER_TIME_UNIT = 5
_TRUTH_STEPS_PER_DAY = 100  # 0.002 time units; half of it moves X by 2e-4 (median) in a day
_MODEL_STEPS_PER_DAY = 40  # 0.005 time units; half of it moves X by less than 1e-4 in a day
_FAST_PER_SLOW = 32
_POLYNOMIAL_DEGREE = 4
_SPIN_UP_DAYS = 100
_TRAINING_DAYS = 500
_GAP_DAYS = 50  # between the training stretch and the first forecast
_ANALYSIS_SD = 0.2  # of the error of the analysis; X itself has about 5
_PERTURBATION_SD = 0.1  # spread of the members around the analysis: overconfident, as in practice
_FIRST_INIT = np.datetime64("2000-01-01", "D")
_LAST_DAY = np.datetime64("2262-04-11", "D")  # the last midnight that datetime64[ns] can hold
_INIT_SPACING_DAYS = 10

_SINUS_SD = 0.1


class _Subgrid(NamedTuple):
    """Parameterisation of the fast variables: a polynomial, and the range of X used to fit it."""

    coefficients: FloatArray
    limits: tuple[float, float]


def lorenz96(
    n_inits: int = 400,
    n_members: int = 20,
    n_locations: int = 8,
    lead_days: Sequence[int] = (1, 3, 5, 10),
    seed: int = 0,
) -> xr.Dataset:
    """Make an ensemble hindcast of the two-scale Lorenz-96 system with an imperfect model.

    Parameters
    ----------
    n_inits : int
        Number of starts, at least 1. A forecast starts every 10 days, the first on 2000-01-01.
    n_members : int
        Number of members of the ensemble, at least 1.
    n_locations : int
        Number of slow variables on the ring, at least 4. Each has 32 fast variables.
    lead_days : sequence of int
        Lead times in days, at least 1, strictly increasing.
    seed : int
        Seed of all random numbers, at least 0. The observations do not depend on `n_members`.

    Returns
    -------
    Dataset
        ``forecast(init, lead, member, location)`` and ``observation(init, lead, location)``,
        float64 and dimensionless, with values from about -10 to 17. Both have a coordinate
        ``valid_time(init, lead)``.

    Raises
    ------
    ValueError
        If an argument is out of the range above, or a valid time is after 2262-04-11.

    Notes
    -----
    The truth has the parameters of [2]_. Observations are its slow variables, without error.
    The model is the one-scale system, in which a quartic polynomial replaces the fast variables.
    The polynomial is fitted to an earlier stretch of the truth, and is constant outside the range
    of this stretch. Each member starts from the truth plus two Gaussian errors: an analysis error
    that all members of a case have in common (standard deviation 0.2), and a perturbation for this
    member alone (standard deviation 0.1). So the spread of the members represents half of the
    analysis error and no model error, and the ensemble is too narrow. Five days are one time unit.

    The cost grows as ``n_locations * n_inits * (320 + n_members * lead_days[-1])``: seconds for
    the defaults. The first call of a process takes some seconds more for compilation.

    References
    ----------
    .. [1] Lorenz, E. N. (1996): Predictability: a problem partly solved. Proceedings of the
       Seminar on Predictability, ECMWF, Reading, volume 1, 1-18.
    .. [2] Wilks, D. S. (2005): Effects of stochastic parametrizations in the Lorenz '96 system.
       Quarterly Journal of the Royal Meteorological Society 131, 389-407. doi:10.1256/qj.04.03

    Examples
    --------
    >>> dict(xrecal.datasets.lorenz96(3, 5, 4, lead_days=[1, 5]).sizes)
    {'init': 3, 'lead': 2, 'member': 5, 'location': 4}
    """
    _check_integer("n_inits", n_inits, 1)
    _check_integer("n_members", n_members, 1)
    _check_integer("n_locations", n_locations, 4)
    _check_integer("seed", seed, 0)
    lead = _check_lead_days(lead_days)
    init_day = _INIT_SPACING_DAYS * np.arange(n_inits)
    valid_day = init_day[:, np.newaxis] + lead
    last = _FIRST_INIT + np.timedelta64(int(valid_day[-1, -1]), "D")
    if last > _LAST_DAY:
        raise ValueError(
            f"the last valid time, {last}, is beyond datetime64[ns]; "
            f"give fewer than n_inits={n_inits} or shorter lead_days"
        )
    truth_rng, analysis_rng, member_rng = np.random.default_rng(seed).spawn(3)
    days = np.union1d(init_day, valid_day)
    truth, subgrid = _lorenz96_truth(truth_rng, n_locations, days)
    analysis = truth[np.searchsorted(days, init_day)]
    analysis = analysis + _ANALYSIS_SD * analysis_rng.standard_normal(analysis.shape)
    perturbation = member_rng.standard_normal((n_inits, n_members, n_locations))
    members = analysis[:, np.newaxis] + _PERTURBATION_SD * perturbation
    forecast = _lorenz96_forecast(members, subgrid, lead)
    observation = truth[np.searchsorted(days, valid_day)]
    return xr.Dataset(
        {
            "forecast": (
                ("init", "lead", "member", "location"),
                np.ascontiguousarray(forecast.swapaxes(1, 2)),
                {"units": "1", "long_name": "forecast of the slow variable"},
            ),
            "observation": (
                ("init", "lead", "location"),
                observation,
                {"units": "1", "long_name": "slow variable of the truth"},
            ),
        },
        coords=_lorenz96_coords(init_day, lead, valid_day, n_members, n_locations),
        attrs=_lorenz96_attrs(subgrid, seed),
    )


def sinus(n_cases: int = 20_000, seed: int = 0) -> xr.Dataset:
    r"""Make bimodal observations, and Gaussian forecasts with the same mean and variance.

    Parameters
    ----------
    n_cases : int
        Number of independent cases, at least 1.
    seed : int
        Seed of all random numbers, at least 0.

    Returns
    -------
    Dataset
        ``feature(case)``, from -1 to 1, ``observation(case)``, and the mean and standard deviation
        of the Gaussian forecast, ``forecast_loc(case)`` and ``forecast_scale(case)``; float64,
        dimensionless.

    Raises
    ------
    ValueError
        If `n_cases` or `seed` is out of the range above.

    Notes
    -----
    The feature x is uniform on -1 to 1. For each x, the observation has the distribution

    .. math:: \tfrac12 N(x + \sin(3x/20), 0.1^2) + \tfrac12 N(x - \sin(3x/20), 0.1^2) ,

    with mean x and variance 0.1² + sin²(3x/20). So the forecast has the right mean and variance,
    but the wrong shape.

    References
    ----------
    .. [1] Jung, Á., Kelen, D. M., Benczúr, A. A. (2026): Nonparametric Distribution Regression
       Re-calibration. International Conference on Machine Learning. Appendix "Synthetic Data Set".

    Examples
    --------
    >>> xrecal.datasets.sinus(n_cases=4).forecast_loc.round(2).values
    array([ 0.27, -0.46, -0.92, -0.97])
    """
    _check_integer("n_cases", n_cases, 1)
    _check_integer("seed", seed, 0)
    rng = np.random.default_rng(seed)
    feature = rng.uniform(-1.0, 1.0, n_cases)
    shift = rng.choice([-1.0, 1.0], n_cases) * np.sin(3.0 * feature / 20.0)
    observation = feature + shift + _SINUS_SD * rng.standard_normal(n_cases)
    scale = np.hypot(_SINUS_SD, shift)
    columns = {
        "feature": (feature, "feature x"),
        "observation": (observation, "observation"),
        "forecast_loc": (feature.copy(), "mean of the Gaussian forecast"),
        "forecast_scale": (scale, "standard deviation of the Gaussian forecast"),
    }
    return xr.Dataset(
        {
            name: ("case", values, {"units": "1", "long_name": long_name})
            for name, (values, long_name) in columns.items()
        },
        coords={"case": ("case", np.arange(n_cases), {"long_name": "case"})},
        attrs={
            "title": "Mixture of two Gaussians with a Gaussian forecast of its moments",
            "Conventions": "CF-1.8",
            "references": "Jung, Kelen and Benczúr (2026): Nonparametric Distribution Regression "
            "Re-calibration, ICML",
            "component_sd": _SINUS_SD,
            "seed": int(seed),
        },
    )


def _lorenz96_truth(
    rng: np.random.Generator, n_locations: int, days: IntArray
) -> tuple[FloatArray, _Subgrid]:
    """Return X of the truth on n days, shape (n, K), and a parameterisation fitted before day 0."""
    from .lorenz96_model import (
        WILKS_2005,
        fit_subgrid_polynomial,
        integrate_two_scale,
        subgrid_tendency,
    )

    step = 1.0 / (_DAYS_PER_TIME_UNIT * _TRUTH_STEPS_PER_DAY)
    slow = WILKS_2005.forcing * rng.uniform(0.0, 0.5, n_locations)
    fast = 0.1 * rng.standard_normal(n_locations * _FAST_PER_SLOW)
    training_days = np.append(
        _SPIN_UP_DAYS + np.arange(_TRAINING_DAYS), _SPIN_UP_DAYS + _TRAINING_DAYS + _GAP_DAYS
    )
    past = integrate_two_scale(slow, fast, _TRUTH_STEPS_PER_DAY * training_days, step=step)
    training, tendency = past.slow[:-1], subgrid_tendency(past.fast[:-1], n_locations)
    coefficients = fit_subgrid_polynomial(training, tendency, degree=_POLYNOMIAL_DEGREE)
    subgrid = _Subgrid(coefficients, (float(training.min()), float(training.max())))
    start = past.slow[-1], past.fast[-1]
    truth = integrate_two_scale(*start, _TRUTH_STEPS_PER_DAY * days, step=step)
    return truth.slow, subgrid


def _lorenz96_forecast(members: FloatArray, subgrid: _Subgrid, lead: IntArray) -> FloatArray:
    """Return forecasts (init, member, lead, location) from states (init, member, location)."""
    from .lorenz96_model import WILKS_2005, integrate_one_scale

    return integrate_one_scale(
        members,
        subgrid.coefficients,
        _MODEL_STEPS_PER_DAY * lead,
        step=1.0 / (_DAYS_PER_TIME_UNIT * _MODEL_STEPS_PER_DAY),
        forcing=WILKS_2005.forcing,
        limits=subgrid.limits,
    )


def _lorenz96_coords(
    init_day: IntArray, lead: IntArray, valid_day: IntArray, n_members: int, n_locations: int
) -> dict[str, Any]:
    member = np.arange(1, n_members + 1)
    return {
        "init": ("init", _dates(init_day), {"standard_name": "forecast_reference_time"}),
        "lead": ("lead", lead, {"units": "days", "standard_name": "forecast_period"}),
        "member": ("member", member, {"units": "1", "standard_name": "realization"}),
        "location": (
            "location",
            np.arange(n_locations),
            {"units": "1", "long_name": "index of the slow variable on its ring"},
        ),
        "valid_time": (("init", "lead"), _dates(valid_day), {"standard_name": "time"}),
    }


def _lorenz96_attrs(subgrid: _Subgrid, seed: int) -> dict[str, Any]:
    from .lorenz96_model import WILKS_2005

    return {
        "title": "Hindcast of the two-scale Lorenz-96 system by its parameterised one-scale model",
        "Conventions": "CF-1.8",
        "references": "Lorenz (1996): Predictability: a problem partly solved, ECMWF Seminar on "
        "Predictability; Wilks (2005), doi:10.1256/qj.04.03",
        **WILKS_2005._asdict(),
        "fast_per_slow": _FAST_PER_SLOW,
        "days_per_time_unit": _DAYS_PER_TIME_UNIT,
        "analysis_sd": _ANALYSIS_SD,
        "perturbation_sd": _PERTURBATION_SD,
        "subgrid_polynomial": subgrid.coefficients.tolist(),
        "subgrid_limits": list(subgrid.limits),
        "seed": int(seed),
    }


def _dates(day: IntArray) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    return (_FIRST_INIT + day.astype("timedelta64[D]")).astype("datetime64[ns]")


def _check_integer(name: str, value: int, minimum: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < minimum:
        raise ValueError(f"{name} is {value!r}; give an integer of at least {minimum}")


def _check_lead_days(lead_days: Sequence[int]) -> IntArray:
    lead = np.asarray(lead_days)
    if lead.ndim != 1 or not lead.size or lead.dtype.kind not in "iu":
        raise ValueError(f"lead_days is {lead_days!r}; give whole days such as (1, 3, 5, 10)")
    if lead[0] < 1 or np.any(np.diff(lead) <= 0):
        raise ValueError(
            f"lead_days is {lead_days!r}; give strictly increasing days of at least 1, "
            "such as (1, 3, 5, 10)"
        )
    return lead.astype(np.int64)
