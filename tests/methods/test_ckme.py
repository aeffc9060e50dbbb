import dataclasses
import datetime

import numpy as np
import pytest

import xrecal
from xrecal import arrays
from xrecal.arrays.ckme.centre import SUPPORTS as CODES
from xrecal.arrays.ckme.embedding import Settings, complete_fit
from xrecal.arrays.ckme.solvers import EXACT_UP_TO
from xrecal.fit.together import fit_with
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import CHOSEN_FROM
from xrecal.methods.ckme_choices import CENTRES, STRENGTHS, SUPPORTS, WIDE, WIDE_ALONE
from xrecal.methods.folds import fold_groups

from .of_arrays import FORMS, as_cases, as_new, axis_of, covariates_of, forms

YEARS = CaseAxis(year=np.repeat(np.arange(2000, 2006), 8))

INVALID = [
    *(
        ({name: value}, rf"CKME: {name} must be one of '{first}', .*, got {value!r}")
        for name, first in [
            ("kernel", "gaussian"),
            ("loss", "crps"),
            ("folds", "auto"),
            ("projection", "euclidean"),
            ("support", "observations"),
        ]
        for value in ("other", None, 1)
    ),
    *(
        ({name: value}, rf"CKME: {name} must be {automatic} or a positive number, got ")
        for name, automatic in [("bandwidth", "'median' or 'cv'"), ("ridge", "'cv'")]
        for value in ("other", None, 0, -1.0, np.nan, np.inf, True, [1.0], np.array([1.0, 2.0]))
    ),
    *(
        ({"gap": value}, "CKME: gap must be a number of cases, .* such as '5D', got ")
        for value in (-1, 1.0, None, "1", True)
    ),
    ({"novelty": "other"}, "CKME: novelty must be one of 'auto', None, got 'other'"),
    ({"ridge": 1e-13}, "CKME: ridge must be at least 1e-12, got 1e-13"),
    ({"gap": 1, "folds": "random"}, "random folds have no neighbours; use gap=0 or folds='block'"),
    ({"half_life": -1}, "CKME: half_life must be a positive timedelta or number of days"),
    ({"bounds": (1, 0)}, "CKME: bounds must be 'auto', None or"),
    *(
        (
            {"loss": "laplace", "support": value},
            f"use support='observations' with loss='laplace', got support='{value}'",
        )
        for value in ("errors", "auto")
    ),
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
        "solver": "auto",
        "support": "auto",
        "tails": "auto",
        "novelty": "auto",
        "half_life": None,
        "bounds": "auto",
        "condition_on": None,
        "compare": "forecasts",
        "year_start": None,
        "exchangeable": True,
    }
    assert xrecal.CKME(support="observations").covariates == ()


def test_half_lives_are_kept_in_days():
    for length in (datetime.timedelta(days=30), np.timedelta64(720, "h"), 30):
        assert xrecal.CKME(support="observations", half_life=length) == xrecal.CKME(
            support="observations", half_life=30.0
        )


def test_half_lives_and_folds_need_dates():
    for half_life in (30.0, "cv"):
        method = xrecal.CKME(support="observations", half_life=half_life)
        with pytest.raises(ValueError, match=r"CKME: half_life needs dates .*leave half_life out"):
            method.check(YEARS, 48)
        assert method.check(axis_of(48), 48) == (method, None)
    with pytest.raises(ValueError, match="folds='year' needs dates"):
        xrecal.CKME(support="observations", folds="year").check(CaseAxis(), 48)


PAPER = {"support": "observations"}
OF_ERRORS = ["support", "centre", "lower", "upper"]


