"""What becomes of a method with some features: a forecast that is checked, or a refusal."""

import tempfile
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import numpy as np
import xarray as xr
from click.testing import CliRunner

import xrecal
from xrecal.cli.commands import xrecal as command
from xrecal.inputs import pool as pooling

from .features import METHODS
from .refusals import NEEDLESS, WORKS
from .worlds import N_PAST, World, world

POOLS = {"few cases pooled": "station", "many cases pooled": "station", "windows": {"station": 3}}
CHOOSE = {"choices of all places": "together", "choices of each place": "each"}
SETTINGS = {
    "gap": {"gap": "45D"},
    "half-life": {"half_life": 700},
    "named members": {"exchangeable": False},
}
Q = [0.1, 0.5, 0.9]
BY = {"by year": "year", "by block": "block", "retrospective": "retrospective",
      "rolling": "rolling", "rolling with refit": "rolling"}  # fmt: skip

EVERY = {"rolling": {"every": 12, "window": 48}, "rolling with refit": {"every": 6, "refit": 12}}


class NotASettingError(Exception):
    """A method has no such setting, as it chooses nothing that needs one."""


def outcome(case: dict[str, str]) -> str:
    """``works`` for a forecast that is right, else the text of the refusal."""
    most = 40 if case["places"] == "many cases pooled" else pooling.MAX_POOLED
    try:
        with patch.object(pooling, "MAX_POOLED", most), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _run(case)
            if case["arrays"] == "Dask" and found is not None:
                _same(found, _run({**case, "arrays": "NumPy"}))
    except NotASettingError:
        return NEEDLESS
    except (ValueError, TypeError) as refusal:
        return str(refusal)
    return WORKS


def _method(case: dict[str, str]) -> Any:
    """The method with the settings of a case."""
    settings = {
        k: v for axis in ("gap", "memory", "form") for k, v in SETTINGS.get(case[axis], {}).items()
    }
    method = METHODS[case["method"]]
    if not {*settings} <= {field.name for field in fields(method)}:
        raise NotASettingError
    return replace(method, **settings)


def _options(case: dict[str, str]) -> dict[str, Any]:
    """Arguments of a fit, but for predictors."""
    options: dict[str, Any] = {"choose": CHOOSE[case["choices"]]}
    if case["places"] in POOLS:
        options["pool"] = POOLS[case["places"]]
    if case["given"] == "season":
        options["condition_on"] = "season"
    return options


def _given(case: dict[str, str], data: World) -> dict[str, Any]:
    return {"covariates": data.predictors} if case["given"].startswith("predictors") else {}


def _later(case: dict[str, str], data: World) -> dict[str, Any]:
    """Predictors of later dates: as they are, broken or missing."""
    given = _given(case, data)
    if case["given"] == "predictors, later missing":
        return {"missing_covariates": "without"}
    if case["given"] == "predictors, later broken":
        given["covariates"] = {**data.predictors, "wind": 1000 + data.predictors["wind"]}
    return given


def _run(case: dict[str, str]) -> Any:
    """Do what a case asks for, and check it; the forecasts that a fitted model issues."""
    method, leads = _method(case), case["leads"] == "leads"
    data = world(case["form"], leads=leads)
    old = data.stations(slice(0, 3))
    if case["arrays"] == "Dask":
        data, old = data.chunked(), old.chunked()
    past, later = old.dates(slice(0, N_PAST)), old.dates(slice(N_PAST, None))
    options, step = _options(case), case["step"]
    if step in BY or step == "compare":
        _validated(case, method, past, options)
    elif step == "plan":
        plan = xrecal.plan(
            past.forecasts, past.truth, method, **options, **_given(case, past), probe=False
        )
        assert plan.task_bytes > 0
    elif step == "command":
        _by_command(case, past, later)
    else:
        fit = past.forecasts.recal.fit
        model = fit(past.truth, method, **options, **_given(case, past))
        return _used(case, model, data.dates(slice(N_PAST, None)), later)
    return None


