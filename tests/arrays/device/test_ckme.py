import numpy as np
import pytest

from xrecal.arrays import Features, Forecasts, Settings
from xrecal.arrays.ckme import ckme
from xrecal.arrays.device import case_groups as batched_cases
from xrecal.arrays.device import namespace
from xrecal.arrays.device.ckme import fit_ckme
from xrecal.arrays.status import IDENTICAL, INVALID, TOO_FEW

from .cases import forecasts_and_observations, season

ERRORS = ("mean", "regression", "standardised", "ratio")
EVERY = ("observations", *ERRORS)
SEASONAL = tuple((1.0, strength) for strength in (0.0, 1.0))

SETTINGS = [
    Settings(),
    Settings(projection="energy"),
    Settings(loss="laplace", kernel="laplace"),
    Settings(supports=EVERY),
    Settings(supports=("mean",), projection="energy"),
    Settings(ridge=1e-2),
    Settings(ridge=1e-2, supports=("mean", "ratio"), bandwidth=0.5),
    Settings(kernels=((1.0, 0.0), (4.0, 0.0), (16.0, 0.0)), gap=2),
    Settings(solver="lowrank"),
    Settings(solver="lowrank", supports=("mean", "regression")),
    Settings(solver="lowrank", ridge=1e-3),
    Settings(supports=("mean", "standardised"), shapes=True),
]


def require_equal(library, found, expected, *, alike=False):
    """All that was chosen is the same; of forecasts that are alike any may be a landmark."""
    for name, one, other in zip(found._fields, found, expected, strict=True):
        host = library.host(one)
        assert host.dtype == other.dtype, name
        if alike and name == "landmark":
            host, other = host >= 0, other >= 0
        np.testing.assert_allclose(host, other, rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.each_value
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    ("library", "rain"), [("numpy", True), ("array_api_strict", False)], indirect=["library"]
)
def test_choices_are_those_of_the_host(library, rng, settings, rain):
    cases, observed = forecasts_and_observations(rng, rain=rain)
    found = fit_ckme(library.tuple(cases), library(observed), settings)
    require_equal(library, found, ckme.fit_ckme(cases, observed, settings), alike=rain)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("library", "half_life"),
    [("numpy", np.inf), ("numpy", 300.0), ("array_api_strict", "cv")],
    indirect=["library"],
)
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_season_and_drift(library, rng, half_life, solver):
    cases, observed = forecasts_and_observations(rng, 2, 60)
    of, days = season(2, 60)
    observed += 2 * np.sin(2 * np.pi * days / 365.25)
    settings = Settings(kernels=SEASONAL, supports=("observations", "regression"), solver=solver)
    given = {"days": days, "half_life": half_life, "groups": np.arange(60) // 15, "blocks": 0}
    ours = Features(library(of.values), of.circular)
    found = fit_ckme(library.tuple(cases), library(observed), settings, features=ours, **given)
    expected = ckme.fit_ckme(cases, observed, settings, features=of, **given)
    require_equal(library, found, expected)


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_groups_must_agree_as_on_the_host(rng, solver):
    x = rng.normal(size=(24, 6, 1)).repeat(8, axis=1) + 0.3 * rng.normal(size=(24, 48, 5))
    y = rng.normal(size=(24, 6)).repeat(8, axis=1) + 0.4 * rng.normal(size=(24, 48))
    settings = Settings(supports=("observations", "mean"), solver=solver)
    given = {"groups": np.arange(48) // 8, "blocks": 0}
    expected = ckme.fit_ckme(Forecasts(x), y, settings, **given)
    doubted = (expected.ridge == 1) & (expected.status == 0)
    assert 0 < doubted.sum() < 24
    for one, other in zip(fit_ckme(Forecasts(x), y, settings, **given), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_locations_with_other_cases(library, rng):
    cases, observed = forecasts_and_observations(rng, 5)
    weights = rng.random(cases.loc.shape)
    observed[0, 3:9], cases.loc[1, 5], cases.loc[1, 6, 1:] = np.nan, np.nan, np.nan
    observed[2, 5:], cases.loc[3, 7, 0] = np.nan, np.inf
    cases.loc[4] = 1.0
    cases = Forecasts(cases.loc, None, weights)
    settings = Settings(supports=("observations", "mean"))
    found = fit_ckme(library.tuple(cases), library(observed), settings)
    require_equal(library, found, ckme.fit_ckme(cases, observed, settings))
    status = library.host(found.status)
    assert status[2] == TOO_FEW
    assert status[3] & INVALID
    assert status[4] & IDENTICAL


def test_blocks_of_locations_change_nothing(library, rng, monkeypatch):
    cases, observed = forecasts_and_observations(rng, 4)
    whole = fit_ckme(library.tuple(cases), library(observed))
    monkeypatch.setattr(batched_cases, "WORKSPACE", 1)
    for one, other in zip(fit_ckme(library.tuple(cases), library(observed)), whole, strict=True):
        np.testing.assert_allclose(library.host(one), library.host(other), rtol=1e-10)


def test_large_matrices_are_solved_one_by_one(library, rng, monkeypatch):
    cases, observed = forecasts_and_observations(rng)
    for solver in ("exact", "lowrank"):
        settings = Settings(solver=solver)
        whole = fit_ckme(library.tuple(cases), library(observed), settings)
        with monkeypatch.context() as patch:
            patch.setattr(namespace, "STACKED", 3)
            alone = fit_ckme(library.tuple(cases), library(observed), settings)
        require_equal(library, alone, whole._make(map(library.host, whole)))


def test_many_cases_are_thinned_out_as_on_the_host(rng):
    cases, observed = forecasts_and_observations(rng, 2, 620)
    settings = Settings(supports=("observations", "mean"))
    found, expected = (fit(cases, observed, settings) for fit in (fit_ckme, ckme.fit_ckme))
    for name in ("support", "strength", "n_cases", "landmark"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.ridge, expected.ridge, rtol=1e-6)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-10)


def test_float32_is_computed_in_float64(library, rng):
    cases, observed = forecasts_and_observations(rng)
    narrow = cases.loc.astype(np.float32), observed.astype(np.float32)
    found = fit_ckme(Forecasts(library(narrow[0])), library(narrow[1]))
    expected = ckme.fit_ckme(Forecasts(narrow[0]), narrow[1])
    np.testing.assert_allclose(library.host(found.ridge), expected.ridge, rtol=1e-10)


def test_what_cannot_be_done_is_refused(library, rng):
    cases, observed = forecasts_and_observations(rng)
    ours = library.tuple(cases), library(observed)
    normal = Forecasts(ours[0].loc, ours[0].loc)
    with pytest.raises(TypeError, match=r"distance of normal distributions has no implementation"):
        fit_ckme(normal, ours[1])
    with pytest.raises(TypeError, match="distances that are known already"):
        fit_ckme(*ours, squared=[None])
    with pytest.raises(ValueError, match="a half-life needs days"):
        fit_ckme(*ours, half_life=3.0)
    with pytest.raises(ValueError, match="half_life='cv' needs days"):
        fit_ckme(*ours, half_life="cv")
    with pytest.raises(ValueError, match="observations have shape"):
        fit_ckme(ours[0], library(observed[:1]))
