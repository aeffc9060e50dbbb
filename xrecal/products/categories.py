"""Probabilities of categories between edges, such as terciles of the calibration climatology."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.chunks.blockwise import require_free, work_on
from xrecal.chunks.run import Named, run
from xrecal.chunks.warnings import warn_once
from xrecal.fit.fitted import CASE, Fitted, FittedVariable
from xrecal.inputs.covariates import Given, season_of
from xrecal.inputs.dims import read_inner_levels
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import probability_attributes
from xrecal.inputs.pool import Pool
from xrecal.inputs.roles import LEVEL
from xrecal.inputs.seasonal import take_cases
from xrecal.inputs.thresholds import Edges, Thresholds, check_edges, read_edges
from xrecal.methods.settings import is_positive
from xrecal.typing import FloatArray

from .recalibrated import Missing, Recalibrated, recalibrated
from .source import Source, issued, reduce

CATEGORY = "category"
"""Dimension of the categories."""
EDGE = "category_edge"
"""Dimension of the edges in a task, the computation for one chunk."""
_DATE = "xrecal_date_of_year"
"""Dimension of the different calendar days of the forecasts in a task."""
TERCILES = ("below_normal", "near_normal", "above_normal")


def categories_of(distribution: Distribution, edges: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k + 1) of k + 1 categories, at L locations with T forecasts each."""
    from xrecal.arrays import category_probabilities

    return (category_probabilities(distribution.exceedance(edges), edges),)


def categories(forecast: Labelled, edges: Edges, *, member_dim: Hashable | None = None) -> Labelled:
    """Probability of each category between thresholds.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    edges : sequence of float or DataArray
        Increasing thresholds between the categories, in the unit of the variable: k thresholds make
        k + 1 categories. A DataArray has one dimension that the forecast lacks, such as the
        ``quantile`` of ``observations.quantile([1/3, 2/3], "time")``. Its thresholds may also
        differ between locations, dates or parts of the year, as for
        :func:`xrecal.products.probabilities.exceedance`.
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities >= 0 that sum to one, with ``category`` in place of the members; lazy if an
        input is lazy. A value on an edge belongs to the category below the edge, and the category
        between equal edges has probability 0. Values are NaN where the forecast or an edge is
        missing, or where edges of a DataArray decrease. The labels of categories between terciles
        are below_normal, near_normal and above_normal. Other labels contain the levels of the
        edges, the values of edges in a list, or the number of the category. A value y is in a
        category if ``lower_edge < y <= upper_edge``; the result has these two coordinates
        (NAME_lower_edge, ... in a Dataset). The first lower edge and the last upper edge are
        infinite.

    Raises
    ------
    ValueError
        If edges in a list, or the levels of edges, do not increase, if there is no edge, or if
        dimensions, labels or units of the edges do not fit the forecast.
    TypeError
        If edges are not numbers.

    Notes
    -----
    :func:`~xrecal.diagnostics.ranked_probability_score` takes the same edges. This score is the sum
    of the Brier scores for exceeding each edge.

    Examples
    --------
    >>> forecast.recal.categories([0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.32, 0.33, 0.35])
    """
    check_edges(edges)

    def one(source: Source) -> xr.DataArray:
        require_free(source.form.dims, [CATEGORY])
        wanted = read_edges(edges, source.form, source.threshold_dtype)
        values = wanted.values.rename({wanted.dim: EDGE})
        return between(source, values, _labels(edges, wanted), isinstance(forecast, xr.Dataset))

    sources = issued(forecast, member_dim)
    return sources.product(one, "probabilities of categories", "categories")


def issued_categories(obj: Labelled) -> xr.DataArray | None:
    """Return the only variable with probabilities of categories; None if none or several exist."""
    if not isinstance(obj, xr.DataArray | xr.Dataset):
        return None
    found = [obj] if isinstance(obj, xr.DataArray) else list(obj.data_vars.values())
    with_categories = [one for one in found if CATEGORY in one.dims]
    return with_categories[0] if len(with_categories) == 1 else None


