"""Figures of forecasts, for ``.recal.plot``: each makes the evidence, and one figure draws it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from xrecal import diagnostics, plot
from xrecal.diagnostics.skce import Test
from xrecal.fit.fit_hindcast import DEFAULT
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import Dims, at_scalars
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations, pair_cases, pair_variables
from xrecal.inputs.thresholds import Edges, Threshold
from xrecal.methods import Method
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

    The central 90 and 50 % and the median; quantiles are drawn as they are.
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


def pit(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    bins: int = 10,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> Axes:
    """Histogram of the probability integral transform; see :func:`xrecal.plot.pit`."""
    histogram = diagnostics.pit_histogram(
        forecast,
        observations,
        dim,
        bins=bins,
        augmented=augmented,
        seed=seed,
        member_dim=member_dim,
    )
    return plot.pit(histogram, ax=ax)


def rank_histogram(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> Axes:
    """Ranks among the members of plain ensembles; see :func:`xrecal.plot.rank_histogram`."""
    histogram = diagnostics.rank_histogram(
        forecast, observations, dim, seed=seed, member_dim=member_dim
    )
    return plot.rank_histogram(histogram, ax=ax)


def quantile_reliability(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Reliability diagram of quantiles; see :func:`xrecal.plot.quantile_reliability`."""
    curves = annual.quantile_reliability(forecast, observations, q, dim, member_dim=member_dim)
    return plot.quantile_reliability(curves, ax=ax)


def _of_events(
    name: str, text: str, evidence: Callable[..., xr.Dataset], draw: Callable[..., Axes]
) -> Callable[..., Axes]:
    """A figure of the probability of exceeding a threshold, which makes its evidence."""

    def figure(
        forecast: Labelled,
        observations: Observations,
        threshold: Threshold,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        curves = evidence(forecast, observations, threshold, dim, member_dim=member_dim)
        return draw(curves, ax=ax, label=label)

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = f"{text}; see :func:`xrecal.plot.{name}`."
    return figure


reliability = _of_events(
    "reliability",
    "Reliability diagram of probabilities",
    diagnostics.reliability,
    plot.reliability,
)
roc = _of_events("roc", "Hit rate by false alarm rate", diagnostics.roc, plot.roc)
performance = _of_events(
    "performance", "Hit rate by success ratio", diagnostics.roc, plot.performance
)


def coverage(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    level: float | Sequence[float] = (0.5, 0.8, 0.9),
    seed: int = 0,
    label: str | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Observations inside central intervals; see :func:`xrecal.plot.coverage`."""
    shares = diagnostics.coverage(
        forecast, observations, dim, level=level, seed=seed, member_dim=member_dim
    )
    return plot.coverage(shares, ax=ax, label=label)


def spread_skill(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    bins: int = 5,
    label: str | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Error by spread; see :func:`xrecal.plot.spread_skill`."""
    errors = diagnostics.spread_skill(forecast, observations, dim, bins=bins, member_dim=member_dim)
    return plot.spread_skill(errors, ax=ax, label=label)


def monitor(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    alpha: float = 0.01,
    member_dim: Hashable | None = None,
) -> Axes:
    """Evidence against calibration over time; see :func:`xrecal.plot.monitor`."""
    watched = diagnostics.monitor(forecast, observations, dim, alpha=alpha, member_dim=member_dim)
    return plot.monitor(watched, ax=ax)


def skill_by_lead(
    forecast: Labelled,
    observations: Observations,
    reference: Labelled,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """CRPS skill over a reference forecast, by lead; see :func:`xrecal.plot.skill_by_lead`."""
    skill = _crps_skill(forecast, observations, reference, dim, member_dim)
    return plot.skill_by_lead(skill, ax=ax, label=label)


def skill_map(
    forecast: Labelled,
    observations: Observations,
    reference: Labelled,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Map of the CRPS skill over a reference forecast; see :func:`xrecal.plot.skill_map`."""
    return plot.skill_map(_crps_skill(forecast, observations, reference, dim, member_dim), ax=ax)


def tercile_map(
    forecast: Labelled,
    edges: Edges,
    *,
    ax: Axes | None = None,
    member_dim: Hashable | None = None,
) -> Axes:
    """Map of the likeliest tercile of one forecast; see :func:`xrecal.plot.tercile_map`.

    ``edges`` are the lower and the upper tercile.
    """
    probabilities = categories(forecast, edges, member_dim=member_dim)
    return plot.tercile_map(only_variable(probabilities, name="forecast"), ax=ax)


def p_value_map(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    ax: Axes | None = None,
    test: Test = "serial",
    n_resamples: int = 1000,
    block_length: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> Axes:
    """Map of tests of calibration given the forecast; see :func:`xrecal.plot.p_value_map`.

    Tests and their arguments are those of ``summary``, whose count of rejections are the dots.
    """
    tests = diagnostics.skce_test(
        forecast,
        observations,
        dim,
        test=test,
        n_resamples=n_resamples,
        block_length=block_length,
        augmented=augmented,
        seed=seed,
        member_dim=member_dim,
    )
    return plot.p_value_map(tests, ax=ax)


def ridge_curve(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    ax: Axes | None = None,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    min_samples: int = 20,
    label: str | None = None,
) -> Axes:
    """Held-out loss of this hindcast with each ridge; see :func:`xrecal.plot.ridge_curve`."""
    curve = diagnostics.ridge_curve(
        hindcast,
        observations,
        method,
        dim=dim,
        member_dim=member_dim,
        condition_on=condition_on,
        covariates=covariates,
        min_samples=min_samples,
    )
    return plot.ridge_curve(curve, ax=ax, label=label)


def _with_usual_members(forecast: Labelled, member_dim: Hashable | None) -> Labelled:
    """A forecast whose members lie along ``member``, if they have another dimension."""
    return forecast if member_dim is None else forecast.rename({member_dim: "member"})


def _matched(
    observations: Observations | None, forecast: Labelled, dim: Hashable | None = None
) -> xr.DataArray | None:
    """What verified each forecast, at its labels; a single case finds its own in a series."""
    if observations is None:
        return None
    only_form(forecast, name="forecast")
    ((form, observed),) = pair_variables(forecast, observations, None, name="forecast").values()
    return pair_cases(form, observed, dim, name="forecast", require_dim=False).observations


def _beside(raw: Labelled | None, forecast: Labelled) -> Labelled | None:
    """The raw forecast at the labels of a forecast that was selected at one of them."""
    return None if raw is None else at_scalars(raw, forecast, names=("forecast", "raw forecasts"))


def _crps_skill(
    forecast: Labelled,
    observations: Observations,
    reference: Labelled,
    dim: Dims,
    member_dim: Hashable | None,
) -> xr.Dataset:
    """Skill of the CRPS of a forecast over that of a reference."""
    scores, of_reference = (
        only_variable(diagnostics.crps(one, observations, member_dim=member_dim), name=name)
        for name, one in {"forecast": forecast, "reference": reference}.items()
    )
    return diagnostics.skill(scores, of_reference, dim)
