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
"""Dimension of the edges in a task."""
_DATE = "xrecal_date_of_year"
"""Dimension of the different dates of forecasts in a task."""
TERCILES = ("below_normal", "near_normal", "above_normal")


def categories_of(distribution: Distribution, edges: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k + 1) of the categories between edges (L, T, k)."""
    from xrecal.arrays import category_probabilities

    return (category_probabilities(distribution.exceedance(edges), edges),)


def categories(forecast: Labelled, edges: Edges, *, member_dim: Hashable | None = None) -> Labelled:
    """Probability of each category between thresholds.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    edges : sequence of float or DataArray
        Thresholds between the categories, increasing, in the unit of the variable: one fewer than
        categories. A DataArray has one dimension that the forecast lacks, such as the ``quantile``
        of ``observations.quantile([1/3, 2/3], "time")``, and may have others (by location, date,
        or part of the year, as for :func:`xrecal.products.probabilities.exceedance`).
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities >= 0 that sum to one, with ``category`` in place of the members; lazy if an
        input is. A value on an edge belongs to the category below it, and the category between
        equal edges has probability 0. NaN where the forecast or an edge is missing, or edges of a
        DataArray decrease. Categories between terciles are below_normal, near_normal and
        above_normal. Other categories have labels with their levels, or with their edges in a list,
        or with their numbers. A value y is in a category if ``lower_edge < y <= upper_edge``, by
        these coordinates (NAME_lower_edge, ... in a Dataset), which are infinite at the ends.

    Raises
    ------
    ValueError
        If edges in a list, or their levels, do not increase, if there is no edge, or if dimensions,
        labels or units do not fit.
    TypeError
        If edges are not numbers.

    Notes
    -----
    The sum over the edges of the Brier scores is
    :func:`~xrecal.diagnostics.ranked_probability_score`, which takes the same edges.

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
    """Return the only variable that holds probabilities of categories; None if there is not one."""
    if not isinstance(obj, xr.DataArray | xr.Dataset):
        return None
    found = [obj] if isinstance(obj, xr.DataArray) else list(obj.data_vars.values())
    with_categories = [one for one in found if CATEGORY in one.dims]
    return with_categories[0] if len(with_categories) == 1 else None


def as_members(
    forecast: Labelled, member_dim: Hashable | None
) -> tuple[Labelled, xr.DataArray | None, Hashable | None]:
    """Probabilities of categories as a weighted ensemble with one member in each category.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast from :func:`categories`, a model or ``cross_validate``; others are returned
        unchanged.
    member_dim : hashable, optional
        Dimension of the members of other forecasts.

    Returns
    -------
    forecast : DataArray or Dataset
    edges : DataArray or None
        Edges between the categories, along their own dimension; None for other forecasts.
    member_dim : hashable or None
    """
    given = issued_categories(forecast)
    ends = [] if given is None else [c for c in given.coords if str(c).endswith("upper_edge")]
    if given is None or len(ends) != 1 or member_dim is not None:
        return forecast, None, member_dim
    name = given.name or "forecast"
    upper = given[ends[0]].drop_vars([c for c in given.coords if c not in given.indexes])
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
        Levels between the categories, increasing, without 0 and 1; terciles if not given.
    window : float, optional
        Width in days of the part of the year around each forecast's date. The climatology consists
        of the observations in it; without it, of all observations. Give a window if cases are of
        several seasons; with one start date a year you need none.
    covariates, missing_covariates
        As for :meth:`apply`.

    Returns
    -------
    DataArray or Dataset
        Probabilities >= 0 that sum to one, with ``category`` in place of the members:
        below_normal, near_normal and above_normal for terciles. A value y is in a category if
        ``lower_edge < y <= upper_edge``, by these coordinates (NAME_lower_edge, ... in a Dataset).
        NaN where the forecast, the fit or the record of the location is missing, or no case lies
        within the window.

    Raises
    ------
    ValueError
        If levels do not increase between 0 and 1, if the window needs dates and there are none,
        or as for :meth:`apply`.

    Notes
    -----
    Edges are quantiles of the observations that the fit has used, at each location: the smallest
    observation with a share of at least q at or below it. All observations count equally, whatever
    the method's half-life. A fit to all positions along a dimension has edges from all of them. A
    fit with windows has edges from the location in the middle. If many observations are equal (no
    rain), edges may be equal too, with probability 0 between them.

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


CATEGORIES_LINE = "probabilities of categories of the climatology of all cases"
"""Text for the history."""


def climatological(
    source: Recalibrated, levels: FloatArray, named: bool, window: float | None = None
) -> xr.DataArray:
    """Probabilities of categories between quantiles of the climatology, for one variable."""
    require_free(source.form.dims, [CATEGORY])
    warn_of_pooled_edges(source.fitted.pool, source.fitted.dim)
    edges = _climatology_edges(source, levels, window)
    return between(source, edges, labels_of_levels(levels), named)


def warn_of_pooled_edges(pool: Pool | None, dim: Hashable | None) -> None:
    """Warn about edges that positions share, as they then separate wet places from dry ones."""
    if pool is None or pool.widths is not None:
        return
    positions = " and ".join(map(repr, pool.dims))
    warn_once(
        f"the edges of the categories are those of all positions along {positions} together, as "
        "the fit has pooled them: if positions differ, categories separate places rather "
        "than dates. For separate edges use model.apply(forecast).recal.categories("
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
    """Attributes of probabilities of categories of a variable with ``attrs``."""
    return probability_attributes(attrs, "lies in the category")


def with_edges(
    result: xr.DataArray, edges: xr.DataArray, labels: Sequence[str], form: Form, named: bool
) -> xr.DataArray:
    """Probabilities with labels of the categories and their edges.

    ``named`` adds the name of the variable to those of the edges, as variables in a Dataset have
    their own edges.
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
        text = {"long_name": f"{end} edge of the category, which {membership} to it", **units}
        order = [d for d in result.dims if d in bound.dims]
        coords[f"{prefix}{end}_edge"] = xr.Variable(order, bound.transpose(*order).data, text)
    return result.assign_coords(coords)


def _labels(edges: Edges, wanted: Thresholds) -> list[str]:
    """Names of the categories between edges: by values, levels, or numbers.

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
    """Quantiles of the calibration observations at each location, optionally near each date."""
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
    """Calendar day of each forecast; ValueError for unknown dates."""
    season = season_of(form, fitted.dim, by_day=True)
    for owner, dates in (("the hindcast had", _known_days(fitted)), ("the forecast has", season)):
        if dates is None:
            raise ValueError(
                f"window={window:g} needs dates (datetime64 or cftime) along {fitted.dim!r}, and "
                f"{owner} none; leave window out, or add them"
            )
    assert season is not None
    return season


def _known_days(fitted: FittedVariable) -> FloatArray | None:
    """Calendar days of the observations; None without dates."""
    days = fitted.axis.day
    if days is None:
        return None
    each = fitted.observed.sizes[CASE] // max(fitted.state.sizes[CASE], 1)
    days = np.repeat(days, each)
    return days if fitted.pool is None else days[fitted.pool.own_cases]


@dataclass(frozen=True)
class _Edges:
    """Task from observations (L, n) of a chunk to edges (L, k), or (L, T, k) for T dates."""

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
