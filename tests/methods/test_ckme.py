import dataclasses

import numpy as np
import pytest

import xrecal
from xrecal import arrays
from xrecal.arrays.forms import Forecasts
from xrecal.dims import CaseAxis
from xrecal.methods.base import State
from xrecal.methods.ckme import BLOCKS

YEARS = CaseAxis(year=np.repeat(np.arange(2000, 2006), 8))
NO_DATES = CaseAxis()

INVALID = [
    *(
        ({name: value}, rf"CKME: {name} must be one of '{first}', .*, got {value!r}")
        for name, first in [
            ("kernel", "gaussian"),
            ("loss", "crps"),
            ("folds", "auto"),
            ("projection", "euclidean"),
        ]
        for value in ("other", None, 1)
    ),
    *(
        ({name: value}, rf"CKME: {name} must be '{automatic}' or a positive number, got ")
        for name, automatic in [("bandwidth", "median"), ("ridge", "cv")]
        for value in ("other", None, 0, -1.0, np.nan, np.inf, True, [1.0], np.array([1.0, 2.0]))
    ),
    *(
        ({"gap": value}, "CKME: gap must be a number of cases, 0 or more, got ")
        for value in (-1, 1.0, None, "1", True)
    ),
    ({"gap": 1, "folds": "random"}, "random folds have no neighbours; use gap=0 or folds='block'"),
]


@pytest.mark.parametrize(("settings", "message"), INVALID, ids=lambda v: str(v)[:40])
def test_invalid_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        xrecal.CKME(**settings)


def test_defaults_are_those_of_the_design():
    assert dataclasses.asdict(xrecal.CKME()) == {
        "kernel": "gaussian",
        "bandwidth": "median",
        "ridge": "cv",
        "loss": "crps",
        "folds": "auto",
        "gap": 0,
        "projection": "euclidean",
    }
    assert not xrecal.CKME().needs_season


def one_year(n):
    return CaseAxis(year=np.full(n, 2003))


@pytest.mark.parametrize(
    ("folds", "axis", "by_year"),
    [
        ("auto", YEARS, True),
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2005), 8)), True),  # five are enough
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2004), 8)), False),
        ("auto", NO_DATES, False),
        ("year", CaseAxis(year=np.repeat([2000, 2007], 8)), True),
        ("block", YEARS, False),
    ],
)
def test_folds_are_years_or_blocks(folds, axis, by_year):
    n = 48 if axis.year is None else axis.year.size
    groups, blocks = xrecal.CKME(folds=folds).fold_groups(axis, n)
    assert blocks == (0 if by_year else BLOCKS)
    np.testing.assert_array_equal(groups, axis.year if by_year else np.arange(n))


def test_random_folds_are_one_fixed_shuffle():
    groups, blocks = xrecal.CKME(folds="random").fold_groups(YEARS, 48)
    again, _ = xrecal.CKME(folds="random", kernel="laplace").fold_groups(NO_DATES, 48)
    assert blocks == BLOCKS
    np.testing.assert_array_equal(groups, again)
    np.testing.assert_array_equal(np.sort(groups), np.arange(48))
    assert np.abs(np.diff(groups)).mean() > 5  # neighbours are torn apart


def test_year_folds_need_dates_of_two_years():
    method = xrecal.CKME(folds="year")
    method.check(YEARS, 48)
    with pytest.raises(
        ValueError, match=r"folds='year' needs dates along the calibration dimension"
    ):
        method.check(NO_DATES, 48)
    with pytest.raises(
        ValueError, match="needs two years, but all cases are from 2003; use folds="
    ):
        method.check(one_year(48), 48)
    for folds in ("auto", "block", "random"):
        xrecal.CKME(folds=folds).check(NO_DATES, 48)
        xrecal.CKME(folds=folds).check(one_year(48), 48)


def forms(rng, shape):
    loc = rng.normal(size=(*shape, 4))
    scale, weights = rng.uniform(0.2, 1, loc.shape), rng.uniform(0.2, 1, loc.shape)
    return {
        "ensemble": Forecasts(loc),
        "weighted": Forecasts(loc, None, weights),
        "normal": Forecasts(loc, scale),
        "mixture": Forecasts(loc, scale, weights),
    }


SETTINGS = [
    {},
    {"kernel": "laplace", "loss": "laplace", "projection": "energy", "folds": "block", "gap": 2},
    {"bandwidth": 1.5, "ridge": 0.01},
    {"folds": "random"},
]


@pytest.mark.parametrize("kind", ["ensemble", "weighted", "normal", "mixture"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_fits_and_predicts_as_the_array_layer(kind, settings, rng):
    cases, new = forms(rng, (2, 48))[kind], forms(rng, (2, 3))[kind]
    observations = cases.loc.mean(-1) + rng.normal(size=(2, 48))
    observations[0, ::7] = np.nan
    method = xrecal.CKME(**settings)
    fitted = method.fit_locations(cases, observations, YEARS, 20)
    groups, blocks = method.fold_groups(YEARS, 48)
    expected = arrays.fit_ckme(
        cases,
        observations,
        groups=groups,
        blocks=blocks,
        gap=method.gap,
        kernel=method.kernel,
        bandwidth=settings.get("bandwidth"),
        ridge=settings.get("ridge"),
        loss=method.loss,
        projection=method.projection,
        min_samples=20,
    )
    for name, value in expected._asdict().items():
        np.testing.assert_array_equal(fitted[name], value)
    for name in ("bandwidth", "ridge"):
        if name in settings:
            np.testing.assert_array_equal(fitted[name], settings[name])
    found = method.predict_locations(new, State(observations, cases, fitted), YEARS, None)
    weights = arrays.ckme_weights(
        new,
        cases,
        observations,
        expected.bandwidth,
        expected.ridge,
        kernel=method.kernel,
        projection=method.projection,
    )
    np.testing.assert_array_equal(found.weights, weights)
    assert found.members is observations
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-12)
    assert (weights[0, :, ::7] == 0).all()  # no observation, no weight
