"""What every method makes of a fixed set of forecasts, in a few numbers of each output.

    python -m tests.outputs           # rewrites tests/outputs.json
    python -m tests.outputs --hash    # prints a sum of all bytes of each output, and of all of them

The file is compared with a tolerance, as processors and libraries of linear algebra round in their
own ways. The sums are for one machine, before and after a change that should change nothing. Names
of groups may follow ``--hash``; all are made if none does.
"""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import xarray as xr

import xrecal

STORED = Path(__file__).with_suffix(".json")
N, N_NEW, N_PLACES, N_MEMBERS = 60, 6, 3, 8
N_SHOWN = 5
"""Numbers that are stored of each variable."""

LEVELS = [0.023, 0.137, 0.291, 0.491, 0.683, 0.877, 0.973]
"""No multiples of 1/n for the number n of cases, which rounding may reach or miss."""

Output = Iterator[tuple[str, Any]]


class Cases(NamedTuple):
    """Past forecasts with what verified, and new forecasts with what verified."""

    hindcast: xr.DataArray | xr.Dataset
    observed: xr.DataArray | xr.Dataset
    forecast: xr.DataArray | xr.Dataset
    verified: xr.DataArray | xr.Dataset


def split(forecasts: Any, truth: Any, dim: str = "time") -> Cases:
    """The first cases to learn from, the rest to predict."""
    past, new = {dim: slice(N)}, {dim: slice(N, None)}
    return Cases(forecasts.isel(past), truth.isel(past), forecasts.isel(new), truth.isel(new))


@cache
def temperature() -> Cases:
    """Monthly temperatures of six years, biased by season, with missing values."""
    rng = np.random.default_rng(7)
    n = N + N_NEW
    dates = np.datetime64("2001-01-15", "ns") + np.arange(n) * np.timedelta64(31, "D")
    season = 2 * np.pi * np.arange(n) * 31 / 365.25
    signal = 280 + 6 * np.sin(season)[:, np.newaxis] + 2 * rng.normal(size=(n, N_PLACES))
    spread = 0.5 + rng.gamma(2, 0.4, size=(n, N_PLACES))
    truth = signal + 1.5 * np.cos(season)[:, np.newaxis] + spread * rng.normal(size=signal.shape)
    noise = rng.normal(size=(n, N_PLACES, N_MEMBERS))
    members = 1 + signal[..., np.newaxis] + 0.7 * spread[..., np.newaxis] * noise
    members[3, 0, 2] = members[5, 1] = truth[7, 0] = truth[20:24, 2] = np.nan
    coords = {"time": dates, "station": ["a", "b", "c"][:N_PLACES]}
    forecasts = xr.DataArray(
        members, coords, ["time", "station", "member"], "t2m", {"units": "K", "long_name": "t"}
    )
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "t2m", {"units": "K"}))


@cache
def rain() -> Cases:
    """Rain, often none."""
    rng = np.random.default_rng(8)
    cold = temperature()
    dates = np.concatenate([cold.hindcast.time, cold.forecast.time])
    wet = rng.gamma(0.8, 4, size=(dates.size, N_PLACES))
    truth = np.maximum(wet * rng.gamma(4, 0.25, size=wet.shape) - 1, 0)
    shape = (*wet.shape, N_MEMBERS)
    members = np.maximum(1.3 * wet[..., np.newaxis] * rng.gamma(6, 1 / 6, size=shape) - 0.8, 0)
    coords = {"time": dates, "station": ["a", "b", "c"]}
    units = {"units": "mm"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "rain", units)
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "rain", units))


@cache
def direction() -> Cases:
    """Wind directions in degrees."""
    rng = np.random.default_rng(9)
    cold = temperature()
    spread = rng.gamma(2, 15, size=(N + N_NEW, N_PLACES))
    mean = rng.uniform(0, 360, size=spread.shape)
    noise = rng.normal(size=(*spread.shape, N_MEMBERS))
    members = (mean[..., np.newaxis] + 15 + 0.7 * spread[..., np.newaxis] * noise) % 360
    truth = (mean + spread * rng.normal(size=spread.shape)) % 360
    dates = np.concatenate([cold.hindcast.time, cold.forecast.time])
    coords = {"time": dates, "station": ["a", "b", "c"]}
    units = {"units": "degree"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "wind", units)
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "wind", units))


