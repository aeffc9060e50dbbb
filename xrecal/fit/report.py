"""Fitted models as text and as HTML for notebooks.

Text and HTML show the same facts about each variable; :func:`facts_of_variable` gathers these.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape
from typing import TypeAlias

import numpy as np
import xarray as xr

from xrecal.arrays.status import MEANINGS, TOO_FEW
from xrecal.chunks.texts import quoted
from xrecal.inputs.covariates import AHEAD
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.metadata import shown_units
from xrecal.methods.settings_html import folded, framed, settings_table, table

from .fitted import Fitted, FittedVariable

Fact: TypeAlias = tuple[str, str]
"""A fact about a fitted variable: its label and its text."""


def describe_recalibrator(model: Fitted) -> str:
    """Return a :class:`~xrecal.Recalibrator` as text: settings, then each variable."""
    facts = [("method", repr(model.method))]
    for name, fitted in model.variables.items():
        facts += facts_of_variable(name, fitted)
    lines = [f"  {quoted(label):<17}{quoted(text)}" for label, text in facts]
    return "\n".join(["<xrecal.Recalibrator>", *lines])


def model_html(model: Fitted) -> str:
    """Return a model as HTML: settings, and facts about each variable, which users can unfold."""
    alone = len(model.variables) == 1
    parts = [
        folded(f"method: <b>{escape(repr(model.method))}</b>", settings_table(model.method)),
        *(_variable(name, fitted, alone) for name, fitted in model.variables.items()),
    ]
    return framed("xrecal.Recalibrator", "".join(parts), repr(model))


def _variable(name: Hashable, fitted: FittedVariable, unfolded: bool) -> str:
    (_, title), *facts = facts_of_variable(name, fitted)
    state = fitted.state._repr_html_()
    inner = folded("fitted state", f'<div class="xrecal-state">{state}</div>')
    locations = dict(facts)["locations"]
    shown = f"<b>{escape(title)}</b>" + (f" at {escape(locations)}" if locations != "1" else "")
    facts_table = table([(escape(label), escape(text)) for label, text in facts])
    return folded(shown, facts_table + inner, unfolded)


def facts_of_variable(name: Hashable, fitted: FittedVariable) -> list[Fact]:
    """Return facts about a fitted variable; the first fact is the name and form of the variable."""
    units = shown_units(fitted.attrs)
    title = "unnamed" if name is None else str(name)
    state = fitted.state
    facts: list[Fact] = [
        ("variable", title + (f" ({units})" if units else "") + f", {fitted.kind}"),
        ("cases", _cases(fitted)),
        ("locations", _locations(fitted)),
    ]
    if fitted.leads is not None:
        facts.append(("leads", _leads(fitted.leads, fitted.n_forecasts)))
    others = [str(other) for other in fitted.jointly if other != name]
    if others:
        facts.append(("recalibrated", f"jointly with {', '.join(others)}"))
    if fitted.n_added:
        facts.append(("updated", f"{fitted.n_added} cases added, with the choices of the fit"))
    if fitted.pool is not None:
        facts.append(("pool", str(fitted.pool)))
    if covariates := _covariates(fitted):
        facts.append(("condition_on", covariates))
    if fitted.note:
        facts.append(("note", fitted.note))
    if state["status"].chunks is not None:
        return [*facts, ("state", _lazy(state["status"]))]
    n_cases = state["n_cases"].to_numpy()
    if not n_cases.size:
        return facts
    fewest, most = int(n_cases.min()), int(n_cases.max())
    facts.append(("used", f"{fewest} cases" if fewest == most else f"{fewest} to {most} cases"))
    facts += _chosen(fitted)
    return [*facts, ("status", _status(state["status"].to_numpy(), fitted.min_samples))]


def _lazy(status: xr.DataArray) -> str:
    """Return a text about a lazy state: it is not computed yet, or it is persisted.

    The graph of a persisted array has only one layer.
    """
    if len(status.data.dask.layers) > 1:
        return "not computed: model.compute()"
    return "persisted: in memory, or being computed"


def _chosen(fitted: FittedVariable) -> list[Fact]:
    """Return the choices of the method: one fact for each parameter, for all locations together."""
    state = fitted.state
    parameters = fitted.parameters
    of_components = tuple(f"{label}_" for p in parameters.values() for label in p.labels)
    facts: list[Fact] = []
    for name, parameter in parameters.items():
        if name.startswith(of_components) or parameter.for_updates:
            continue  # too many numbers; shares show the main ones
        if parameter.labels:
            values = state[name].to_numpy().reshape(-1, len(parameter.labels))
            complete = values[~np.isnan(values).any(-1)]
            are_shares = np.allclose(complete.sum(-1), 1)
            if complete.size and are_shares:
                facts.append((name, _shares(complete, parameter.labels)))
            else:
                facts.append((name, _by_label(values, parameter.labels)))
        elif parameter.flags:
            fitted_there = (state["status"].to_numpy() & TOO_FEW) == 0
            facts.append((name, _counts(state[name].to_numpy()[fitted_there], parameter.flags)))
        elif state[name].dims == fitted.locations:
            units = "days" if name == "half_life" else shown_units(state[name].attrs)
            facts.append((name, _numbers(state[name].to_numpy(), units)))
    return facts


def _covariates(fitted: FittedVariable) -> str:
    """Return the names of the covariates, with their units or periods."""
    texts = {}
    for name, period in fitted.periods.items():
        units = shown_units(fitted.attrs_of_covariates.get(name, {}))
        texts[name] = units if period is None else f"period {period:g} {units}".rstrip()
    known = {name: f"{name} ({text})" if text else name for name, text in texts.items()}
    return ", ".join(text for name, text in known.items() if name != AHEAD)


def _cases(fitted: FittedVariable) -> str:
    text = f"{fitted.n_matched} of {fitted.n_forecasts} matched along {fitted.dim!r}"
    label = f"calibration_{fitted.dim}"
    if label not in fitted.state.coords:
        return text
    index = fitted.state.coords[label].to_index()
    first, last = (str(label).removesuffix(" 00:00:00") for label in (index[0], index[-1]))
    return f"{text}, {first} to {last}"


def _leads(leads: MatchedLeads, n_forecasts: int) -> str:
    """Return the leads, and the number of cases at each lead, as text."""
    text = str(len(leads.n_matched))
    if leads.labels:
        ends = " to ".join(dict.fromkeys(leads.labels))
        text += f" ({leads.dim} {ends} {leads.units}".rstrip() + ")"
    fewest, most = min(leads.n_matched), max(leads.n_matched)
    matched = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{text}, {matched} of {n_forecasts} pairs each"


def _locations(fitted: FittedVariable) -> str:
    sizes = {d: fitted.state.sizes[d] for d in fitted.locations}
    if not sizes:
        return "1"
    product = " x ".join(f"{d} {n}" for d, n in sizes.items())
    return f"{int(np.prod(list(sizes.values())))} ({product})" if len(sizes) > 1 else product


def _numbers(values: np.ndarray, units: str) -> str:
    """Return the range and the median of the finite values as text.

    An infinite value means that there is no bound, half-life or bandwidth.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return "none"
    low, middle, high = np.quantile(finite, [0, 0.5, 1])
    text = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    text = f"{text} {units}".rstrip()
    n_known = int((~np.isnan(values)).sum())
    return text if n_known == finite.size else f"{text} at {finite.size} of {n_known}"


