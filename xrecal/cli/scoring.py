"""The command that prints how good forecasts are: scores, tests of calibration, and a page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import click
import numpy as np
import xarray as xr

from xrecal import diagnostics
from xrecal.chunks.texts import quoted
from xrecal.diagnostics.summary import Summary
from xrecal.fit.mismatch_warnings import NOVEL
from xrecal.inputs.forms import ancillary, read_forms
from xrecal.inputs.metadata import shown_units
from xrecal.products.apply import FAR
from xrecal.storage.paths import local_path

from .evidence import number
from .inputs import Pair, Source, forecast_variables, source
from .session import Result, Session

TOLD = {"novel": ("novelty", NOVEL), "beyond": ("beyond", FAR)}
"""What is counted of forecasts: the role of a variable beside them, and the limit above which."""


class Score(NamedTuple):
    """A score that may be asked for."""

    function: Callable[..., Any]
    variable: str | None = None
    """Of the Dataset that the function returns; None where that is the score alone."""
    each: bool = False
    """Whether it is that of each location, averaged: of all together it would reward a forecast
    for knowing which places are warm or wet."""
    whole: bool = False
    """Whether it is of a whole field, which then is in no blocks."""


SCORES = {
    "wis": Score(diagnostics.wis),
    "log_score": Score(diagnostics.log_score),
    "error_spread": Score(diagnostics.error_spread),
    "quantile_score": Score(diagnostics.quantile_score),
    "energy_score": Score(diagnostics.energy_score, whole=True),
    "variogram_score": Score(diagnostics.variogram_score, whole=True),
    "anomaly_correlation": Score(diagnostics.anomaly_correlation, "correlation", each=True),
    "generalised_discrimination": Score(
        diagnostics.generalised_discrimination, "discrimination", each=True
    ),
}
"""Beside the CRPS, by the names of the functions."""

NOT_KNOWN = "not known: too few cases, or no case with the event, or none without"

SCORES_OF_EVENTS = {
    "brier_score": Score(diagnostics.brier_score),
    "brier_skill_score": Score(diagnostics.brier_skill_score, "skill"),
    "rps": Score(diagnostics.rps),
    "rpss": Score(diagnostics.rpss, "skill"),
    "roc": Score(diagnostics.roc, "area", each=True),
    "economic_value": Score(diagnostics.economic_value, "value", each=True),
}
"""Those that take thresholds."""


@dataclass(frozen=True)
class Wanted:
    """What is told beside the CRPS."""

    scores: Sequence[str]
    threshold: Sequence[float] | None
    summary: bool
    report: str | None
    raw: str | None

    def require_thresholds(self) -> None:
        """Raise UsageError for options that lack another one, or that nothing takes."""
        lacking = [name for name in self.scores if name in SCORES_OF_EVENTS]
        if lacking and self.threshold is None:
            raise click.UsageError(f"--score {lacking[0]} needs --threshold, such as 0,5")
        if self.threshold is not None and not (lacking or self.report):
            raise click.UsageError(
                f"--threshold belongs to --report or --score {', '.join(SCORES_OF_EVENTS)}"
            )
        if self.raw is not None and self.report is None:
            raise click.UsageError("--raw is drawn on the page of --report; give that too")


def score_files(session: Session, pair: Pair, wanted: Wanted) -> Result:
    """Evidence on forecasts of any form, by their variables."""
    forecasts, observed, _ = pair.open()
    parts = _by_variable(forecasts, observed, pair)
    if wanted.report is not None and len(parts) > 1:
        raise ValueError(f"a report is of one variable; name it: --variable {next(iter(parts))}")
    lazy = {name: _lazy(*part, pair, wanted) for name, part in parts.items()}
    told = {what: _counts_above(pair, parts, *limit) for what, limit in TOLD.items()}
    computed, counts = session.compute([lazy, told])
    by_variable: dict[str, dict[str, Any]] = {}
    lines = []
    for name, found in computed.items():
        by_variable[str(name)], text = _told(str(name), found)
        for what, count in counts.items():
            if name in count:
                by_variable[str(name)][f"n_{what}"] = n = count[name].item()
                text[0] += f", {n} {what}"
        lines += text
    data: dict[str, Any] = {"status": "complete", "scores": by_variable}
    if wanted.report is not None:
        ((forecast, observations),) = parts.values()
        with session.bar():
            data["report"] = _write_report(forecast, observations, pair, wanted)
        lines.append(f"wrote {quoted(wanted.report)}")
    return Result(data, "\n".join(lines))


def _by_variable(
    forecasts: xr.Dataset, observed: xr.DataArray | xr.Dataset, pair: Pair
) -> dict[Hashable, tuple[xr.Dataset, xr.DataArray]]:
    """Each forecast and what verified."""
    member_dim = pair.chosen.member_dim
    parts = {}
    for name in read_forms(forecasts, member_dim, name="forecast"):
        alone, _ = forecast_variables(forecasts, str(name), member_dim, "forecast")
        parts[name] = alone, observed if isinstance(observed, xr.DataArray) else observed[name]
    return parts


def _lazy(
    forecast: xr.Dataset, observed: xr.DataArray, pair: Pair, wanted: Wanted
) -> dict[str, Any]:
    """What is computed of a variable: CRPS and number of cases, other scores, the summary."""
    chosen = pair.chosen
    given: dict[str, Any] = {"member_dim": chosen.member_dim}
    crps = _only(diagnostics.crps(forecast, observed, **given))
    found: dict[str, Any] = {
        "crps": crps.mean(dtype=np.float64, keep_attrs=True),
        "n_cases": crps.notnull().sum(),
        "scores": {
            name: _score(name, forecast, observed, wanted.threshold, given, chosen.dim)
            for name in wanted.scores
        },
    }
    if wanted.summary:
        found["summary"] = diagnostics.summary(forecast, observed, chosen.dim, **given)
    return found


def _score(
    name: str,
    forecast: xr.Dataset,
    observed: xr.DataArray,
    threshold: Sequence[float] | None,
    given: Mapping[str, Any],
    dim: str | None,
) -> xr.DataArray:
    """A score, without the dimensions of the forecast."""
    score = (SCORES | SCORES_OF_EVENTS)[name]
    whole = [one.chunk(-1) if score.whole else one for one in (forecast, observed)]
    args = [*whole, *([list(threshold or ())] if name in SCORES_OF_EVENTS else [])]
    found = score.function(*args, dim=dim if score.each else ..., **given)
    if not score.each:
        return _only(found if score.variable is None else found[score.variable])
    values: xr.DataArray = found[score.variable]
    mean: xr.DataArray = values.mean(
        [d for d in values.dims if d in forecast.dims], keep_attrs=True
    )
    return mean


def _only(scores: xr.DataArray | xr.Dataset) -> xr.DataArray:
    """Scores of a Dataset of one variable."""
    if isinstance(scores, xr.DataArray):
        return scores
    (values,) = scores.data_vars.values()
    return values


def _told(name: str, found: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What was found of a variable, for machines and in lines."""
    mean, n_cases = found["crps"].item(), found["n_cases"].item()
    units = shown_units(found["crps"].attrs)
    data: dict[str, Any] = {"crps": number(mean), "units": units, "n_cases": n_cases}
    lines = [f"{quoted(name)}: CRPS {mean:.4g} {units}".rstrip() + f", {n_cases} cases"]
    for label, score in found["scores"].items():
        data[label] = _plain(score)
        of = shown_units(score.attrs)
        for where, value in _labelled(score):
            shown = f"{value:.4g} {of}".rstrip() if np.isfinite(value) else NOT_KNOWN
            lines.append(" ".join(part for part in (f"  {label}", where, shown) if part))
    if "summary" in found:
        told = found["summary"]
        summary = Summary(told.data_vars, told.coords, told.attrs)
        data["summary"] = _plain_summary(summary)
        lines.append(repr(summary))
    return data, lines


