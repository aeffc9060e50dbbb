"""Probabilities of the categories between edges, such as below, near and above normal."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from xrecal.inputs.dims import LEVEL
from xrecal.inputs.forms import Form, Labelled, require_free
from xrecal.inputs.metadata import history_line, probability_attributes
from xrecal.inputs.thresholds import Edges, Thresholds, check_edges, read_edges

from .ensembles import map_forms, reduce_form
from .reductions import categories_of

CATEGORY = "category"
"""Dimension of the categories."""
EDGE = "category_edge"
"""Dimension of the edges between them inside a task."""
TERCILES = ("below_normal", "normal", "above_normal")


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
        or part of the year, as for :func:`xrecal.products.products.exceedance`).
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities >= 0 that sum to one, with ``category`` in place of the members; lazy if an
        input is. A value on an edge belongs to the category below it, and equal edges have nothing
        between them. NaN where the forecast or an edge is missing, or edges of a DataArray
        decrease. Categories between terciles are below_normal, normal and above_normal; others
        are told by their levels, or their edges in a list, or their number. Coordinates
        ``lower_edge`` and ``upper_edge`` (NAME_lower_edge, ... in a Dataset), which are infinite
        at the ends: a value y is in the category if ``lower_edge < y <= upper_edge``.

    Raises
    ------
    ValueError
        If edges in a list, or their levels, do not increase, there is none, or dimensions, labels
        or units do not fit.
    TypeError
        If they hold no numbers.

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
    named = isinstance(forecast, xr.Dataset)

    def one(form: Form) -> xr.DataArray:
        require_free(form, CATEGORY)
        wanted = read_edges(edges, form, form.loc.dtype)
        values = wanted.values.rename({wanted.dim: EDGE})
        result = reduce_form(form, categories_of, {CATEGORY: values.sizes[EDGE] + 1}, [values])
        result = with_edges(result, values, _labels(edges, wanted), form, named)
        return result.assign_attrs(category_attributes(form.loc.attrs))

    result = map_forms(forecast, member_dim, one)
    if isinstance(result, xr.DataArray):
        result = result.rename("categories")
    return result.assign_attrs(history_line(result.attrs, "probabilities of categories"))


def category_attributes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes of probabilities of categories of a variable with ``attrs``."""
    return probability_attributes(attrs, "lies in the category")


def with_edges(
    result: xr.DataArray, edges: xr.DataArray, labels: Sequence[str], form: Form, named: bool
) -> xr.DataArray:
    """Probabilities with labels of the categories and the edges of each.

    ``named`` puts the name of the variable before those of the edges: in a Dataset variables have
    edges of their own.
    """
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    prefix = f"{form.name}_" if named else ""
    bounds = edges.rename({EDGE: CATEGORY}).variable
    coords: dict[Hashable, Any] = {
        CATEGORY: (CATEGORY, np.array(labels), {"long_name": "category"})
    }
    ends = {"lower": ((1, 0), -np.inf, "does not belong"), "upper": ((0, 1), np.inf, "belongs")}
    for end, (width, value, told) in ends.items():
        bound = bounds.pad({CATEGORY: width}, constant_values=value)
        if bound.chunks is not None:
            bound = bound.chunk({CATEGORY: -1})
        text = {"long_name": f"{end} edge of the category, which {told} to it", **units}
        order = [d for d in result.dims if d in bound.dims]
        coords[f"{prefix}{end}_edge"] = xr.Variable(order, bound.transpose(*order).data, text)
    return result.assign_coords(coords)


def _labels(edges: Edges, wanted: Thresholds) -> list[str]:
    """Names of the categories between edges: by their values, their levels, or their number.

    Never by units, so that the variables of a Dataset have the same.
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
