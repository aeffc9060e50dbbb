"""What models make of forecasts: fits, products, updates, cross-validation, stored models."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xrecal

from .cases import LEVELS, MIDDLE, N_MEMBERS, Cases, Output, leads, leads_with_index, temperature
from .methods import METHODS


def fitted(cases: Cases, method: Any, **options: Any) -> Output:
    """All that a model makes of forecasts, and what is stored of it."""
    model = cases.hindcast.recal.fit(cases.observed, method, **options)
    yield "model", model.to_dataset()
    yield from products(model, cases)


def products(model: xrecal.Recalibrator, cases: Cases) -> Output:
    """All that a model makes of forecasts."""
    new, seen = cases.forecast, cases.verified
    middle = middle_of(model)
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


def middle_of(model: xrecal.Recalibrator) -> float:
    """A threshold that is exceeded about as often as not."""
    return MIDDLE if "t2m" in model.variables else 2.7


def more_products(model: xrecal.Recalibrator, cases: Cases) -> Output:
    """The other products of a model, its scores, and further options."""
    new, seen, middle = cases.forecast, cases.verified, middle_of(model)
    edges = [middle - 2, middle + 1.5]
    dim = "init" if "init" in new.dims else "time"
    calls: dict[str, Callable[[], Any]] = {
        "repr": lambda: repr(model),
        "cdf_of_two": lambda: model.cdf(new, edges),
        "categories_of_four": lambda: model.categories(new, [0.211, 0.487, 0.789]),
        "categories_in_season": lambda: model.categories(new, 0.491, window=120),
        "as_raw": lambda: model.members(new, coherence="ecc"),
        "template": lambda: model.members(
            new, coherence="schaake", template=cases.hindcast[dim].to_numpy()[4:20:3]
        ),
        "crps_mean": lambda: model.crps(new, seen, dim),
        "log_score": lambda: model.log_score(new, seen),
        "brier_score": lambda: model.brier_score(new, seen, edges, dim),
        "ranked_probability_score": lambda: model.ranked_probability_score(new, seen, edges, dim),
        "rps": lambda: model.rps(new, seen, edges),
        "quantile_score": lambda: model.quantile_score(new, seen, LEVELS, dim),
        "wis": lambda: model.wis(new, seen),
        "wis_of_levels": lambda: model.wis(new, seen, dim, levels=[0.1, 0.5, 0.9]),
        "error_spread": lambda: model.error_spread(new, seen, dim),
        "issued_quantile": lambda: model.apply(new).recal.quantile(LEVELS),
        "issued_crps": lambda: new.recal.apply(model).recal.crps(seen),
    }
    if not any(v.jointly for v in model.variables.values()):
        calls["novelty"] = lambda: model.novelty(new)
    for name, call in calls.items():
        yield name, made(call)


def in_full(cases: Cases, method: Any, **options: Any) -> Output:
    """The other products of a model of these cases."""
    yield from more_products(cases.hindcast.recal.fit(cases.observed, method, **options), cases)


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


def unstored(outputs: Output) -> Output:
    """Outputs of which the state of models is not stored, as its layout may change."""
    for name, output in outputs:
        yield "state" if name == "model" else name, output


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


def followed(cases: Cases, method: Any, **options: Any) -> Output:
    """A model from its fit through two updates; the second revises what the first has learned."""
    past, observed, new, seen = cases
    dim = "init" if "init" in past.dims else "time"

    def part(first: int, last: int, **changed: Any) -> tuple[Any, Any]:
        taken, truth = {dim: slice(first, last)}, changed.get("truth", observed)
        return past.isel(taken), truth.isel(taken) if dim in truth.dims else truth

    hindcast, truth = part(0, 48)
    model = hindcast.recal.fit(truth, method, **options)
    yield "state", model.to_dataset()
    yield "repr", repr(model)
    yield "apply", model.apply(new)
    yield "crps", model.crps(new, seen)
    steps = {"updated": part(48, 53), "revised": part(51, 60, truth=observed + 0.25)}
    for step, (hindcast, truth) in steps.items():
        later = made(lambda m=model, h=hindcast, t=truth: m.update(h, t))
        if isinstance(later, Exception):
            yield step, later
            continue
        model = later
        yield f"{step}.state", model.to_dataset()
        yield f"{step}.quantile", model.quantile(new, LEVELS)
        yield f"{step}.crps", model.crps(new, seen)
        yield f"{step}.members", made(lambda m=model: m.members(new, 5, seed=2))


def predicted(cases: Cases, method: Any, *splits: str, **options: Any) -> Output:
    """Cross-validated hindcasts, and those of a model that is updated between fits; or some."""
    of, q = cases.hindcast.recal, {"q": LEVELS}
    ways: dict[str, dict[str, Any]] = {
        "block": {"by": "block", "blocks": 3, "gap": 1, **q},
        "rolling": {"by": "rolling", "window": 40, "every": 10, "output": "crps"},
        "replayed": {"by": "rolling", "blocks": 2, "every": 5, "refit": 20, **q},
    }
    for name in splits or ways:
        given = ways[name] | options
        yield name, made(lambda g=given: of.cross_validate(cases.observed, method, **g))


def predicted_products() -> Output:
    """Every output of a cross-validation, by every split."""
    cases = temperature()
    of = cases.hindcast.recal
    outputs: dict[str, dict[str, Any]] = {
        "quantile": {"q": 0.491},
        "crps": {},
        "pit": {},
        "members": {"n": 5, "seed": 4},
        "exceedance": {"threshold": [278.0, MIDDLE]},
        "categories": {"q": [0.311, 0.677]},
    }
    splits: dict[str, dict[str, Any]] = {
        "year": {"by": "year", "year_start": "07-01"},
        "rolling": {"by": "rolling", "window": 40, "every": "200D", "gap": "31D"},
        "replayed": {"by": "rolling", "blocks": 2, "every": 6, "refit": 18},
    }
    for name in ("ckme", "emos_season"):
        for split, by in splits.items():
            for output, given in outputs.items():
                given = {"output": output, **by, **given}
                call = lambda m=METHODS[name], g=given: of.cross_validate(cases.observed, m, **g)  # noqa: E731
                yield f"{name}.{split}.{output}", made(call)


def with_covariates() -> Output:
    """Forecasts over leads whose covariate is given, in fits, products and cross-validation."""
    plain, named = leads(), leads_with_index()
    index, new_index = ({"index": c["index"]} for c in (named.hindcast, named.forecast))
    ckme = xrecal.CKME(condition_on=("season", "index"), support="errors")
    model = plain.hindcast.recal.fit(plain.observed, ckme, covariates=index)
    for name in ("apply", "quantile"):
        options = {"q": LEVELS} if name == "quantile" else {}
        yield name, getattr(model, name)(plain.forecast, covariates=new_index, **options)
    options = {"by": "block", "blocks": 3, "covariates": index, "q": LEVELS}
    for name, method in (("ckme", ckme), ("emos", xrecal.EMOS(condition_on="index"))):
        yield (
            f"{name}.predicted",
            plain.hindcast.recal.cross_validate(plain.observed, method, **options),
        )


def reopened(cases: Cases, method: Any, kind: str, **options: Any) -> Output:
    """A model that was written to a file and read again, and whether it is what it was."""
    model = cases.hindcast.recal.fit(cases.observed, method, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{kind}"
        model.save(path)
        again = xrecal.open_recalibrator(path).compute()
    issued = again.quantile(cases.forecast, LEVELS)
    yield "quantile", issued
    yield "same", issued.identical(model.quantile(cases.forecast, LEVELS))
    yield "same_method", again.method == model.method
    yield "repr", repr(again)