def test_only_supports_of_errors_have_members_of_their_own():
    assert xrecal.CKME(support="observations").shares_members
    for support in ("errors", "auto"):
        assert not xrecal.CKME(support=support).shares_members
    slots, components = xrecal.CKME(tails=None, novelty=None).slots(5)
    np.testing.assert_array_equal(slots, np.arange(5))
    assert components is None
    slots, components = xrecal.CKME(tails=None).slots(2)
    np.testing.assert_array_equal(slots, [0, 1, 0, 1])
    assert components == ["observations"] * 2 + ["errors"] * 2
    assert SUPPORTS["auto"] == CODES
    assert len(CENTRES) == len(CODES)


@pytest.mark.parametrize(
    ("settings", "n_features", "names"),
    [
        (PAPER, 0, ["ridge", "bandwidth"]),
        (PAPER | {"half_life": "cv"}, 0, ["ridge", "bandwidth", "half_life"]),
        (PAPER | {"condition_on": "season"}, 2, ["ridge", "bandwidth", "strength", "precision"]),
        ({"novelty": None}, 0, ["ridge", "bandwidth", *OF_ERRORS]),
        ({"compare": "shapes"}, 0, ["ridge", "bandwidth", *OF_ERRORS]),
        ({}, 0, ["ridge", "bandwidth", "beside", "beside_centre", *OF_ERRORS]),
    ],
    ids=str,
)
def test_the_state_holds_what_is_chosen(settings, n_features, names):
    parameters = xrecal.CKME(**settings).parameters(n_features)
    assert set(parameters) == {*names, "landmark", CHOSEN_FROM}
    assert "landmark" not in xrecal.CKME(**settings, solver="exact").parameters(n_features)
    most = 150 if settings.get("compare") == "shapes" else 1000
    assert parameters["landmark"].sizes(3000) == {"rank": most}
    assert parameters["landmark"].sizes(EXACT_UP_TO) == {"rank": 1}
    assert parameters["bandwidth"].in_units_of_variable
    if "centre" in names:
        assert parameters["centre"].dims == {"coefficient": 4 + 2 * n_features}
        assert parameters["support"].flags == CENTRES
    if "precision" in names:
        assert parameters["precision"].dims == {"feature": n_features}


@pytest.mark.parametrize(
    ("settings", "kernels"),
    [
        ({}, ((1.0, 0.0),)),
        ({"bandwidth": 2.0}, ((1.0, 0.0),)),
        ({"bandwidth": "cv"}, WIDE_ALONE),
        ({"condition_on": "lead"}, tuple((1.0, s) for s in STRENGTHS)),
        ({"condition_on": "lead", "bandwidth": "cv"}, WIDE),
    ],
    ids=str,
)
def test_kernels_that_are_tried(settings, kernels):
    found = xrecal.CKME(**settings).array_settings(20)
    assert found.kernels == kernels
    assert (1.0, 0.0) in [
        tuple(map(float, kernel)) for kernel in kernels
    ]  # covariates may not count


