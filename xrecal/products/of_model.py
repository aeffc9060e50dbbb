"""Functions that take raw forecasts, forecasts recalibrated by a model, or held-out forecasts.

A model has these functions as methods.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import xarray as xr

from xrecal.fit.fitted import Fitted
from xrecal.fit.held_out import HeldOut
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.methods.call_errors import explained, unexplained
from xrecal.methods.doors import shown_sections

from .recalibrated import Missing, recalibrated
from .source import Sources, issued

if TYPE_CHECKING:
    from collections.abc import Hashable

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_PARAMETERS = "Parameters\n----------\n"
_TEXTS = {
    "forecast": "forecast : DataArray or Dataset\n    As for :meth:`apply`.",
    "observations": "observations : DataArray, Dataset or dict\n"
    "    Observations, matched by label.",
    "dim": "dim : hashable or sequence of hashable, optional\n"
    "    Dimensions to average over. The mean leaves out missing scores.",
    "covariates": "covariates, missing_covariates\n    As for :meth:`apply`.",
}
"""Texts about parameters that all methods of a model share."""
_WORDS = {
    "forecasts of any form": "the recalibrated forecasts",
    "each forecast distribution": "each recalibrated distribution",
}
"""Words in the first line of a docstring, and the words that replace them for a model."""


class OfModel(NamedTuple):
    """Raw forecasts with a model, for calls that score the recalibrated forecasts."""

    model: Fitted
    forecast: Labelled
    covariates: Given
    missing_covariates: Missing = "refuse"


Forecasts: TypeAlias = Labelled | OfModel | HeldOut
"""Raw forecasts, forecasts recalibrated by a model, or held-out forecasts of one variable."""


@dataclass(frozen=True)
class _OfHeldOut(Sources[HeldOut]):
    """Distributions of one variable, with the history of the cross-validation."""

    def product(
        self, function: Callable[[HeldOut], xr.DataArray], line: str, name: str | None = None
    ) -> Labelled:
        """Result of a function, with the name ``name``, or without a name if ``name`` is None."""
        (held_out,) = self.variables.values()
        return function(held_out).rename(name)


def sources_of(forecast: Forecasts, member_dim: Hashable | None) -> Sources[Any]:
    """The distributions of every variable of forecasts."""
    if isinstance(forecast, OfModel):
        return recalibrated(*forecast)
    if isinstance(forecast, HeldOut):
        return _OfHeldOut(forecast.given.loc, {forecast.form.name: forecast})
    return issued(forecast, member_dim)


def of_model(function: Callable[..., Labelled], *lacking: str) -> Callable[..., Labelled]:
    """Return a method of a model that calls ``function`` with recalibrated forecasts.

    The method has the parameters and the docstring of the function, with ``covariates`` and
    ``missing_covariates`` in place of ``member_dim``, and without the parameters ``lacking``.
    """
    plain = unexplained(function)
    first, *others = inspect.signature(function).parameters.values()
    own = [p for p in others if p.name not in ("member_dim", *lacking)]
    held = inspect.Parameter("self", first.kind)
    last = [
        inspect.Parameter("covariates", _KEYWORD, default=None, annotation="Given"),
        inspect.Parameter("missing_covariates", _KEYWORD, default="refuse", annotation="Missing"),
    ]
    signature = inspect.Signature([held, first, *own, *last], return_annotation="Labelled")

    def verb(*args: Any, **named: Any) -> Labelled:
        given = signature.bind(*args, **named).arguments
        source = [given.pop(p.name, p.default) for p in (held, first, *last)]
        made = OfModel(*source)
        return plain(made, **given)

    vars(verb)["__signature__"] = signature
    verb.__name__, verb.__qualname__ = plain.__name__, f"Recalibrator.{plain.__name__}"
    verb.__doc__ = _docstring(function, [p.name for p in (first, *own, *last)])
    return explained(f"model.{plain.__name__}")(verb)


def _docstring(function: Callable[..., Any], names: Sequence[str]) -> str:
    """Docstring of a method; parameters not in ``_TEXTS`` keep the texts of the function."""
    line, sections = shown_sections(function)
    for words, instead in _WORDS.items():
        line = line.replace(words, instead)
    name = f"{function.__module__}.{function.__name__}"
    about = f"Like :func:`{name}`, for the forecasts that the model\nrecalibrates, chunk by chunk."
    texts = _described(sections.pop("Parameters"), names) | _TEXTS
    parameters = _PARAMETERS + "\n".join(texts[name] for name in names if name in texts)
    return "\n\n".join([line, about, parameters, *sections.values()]) + "\n"


def _described(section: str, names: Sequence[str]) -> dict[str, str]:
    """Return the text about each parameter; parameters of one entry share a text."""
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section.removeprefix(_PARAMETERS)):
        listed, _, text = entry.partition("\n")
        listed, *kind = listed.split(" : ", 1)
        own = [name for name in listed.split(", ") if name in names and name not in _TEXTS]
        if own:
            texts[own[0]] = " : ".join([", ".join(own), *kind]) + f"\n{text}"
    return texts