@cache
def pair() -> Cases:
    """Temperature and rain, together."""
    return Cases(*map(together, temperature(), rain()))


def together(cold: xr.DataArray, wet: xr.DataArray) -> xr.Dataset:
    return xr.Dataset({"t2m": cold, "rain": wet})


@cache
def leads() -> Cases:
    """Starts and leads, with observations over valid time."""
    cold = temperature()
    steps = np.array([31, 62, 93], "timedelta64[D]").astype("timedelta64[ns]")
    names = {"time": "init", "station": "lead"}
    past, new = (a.rename(names).assign_coords(lead=steps) for a in (cold.hindcast, cold.forecast))
    days = np.datetime64("2001-01-15", "ns") + np.arange(N + N_NEW + 3) * np.timedelta64(31, "D")
    values = past.mean("member").mean("lead", skipna=True).to_numpy()
    rng = np.random.default_rng(10)
    truth = np.interp(np.arange(days.size), np.arange(N), values) + rng.normal(size=days.size)
    observed = xr.DataArray(truth, {"time": days}, ["time"], "t2m", {"units": "K"})
    return Cases(past, observed, new, observed)


def as_form(members: xr.DataArray, form: str) -> xr.DataArray | xr.Dataset:
    """The forecasts of an ensemble in another form."""
    if form == "plain":
        return members
    if form == "weighted":
        weights = np.random.default_rng(11).gamma(1.5, size=members.shape)
        weights = np.where(np.isnan(members), 0, weights)
        total = np.maximum(weights.sum(-1, keepdims=True), 1e-9)
        return xrecal.weighted(members, members.copy(data=weights / total))
    if form == "quantiles":
        q = np.array([0.1, 0.3, 0.5, 0.75, 0.9])
        return members.quantile(q, "member", keep_attrs=True).transpose(..., "quantile")
    scale = members.std("member", keep_attrs=True) + 0.01
    return xrecal.gaussian(members.mean("member", keep_attrs=True), scale)


def in_form(cases: Cases, form: str) -> Cases:
    """Cases whose forecasts have another form."""
    return cases._replace(
        hindcast=as_form(cases.hindcast, form), forecast=as_form(cases.forecast, form)
    )


def fitted(cases: Cases, method: Any, **options: Any) -> Output:
    """All that a model makes of forecasts, and what is stored of it."""
    model = cases.hindcast.recal.fit(cases.observed, method, **options)
    yield "model", model.to_dataset()
    yield from products(model, cases)


def products(model: xrecal.Recalibrator, cases: Cases) -> Output:
    """All that a model makes of forecasts."""
    new, seen = cases.forecast, cases.verified
    middle = MIDDLE if "t2m" in model.variables else 2.7
    calls: dict[str, Callable[[], Any]] = {
        "apply": lambda: model.apply(new),
        "mean": lambda: model.mean(new),
        "std": lambda: model.std(new),
        "quantile": lambda: model.quantile(new, LEVELS),
        "exceedance": lambda: model.exceedance(new, [0.0, middle]),
        "cdf": lambda: model.cdf(new, middle),
        "categories": lambda: model.categories(new),
        "members": lambda: model.members(new, N_MEMBERS, seed=3),
        "ecc": lambda: model.members(new, coherence="ecc", seed=3),
        "schaake": lambda: model.members(new, N_MEMBERS, coherence="schaake", seed=3),
        "dates": lambda: model.members(new, N_MEMBERS, coherence="dates", seed=3),
        "crps": lambda: model.crps(new, seen),
        "pit": lambda: model.pit(new, seen, seed=3),
    }
    for name, call in calls.items():
        yield name, made(call)


