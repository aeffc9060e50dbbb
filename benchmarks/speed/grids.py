"""What one could take on a grid: quantile mapping by xsdba, EMOS by SciPy, cell by cell."""

import numpy as np
import properscoring
import xarray as xr
from scipy.optimize import minimize


def quantile_mapping(
    hindcast: xr.DataArray, observations: xr.DataArray, forecast: xr.DataArray
) -> xr.DataArray:
    """Members of the forecast with the climatology of the observations, by xsdba."""
    from xsdba import EmpiricalQuantileMapping, Grouper

    reference = observations.broadcast_like(hindcast).assign_attrs(observations.attrs)
    group = Grouper("time", add_dims=["member"])
    mapping = EmpiricalQuantileMapping.train(reference, hindcast, nquantiles=50, group=group)
    adjusted: xr.DataArray = mapping.adjust(forecast, interp="linear").compute()
    return adjusted


def emos(
    hindcast: xr.DataArray, observations: xr.DataArray, forecast: xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean and standard deviation (time, location) by minimum CRPS, one optimisation a cell."""
    mean, variance = hindcast.mean("member"), hindcast.var("member")
    found = np.array(
        [
            fit_cell(
                *(part.isel(location=i).values.astype(float) for part in (mean, variance)),
                observations.isel(location=i).values.astype(float),
            )
            for i in range(hindcast.sizes["location"])
        ]
    )
    a, b, c, d = (xr.DataArray(column, dims="location") for column in found.T)
    new_mean, new_variance = forecast.mean("member"), forecast.var("member")
    return a + b * new_mean, np.sqrt(c**2 + d**2 * new_variance)


def fit_cell(mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients a, b, c, d of N(a + b mean, c² + d² variance)."""

    def loss(coefficients: np.ndarray) -> float:
        a, b, c, d = coefficients
        sd = np.sqrt(c**2 + d**2 * variance)
        return float(properscoring.crps_gaussian(y, a + b * mean, sd).mean())

    b, a = np.polyfit(mean, y, 1)
    start = [a, b, np.std(y - a - b * mean), 1.0]
    return minimize(loss, start, method="BFGS").x