FITS = [
    (PAPER, FORMS),
    (PAPER | {"bandwidth": 1.5, "ridge": 0.01}, FORMS),
    (PAPER | {"kernel": "laplace", "loss": "laplace", "folds": "block", "gap": 2}, FORMS[:2]),
    (PAPER | {"folds": "random", "projection": "energy"}, FORMS[:2]),
    ({"solver": "lowrank", "support": "auto", "condition_on": "season"}, FORMS),
    (PAPER | {"condition_on": ("season", "lead"), "bandwidth": "cv"}, FORMS),
    ({"support": "errors", "condition_on": "season", "half_life": 300}, FORMS[:2]),
    ({"support": "auto", "half_life": "cv", "bounds": (None, 50)}, FORMS[:1]),
]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("settings", "kind"), [(s, kind) for s, kinds in FITS for kind in kinds], ids=str
)
def test_fits_and_predicts_as_the_array_layer(kind, settings, rng):
    forecasts, new = forms(rng, (2, 48))[kind], forms(rng, (2, 3))[kind]
    observations = forecasts.loc.mean(-1) + rng.normal(size=(2, 48))
    observations[0, ::7] = np.nan
    covariates, new_covariates = covariates_of(rng, 2, 48), covariates_of(rng, 2, 3)
    cases = as_cases(forecasts, observations, covariates, axis_of(48))
    method = xrecal.CKME(**settings, tails=None, novelty=None)
    fitted = fit_with(method, cases, 20, {})
    groups, blocks = fold_groups(method.folds, cases.axis, 48)
    shared = {"kernel": method.kernel, "projection": method.projection}
    of, new_of = (c.features(method.covariates) for c in (covariates, new_covariates))
    expected = arrays.fit_ckme(
        forecasts,
        observations,
        Settings(
            **shared,
            bandwidth=None if isinstance(method.bandwidth, str) else method.bandwidth,
            ridge=settings.get("ridge"),
            loss=method.loss,
            gap=method.gap,
            bounds=method.bounds,
            supports=SUPPORTS[method.support],
            kernels=method.array_settings(20).kernels,
            min_samples=20,
            solver=method.solver,
        ),
        features=of,
        days=cases.axis.days,
        half_life=np.inf if method.half_life is None else method.half_life,
        groups=groups,
        blocks=blocks,
    )
    for name, value in expected._asdict().items():
        np.testing.assert_array_equal(fitted[name], value)
    for name in ("bandwidth", "ridge"):
        if not isinstance(getattr(method, name), str):
            np.testing.assert_array_equal(fitted[name], settings[name])
    kept = {name: fitted[name] for name in method.parameters(of.circular.size)}
    found = method.predict_locations(as_new(new, new_covariates), cases, kept)
    members, weights = arrays.ckme_weights(
        new,
        forecasts,
        observations,
        expected,
        **shared,
        features=of,
        new_features=new_of,
        days=cases.axis.days,
        own_members=not method.shares_members,
    )
    np.testing.assert_array_equal(found.weights, weights)
    np.testing.assert_array_equal(found.members, members)
    assert (found.members is observations) == method.shares_members
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-12)
    assert (weights[0, :, ::7] == 0).all()  # no observation, no weight


def test_what_the_settings_do_not_choose_is_filled_in():
    found = complete_fit({"ridge": np.ones(2), "bandwidth": np.full(2, 3.0)}, 1)
    np.testing.assert_array_equal(found.bandwidth, 3)
    np.testing.assert_array_equal(found.strength, 0)
    np.testing.assert_array_equal(found.centre, [[0, 0, 1, 0, 0, 0]] * 2)
    assert found.precision.shape == (2, 1)
    assert (found.lower == -np.inf).all()
    assert (found.upper == np.inf).all()
    assert (found.half_life == np.inf).all()


def test_a_half_life_is_chosen_with_a_given_ridge_too(rng):
    forecasts = forms(rng, (1, 48))["ensemble"]
    observations = forecasts.loc.mean(-1) + 0.1 * rng.normal(size=(1, 48))
    observations[0, 30:] += 10  # the system changed
    cases = as_cases(forecasts, observations, axis=axis_of(48))
    fitted = xrecal.CKME(support="observations", half_life="cv", ridge=0.05).fit_locations(
        cases, 20
    )
    assert np.isfinite(fitted["half_life"][0])


def test_shapes_need_errors():
    with pytest.raises(ValueError, match=r"use support='errors', 'standardised' or 'ratio' with"):
        xrecal.CKME(support="observations", compare="shapes")
    with pytest.raises(ValueError, match="got support='regression'"):
        xrecal.CKME(support="regression", compare="shapes")
    assert xrecal.CKME(support="ratio", compare="shapes").supports == ("ratio",)
    chosen = xrecal.CKME(compare="shapes")
    assert chosen.supports == xrecal.CKME(support="errors", compare="shapes").supports
    assert not chosen.gives_way


def test_what_is_compared_must_be_known():
    with pytest.raises(ValueError, match="compare must be one of 'forecasts', 'shapes', got 'x'"):
        xrecal.CKME(support="errors", compare="x")
