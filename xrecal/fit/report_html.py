"""What a notebook shows of a model and of settings, in the manner of xarray."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape
from typing import TYPE_CHECKING

from xrecal.methods.settings_html import _folded, _framed, _rows, _settings

from .report import Fact, facts_of_variable

if TYPE_CHECKING:
    from .fitted import Fitted, FittedVariable


def model_html(model: Fitted) -> str:
    """A fitted model: its settings, and what was fitted of each variable, to be unfolded."""
    alone = len(model.variables) == 1
    parts = [
        _folded(f"method: <b>{escape(repr(model.method))}</b>", _settings(model.method)),
        *(_variable(name, fitted, alone) for name, fitted in model.variables.items()),
    ]
    return _framed("xrecal.Recalibrator", "".join(parts), repr(model))


def _variable(name: Hashable, fitted: FittedVariable, unfolded: bool) -> str:
    (_, title), *facts = facts_of_variable(name, fitted)
    state = fitted.state._repr_html_()
    inner = _folded("fitted state", f'<div class="xrecal-state">{state}</div>')
    locations = dict(facts)["locations"]
    told = f"<b>{escape(title)}</b>" + (f" at {escape(locations)}" if locations != "1" else "")
    return _folded(told, _table(facts) + inner, unfolded)


def _table(facts: Sequence[Fact]) -> str:
    return _rows([(escape(label), escape(text)) for label, text in facts])
