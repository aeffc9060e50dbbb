"""Small hindcasts in every form of a forecast, their chunks, and the recalibration of one point."""

from functools import cache
from itertools import product

import numpy as np
import xarray as xr

import xrecal
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.chunks.blockwise import one_blas_thread

LEVELS = np.array([0.05, 0.3, 0.5, 0.9])


def ensemble_and_truth(n=48, m=5, n_lat=2, n_lon=2, seed=0, start="2001-01-15", dtype=np.float64):
    """Biased, overconfident ensemble (time, member, lat, lon) and the truth (time, lat, lon)."""
    rng = np.random.default_rng(seed)
    signal = 3 * rng.normal(size=(n, n_lat, n_lon))
    truth = 280 + signal + rng.normal(size=signal.shape)
    members = 282 + signal[:, np.newaxis] + 0.4 * rng.normal(size=(n, m, n_lat, n_lon))
    times = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(30, "D")
    coords = {"time": times, "lat": 45.0 + np.arange(n_lat), "lon": 5.0 * np.arange(n_lon)}
    attrs = {"units": "K", "long_name": "2 m temperature"}
    dims = ["time", "member", "lat", "lon"]
    return (
        xr.DataArray(members.astype(dtype), dims=dims, coords=coords, name="t2m", attrs=attrs),
        xr.DataArray(truth.astype(dtype), dims=["time", "lat", "lon"], coords=coords, attrs=attrs),
    )


def new_cases(n=7, seed=1, **sizes):
    """Forecasts and what verified them, after those of ``ensemble_and_truth``."""
    return ensemble_and_truth(n=n, seed=seed, start="2011-01-15", **sizes)


def fraction(time):
    """Part of the year that has passed, from the calendar."""
    start = time.to_numpy().astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[ns]") - start.astype("datetime64[ns]")
    return (time.to_numpy() - start.astype("datetime64[ns]")) / length


def _weights(ensemble):
    rng = np.random.default_rng(5)
    return ensemble.copy(data=rng.integers(0, 4, ensemble.shape) + 0.25).drop_attrs()


def _same_members(ensemble):
    """Members that are the same in hindcasts and new forecasts."""
    first = ensemble.isel(time=0, drop=True)
    axis = first.get_axis_num("member")
    values = np.moveaxis(np.zeros(first.shape), axis, -1) + 282 + np.arange(first.sizes["member"])
    return first.copy(data=np.moveaxis(values, -1, axis).astype(first.dtype))


def _normal(ensemble):
    scale = ensemble.std("member").assign_attrs(units="K")
    return xrecal.gaussian(ensemble.mean("member", keep_attrs=True), scale)


def _mixture(ensemble):
    loc = ensemble.isel(member=slice(3)).rename(member="component")
    weights = xr.DataArray([0.5, 0.25, 0.25], dims="component")
    return xrecal.gaussian(loc, 0 * loc.isel(component=0, drop=True) + 1.5, weights)


FORMS = {
    "ensemble": lambda ensemble: ensemble,
    "weighted": lambda ensemble: xrecal.weighted(ensemble, _weights(ensemble)),
    "shared": lambda ensemble: xrecal.weighted(
        _same_members(ensemble), np.exp(-(abs(ensemble.drop_attrs() - 281) / 2))
    ),
    "quantile": lambda ensemble: ensemble.quantile(LEVELS, "member", keep_attrs=True),
    "percentile": lambda ensemble: ensemble.rename(member="percentile").assign_coords(
        percentile=[5, 30, 50, 70, 90]
    ),
    "normal": _normal,
    "mixture": _mixture,
}
"""From an ensemble to a forecast of each form; ``shared`` has weights over time and members not."""

PAPER = xrecal.CKME(support="observations")
"""Members are past observations: what forecasts are made of is known without a fit."""

METHODS = {
    "ckme": PAPER,
    "emos": xrecal.EMOS(),
    "climatology": xrecal.Climatology(),
    "window": xrecal.Climatology(window=90),
    "idr": xrecal.IDR(),
    "errors": xrecal.CKME(support="errors"),
    "shapes": xrecal.CKME(support="errors", compare="shapes"),
    "season": xrecal.CKME(support="auto", condition_on="season", half_life=900),
    "lowrank": xrecal.CKME(solver="lowrank", support="auto", condition_on="season"),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
    "pool": xrecal.LinearPool(methods=(xrecal.CKME(support="errors"), xrecal.EMOS())),
    "online": xrecal.OnlinePool((xrecal.Climatology(),)),
}

PAIRS = sorted(
    {*product(FORMS, ["ckme", "season", "pit"]), *product(["ensemble", "mixture"], METHODS)}
)
"""Forms and methods: all of each, and what treats forms or methods in its own way with all."""


@cache
def model_of(method, form="ensemble", choose="together"):
    """A method fitted to ``ensemble_and_truth`` in a form; a model that no test changes."""
    hindcast, truth = ensemble_and_truth()
    return FORMS[form](hindcast).recal.fit(truth, METHODS[method], choose=choose)


def recalibrate_point(members, truth, new, verification, min_samples=20):
    """CKME of plain ensembles (n, m) at one point, by the array functions alone."""
    cases, forecasts = Forecasts(members[np.newaxis]), Forecasts(new[np.newaxis])
    stored = Forecasts(np.sort(cases.loc, axis=-1))  # as in a model: sums have one order
    with one_blas_thread():  # sums of several threads differ in their last digits
        settings = arrays.Settings(min_samples=min_samples)
        fitted = arrays.fit_ckme(cases, truth[np.newaxis], settings)
        weights = arrays.ckme_weights(forecasts, stored, truth[np.newaxis], fitted)[1][0]
    return {
        "ridge": fitted.ridge[0],
        "bandwidth": fitted.bandwidth[0],
        "weights": weights,
        "quantile": arrays.weighted_quantile(truth, LEVELS, weights),
        "crps": arrays.crps(verification, truth, weights),
    }


def points(array):
    """Positions of all locations of an array over lat and lon."""
    return [
        {"lat": i, "lon": j} for i in range(array.sizes["lat"]) for j in range(array.sizes["lon"])
    ]


def close(found, expected, rtol=1e-12):
    """The same labels, names, dtypes and attributes, and values up to rounding."""
    xr.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-13)
    assert found.attrs == expected.attrs