def _counts(codes: np.ndarray, meanings: Sequence[str]) -> str:
    """Return a text with the number of locations for each meaning of a code."""
    counts = {text: int((codes == code).sum()) for code, text in enumerate(meanings)}
    return ", ".join(f"{text}: {count}" for text, count in counts.items() if count) or "none"


def _shares(shares: np.ndarray, labels: Sequence[str]) -> str:
    """Return the mean share of each label over the locations as text, largest share first."""
    mean = shares.mean(0)
    return ", ".join(f"{labels[i]} {mean[i]:.2f}" for i in np.argsort(-mean) if mean[i] >= 0.005)


def _by_label(values: np.ndarray, labels: Sequence[str]) -> str:
    """Return the range and the median of the values of each label as text."""
    texts = {label: _numbers(values[:, i], "") for i, label in enumerate(labels)}
    return "; ".join(f"{k} {text}" for k, text in texts.items() if text != "none") or "none"


def _status(status: np.ndarray, min_samples: int) -> str:
    counts = {"ok": int((status == 0).sum())}
    counts |= {text: int(((status & bit) > 0).sum()) for bit, text in MEANINGS.items()}
    explained = {"too_few_cases": f" (< {min_samples})"}
    return ", ".join(
        f"{text}{explained.get(text, '')}: {count}" for text, count in counts.items() if count
    )