def _plain(values: xr.DataArray) -> Any:
    """A number, or numbers by the label along each dimension."""
    if not values.ndim:
        return number(values.item())
    dim = values.dims[0]
    labels = values[dim].to_numpy().tolist()
    return {f"{label:g}": _plain(values[i]) for i, label in enumerate(labels)}


def _labelled(values: xr.DataArray) -> list[tuple[str, float]]:
    """Numbers with their labels in words."""
    if not values.ndim:
        return [("", values.item())]
    dim = values.dims[0]
    labels = values[dim].to_numpy().tolist()
    return [
        (f"{dim} {label:g} {more}".rstrip(), value)
        for i, label in enumerate(labels)
        for more, value in _labelled(values[i])
    ]


def _plain_summary(summary: Summary) -> dict[str, Any]:
    """Numbers of one location, or the median, lowest and highest of several."""
    found: dict[str, Any] = {}
    for name, values in summary.data_vars.items():
        for label, part in _parts(str(name), values):
            numbers = part.to_numpy().astype(np.float64).ravel()
            if numbers.size == 1:
                found[label] = number(numbers[0])
                continue
            known = numbers[~np.isnan(numbers)]
            if name == "n_cases":
                found["n_without_cases"] = int((known == 0).sum())
                known = known[known > 0]
            names = ("median", "lowest", "highest")
            ends = (np.median(known), known.min(), known.max()) if known.size else ()
            found[label] = dict(zip(names, map(float, ends), strict=False))
    return found