def as_members(
    forecast: Labelled, member_dim: Hashable | None
) -> tuple[Labelled, xr.DataArray | None, Hashable | None]:
    """Turn probabilities of categories into a weighted ensemble, with one member in each category.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Probabilities of categories from :func:`categories`, a model or ``cross_validate``. The
        function returns other forecasts unchanged.
    member_dim : hashable, optional
        Dimension of the members of other forecasts.

    Returns
    -------
    forecast : DataArray or Dataset
    edges : DataArray or None
        Edges between the categories, along a dimension of edges; None for other forecasts.
    member_dim : hashable or None
    """
    given = issued_categories(forecast)
    ends = [] if given is None else [c for c in given.coords if str(c).endswith("upper_edge")]
    if given is None or len(ends) != 1 or member_dim is not None:
        return forecast, None, member_dim
    name = given.name or "forecast"
    upper = given[ends[0]]
    upper = upper.drop_vars([c for c in upper.coords if c not in given.indexes])
    bare = given.drop_vars([c for c in given.coords if {CATEGORY} <= {*given[c].dims}])
    edges = upper.drop_vars(CATEGORY).isel({CATEGORY: slice(None, -1)})
    last = edges.isel({CATEGORY: [-1]})
    beyond = np.nextafter(last, last.dtype.type(np.inf))  # in the last category alone
    values = xr.concat([edges, beyond], CATEGORY).where(bare.notnull())
    if values.chunks is not None:
        values, bare = (array.chunk({CATEGORY: -1}) for array in (values, bare))
    units = {k: v for k, v in upper.attrs.items() if k == "units"}
    weight = f"{name}_weight"
    parts = {
        name: values.drop_attrs().assign_attrs(units, ancillary_variables=weight),
        weight: bare.fillna(0.0).drop_attrs().assign_attrs(role="member_weight"),
    }
    ensemble = xr.Dataset(parts, attrs=forecast.attrs).rename({CATEGORY: "member"})
    return ensemble, edges.rename({CATEGORY: EDGE}), "member"


