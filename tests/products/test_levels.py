"""Levels fall on no step, and what was applied answers as the model that did it."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

LEVELS = np.array([0.001, *np.arange(1, 200) / 200, 0.999])
METHODS = {
    "standardised": xrecal.CKME(support="standardised"),
    "pool": xrecal.LinearPool(),
    "auto": xrecal.CKME(),
    "flat": xrecal.CKME(support="regression", ridge=1e6),
}


def series(n, seed):
    """Temperatures in kelvin, in single precision."""
    rng = np.random.default_rng(seed)
    time = pd.date_range("2019-01-01", periods=n)
    mean = 285 + 8 * np.sin(2 * np.pi * np.arange(n) / 365) + 3 * rng.normal(size=n)
    members = (mean[:, np.newaxis] + rng.normal(size=(n, 17))).astype("f4")
    observed = (mean + 1.5 * rng.normal(size=n)).astype("f4")
    forecast = xr.DataArray(members, {"time": time}, ("time", "member"), name="t")
    return forecast, xr.DataArray(observed, {"time": time}, ("time",), name="t")


@pytest.mark.parametrize(("n", "seed"), [(365, 1), (200, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_neither_the_zero_of_a_scale_nor_its_sign_moves_a_quantile(method, n, seed):
    forecast, observed = series(n + 100, seed)

    def quantiles(forecast, observed):
        model = forecast[:n].recal.fit(observed[:n], METHODS[method])
        return model.quantile(forecast[n:], LEVELS).to_numpy()

    expected = quantiles(forecast, observed)
    shifted = quantiles(forecast - 280, observed - 280) + 280
    turned = -quantiles(-forecast, -observed)[:, ::-1]
    for found in (shifted, turned):
        assert abs(found - expected).max() < 1e-3 * float(observed.std())


def answers(source, observed, *given):
    """Products of a model or of a Dataset."""
    made = {
        "quantile": source.quantile(*given, [0.001, 0.04, 0.1, 0.5, 0.955, 0.999]),
        "exceedance": source.exceedance(*given, [279.0, 290.5]),
        "crps": source.crps(*given, observed),
        "pit": source.pit(*given, observed),
        "members": source.members(*given, 5),
        "mean": source.mean(*given),
    }
    arrays = {n: a["t"] if isinstance(a, xr.Dataset) else a for n, a in made.items()}
    return {n: a.compute().transpose("time", ...) for n, a in arrays.items()}


def require_equal(found, expected):
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=2e-6, atol=2e-6, err_msg=name)


APPLIED = {**METHODS, "online": xrecal.OnlinePool(refit=400, condition_on=())}


@pytest.mark.parametrize("method", APPLIED)
def test_a_dataset_answers_as_the_model(method, tmp_path):
    forecast, observed = series(160, 3)
    forecast, observed = forecast.astype("f8"), observed.astype("f8")
    model = forecast[:140].recal.fit(observed[:140], APPLIED[method])
    new, known = forecast[140:], observed[140:]
    expected = answers(model, known, new)
    applied = model.apply(new)
    require_equal(answers(applied.recal, known), expected)
    require_equal(answers(applied.transpose("member", ...).recal, known), expected)
    require_equal(answers(applied.chunk(time=7).recal, known), expected)
    applied.to_netcdf(tmp_path / "applied.nc")
    with xr.open_dataset(tmp_path / "applied.nc") as read:
        require_equal(answers(read.recal, known), expected)
    moved = applied.assign(t=(applied["t"] - 273.15).assign_attrs(applied["t"].attrs))
    there = moved.recal.quantile([0.001, 0.5, 0.999])["t"] + 273.15
    np.testing.assert_allclose(there, model.quantile(new, [0.001, 0.5, 0.999]), rtol=1e-6)


def test_without_shapes_or_all_members_the_points_serve():
    forecast, observed = series(160, 3)
    model = forecast[:140].recal.fit(observed[:140], METHODS["standardised"])
    applied = model.apply(forecast[140:])
    assert applied["t_tail_shape"].dims == ("time", "side")
    assert "t_tail_shape" in applied["t"].attrs["ancillary_variables"]
    bare = applied.drop_vars("component")
    plain = xrecal.weighted(bare["t"].drop_attrs(), bare["t_weight"].drop_attrs())
    edge = float(applied["t"].quantile(0.98))
    expected = plain.recal.exceedance(edge)
    (name,) = expected.data_vars
    alone = applied.drop_vars("t_tail_shape").recal.exceedance(edge)["t"]
    np.testing.assert_allclose(alone, expected[name], atol=1e-6)
    some = applied.isel(member=slice(None, -1)).recal.quantile([0.001, 0.999])["t"]
    assert some.max() <= applied["t"].max()


def test_a_bound_stays_a_bound():
    forecast, observed = series(160, 3)
    forecast, observed = (np.maximum(a - 288, 0) for a in (forecast, observed))
    for method in ("auto", "pool"):
        model = forecast[:140].recal.fit(observed[:140], METHODS[method])
        found = model.quantile(forecast[140:], LEVELS)
        assert found.min() >= 0
        dry = 1 - model.exceedance(forecast[140:], 0.0)
        applied = model.apply(forecast[140:])
        mass = applied["t_weight"].where(applied["t"] <= 0).sum("member")
        np.testing.assert_allclose(dry, mass, atol=1e-6)
