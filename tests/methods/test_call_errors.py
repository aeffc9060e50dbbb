"""Calls that a signature does not take say what to type."""

import inspect
import pickle

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal import CKME, EMOS, Raw, diagnostics
from xrecal.methods.call_errors import explained

HINDCAST, TRUTH = ensemble_and_truth()
FIT = HINDCAST.recal.fit
PLOT = HINDCAST.recal.plot

SETTINGS = {
    "of the method given": (
        lambda: FIT(TRUTH, EMOS(bounds=None), vary_spread=True),
        "hindcast.recal.fit has no parameter 'vary_spread': it is a setting of EMOS: write "
        "hindcast.recal.fit(observations, xrecal.EMOS(bounds=None, vary_spread=True))",
    ),
    "by its name": (
        lambda: FIT(TRUTH, method=EMOS(), vary_spread=True),
        "hindcast.recal.fit has no parameter 'vary_spread': it is a setting of EMOS: write "
        "hindcast.recal.fit(observations, xrecal.EMOS(vary_spread=True))",
    ),
    "of a class": (
        lambda: FIT(TRUTH, EMOS, vary_spread=True),
        "hindcast.recal.fit has no parameter 'vary_spread': it is a setting of EMOS: write "
        "hindcast.recal.fit(observations, xrecal.EMOS(vary_spread=True))",
    ),
    "of another method": (
        lambda: FIT(TRUTH, EMOS(), support="auto"),
        "hindcast.recal.fit has no parameter 'support': it is a setting of CKME, not of EMOS, "
        "whose settings are bounds, condition_on, vary_spread, exchangeable: write "
        "hindcast.recal.fit(observations, xrecal.CKME(support='auto'))",
    ),
    "of one without": (
        lambda: FIT(TRUTH, Raw(), gap=1),
        "hindcast.recal.fit has no parameter 'gap': it is a setting of CKME and LinearPool "
        "and OnlinePool, not of Raw, whose settings are exchangeable: write "
        "hindcast.recal.fit(observations, xrecal.CKME(gap=1))",
    ),
    "of the default method, several": (
        lambda: FIT(TRUTH, support="auto", gap=3),
        "hindcast.recal.fit has no parameter 'support': it is a setting of CKME: write "
        "hindcast.recal.fit(observations, xrecal.CKME(support='auto', gap=3))",
    ),
    "without a method": (
        lambda: FIT(TRUTH, alpha=0.2),
        "hindcast.recal.fit has no parameter 'alpha': it is a setting of ConformalPrediction: "
        "write hindcast.recal.fit(observations, xrecal.ConformalPrediction(alpha=0.2))",
    ),
    "misspelt": (
        lambda: HINDCAST.recal.cross_validate(TRUTH, suport="auto"),
        "hindcast.recal.cross_validate has no parameter 'suport'; CKME has a setting 'support': "
        "write hindcast.recal.cross_validate(observations, xrecal.CKME(support='auto'))",
    ),
    "a long value": (
        lambda: FIT(TRUTH, ridge=np.zeros(100)),
        "hindcast.recal.fit has no parameter 'ridge': it is a setting of CKME: write "
        "hindcast.recal.fit(observations, xrecal.CKME(ridge=...))",
    ),
}
CALLS = {
    "misspelt": (
        lambda: FIT(TRUTH, min_sample=3),
        "hindcast.recal.fit has no parameter 'min_sample'; did you mean 'min_samples'? It takes "
        "observations, method, dim, member_dim, condition_on, covariates, pool, jointly, period, "
        "features, choose, min_samples, progress",
    ),
    "of a figure": (
        lambda: PLOT.coverage(TRUTH, treshold=1),
        "forecast.recal.plot.coverage has no parameter 'treshold'. It takes observations, dim, ax, "
        "label, level, seed, member_dim",
    ),
    "threshold": (
        lambda: HINDCAST.recal.reliability(TRUTH),
        "forecast.recal.reliability needs threshold (float, sequence of float or DataArray): write "
        "forecast.recal.reliability(observations, threshold=...)",
    ),
    "threshold of a figure": (
        lambda: PLOT.reliability(TRUTH),
        "forecast.recal.plot.reliability needs threshold (a value of the variable, or several): "
        "write forecast.recal.plot.reliability(observations, threshold=...)",
    ),
    "threshold of a function": (
        lambda: diagnostics.brier_score(HINDCAST, TRUTH),
        "xrecal.diagnostics.brier_score needs threshold (float, sequence of float or DataArray): "
        "write xrecal.diagnostics.brier_score(forecast, observations, threshold=...)",
    ),
    "reference": (
        lambda: PLOT.skill_map(TRUTH),
        "forecast.recal.plot.skill_map needs reference (another forecast of the same cases, such "
        "as the raw one): write forecast.recal.plot.skill_map(observations, reference=...)",
    ),
    "reference of a score": (
        lambda: xrecal.skill(TRUTH),
        "xrecal.diagnostics.skill needs reference (DataArray): write "
        "xrecal.diagnostics.skill(scores, reference=...)",
    ),
    "all": (
        lambda: PLOT.skill_by_lead(),
        "forecast.recal.plot.skill_by_lead needs observations: write "
        "forecast.recal.plot.skill_by_lead(observations=..., reference=...)",
    ),
    "too many": (
        lambda: HINDCAST.recal.skce(TRUTH, "time", "a"),
        "forecast.recal.skce takes observations, dim in this order, and by name augmented, "
        "member_dim; got 3 by position",
    ),
    "none by order": (
        lambda: HINDCAST.recal.mean("number"),
        "forecast.recal.mean takes nothing by position, and by name member_dim; got 1 by position",
    ),
    "twice": (
        lambda: HINDCAST.recal.crps(TRUTH, observations=TRUTH),
        "forecast.recal.crps: multiple values for argument 'observations'",
    ),
}
MODEL = FIT(TRUTH, EMOS())
MODELS = {
    "quantile": (
        lambda: MODEL.quantile(HINDCAST),
        "model.quantile needs q (float or sequence of float): write model.quantile(forecast, "
        "q=...)",
    ),
    "exceedance": (
        lambda: MODEL.exceedance(HINDCAST),
        "model.exceedance needs threshold (float, sequence of float or DataArray): write "
        "model.exceedance(forecast, threshold=...)",
    ),
    "crps": (
        lambda: MODEL.crps(HINDCAST),
        "model.crps needs observations (DataArray, Dataset or dict): write model.crps(forecast, "
        "observations=...)",
    ),
    "update": (
        lambda: MODEL.update(HINDCAST),
        "model.update needs observations (DataArray, Dataset or dict): write "
        "model.update(hindcast, observations=...)",
    ),
    "misspelt": (
        lambda: MODEL.members(HINDCAST, sed=1),
        "model.members has no parameter 'sed'; did you mean 'seed'? It takes forecast, n, "
        "coherence, template, seed, covariates, missing_covariates",
    ),
    "setting of compare": (
        lambda: xrecal.compare(HINDCAST, TRUTH, support="errors"),
        "xrecal.compare has no parameter 'support': it is a setting of CKME: write "
        "xrecal.compare(hindcast, observations, [xrecal.CKME(support='errors')])",
    ),
    "setting of plan": (
        lambda: xrecal.plan(HINDCAST, TRUTH, EMOS(), vary_spread=True),
        "xrecal.plan has no parameter 'vary_spread': it is a setting of EMOS: write "
        "xrecal.plan(hindcast, observations, xrecal.EMOS(vary_spread=True))",
    ),
    "misspelt methods": (
        lambda: xrecal.compare(HINDCAST, TRUTH, metods=[EMOS()]),
        "xrecal.compare has no parameter 'metods'; did you mean 'methods'? It takes hindcast, "
        "observations, methods, forecast, verification, dim, member_dim, by, gap, blocks, window, "
        "every, refit, year_start, condition_on, covariates, pool, features, choose, min_samples, "
        "block_length, cluster, sequential, progress",
    ),
    "compare without observations": (
        lambda: xrecal.compare(HINDCAST),
        "xrecal.compare needs observations: write xrecal.compare(hindcast, observations=...)",
    ),
}
METHODS = {
    "name": (
        lambda: FIT(TRUTH, "EMOS"),
        "method must be settings such as xrecal.EMOS(), got 'EMOS'; write "
        "hindcast.recal.fit(observations, xrecal.EMOS())",
    ),
    "any case": (
        lambda: HINDCAST.recal.cross_validate(TRUTH, "linearpool"),
        "method must be settings such as xrecal.LinearPool(), got 'linearpool'; write "
        "hindcast.recal.cross_validate(observations, xrecal.LinearPool())",
    ),
    "class": (
        lambda: FIT(TRUTH, CKME),
        f"method must be settings such as xrecal.CKME(), got {CKME!r}; write "
        "hindcast.recal.fit(observations, xrecal.CKME())",
    ),
    "no method": (
        lambda: FIT(TRUTH, "emoss"),
        "method must be settings such as xrecal.CKME(), got 'emoss'; write "
        "hindcast.recal.fit(observations, xrecal.CKME()). Methods are CKME, EMOS, LinearPool, "
        "OnlinePool, IDR, PITRecalibration, ConformalPrediction, Climatology, Raw",
    ),
    "array": (
        lambda: xrecal.plan(HINDCAST, TRUTH, TRUTH),
        "method must be settings such as xrecal.CKME(), got a DataArray; write "
        "xrecal.plan(hindcast, observations, xrecal.CKME()). Methods are CKME, EMOS, LinearPool, "
        "OnlinePool, IDR, PITRecalibration, ConformalPrediction, Climatology, Raw",
    ),
    "name in compare": (
        lambda: xrecal.compare(HINDCAST, TRUTH, "EMOS"),
        "method must be settings such as xrecal.EMOS(), got 'EMOS'; write "
        "xrecal.compare(hindcast, observations, [xrecal.EMOS()])",
    ),
    "names in compare": (
        lambda: xrecal.compare(HINDCAST, TRUTH, ["EMOS"]),
        "method must be settings such as xrecal.EMOS(), got 'EMOS'; write "
        "xrecal.compare(hindcast, observations, [xrecal.EMOS()])",
    ),
}
CLASSES = {
    "misspelt": (
        lambda: EMOS(vary_sprad=True),
        "EMOS has no setting 'vary_sprad'; did you mean 'vary_spread'? Its settings: bounds, "
        "condition_on, vary_spread, exchangeable",
    ),
    "of another": (
        lambda: EMOS(support="auto"),
        "EMOS has no setting 'support', which CKME has. Its settings: bounds, condition_on, "
        "vary_spread, exchangeable",
    ),
    "of several": (
        lambda: xrecal.Raw(bounds=None),
        "Raw has no setting 'bounds', which CKME and EMOS and LinearPool and OnlinePool have. Its "
        "settings: exchangeable",
    ),
    "of none": (
        lambda: xrecal.IDR(zzz=1),
        "IDR has no setting 'zzz'. Its settings: condition_on, exchangeable",
    ),
}
EVERY = (
    SETTINGS
    | {f"call: {k}": v for k, v in CALLS.items()}
    | {f"class: {k}": v for k, v in CLASSES.items()}
    | {f"model: {k}": v for k, v in MODELS.items()}
    | {f"method: {k}": v for k, v in METHODS.items()}
)