def _used(case: dict[str, str], model: Any, everywhere: World, later: World) -> Any:
    """Forecasts that a model issues after the step of a case, checked."""
    step, known = case["step"], later
    if step == "update with a new place":
        first, known = everywhere.dates(slice(0, 5)), everywhere.dates(slice(5, None))
        model = model.update(first.forecasts, first.truth, **_given(case, first))
    elif step == "update":
        first, known = later.dates(slice(0, 5)), later.dates(slice(5, None))
        more = model.update(first.forecasts, first.truth, **_given(case, first))
        before, after = (_n_cases(m) for m in (model, more))
        assert after.sum() > before.sum() or case["method"] == "Raw"
        model = more
    elif step == "apply at a new place":
        known = everywhere
    elif step == "save and open":
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.nc")
            opened = xrecal.open_recalibrator(Path(folder) / "model.nc").load()
        expected = model.quantile(known.forecasts, Q, **_later(case, known))
        _same(opened.quantile(known.forecasts, Q, **_later(case, known)), expected)
    if step == "quantile":
        found = model.quantile(known.forecasts, Q, **_later(case, known))
    else:
        issued = known.forecasts.recal.apply(model, **_later(case, known))
        found = issued.recal.quantile(Q)
    _complete(found, known.truth)
    return found


def _n_cases(model: Any) -> Any:
    return np.asarray(model.state["n_cases"])


def _complete(found: Any, like: xr.DataArray) -> None:
    """Every date, station and lead has numbers, and quantiles rise."""
    array = found["t2m"] if isinstance(found, xr.Dataset) else found
    (loaded,) = dask.compute(array)
    for name, size in like.sizes.items():
        assert loaded.sizes[name] == size, (name, loaded.sizes)
    assert bool(np.isfinite(loaded).all()), "not every forecast has numbers"
    assert bool((loaded.diff("quantile") >= -1e-9).all())


def _same(found: Any, expected: Any) -> None:
    found, expected = dask.compute(found, expected)
    xr.testing.assert_allclose(found, expected, rtol=1e-9)


def _validated(case: dict[str, str], method: Any, past: World, options: dict[str, Any]) -> None:
    """Check held-out forecasts, or a comparison of methods by them."""
    given = {**options, **_given(case, past)}
    if case["step"] == "compare":
        methods = [xrecal.Raw() if method == xrecal.EMOS() else xrecal.EMOS(), method]
        found = xrecal.compare(past.forecasts, past.truth, methods, **given)
        assert bool(np.isfinite(found["crps"]).all())
        return
    more = EVERY.get(case["step"], {})
    out = past.forecasts.recal.cross_validate(
        past.truth, method, by=BY[case["step"]], output="crps", **more, **given
    )
    (crps,) = dask.compute(out)
    assert bool(np.isfinite(crps).any("time").all())
    if case["step"] in ("by year", "by block"):
        assert bool(np.isfinite(crps).all()), "cases were left out"


def _by_command(case: dict[str, str], past: World, later: World) -> None:
    """Fit and apply by the command, in files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, data in {"past": past, "later": later}.items():
            forecasts = data.forecasts
            whole = forecasts if isinstance(forecasts, xr.Dataset) else forecasts.to_dataset()
            whole.to_netcdf(folder / f"{label}.nc")
            data.truth.to_netcdf(folder / f"{label}_truth.nc")
            known = data.predictors if label == "past" else _later(case, data).get("covariates")
            xr.Dataset(known).to_netcdf(folder / f"{label}_known.nc")
        words = ["--method", repr(_method(case)), "--choose", CHOOSE[case["choices"]]]
        pool = _options(case).get("pool")
        if pool is not None:
            words += ["--pool", pool if isinstance(pool, str) else "station=3"]
        if case["given"] == "season":
            words += ["--condition-on", "season"]
        known = ["--covariates", folder / "past_known.nc"] if _given(case, past) else []
        _told("fit", folder / "past.nc", folder / "past_truth.nc", folder / "m.nc", *words, *known)
        if case["given"] == "predictors, later missing":
            known = ["--missing-covariates", "without"]
        elif known:
            known = ["--covariates", folder / "later_known.nc"]
        out = folder / "out.nc"
        _told("apply", folder / "m.nc", folder / "later.nc", out, "--quantiles", "0.1,0.5,0.9",
              *known)  # fmt: skip
        _complete(xr.load_dataset(out)["t2m"], later.truth)


def _told(*words: Any) -> None:
    """Run the command; a ValueError with its message where it fails."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    if done.exit_code:
        raise ValueError(done.output.strip().splitlines()[-1])