def model_categories(
    model: Fitted,
    forecast: Labelled,
    q: float | Sequence[float] | np.ndarray = (1 / 3, 2 / 3),
    *,
    window: float | None = None,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> Labelled:
    """Probabilities of categories of the calibration climatology, chunk by chunk.

    Parameters
    ----------
    forecast : DataArray or Dataset
        As for :meth:`apply`.
    q : float or sequence of float
        Increasing levels of the quantiles between the categories, above 0 and below 1. By default,
        the categories are terciles.
    window : float, optional
        Width in days of a window around the calendar day of each forecast. With a window, the
        climatology consists of the observations of all years in this window. Without a window, it
        consists of all observations. Give a window if cases come from several seasons; you need no
        window if the hindcast has one start date a year.
    covariates, missing_covariates
        As for :meth:`apply`.

    Returns
    -------
    DataArray or Dataset
        Probabilities >= 0 that sum to one, with ``category`` in place of the members: below_normal,
        near_normal and above_normal for terciles. A value y is in a category if ``lower_edge < y <=
        upper_edge``; the result has these two coordinates (NAME_lower_edge, ... in a Dataset).
        Values are NaN where the forecast, the fit or the record of the location is missing, or
        where no case lies within the window.

    Raises
    ------
    ValueError
        If levels do not increase between 0 and 1, if ``window`` is given but hindcast or forecast
        has no dates, or as for :meth:`apply`.

    Notes
    -----
    The edges of a location are quantiles of the observations that the fit has used there. The
    quantile of level q is the smallest observation such that at least a share q of the observations
    do not exceed it. All observations count equally, whatever the half-life of the method. If the
    fit pools all positions along a dimension, the edges come from the observations of all these
    positions. If the fit pools the positions in a window, the edges come from the position in the
    middle of the window. If many observations are equal (no rain), edges may be equal, too; the
    category between equal edges has probability 0.

    Examples
    --------
    >>> model.categories(forecast).mean(["init", "location"]).round(2).values
    array([0.35, 0.34, 0.32])
    """
    levels = read_inner_levels(q)
    if window is not None and not is_positive(window):
        raise ValueError(f"window must be a positive number of days, got {window!r}")

    one = partial(
        climatological, levels=levels, named=isinstance(forecast, xr.Dataset), window=window
    )
    sources = recalibrated(model, forecast, covariates, missing_covariates)
    line = CATEGORIES_LINE
    if window is not None:
        line = line.replace("all cases", f"cases within a window of {window:g} days")
    return sources.product(one, f"{line}{sources.after}", "categories")


CATEGORIES_LINE = "probabilities of categories, whose edges come from the climatology of all cases"
"""Line about these products for the attribute ``history``."""


def climatological(
    source: Recalibrated, levels: FloatArray, named: bool, window: float | None = None
) -> xr.DataArray:
    """Probabilities of categories between quantiles of the climatology, for one variable."""
    require_free(source.form.dims, [CATEGORY])
    warn_of_pooled_edges(source.fitted.pool, source.fitted.dim)
    edges = _climatology_edges(source, levels, window)
    return between(source, edges, labels_of_levels(levels), named)


def warn_of_pooled_edges(pool: Pool | None, dim: Hashable | None) -> None:
    """Warn if positions share edges, because shared edges separate wet places from dry ones."""
    if pool is None or pool.widths is not None:
        return
    positions = " and ".join(map(repr, pool.dims))
    warn_once(
        f"the edges of the categories are those of all positions along {positions} together, "
        "because the fit pools these positions: if positions differ, categories separate places "
        "rather than dates. For separate edges use model.apply(forecast).recal.categories("
        f"observations.quantile([1/3, 2/3], {dim!r}))"
    )


def between(
    source: Source, edges: xr.DataArray, labels: Sequence[str], named: bool
) -> xr.DataArray:
    """Probabilities of the categories between edges; see :func:`with_edges`."""
    new: dict[Hashable, int] = {CATEGORY: edges.sizes[EDGE] + 1}
    result = reduce(source, categories_of, new, [edges])
    result = with_edges(result, edges, labels, source.form, named)
    return result.assign_attrs(category_attributes(source.attrs))


def category_attributes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes of probabilities of categories; ``attrs`` are those of the variable."""
    return probability_attributes(attrs, "lies in the category")


def with_edges(
    result: xr.DataArray, edges: xr.DataArray, labels: Sequence[str], form: Form, named: bool
) -> xr.DataArray:
    """Add the labels and the edges of the categories to probabilities.

    If ``named`` is true, the names of the edges begin with the name of the variable, because each
    variable of a Dataset has its own edges.
    """
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    prefix = f"{form.name}_" if named else ""
    bounds = edges.rename({EDGE: CATEGORY}).variable
    coords: dict[Hashable, Any] = {
        CATEGORY: (CATEGORY, np.array(labels), {"long_name": "category"})
    }
    ends = {"lower": ((1, 0), -np.inf, "does not belong"), "upper": ((0, 1), np.inf, "belongs")}
    for end, (width, value, membership) in ends.items():
        bound = bounds.pad({CATEGORY: width}, constant_values=value)
        if bound.chunks is not None:
            bound = bound.chunk({CATEGORY: -1})
        text = {"long_name": f"{end} edge, which {membership} to the category", **units}
        order = [d for d in result.dims if d in bound.dims]
        coords[f"{prefix}{end}_edge"] = xr.Variable(order, bound.transpose(*order).data, text)
    return result.assign_coords(coords)


def _labels(edges: Edges, wanted: Thresholds) -> list[str]:
    """Names of the categories: values of the edges, levels of the edges, or numbers.

    Names never contain units, so that all variables of a Dataset have the same names.
    """
    if not isinstance(edges, xr.DataArray):
        return labels_of_numbers(np.asarray(edges, np.float64))
    coordinate = wanted.coords.get(wanted.dim)
    if wanted.dim in LEVEL.names and coordinate is not None and coordinate.dtype.kind in "iuf":
        levels = coordinate.to_numpy() / (100.0 if wanted.dim == "percentile" else 1.0)
        if not (np.diff(levels) > 0).all():
            raise ValueError(
                f"edges along {wanted.dim!r} must increase, found the levels "
                f"{coordinate.to_numpy()}; use edges.sortby({wanted.dim!r})"
            )
        return labels_of_levels(levels)
    n = wanted.values.sizes[wanted.dim] + 1
    return [f"category {i} of {n}" for i in range(1, n + 1)]


def labels_of_levels(levels: np.ndarray) -> list[str]:
    """Names of categories between quantiles at increasing levels."""
    if levels.size == 2 and np.allclose(levels, [1 / 3, 2 / 3], rtol=0, atol=1e-3):
        return list(TERCILES)
    shares = [f"{100 * level:.4g}" for level in [0.0, *levels, 1.0]]
    return [f"{low}-{high} %" for low, high in pairwise(shares)]


def labels_of_numbers(edges: np.ndarray) -> list[str]:
    """Names of categories between increasing numbers."""
    text = [np.format_float_positional(edge, trim="-") for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(text)]
    return [f"<= {text[0]}", *between, f"> {text[-1]}"]


def _climatology_edges(
    source: Recalibrated, levels: FloatArray, window: float | None
) -> xr.DataArray:
    """Compute the edges: quantiles of the past observations at each location.

    With ``window``, only observations near the calendar day of the forecast count.
    """
    form, fitted = source.form, source.fitted
    season = None if window is None else _season(form, fitted, window)
    dates, position = None, None
    sizes: dict[Hashable, int] = {EDGE: levels.size}
    if season is not None:
        dates, position = np.unique(season.to_numpy(), return_inverse=True)
        sizes = {_DATE: dates.size, **sizes}
    edges = run(
        _Edges(levels, _known_days(fitted), dates, window),
        {"given": {"observations": (fitted.climatology, (CASE,))}},
        {"edges": (sizes, source.threshold_dtype)},
        what=work_on("the climatology", form.name),
    )["edges"]
    if season is None or position is None:
        return edges
    at = xr.DataArray(position.reshape(season.shape), dims=season.dims)
    return take_cases(edges, _DATE, at, form)


def _season(form: Form, fitted: FittedVariable, window: float) -> xr.DataArray:
    """Return the calendar day of each forecast; raise ValueError if dates are unknown."""
    season = season_of(form, fitted.dim, by_day=True)
    for owner, dates in (("the hindcast had", _known_days(fitted)), ("the forecast has", season)):
        if dates is None:
            raise ValueError(
                f"window={window:g} needs dates (datetime64 or cftime) along {fitted.dim!r}, but "
                f"{owner} none; leave window out, or add dates"
            )
    assert season is not None
    return season


def _known_days(fitted: FittedVariable) -> FloatArray | None:
    """Return the calendar days of the observations; None if the hindcast has no dates."""
    days = fitted.axis.day
    if days is None:
        return None
    each = fitted.observed.sizes[CASE] // max(fitted.state.sizes[CASE], 1)
    days = np.repeat(days, each)
    return days if fitted.pool is None else days[fitted.pool.own_cases]


@dataclass(frozen=True)
class _Edges:
    """Task that computes k edges at L locations from n cases: (L, k), or (L, T, k) for T dates."""

    levels: FloatArray
    season: FloatArray | None
    new_season: FloatArray | None
    window: float | None

    def __call__(self, given: Named) -> Named:
        """Run the task on one chunk."""
        from xrecal.arrays.baselines.climatology import climatology_quantiles

        edges = climatology_quantiles(
            given["observations"],
            self.levels,
            season=self.season,
            new_season=self.new_season,
            window=self.window,
        )
        return {"edges": edges}
