"""A forest in pools with many covariates: when it joins, how it is kept, what needs the extra."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from xrecal.methods import Forest
from xrecal.methods.forest import FEWEST_CASES, FEWEST_COVARIATES

pytest.importorskip("sklearn")

N, LATER = FEWEST_CASES + 20, 30
TIME = pd.date_range("2018-01-01", periods=N + LATER, freq="3D")
NAMES = tuple(f"x{k}" for k in range(FEWEST_COVARIATES))
PAST, NEW = slice(None, N), slice(N, None)
SEASON = ("season", *NAMES)
LABEL = "forest_season_5_covariates"


@cache
def cases():
    """Forecasts, and what verified at two places: errors jump with one of the covariates."""
    rng = np.random.default_rng(3)
    signal, noise = rng.normal(size=(2, TIME.size, 2))
    known = {name: rng.normal(size=TIME.size) for name in NAMES}
    shift = np.where(known["x0"] > 0, known["x1"], -1)
    truth = signal + 2 * shift[:, np.newaxis] + 0.3 * noise
    members = signal[..., np.newaxis] + 0.5 * rng.normal(size=(TIME.size, 2, 5))
    coords = {"time": TIME, "lat": [50.0, 51.0]}
    return (
        xr.DataArray(members, coords, ("time", "lat", "member"), name="t2m"),
        xr.DataArray(truth, coords, ("time", "lat"), name="t2m"),
        {name: xr.DataArray(a, {"time": TIME}, ["time"]) for name, a in known.items()},
    )


def part(at):
    hindcast, truth, known = cases()
    return hindcast[at], truth[at], {name: value[at] for name, value in known.items()}


def fit(at=PAST, method=None, names=SEASON, chunks=None):
    hindcast, truth, known = part(at)
    if chunks is not None:
        hindcast, truth = hindcast.chunk(chunks), truth.chunk(chunks)
    given = {name: known[name] for name in names if name != "season"}
    method = xrecal.LinearPool() if method is None else method
    return hindcast.recal.fit(truth, method, condition_on=names, covariates=given)


@cache
def model():
    """The usual pool; no test changes it."""
    return fit()


def labels(fitted):
    return list(fitted.state["component"].to_numpy())


def test_it_joins_and_improves_the_pool():
    hindcast, truth, known = part(NEW)
    without = fit(method=xrecal.LinearPool(forest=False))
    first = (
        labels(without).index("ckme_5_covariates") + 1
    )  # IDR and those that learn nothing come last
    assert labels(model()) == [*labels(without)[:first], LABEL, *labels(without)[first:]]
    crps = [m.crps(hindcast, truth, covariates=known).mean() for m in (model(), without)]
    assert crps[0] < 0.95 * crps[1]
    assert (model().state["pool_weight"].sel(component=LABEL) > 0.2).all()


@pytest.mark.parametrize(
    ("given", "n", "names"),
    [
        ({"forest": False}, FEWEST_CASES, SEASON),
        ({}, FEWEST_CASES, SEASON[:-1]),
        ({}, FEWEST_CASES - 1, SEASON),
        ({"methods": (xrecal.CKME(), xrecal.Raw())}, FEWEST_CASES, SEASON),
    ],
)
def test_without_enough_of_all_it_does_not_join(given, n, names):
    usual = xrecal.LinearPool(condition_on=SEASON).with_forest(FEWEST_CASES)
    assert LABEL in [c.label for c in usual.components]
    pool = xrecal.LinearPool(**given, condition_on=names)
    assert pool.with_forest(n) == pool


@pytest.mark.parametrize(("method", "mixed"), [
    (xrecal.LinearPool(), "component"), (xrecal.OnlinePool(), "expert")
])  # fmt: skip
def test_it_joins_where_covariates_are_given_and_none_is_named(method, mixed):
    hindcast, truth, known = part(PAST)
    pool = hindcast.recal.fit(truth, method, covariates=known)
    assert LABEL in pool.state[mixed].to_numpy()


def test_asked_for_it_joins_with_few_covariates_too():
    assert "forest_x0" in labels(fit(method=xrecal.LinearPool(forest=True), names=("x0",)))


def test_named_methods_leave_no_room_for_it():
    with pytest.raises(ValueError, match="leave out forest or methods"):
        xrecal.LinearPool((xrecal.CKME(),), forest=True)
    with pytest.raises(ValueError, match="forest must be one of 'auto', True, False, got 5"):
        xrecal.LinearPool(forest=5)


@pytest.fixture
def without_extra(monkeypatch):
    monkeypatch.setattr("xrecal.arrays.baselines.forest.find_spec", lambda name: None)


@pytest.mark.parametrize("method", [xrecal.LinearPool(), xrecal.LinearPool(forest=True)])
def test_without_the_extra_a_fit_names_the_line_to_install_it(method, without_extra):
    with pytest.raises(ImportError, match=r"scikit-learn; use pip install 'xrecal\[predictors\]'"):
        fit(method=method)


def test_without_the_extra_models_are_issued_and_updated(without_extra, tmp_path):
    hindcast, truth, known = part(NEW)
    model().save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    updated = opened.update(hindcast, truth, covariates=known)
    assert np.isfinite(updated.quantile(hindcast, [0.1, 0.9], covariates=known)).all()
    assert LABEL not in labels(fit(method=xrecal.LinearPool(forest=False)))


@pytest.mark.parametrize("name", ["model.nc", "model.zarr"])
def test_it_is_stored_as_arrays(name, tmp_path):
    hindcast, truth, known = part(NEW)
    updated = model().update(hindcast, truth, covariates=known)
    for one in (model(), updated):
        one.save(tmp_path / name, overwrite=True)
        opened = xrecal.open_recalibrator(tmp_path / name)
        assert opened.method == one.method
        expected = one.quantile(hindcast, [0.1, 0.5], covariates=known)
        xr.testing.assert_identical(
            opened.quantile(hindcast, [0.1, 0.5], covariates=known), expected
        )
    trees = model().state[f"{LABEL}_predictor"]
    assert trees.dtype == np.int16
    assert trees.nbytes < 1e6


def test_chunks_of_places_and_forecasts_make_no_difference():
    hindcast, _, known = part(NEW)
    lazy = fit(chunks={"lat": 1}).compute()
    for name in ("predictor", "threshold", "right", "error"):
        name = f"{LABEL}_{name}"
        xr.testing.assert_equal(lazy.state[name], model().state[name])
    found = lazy.quantile(hindcast.chunk(time=7, lat=1), [0.1, 0.5], covariates=known).compute()
    xr.testing.assert_allclose(
        found, model().quantile(hindcast, [0.1, 0.5], covariates=known), rtol=1e-12
    )


def test_update_sends_new_cases_down_the_trees():
    hindcast, truth, known = part(NEW)
    updated = model().update(hindcast, truth, covariates=known)
    for name in ("predictor", "threshold", "right", "centre"):
        name = f"{LABEL}_{name}"
        xr.testing.assert_equal(updated.state[name], model().state[name])
    error = updated.state[f"{LABEL}_error"]
    assert error.sizes["calibration"] == N + LATER
    assert np.isfinite(error).all()
    xr.testing.assert_equal(error[..., :N], model().state[f"{LABEL}_error"])
    crps = [m.crps(hindcast, truth, covariates=known).mean() for m in (updated, model())]
    assert crps[0] < crps[1]


def test_updates_one_by_one_are_one_update():
    hindcast, truth, known = part(NEW)
    first = {name: value[:1] for name, value in known.items()}
    rest = {name: value[1:] for name, value in known.items()}
    several = model().update(hindcast[:1], truth, covariates=first)
    several = several.update(hindcast[1:], truth, covariates=rest)
    at_once = model().update(hindcast, truth, covariates=known)
    xr.testing.assert_allclose(several.state, at_once.state)


def test_a_missing_or_broken_covariate_does_not_move_a_forecast_far():
    hindcast, _, known = part(NEW)
    usual = model().quantile(hindcast, 0.5, covariates=known)
    for value in (np.nan, 1e6):
        broken = {**known, "x4": xr.full_like(known["x4"], value)}
        with pytest.warns(UserWarning, match="replaced by their median"):
            found = model().quantile(hindcast, 0.5, covariates=broken)
        assert np.isfinite(found).all()
        assert np.abs(found - usual).mean() < 0.3


def test_an_online_pool_has_it_among_its_experts(tmp_path):
    def given(at):
        hindcast, truth, known = part(at)
        return {
            "hindcast": hindcast.isel(lat=[0]),
            "observations": truth.isel(lat=[0]),
            "covariates": known,
        }

    first, *_, last = (given(slice(at, at + 1)) for at in range(N, N + 3))
    hindcast, truth, known = given(PAST).values()
    online = xrecal.OnlinePool(condition_on=SEASON)
    fitted = hindcast.recal.fit(truth, online, covariates=known)
    assert LABEL in fitted.state["expert"]
    fitted.save(tmp_path / "model.nc")
    several = xrecal.open_recalibrator(tmp_path / "model.nc").update(**first)
    at_once = fitted.update(**given(slice(N, N + 2)))
    several = several.update(**given(slice(N + 1, N + 2)))
    new = {"forecast": last["hindcast"], "q": [0.1, 0.9], "covariates": last["covariates"]}
    found, expected = several.quantile(**new), at_once.quantile(**new)
    assert np.isfinite(expected).all()
    xr.testing.assert_allclose(found, expected)


def test_without_the_extra_an_online_pool_names_what_does_without(without_extra):
    with pytest.raises(ImportError, match=r"OnlinePool\(forest=False\)"):
        fit(method=xrecal.OnlinePool())


def test_settings_are_checked():
    with pytest.raises(ValueError, match="n_trees is 0; give a whole number from 1"):
        Forest(n_trees=0)
    with pytest.raises(ValueError, match="seed is -1; give a whole number from 0"):
        Forest(seed=-1)
