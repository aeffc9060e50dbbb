"""Make a forecast from probabilities of categories, or of values up to thresholds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import xarray as xr

from .forecasts import weighted
from .roles import PROBABILITIES

_MEMBER = "member"
_CATEGORY, _THRESHOLD = PROBABILITIES
_ROUNDED = 0.005
"""Tolerance of a probability that is rounded to two decimals."""


def probabilities(
    values: xr.DataArray, edges: Sequence[float] | np.ndarray | xr.DataArray | None = None
) -> xr.Dataset:
    """Make a forecast from probabilities of categories, or of values up to thresholds.

    Parameters
    ----------
    values : DataArray
        Along ``category``: probabilities of categories, from the lowest category to the highest;
        the probabilities sum to one. Along ``threshold``: the probability of a value at or below
        each threshold. The labels of this dimension are the thresholds.
    edges : sequence of float or DataArray, optional
        Increasing thresholds between the categories; there is one edge fewer than categories. A
        DataArray of edges has one dimension that ``values`` lacks, and may also have dimensions of
        ``values``, such as locations. By default, the edges come from the coordinate ``upper_edge``
        or ``NAME_upper_edge`` of ``values``, which
        :func:`~xrecal.products.categories.categories` sets. Probabilities
        along ``threshold`` take no edges.

    Returns
    -------
    Dataset
        A weighted ensemble, ``NAME`` and ``NAME_weight``: one member in each category, with the
        probability of the category as its weight. The result is lazy if ``values`` is lazy. All
        members of a forecast are NaN if a probability or an edge is missing.

    Raises
    ------
    TypeError
        If ``values`` is not a DataArray, or if edges are not numbers.
    ValueError
        If ``values`` has neither ``category`` nor ``threshold``, or has both. If there are no
        edges, or if they decrease, or if their number is not one less than the number of
        categories. If probabilities in memory are negative, decrease with the threshold, or do not
        sum to one; errors of rounding to two decimals are allowed.

    Notes
    -----
    Probabilities do not give the position of a value within its category. The member of a category
    is in its middle. In the first and the last category, the member is beyond the edge by half the
    width of the next category, or by one unit if the next category has no width or there are only
    two categories. Scores of events at the edges (Brier score, RPS, reliability) do not depend on
    these positions. CRPS, quantiles and PIT depend on the positions, most of all if categories are
    wide.

    Examples
    --------
    >>> terciles = xr.DataArray([0.2, 0.3, 0.5], dims="category", name="t2m")
    >>> forecast = xrecal.probabilities(terciles, edges=[10.0, 14.0])
    >>> forecast["t2m"].values
    array([ 8., 12., 16.])
    >>> forecast.recal.exceedance(14.0)["t2m"].item()
    0.5
    """
    if not isinstance(values, xr.DataArray):
        raise TypeError(f"values must be an xarray DataArray, got {type(values).__name__}")
    found = [d for d in PROBABILITIES if d in values.dims]
    if len(found) != 1:
        raise ValueError(
            f"values need one of the dimensions {_CATEGORY!r} and {_THRESHOLD!r}; they have "
            f"{[*values.dims]}"
        )
    between = _edges(values, found[0], edges)
    weights = values.drop_vars([n for n, c in values.coords.items() if found[0] in c.dims])
    weights = weights.rename({found[0]: _MEMBER})
    if found[0] == _THRESHOLD:
        first, last = (weights.isel({_MEMBER: [k]}) for k in (0, -1))
        weights = xr.concat([first, weights.diff(_MEMBER), 1 - last], _MEMBER)
        weights = weights.chunk({_MEMBER: -1}) if weights.chunks else weights
    _require_probabilities(weights, found[0])
    weights = weights.transpose(*(_MEMBER if d == found[0] else d for d in values.dims))
    middles = _middles(between).astype(weights.dtype)
    known = weights.notnull().all(_MEMBER) & middles.notnull().all(_MEMBER)
    members = middles.where(known)
    attrs = {k: v for k, v in between.attrs.items() if k == "units"}
    members = members.transpose(*weights.dims).rename(values.name).assign_attrs(attrs)
    return weighted(members, weights.clip(0).drop_attrs(), member_dim=_MEMBER)


def _edges(
    values: xr.DataArray,
    dim: Hashable,
    edges: Sequence[float] | np.ndarray | xr.DataArray | None,
) -> xr.DataArray:
    """Return edges along the member dimension, in memory; raise an error if edges do not fit."""
    n = values.sizes[dim]
    if dim == _THRESHOLD:
        if edges is not None or dim not in values.indexes:
            raise ValueError(
                f"values along {dim!r} need the thresholds as labels of {dim!r}; leave edges out"
            )
        n, given = n + 1, values[dim].drop_vars(dim)
    elif edges is None:
        own_edges = [c for c in ("upper_edge", f"{values.name}_upper_edge") if c in values.coords]
        if not own_edges:
            raise ValueError(f"give the {n - 1} edges between the {n} categories: edges=[...]")
        given = values[own_edges[0]].isel({dim: slice(n - 1)}).drop_vars([dim], errors="ignore")
    elif isinstance(edges, xr.DataArray):
        given = edges
    else:
        given = xr.DataArray(np.asarray(edges, np.float64), dims=[dim])
    own = [d for d in given.dims if d == dim or d not in values.dims]
    if len(own) != 1:
        raise ValueError(f"edges need one dimension that values lack; they have {[*given.dims]}")
    coords = [name for name, c in given.coords.items() if own[0] in c.dims]
    given = given.drop_vars(coords).rename({own[0]: _MEMBER}).compute()
    if given.dtype.kind not in "iuf":
        raise TypeError(f"edges must hold numbers, got {given.dtype}")
    if given.sizes[_MEMBER] != n - 1:
        raise ValueError(
            f"{n} categories have {n - 1} edges between them, got {given.sizes[_MEMBER]}"
        )
    if (given.diff(_MEMBER) < 0).any():
        remedy = f"; sort them: values.sortby({dim!r})" if dim == _THRESHOLD else ""
        what = "thresholds" if dim == _THRESHOLD else "edges"
        raise ValueError(f"{what} must increase, got {given.to_numpy()!r:.60}{remedy}")
    return given.reset_coords(drop=True)


def _middles(edges: xr.DataArray) -> xr.DataArray:
    """Return one value for each category: its middle, or a value beyond the outermost edge."""
    first, last = (edges.isel({_MEMBER: [k]}) for k in (0, -1))
    inner = (edges.isel({_MEMBER: slice(1, None)}) + edges.isel({_MEMBER: slice(-1)})) / 2
    below, above = first - 1, last + 1
    if inner.sizes[_MEMBER]:
        low, high = (abs(inner.isel({_MEMBER: [k]}) - end) for k, end in ((0, first), (-1, last)))
        below, above = first - low.where(low > 0, 1), last + high.where(high > 0, 1)
    return xr.concat([below, inner, above], _MEMBER)


def _require_probabilities(weights: xr.DataArray, dim: Hashable) -> None:
    """Raise ValueError if weights in memory are not probabilities, apart from rounding."""
    if weights.chunks is not None:
        return
    slack = _ROUNDED * weights.sizes[_MEMBER] + 1e-6
    wrong = abs(weights.sum(_MEMBER, skipna=False) - 1) > slack
    wrong |= (weights < -1e-6).any(_MEMBER)
    if not wrong.any():
        return
    what = f"{int(wrong.sum())} of {wrong.size} forecasts"
    if dim == _THRESHOLD:
        raise ValueError(
            f"values of {what} decrease along {dim!r} or lie outside 0 to 1, so they are not "
            "probabilities of values up to the threshold; for probabilities of values above "
            "the threshold use 1 - values"
        )
    raise ValueError(
        f"probabilities of {what} are negative or do not sum to one along {dim!r}; if they are "
        f"in percent, use values / 100; if they are rounded, use values / values.sum({dim!r})"
    )