def made(call: Callable[[], Any]) -> Any:
    """The result of a call, or the exception by which it is refused."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        return error


def briefly(cases: Cases, method: Any, **options: Any) -> Output:
    """A few products of a model."""
    names = {"model", "apply", "quantile", "mean", "crps", "pit", "members"}
    for name, output in fitted(cases, method, **options):
        if name in names:
            yield name, output


def held_out(cases: Cases, method: Any) -> Output:
    """Cross-validated hindcasts."""
    for by in ("year", "block", "retrospective"):
        for output in ("quantile", "crps", "pit"):
            options = {"q": LEVELS} if output == "quantile" else {}
            yield (
                f"{by}.{output}",
                cases.hindcast.recal.cross_validate(
                    cases.observed, method, by=by, output=output, blocks=4, gap=1, **options
                ),
            )
    rolling = {"by": "rolling", "window": 40, "every": 10, "output": "crps"}
    yield "rolling.crps", cases.hindcast.recal.cross_validate(cases.observed, method, **rolling)


def updated(cases: Cases, method: Any, **options: Any) -> Output:
    """A model that got its last cases by an update."""

    def update() -> xrecal.Recalibrator:
        first, rest = {"time": slice(45)}, {"time": slice(45, None)}
        observed = cases.observed
        model = cases.hindcast.isel(first).recal.fit(observed.isel(first), method, **options)
        return model.update(cases.hindcast.isel(rest), observed.isel(rest))

    model = made(update)
    if isinstance(model, Exception):
        yield "update", model
    else:
        yield "model", model.to_dataset()
        yield "quantile", model.quantile(cases.forecast, LEVELS)
        yield "crps", model.crps(cases.forecast, cases.verified)


def issued(cases: Cases, middle: float) -> Output:
    """All that is told of forecasts as they were issued."""
    x, seen = cases.hindcast.recal, cases.observed
    edges = [middle - 2, middle + 1.5]
    calls: dict[str, Callable[[], Any]] = {
        "mean": lambda: x.mean(),
        "std": lambda: x.std(),
        "quantile": lambda: x.quantile(LEVELS),
        "exceedance": lambda: x.exceedance([0.0, middle]),
        "cdf": lambda: x.cdf(middle),
        "categories": lambda: x.categories(edges),
        "members": lambda: x.members(7, seed=3),
        "crps": lambda: x.crps(seen),
        "crps_mean": lambda: x.crps(seen, dim="time"),
        "crps_fair": lambda: x.crps(seen, "time", fair=True),
        "crps_above": lambda: x.crps(seen, "time", lower=middle),
        "crps_between": lambda: x.crps(seen, "time", lower=middle - 2, upper=middle),
        "crps_tails": lambda: x.quantile_weighted_crps(seen, "time"),
        "crps_centre": lambda: x.quantile_weighted_crps(seen, "time", emphasis="center"),
        "log_score": lambda: x.log_score(seen),
        "brier_score": lambda: x.brier_score(seen, middle, "time"),
        "brier_score_fair": lambda: x.brier_score(seen, middle, "time", fair=True),
        "ranked_probability_score": lambda: x.ranked_probability_score(seen, edges, "time"),
        "quantile_score": lambda: x.quantile_score(seen, LEVELS, "time"),
        "energy_score": lambda: x.energy_score(seen, "station"),
        "variogram_score": lambda: x.variogram_score(seen, "station"),
        "pit": lambda: x.pit(seen, seed=3),
        "pit_augmented": lambda: x.pit(seen, augmented=True, seed=3),
        "pit_histogram": lambda: x.pit_histogram(seen),
        "pit_test": lambda: x.pit_test(seen),
        "rank_histogram": lambda: x.rank_histogram(seen),
        "reliability": lambda: x.reliability(seen, middle),
        "quantile_reliability": lambda: x.quantile_reliability(seen, LEVELS),
        "coverage": lambda: x.coverage(seen),
        "spread_skill": lambda: x.spread_skill(seen),
        "skce": lambda: x.skce(seen),
        "skce_augmented": lambda: x.skce(seen, augmented=True),
        "skce_test": lambda: x.skce_test(seen, n_resamples=200),
        "skce_test_wild": lambda: x.skce_test(seen, test="wild", n_resamples=200, block_length=4),
        "skce_test_montecarlo": lambda: x.skce_test(seen, test="montecarlo", n_resamples=20),
        "decompose": lambda: x.decompose(seen),
        "ridge_curve": lambda: x.ridge_curve(seen),
        "summary": lambda: x.summary(seen, n_resamples=200),
    }
    for name, call in calls.items():
        yield name, made(call)


def skill() -> Output:
    """Scores against those of a reference, and tests of many places."""
    cases = temperature()
    scores = cases.hindcast.recal.crps(cases.observed)
    reference = (cases.observed - cases.observed.mean("time")).__abs__()
    yield "skill", xrecal.skill(scores, reference, "time")
    tested = cases.hindcast.recal.pit_test(cases.observed)
    for method in ("bh", "by"):
        yield (
            f"adjusted_p_values.{method}",
            made(lambda m=method: xrecal.diagnostics.adjusted_p_values(tested.p_value, method=m)),
        )


def compared() -> Output:
    """Tables of methods, without their seconds."""
    methods = [xrecal.CKME(support="observations"), xrecal.EMOS(), xrecal.IDR()]
    for of, cases in (("t2m", temperature()), ("rain", rain())):
        table = xrecal.compare(cases.hindcast, cases.observed, methods, gap=1)
        yield f"{of}.held_out", timeless(table)
    cases = temperature()
    table = xrecal.compare(
        cases.hindcast,
        cases.observed,
        {"ours": xrecal.CKME(support="errors")},
        forecast=cases.hindcast.isel(time=slice(30, None)),
        verification=cases.observed,
        condition_on="season",
    )
    yield "later", timeless(table)


def timeless(table: Any) -> dict[str, xr.DataArray]:
    return {str(k): v for k, v in table.data_vars.items() if not str(k).endswith("seconds")}


def lazily() -> Output:
    """Dask arrays, in chunks of places and of cases."""
    cases = temperature()
    hindcast, observed = (a.chunk(station=2) for a in (cases.hindcast, cases.observed))
    new, seen = (a.chunk(station=1, time=4) for a in (cases.forecast, cases.verified))
    for name, method in (
        ("ckme", xrecal.CKME(support="auto")),
        ("emos", xrecal.EMOS(condition_on="season")),
    ):
        model = hindcast.recal.fit(observed, method)
        yield f"{name}.model", model.to_dataset().compute(scheduler="sync")
        model = model.compute()
        for output, lazy in products(model, cases._replace(forecast=new, verified=seen)):
            lazy = lazy.compute(scheduler="sync") if hasattr(lazy, "compute") else lazy
            yield f"{name}.{output}", lazy


@contextmanager
def stand_in_device() -> Iterator[Any]:
    """A module like CuPy, under its name."""
    from xarray.namedarray import pycompat

    from .device import stand_in

    loaded = [m for n, m in sys.modules.items() if n.startswith("xrecal.arrays")]
    tables = [m.DISTANCES for m in loaded if hasattr(m, "DISTANCES")]
    assert tables, "no table DISTANCES of loops for devices among the modules of xrecal.arrays"
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules, {"cupy": stand_in.module}))
        stack.enter_context(mock.patch.object(pycompat, "_cached_duck_array_modules", {}))
        for table in tables:  # without loops of its own it compares by array expressions
            stack.enter_context(mock.patch.dict(table, cupy="tests.device.naive"))
        yield stand_in.module


def on_device() -> Output:
    """Arrays of another library, here held by NumPy inside."""
    cases = temperature()
    with stand_in_device() as cupy:

        def moved(data: xr.DataArray) -> xr.DataArray:
            return data.copy(data=cupy.asarray(data.to_numpy()))

        here = Cases(*map(moved, cases))
        for name, method in DEVICE_METHODS.items():
            for output, found in fitted(here, method):
                yield f"{name}.{output}", on_host(found)


def on_host(found: Any) -> Any:
    return found.as_numpy() if hasattr(found, "as_numpy") else found


METHODS: dict[str, Any] = {
    "ckme": xrecal.CKME(support="observations"),
    "ckme_errors": xrecal.CKME(support="errors"),
    "ckme_auto": xrecal.CKME(support="auto"),
    "ckme_season": xrecal.CKME(support="observations", condition_on="season"),
    "ckme_auto_season": xrecal.CKME(support="auto", condition_on="season", bandwidth="cv"),
    "ckme_kernel_laplace": xrecal.CKME(support="observations", kernel="laplace"),
    "ckme_loss_laplace": xrecal.CKME(support="observations", loss="laplace"),
    "ckme_energy": xrecal.CKME(support="observations", projection="energy"),
    "ckme_exact": xrecal.CKME(support="observations", solver="exact", folds="block", gap=1),
    "ckme_lowrank": xrecal.CKME(support="observations", solver="lowrank", folds="random"),
    "ckme_given": xrecal.CKME(bandwidth=2.0, ridge=0.01, bounds=(250, None), support="errors"),
    "ckme_shapes": xrecal.CKME(compare="shapes", support="errors"),
    "ckme_half_life": xrecal.CKME(support="observations", half_life=400),
    "ckme_half_life_cv": xrecal.CKME(half_life="cv", support="errors"),
    "emos": xrecal.EMOS(),
    "emos_season": xrecal.EMOS(condition_on="season", vary_spread=True, bounds=None),
    "idr": xrecal.IDR(),
    "idr_season": xrecal.IDR(condition_on="season"),
    "pool": xrecal.LinearPool(),
    "pool_of_two": xrecal.LinearPool(
        (xrecal.CKME(support="observations"), xrecal.EMOS()), condition_on=()
    ),
    "pit": xrecal.PITRecalibration(),
    "pit_season": xrecal.PITRecalibration(condition_on="season"),
    "conformal": xrecal.ConformalPrediction(alpha=0.2),
    "conformal_season": xrecal.ConformalPrediction(condition_on="season"),
    "climatology": xrecal.Climatology(),
    "climatology_window": xrecal.Climatology(window=90),
    "climatology_season": xrecal.Climatology(condition_on="season"),
    "raw": xrecal.Raw(),
}

DEVICE_METHODS = {
    name: METHODS[name] for name in ("ckme", "ckme_auto_season", "ckme_exact", "ckme_shapes")
}

MIDDLE = 281.3
BY_ROUNDING = ("ckme_lowrank", "ckme_lowrank.updated")
"""Groups of which no numbers are stored: rounding decides which cases become landmarks."""
DEVICE = "on_device"
"""A group of which only sums of all bytes are made; tests of devices compare it with the host."""


def groups() -> dict[str, Callable[[], Output]]:
    """What makes the outputs of each group."""
    found: dict[str, Callable[[], Output]] = {}
    for name, method in METHODS.items():
        found[name] = lambda m=method: fitted(temperature(), m)
    plain = ("ckme", "ckme_errors", "emos", "idr", "pool_of_two", "pit", "conformal", "climatology")
    for name in plain:
        for form in ("weighted", "quantiles", "gaussian"):
            found[f"{name}.{form}"] = lambda m=METHODS[name], f=form: briefly(
                in_form(temperature(), f), m
            )
    for name in ("ckme", "ckme_auto", "ckme_shapes", "emos", "idr", "pool", "pit"):
        found[f"{name}.rain"] = lambda m=METHODS[name]: fitted(rain(), m)
    for name in ("ckme", "emos", "pool_of_two"):
        found[f"{name}.pooled"] = lambda m=METHODS[name]: briefly(temperature(), m, pool="station")
        found[f"{name}.float32"] = lambda m=METHODS[name]: briefly(
            Cases(*(a.astype("float32") for a in temperature())), m
        )
    for name in ("ckme", "emos"):
        found[f"{name}.leads"] = lambda m=METHODS[name]: fitted(leads(), m)
    found["ckme.variables"] = lambda: fitted(pair(), METHODS["ckme"])
    found["ckme.jointly"] = lambda: fitted(pair(), METHODS["ckme"], jointly=("t2m", "rain"))
    found["ckme.circular"] = lambda: fitted(direction(), METHODS["ckme"], period=360)
    for name in ("ckme", "ckme_auto", "ckme_season", "emos", "idr", "pool_of_two", "climatology"):
        found[f"{name}.cross_validated"] = lambda m=METHODS[name]: held_out(temperature(), m)
    for name in ("ckme", "ckme_auto", "ckme_lowrank", "emos", "idr", "pool_of_two", "pit",
                 "climatology", "raw"):  # fmt: skip
        found[f"{name}.updated"] = lambda m=METHODS[name]: updated(temperature(), m)
    found["ckme.pooled.updated"] = lambda: updated(temperature(), METHODS["ckme"], pool="station")
    for form in ("plain", "weighted", "quantiles", "gaussian"):
        found[f"issued.{form}"] = lambda f=form: issued(in_form(temperature(), f), MIDDLE)
    found["issued.rain"] = lambda: issued(rain(), 2.5)
    found["issued.variables"] = lambda: issued(pair(), 2.5)
    return found | {"skill": skill, "compared": compared, "lazily": lazily}


def arrays_of(name: str, output: Any) -> Iterator[tuple[str, xr.DataArray]]:
    """The arrays of an output, named; coordinates that are not labels of a dimension too."""
    if isinstance(output, xr.DataArray):
        yield name, output
        for c, coord in output.coords.items():
            if c not in output.dims:
                yield f"{name}@{c}", coord.reset_coords(drop=True)
    elif isinstance(output, xr.Dataset):
        for v, variable in output.data_vars.items():
            yield f"{name}:{v}", variable.reset_coords(drop=True)
        for c, coord in output.coords.items():
            if c not in output.dims:
                yield f"{name}@{c}", coord.reset_coords(drop=True)
    elif isinstance(output, dict):
        for v, variable in output.items():
            yield from arrays_of(f"{name}:{v}", variable)
    else:
        raise TypeError(f"{name} is a {type(output).__name__}")


def made_by(group: str) -> Iterator[tuple[str, Any]]:
    """Arrays of a group by name, and exceptions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = on_device if group == DEVICE else groups()[group]
        for name, output in make():
            if isinstance(output, Exception):
                yield name, output
            else:
                yield from arrays_of(name, output)