def _parts(name: str, values: xr.DataArray) -> Iterable[tuple[str, xr.DataArray]]:
    """A variable of the summary, or its parts by the level of an interval."""
    if "level" not in values.dims:
        return [(name, values)]
    levels = values["level"].to_numpy().tolist()
    return [(f"{name}_{level:g}", values.sel(level=level)) for level in levels]


def _counts_above(
    pair: Pair, names: Iterable[Hashable], role: str, limit: float
) -> dict[Hashable, xr.DataArray]:
    """Numbers of forecasts with more than a limit of what stands beside them in a role."""
    dataset = pair.forecasts.open({})
    found = {name: ancillary(dataset, name, role) for name in names if name in dataset}
    return {name: (dataset[of] > limit).sum() for name, of in found.items() if of is not None}


def _write_report(forecast: xr.Dataset, observed: xr.DataArray, pair: Pair, wanted: Wanted) -> str:
    """Draw the page, and write it; its path."""
    if find_spec("matplotlib") is None:
        raise ImportError("--report needs matplotlib; use pip install matplotlib")
    from xrecal.plot import report

    path = local_path(str(wanted.report), name="the report")
    threshold: Any = wanted.threshold
    if threshold is not None and len(threshold) == 1:
        threshold = threshold[0]
    chosen = pair.chosen
    report(
        forecast,
        observed,
        chosen.dim,
        path,
        raw=None if wanted.raw is None else _raw(source(wanted.raw, "raw"), forecast),
        threshold=threshold,
        member_dim=chosen.member_dim if chosen.member_dim in forecast.dims else None,
    )
    return str(path)


def _raw(given: Source, forecast: xr.Dataset) -> xr.Dataset:
    """The forecast of the same variable before it was recalibrated, or the only one there is."""
    dataset = given.open({})
    names = list(read_forms(dataset, name="raw"))
    (wanted,) = read_forms(forecast, name="forecast")
    if wanted not in names and len(names) > 1:
        raise ValueError(f"--raw has no {wanted!r}, but {names}; give a file of that variable")
    name = wanted if wanted in names else names[0]
    return forecast_variables(dataset, str(name), None, "raw")[0]
