"""No forecast changes what is issued for another one of the same call.

One exception: at several places, an OnlinePool uses means over places of what is issued at the same
time. So a forecast has a small influence on those that are issued beside it.
"""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal

N, PLACES, MEMBERS, LEARNED = 38, 2, 5, 32
RNG = np.random.default_rng(0)
DATES = np.datetime64("2020-01-01", "ns") + np.arange(N) * np.timedelta64(10, "D")
SIGNAL = 2 * RNG.normal(size=(N, PLACES))
COORDS = {"time": DATES, "x": [0, 1]}
ENSEMBLE = xr.DataArray(
    SIGNAL[..., np.newaxis] + RNG.normal(size=(N, PLACES, MEMBERS)),
    COORDS,
    ("time", "x", "member"),
    name="v",
)
TRUTH = xr.DataArray(SIGNAL + RNG.normal(size=SIGNAL.shape), COORDS, ("time", "x"), name="v")

METHODS = {
    "observations": xrecal.CKME(support="observations"),
    "regression": xrecal.CKME(support="regression"),
    "auto": xrecal.CKME(),
    "shapes": xrecal.CKME(compare="shapes"),
    "laplace": xrecal.CKME(kernel="laplace", support="observations"),
    "lowrank": xrecal.CKME(solver="lowrank"),
    "season": xrecal.CKME(condition_on="season"),
    "pool": xrecal.LinearPool(),
    "online": xrecal.OnlinePool((xrecal.CKME(), xrecal.EMOS(), xrecal.Raw())),
    "emos": xrecal.EMOS(),
    "idr": xrecal.IDR(),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
    "climatology": xrecal.Climatology(),
    "raw": xrecal.Raw(),
}

FORMS = {
    "ensemble": lambda e: e,
    "quantile": lambda e: e.quantile([0.1, 0.3, 0.5, 0.9], "member").transpose(..., "quantile"),
    "normal": lambda e: xrecal.gaussian(e.mean("member"), e.std("member") + 0.1),
}

FIRST = np.arange(MEMBERS) == 0
OTHERS = {
    "one absurd member": lambda c: np.where(FIRST, 1e15, c),
    "all absurd": lambda c: c * 0 - 9.96921e36,
    "far": lambda c: c + 1e5,
    "wide": lambda c: c * 1e5,
    "tiny": lambda c: c * 1e-9,
    "constant": lambda c: c * 0 + 0.3,
    "infinite": lambda c: np.where(FIRST, np.inf, c),
    "one missing": lambda c: np.where(FIRST, np.nan, c),
    "missing": lambda c: c * np.nan,
}


def issued(model, forecast):
    """All that is issued of forecasts, in one Dataset."""
    found = {
        "levels": model.quantile(forecast, [0.01, 0.1, 0.5, 0.9]),
        "exceedance": model.exceedance(forecast, 0.5),
        "crps": model.crps(forecast, TRUTH),
        "pit": model.pit(forecast, TRUTH),
    }
    if getattr(model.method, "compares", False):
        found["novelty"] = model.novelty(forecast)
    return xr.Dataset({k: v["v"] if isinstance(v, xr.Dataset) else v for k, v in found.items()})


def require_same_elsewhere(model, form, replaced):
    new = ENSEMBLE[LEARNED:].copy(deep=True)
    expected = issued(model, form(new))
    new[3, 1] = replaced(new[3, 1].to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = issued(model, form(new))
    at, place = (xr.DataArray(np.arange(n), dims=d) for d, n in (("time", 6), ("x", PLACES)))
    here = (at == 3) & (place == 1)
    if model.method.in_common and "x" in model.state["n_cases"].dims:
        beside = abs(found["pit"] - expected["pit"])[3, 0]
        assert 0 < beside < 0.02
        here = at == 3
    assert len(expected) >= 4
    for name in expected:
        a, b = (ds[name].where(~here, 0.0) for ds in (found, expected))
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.each_value
@pytest.mark.parametrize("pool", [None, "x"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("method", METHODS)
def test_a_forecast_leaves_those_beside_it_as_they_are(method, other, pool):
    model = model_of(method, "ensemble", pool)
    require_same_elsewhere(model, FORMS["ensemble"], OTHERS[other])


@pytest.mark.each_value
@pytest.mark.parametrize("form", ["quantile", "normal"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("method", ["auto", "shapes", "pool", "emos"])
def test_in_every_form(method, other, form):
    require_same_elsewhere(model_of(method, form, None), FORMS[form], OTHERS[other])


KNOWN: dict[tuple, object] = {}


def model_of(method, form, pool):
    """A fit that tests share."""
    key = method, form, pool
    if key not in KNOWN:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hindcast = FORMS[form](ENSEMBLE[:LEARNED])
            KNOWN[key] = hindcast.recal.fit(TRUTH, METHODS[method], pool=pool)
    return KNOWN[key]


@pytest.mark.parametrize("other", ["one absurd member", "far", "missing"])
def test_vectors(other):
    both = xr.Dataset({"u": ENSEMBLE, "w": ENSEMBLE + 1})
    truth = xr.Dataset({"u": TRUTH, "w": TRUTH + 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = both.isel(time=slice(LEARNED)).recal.fit(truth, jointly=["u", "w"])
    new = both.isel(time=slice(LEARNED, None)).copy(deep=True)
    expected = model.quantile(new, [0.1, 0.9])
    new["u"][3, 1] = OTHERS[other](new["u"][3, 1].to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.quantile(new, [0.1, 0.9])
    for name in ("u", "w"):
        np.testing.assert_array_equal(found[name][:3], expected[name][:3])
        np.testing.assert_array_equal(found[name][4:], expected[name][4:])