def summary(output: Any) -> list[Any]:
    """What is stored of an output: dimensions, type, number of NaN, sum, and values of all parts.

    The name of its exception alone if it is refused; no values if they are no numbers.
    """
    if isinstance(output, Exception):
        return [type(output).__name__]
    values = output.to_numpy()
    kind, sizes = values.dtype.kind, " ".join(f"{d}={n}" for d, n in output.sizes.items())
    if kind not in "fiub" or not values.size:
        return [sizes, kind]
    flat = values.ravel().astype(np.float64)
    picked = flat[np.linspace(0, flat.size - 1, min(N_SHOWN, flat.size)).astype(int)]
    total = rounded(flat[np.isfinite(flat)].sum())
    return [sizes, str(values.dtype), int(np.isnan(flat).sum()), total, *map(rounded, picked)]


def found(group: str) -> dict[str, list[Any]]:
    """What would be stored of a group. Coordinates are left to the sums of all bytes."""
    told = {name: summary(output) for name, output in made_by(group) if "@" not in name}
    return {name: parts[:2] for name, parts in told.items()} if group in BY_ROUNDING else told


def rounded(value: float) -> float | str:
    """Ten digits; as text if it is not finite, which JSON does not know."""
    return float(f"{value:.10g}") if np.isfinite(value) else str(value)