@pytest.mark.parametrize("case", EVERY)
def test_what_is_told(case):
    call, text = EVERY[case]
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_is_told_for_settings_can_be_typed():
    names = {"hindcast": HINDCAST, "observations": TRUTH, "xrecal": xrecal}
    for case in ("of the method given", "of another method", "of the default method, several"):
        typed = SETTINGS[case][1].rpartition(": write ")[2]
        assert isinstance(eval(typed, names), xrecal.Recalibrator)


def test_errors_inside_a_call_are_left_alone():
    def fails(a):
        raise TypeError(f"not {a}")

    with pytest.raises(TypeError, match=r"^not 3$"):
        explained("fails")(fails)(3)


def test_every_diagnostic_and_every_call_of_a_model_explains_wrong_calls():
    calls = [getattr(diagnostics, name) for name in diagnostics.__all__]
    methods = inspect.getmembers(xrecal.Recalibrator, inspect.isfunction)
    calls += [method for name, method in methods if not name.startswith("_")]
    for call in calls:
        assert inspect.unwrap(call) is not call


def test_signatures_of_settings_are_their_fields():
    assert list(inspect.signature(EMOS).parameters) == [
        *("bounds", "condition_on", "vary_spread", "exchangeable")
    ]
    assert pickle.loads(pickle.dumps(CKME(gap=2))) == CKME(gap=2)


@pytest.mark.parametrize("name", diagnostics.__all__)
def test_functions_can_be_sent_to_other_processes(name):
    function = getattr(diagnostics, name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "name", ["compare", "gaussian", "open_recalibrator", "plan", "probabilities", "weighted"]
)
def test_functions_of_the_package_too(name):
    function = getattr(xrecal, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.unwrap(function) is not function


def test_calls_of_models_can_be_sent_too():
    found = pickle.loads(pickle.dumps(MODEL.mean))(HINDCAST)
    xr.testing.assert_identical(found, MODEL.mean(HINDCAST))


def test_warnings_still_point_to_the_user():
    bare = xr.DataArray(HINDCAST.to_numpy(), HINDCAST.coords, HINDCAST.dims, attrs=HINDCAST.attrs)
    later = TRUTH.isel(time=slice(30, None))
    with pytest.warns(UserWarning, match="only 18 of 48") as caught:
        bare.recal.crps(later)
    assert caught[0].filename == __file__
