import numpy as np
import pytest

from xrecal.arrays import Features, Forecasts, Settings
from xrecal.arrays.ckme import ckme, weights
from xrecal.arrays.device import namespace
from xrecal.arrays.device import weights as batched

from .cases import forecasts_and_observations, season


def compare(library, new, cases, observed, fitted, of=None, new_of=None, **given):
    """Members, weights and novelty are those of the host."""
    given = {**given, "return_novelty": True}
    expected = weights.ckme_weights(
        new, cases, observed, fitted, features=of, new_features=new_of, **given
    )
    ours, theirs = (
        None if f is None else Features(library(f.values), f.circular) for f in (of, new_of)
    )
    found = batched.ckme_weights(
        library.tuple(new), library.tuple(cases), library(observed), library.tuple(fitted),
        features=ours, new_features=theirs, **given,
    )  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        host = library.host(one)
        assert host.dtype == other.dtype
        tolerance = 1e-10 if other.dtype == np.float64 else 1e-6
        np.testing.assert_allclose(host, other, rtol=0, atol=tolerance)
    return expected[:2]


@pytest.mark.each_value
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("supports", [("observations",), ("mean",), ("observations", "ratio")])
def test_weights_are_those_of_the_host(library, rng, solver, projection, kernel, supports):
    cases, observed = forecasts_and_observations(rng, rain=True)
    settings = Settings(kernel, None, 1e-3, projection=projection, supports=supports, solver=solver)
    fitted = ckme.fit_ckme(cases, observed, settings)
    new = Forecasts(np.maximum(cases.loc[:, :6, :3] + 0.1, 0.0))
    new.loc[0, 0], new.loc[1, 1, 0] = np.nan, np.inf
    own = supports != ("observations",)
    given = {"kernel": kernel, "projection": projection, "own_members": own}
    _, found = compare(library, new, cases, observed, fitted, **given)
    assert np.isnan(found[0, 0]).all()
    assert np.isnan(found[1, 1]).all()


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_errors_beside_observations_are_those_of_the_host(library, rng, projection):
    cases, observed = forecasts_and_observations(rng)
    observed[:2] = np.sign(observed[:2])
    settings = Settings(supports=("observations", "mean"), projection=projection)
    fitted = ckme.fit_ckme(cases, observed, settings)
    assert set(fitted.beside) == {0, 1}
    new = Forecasts(cases.loc[:, :6, :3] + 0.1)
    new.loc[0, 0] = np.nan
    given = new, cases, observed, fitted
    expected = weights.ckme_weights_of_both(*given, projection=projection)
    moved = (library(a) if isinstance(a, np.ndarray) else library.tuple(a) for a in given)
    found = batched.ckme_weights_of_both(*moved, projection=projection)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(library.host(one), other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_season_and_drift(library, rng, solver):
    cases, observed = forecasts_and_observations(rng, 2, 60)
    of, days = season(2, 60)
    settings = Settings(kernels=((1.0, 1.0),), ridge=1e-2, solver=solver, supports=("regression",))
    given = {"features": of, "days": days, "half_life": 300.0}
    fitted = ckme.fit_ckme(cases, observed, settings, **given)
    new_of = Features(of.values[:, 5:9].copy(), of.circular)
    new_of.values[0, 0] = np.nan
    new = Forecasts(cases.loc[:, 5:9], None, rng.random((2, 4, 5)))
    weighted = Forecasts(cases.loc, None, rng.random(cases.loc.shape))
    compare(library, new, weighted, observed, fitted, of, new_of, days=days, own_members=True)


def test_locations_with_other_cases(library, rng):
    cases, observed = forecasts_and_observations(rng, 4)
    observed[0, 3:9], observed[2, 5:] = np.nan, np.nan
    fitted = ckme.fit_ckme(cases, observed)
    _, found = compare(library, Forecasts(cases.loc[:, :3]), cases, observed, fitted)
    assert (found[0, :, 3:9] == 0.0).all()
    assert np.isnan(found[2]).all()


def test_rows_at_a_time_change_nothing(library, rng, monkeypatch):
    monkeypatch.setattr(batched, "ROWS", 4)
    cases, observed = forecasts_and_observations(rng)
    observed[0, 3:9] = np.nan
    fitted = ckme.fit_ckme(cases, observed, Settings(supports=("mean",), ridge=1e-2))
    compare(library, Forecasts(cases.loc[:, :9]), cases, observed, fitted, own_members=True)


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_large_matrices_are_solved_one_by_one(library, rng, monkeypatch, solver):
    monkeypatch.setattr(namespace, "STACKED", 3)
    cases, observed = forecasts_and_observations(rng)
    fitted = ckme.fit_ckme(cases, observed, Settings(ridge=1e-2, solver=solver))
    compare(library, Forecasts(cases.loc[:, :9]), cases, observed, fitted)


def test_landmarks_that_came_by_an_update(library, rng):
    cases, observed = forecasts_and_observations(rng, n=80)
    part = Forecasts(cases.loc[:, :40]), observed[:, :40]
    fitted = ckme.fit_ckme(*part, Settings(solver="lowrank", ridge=1e-5))
    compare(library, Forecasts(cases.loc[:, :3]), cases, observed, fitted)


def test_float32_stays(library, rng):
    cases, observed = forecasts_and_observations(rng)
    cases, observed = Forecasts(cases.loc.astype(np.float32)), observed.astype(np.float32)
    fitted = ckme.fit_ckme(cases, observed)
    compare(library, Forecasts(cases.loc[:, :3]), cases, observed, fitted)


def test_what_does_not_fit_is_refused(library, rng):
    cases, observed = forecasts_and_observations(rng)
    ours = library.tuple(cases), library(observed)
    fitted = library.tuple(ckme.fit_ckme(cases, observed, Settings(ridge=0.1)))
    with pytest.raises(ValueError, match="forecasts have 2 locations, but cases have 3"):
        batched.ckme_weights(Forecasts(library(cases.loc[:2])), *ours, fitted)
    with pytest.raises(ValueError, match="projection must be one of"):
        batched.ckme_weights(ours[0], *ours, fitted, projection="other")
    short = fitted._replace(bandwidth=fitted.bandwidth[:2])
    with pytest.raises(ValueError, match=r"bandwidth has shape \(2,\), but there are 3 locations"):
        batched.ckme_weights(ours[0], *ours, short)