def digest(output: Any) -> str:
    """A sum of all that an output holds, with attributes but for its history."""
    if isinstance(output, Exception):
        return hashlib.sha256(f"{type(output).__name__}: {output}".encode()).hexdigest()
    values = np.ascontiguousarray(output.to_numpy())
    attrs = {str(k): str(v) for k, v in output.attrs.items() if k != "history"}
    told = f"{output.dims} {output.shape} {values.dtype.kind} {sorted(attrs.items())}"
    if values.dtype.kind in "OUT":
        raw = repr(values.tolist()).encode()
    else:
        told += f" {values.dtype}"
        values = np.where(np.isnan(values), np.nan, values) if values.dtype.kind == "f" else values
        raw = values.astype(output.dtype).tobytes()
    return hashlib.sha256(told.encode() + raw).hexdigest()


def print_digests(chosen: list[str]) -> None:
    """Print a line for each output, and one for all of them."""
    whole = hashlib.sha256()
    for group in chosen or [*groups(), *([] if find_spec("cupy") else [DEVICE])]:
        for name, output in made_by(group):
            line = f"{digest(output)}  {group}/{name}"
            whole.update(line.encode())
            print(line, flush=True)
    print(f"{whole.hexdigest()}  all")


def store() -> None:
    """Write the numbers of all groups, one output a line."""
    texts = []
    for group in groups():
        outputs = found(group)
        lines = [f"  {json.dumps(name)}: {json.dumps(told)}" for name, told in outputs.items()]
        texts.append(f"{json.dumps(group)}: {{\n" + ",\n".join(lines) + "\n}")
    STORED.write_text("{\n" + ",\n".join(texts) + "\n}\n")
    print(f"{len(texts)} groups in {STORED}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hash"]:
        print_digests(sys.argv[2:])
    else:
        store()
