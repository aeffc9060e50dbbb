"""Text that tells a person what was fitted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from .arrays.status import MEANINGS
from .attributes import shown_units
from .methods import Method

if TYPE_CHECKING:
    from .recalibrator import FittedVariable, Recalibrator


def describe_recalibrator(model: Recalibrator) -> str:
    """Text of a :class:`~xrecal.Recalibrator`: settings, then each variable."""
    lines = ["<xrecal.Recalibrator>", _line("method", repr(model.method))]
    for name, fitted in model.variables.items():
        lines += _variable(name, fitted, model.method)
    return "\n".join(lines)


def _line(label: str, text: str) -> str:
    return f"  {label:<17}{text}"


def _variable(name: Hashable, fitted: FittedVariable, method: Method) -> list[str]:
    units = shown_units(fitted.attrs)
    title = "unnamed" if name is None else str(name)
    state = fitted.state
    lines = [
        _line("variable", title + (f" ({units})" if units else "") + f", {fitted.kind}"),
        _line("cases", _cases(fitted)),
        _line("locations", _locations(fitted)),
    ]
    if fitted.note:
        lines.append(_line("note", fitted.note))
    if state["status"].chunks is not None:
        return [*lines, _line("state", "not computed: model.compute()")]
    fewest, most = int(state["n_cases"].min()), int(state["n_cases"].max())
    lines.append(
        _line("used", f"{fewest} cases" if fewest == most else f"{fewest} to {most} cases")
    )
    lines += [_line(p, _numbers(state[p])) for p in method.parameters]
    return [*lines, _line("status", _status(state["status"].to_numpy(), fitted.min_samples))]


def _cases(fitted: FittedVariable) -> str:
    text = f"{fitted.n_matched} of {fitted.n_forecasts} matched along {fitted.dim!r}"
    label = f"calibration_{fitted.dim}"
    if label not in fitted.state.coords:
        return text
    index = fitted.state.coords[label].to_index()
    first, last = (str(label).removesuffix(" 00:00:00") for label in (index[0], index[-1]))
    return f"{text}, {first} to {last}"


def _locations(fitted: FittedVariable) -> str:
    sizes = {d: fitted.state.sizes[d] for d in fitted.locations}
    if not sizes:
        return "1"
    product = " x ".join(f"{d} {n}" for d, n in sizes.items())
    return f"{int(np.prod(list(sizes.values())))} ({product})" if len(sizes) > 1 else product


def _numbers(values: xr.DataArray) -> str:
    finite = values.to_numpy()[np.isfinite(values.to_numpy())]
    units = f" {shown_units(values.attrs)}".rstrip()
    if finite.size == 0:
        return "none"
    if finite.size == 1:
        return f"{finite[0]:.4g}{units}"
    low, middle, high = np.quantile(finite, [0, 0.5, 1])
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}{units}"


def _status(status: np.ndarray, min_samples: int) -> str:
    counts = {"ok": int((status == 0).sum())}
    counts |= {text: int(((status & bit) > 0).sum()) for bit, text in MEANINGS.items()}
    explained = {"too_few_cases": f" (< {min_samples})"}
    return ", ".join(
        f"{text}{explained.get(text, '')}: {count}" for text, count in counts.items() if count
    )
