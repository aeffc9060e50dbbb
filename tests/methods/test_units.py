"""No method depends on the unit of the variable."""

import numpy as np
import pytest
import xarray as xr

import xrecal

METHODS = (
    xrecal.CKME(support="observations"),
    xrecal.CKME(condition_on="season"),
    xrecal.CKME(support="errors", compare="shapes"),
    xrecal.CKME(support="observations", kernel="laplace", loss="laplace"),
    xrecal.CKME(projection="energy", bandwidth="cv"),
    xrecal.EMOS(condition_on="season", vary_spread=True),
    xrecal.IDR(),
    xrecal.Climatology(),
    xrecal.Raw(),
    xrecal.PITRecalibration(),
    xrecal.ConformalPrediction(),
    xrecal.LinearPool(),
)
UNITS = {"K": (1.0, 273.15), "degF": (1.8, 32.0)}


def temperature(n, seed=0, members=8):
    """Forecasts in degC whose mean is often near zero, and observations."""
    rng = np.random.default_rng(seed)
    days = 7 * np.arange(n)
    time = np.datetime64("2015-01-01", "ns") + days * np.timedelta64(1, "D")
    signal = 3 + 8 * np.sin(2 * np.pi * days / 365.25) + 3 * rng.normal(size=n)
    spread = rng.gamma(4, 0.4, (n, 1))
    drawn = signal[:, np.newaxis] + 1.5 + spread * rng.normal(size=(n, members))
    forecasts = xr.DataArray(drawn, {"time": time}, ("time", "member"), name="t2m")
    return forecasts, xr.DataArray(signal + 1.3 * rng.normal(size=n), {"time": time}, ("time",))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_unit_of_a_temperature_changes_no_quantile(method):
    n, levels = 80, [0.001, 0.05, 0.5, 0.95, 0.999]
    forecasts, observations = temperature(n + 20)

    def quantiles(factor, offset):
        """Of new forecasts, back in degC."""
        given = factor * forecasts + offset, factor * observations + offset
        model = given[0][:n].recal.fit(given[1][:n], method)
        return (model.quantile(given[0][n:], levels).to_numpy() - offset) / factor

    celsius = quantiles(1.0, 0.0)
    for factor, offset in UNITS.values():
        np.testing.assert_allclose(quantiles(factor, offset), celsius, atol=1e-6)


@pytest.mark.parametrize(
    ("bounds", "has_ratios"), [("auto", False), ((0, None), True), ((-40, None), False)]
)
def test_ratios_are_for_variables_with_a_natural_zero(bounds, has_ratios):
    forecasts, observations = temperature(80)
    forecasts, observations = forecasts + 30, observations + 30  # always above zero
    methods = (xrecal.CKME(bounds=bounds), xrecal.CKME(compare="shapes", bounds=bounds))
    model = forecasts.recal.fit(observations, xrecal.LinearPool(methods))
    weight = model.state["pool_weight"]
    ratios = weight.sel(component=[c for c in weight.component.values if "ratio" in c])
    assert ratios.size == 2
    assert bool((ratios > 0).any()) == has_ratios
    single = forecasts.recal.fit(observations, xrecal.CKME(support="errors", bounds=bounds))
    assert single.state["support"].item() in (1, 2, 3, 4) if has_ratios else (1, 2, 3)
