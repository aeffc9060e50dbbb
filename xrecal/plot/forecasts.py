"""Table of the figures of ``.recal.plot``; each figure computes scores or tests, and draws them.

To add a figure, write the function that draws it, and add lines to ``xrecal.plot`` and to
:class:`Figures`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from xrecal import diagnostics, plot
from xrecal.inputs.dims import Dims, at_scalars
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations, pair_cases, pair_variables
from xrecal.inputs.thresholds import Edges
from xrecal.methods.doors import Accessor, door
from xrecal.products.categories import categories
from xrecal.products.statistics import quantile

from . import annual
from .fan import LEVELS
from .reading import only_form, only_variable


def fan(
    forecast: Labelled,
    observations: Observations | None = None,
    *,
    ax: Axes | None = None,
    raw: Labelled | None = None,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Quantiles over dates or leads; see :func:`xrecal.plot.fan`.

    The fan shows the median and the central intervals of 50 and 90 %. If the forecast consists of
    quantiles, the fan shows these quantiles.
    """
    forecast = _with_usual_members(forecast, member_dim)
    has_quantiles = only_form(forecast, name="forecast").kind == "quantile"
    return plot.fan(
        forecast if has_quantiles else quantile(forecast, list(LEVELS)),
        ax=ax,
        observations=_matched(observations, forecast, dim),
        raw=_beside(raw, forecast),
    )


def cdf(
    forecast: Labelled,
    observations: Observations | None = None,
    *,
    ax: Axes | None = None,
    raw: Labelled | None = None,
    label: str | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """The distribution of one forecast; see :func:`xrecal.plot.cdf`."""
    forecast = _with_usual_members(forecast, member_dim)
    observed = _matched(observations, forecast)
    raw = _beside(raw, forecast)
    return plot.cdf(forecast, ax=ax, observations=observed, raw=raw, label=label)


def density(
    forecast: Labelled,
    observations: Observations | None = None,
    *,
    ax: Axes | None = None,
    raw: Labelled | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """The density of one forecast; see :func:`xrecal.plot.density`."""
    forecast = _with_usual_members(forecast, member_dim)
    observed = _matched(observations, forecast)
    return plot.density(forecast, ax=ax, observations=observed, raw=_beside(raw, forecast))


def _figure(
    draw: Callable[..., Axes],
    evidence: Callable[..., Labelled],
    text: str,
    *,
    without: Sequence[str] = (),
    **defaults: Any,
) -> Callable[..., Axes]:
    """Return a method that calls the function ``evidence`` and draws its result.

    The method takes ``ax``, and the parameters of ``evidence`` except those in ``without``. If
    ``draw`` has the parameter ``label``, the method also takes this parameter. ``defaults``
    replaces default values of parameters of ``evidence``.
    """
    made = [p for n, p in inspect.signature(evidence).parameters.items() if n not in without]
    made = [p.replace(default=defaults.get(p.name, p.default)) for p in made]
    drawn = [p for n, p in inspect.signature(draw).parameters.items() if n in ("ax", "label")]
    ordered = sorted((*drawn, *made), key=lambda p: (p.kind, p.name == "member_dim"))
    first = [p for p in ordered if p.kind is not p.KEYWORD_ONLY]
    keywords = [p for p in ordered if p.kind is p.KEYWORD_ONLY]

    def figure(*args: Any, **given: Any) -> Axes:
        style = {p.name: given.pop(p.name) for p in drawn if p.name in given}
        return draw(evidence(*args, **defaults | given), **style)

    vars(figure)["__signature__"] = inspect.Signature([*first, *keywords])
    figure.__name__ = figure.__qualname__ = draw.__name__
    figure.__doc__ = f"{text}; see :func:`xrecal.plot.{draw.__name__}`."
    return door(figure)


def _crps_skill(
    forecast: Labelled,
    observations: Observations,
    reference: Labelled,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the CRPS skill of a forecast over a reference forecast."""
    scores, of_reference = (
        only_variable(diagnostics.crps(one, observations, member_dim=member_dim), name=name)
        for name, one in {"forecast": forecast, "reference": reference}.items()
    )
    return diagnostics.skill(scores, of_reference, dim)


def _terciles(
    forecast: Labelled, edges: Edges, *, member_dim: Hashable | None = None
) -> xr.DataArray:
    """Probabilities of the terciles of one forecast; ``edges`` are the lower and upper tercile."""
    return only_variable(categories(forecast, edges, member_dim=member_dim), name="forecast")


def _with_usual_members(forecast: Labelled, member_dim: Hashable | None) -> Labelled:
    """Rename the dimension of members to ``member``."""
    return forecast if member_dim is None else forecast.rename({member_dim: "member"})


def _matched(
    observations: Observations | None, forecast: Labelled, dim: Hashable | None = None
) -> xr.DataArray | None:
    """Select the observation of each forecast; a single case gets one value of the series."""
    if observations is None:
        return None
    only_form(forecast, name="forecast")
    ((form, observed),) = pair_variables(forecast, observations, None, name="forecast").values()
    return pair_cases(form, observed, dim, name="forecast", require_dim=False).observations


def _beside(raw: Labelled | None, forecast: Labelled) -> Labelled | None:
    """Select the raw forecast at the place, lead or date of a forecast."""
    return None if raw is None else at_scalars(raw, forecast, names=("forecast", "raw forecasts"))


class Figures(Accessor):
    """Methods of forecasts that draw figures."""

    fan = door(fan)
    cdf = door(cdf)
    density = door(density)

    pit = _figure(
        plot.pit, diagnostics.pit_histogram, "Histogram of the probability integral transform"
    )
    rank_histogram = _figure(
        plot.rank_histogram,
        diagnostics.rank_histogram,
        "Histogram of ranks among the members of plain ensembles",
    )
    reliability = _figure(
        plot.reliability, diagnostics.reliability, "Reliability diagram of probabilities"
    )
    quantile_reliability = _figure(
        plot.quantile_reliability,
        annual.quantile_reliability,
        "Reliability diagram of quantiles",
        without=["beside"],
    )
    roc = _figure(
        plot.roc, diagnostics.roc, "Hit rate against false alarm rate", without=["levels"]
    )
    performance = _figure(
        plot.performance, diagnostics.roc, "Hit rate against success ratio", without=["levels"]
    )
    coverage = _figure(plot.coverage, diagnostics.coverage, "Observations inside central intervals")
    spread_skill = _figure(plot.spread_skill, diagnostics.spread_skill, "Error against spread")
    monitor = _figure(
        plot.monitor,
        diagnostics.monitor,
        "Evidence against calibration over time",
        without=["run_length", "restart", "lag", "augmented", "seed"],
    )
    skill_by_lead = _figure(
        plot.skill_by_lead, _crps_skill, "CRPS skill over a reference forecast, by lead"
    )
    skill_map = _figure(
        plot.skill_map, _crps_skill, "Map of the CRPS skill over a reference forecast"
    )
    tercile_map = _figure(
        plot.tercile_map, _terciles, "Map of the likeliest tercile of one forecast"
    )
    p_value_map = _figure(
        plot.p_value_map,
        diagnostics.skce_test,
        "Map of tests of calibration given the forecast",
        test="serial",  # as in the summary; the dots count its rejections
    )
    ridge_curve = _figure(
        plot.ridge_curve, diagnostics.ridge_curve, "Held-out loss of this hindcast with each ridge"
    )
