"""Make forecasts from ensembles with weights, or from normal distributions."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from .forms import read_forms
from .places import like_places
from .roles import LEVEL, MEMBER


def weighted(
    values: xr.DataArray, weights: xr.DataArray, *, member_dim: Hashable | None = None
) -> xr.Dataset:
    """Make a forecast from an ensemble with weights.

    Parameters
    ----------
    values : DataArray
        Members, along a member dimension. NAME below is the name of this array, or ``forecast`` if
        the array has no name.
    weights : DataArray
        Weights >= 0 along the member dimension. Weights need not sum to one, except for tests of
        calibration given the forecast.
    member_dim : hashable, optional
        The member dimension. By default xrecal recognises this dimension by its CF standard name or
        its name (member, number, ...).

    Returns
    -------
    Dataset
        Variables ``NAME`` and ``NAME_weight``; an attribute of ``NAME`` names its weights.

    Raises
    ------
    TypeError
        If an argument is not a DataArray.
    ValueError
        If there is no member dimension, if weights lack this dimension, if labels of values and
        weights differ, or if the sum of weights in memory overflows. If the sum of lazy weights
        overflows, the forecast counts as invalid.

    Examples
    --------
    >>> values = xr.DataArray([1.0, 3.0], dims="member", name="t2m")
    >>> ensemble = xrecal.weighted(values, xr.DataArray([0.25, 0.75], dims="member"))
    >>> ensemble.recal.mean()["t2m"].item()
    2.5
    """
    _require_arrays({"values": values, "weights": weights})
    (form,) = read_forms(values, member_dim, name="values").values()
    if form.member_dim not in weights.dims:
        raise ValueError(
            f"weights lack the member dimension {form.member_dim!r}; they have {list(weights.dims)}"
        )
    weights = _alike({"values": values, "weights": weights})["weights"]
    _require_finite_sums(weights, form.member_dim)
    name = "forecast" if values.name is None else values.name
    return xr.Dataset(
        {
            name: values.assign_attrs(ancillary_variables=f"{name}_weight"),
            f"{name}_weight": weights.assign_attrs(role="member_weight"),
        }
    )


def gaussian(
    loc: xr.DataArray,
    scale: xr.DataArray,
    weights: xr.DataArray | None = None,
    lower: xr.DataArray | float | None = None,
    upper: xr.DataArray | float | None = None,
) -> xr.Dataset:
    """Make a forecast from normal distributions, their mixtures, or censored normal distributions.

    Parameters
    ----------
    loc : DataArray
        Means; those of a mixture have the dimension ``component``. NAME below is the name of this
        array without a final ``_loc``, or ``forecast`` if the array has no name.
    scale : DataArray
        Standard deviations >= 0, in the unit of ``loc``.
    weights : DataArray, optional
        Weights >= 0 of the components, over ``component``. By default all weights are equal.
    lower, upper : DataArray or float, optional
        Bounds of the variable, in the unit of ``loc``. The probability beyond a bound is moved to
        the bound: for rain, the probability below 0 becomes the probability of no rain. Bounds have
        no dimension ``component``, and mixtures have no bounds.

    Returns
    -------
    Dataset
        Variables ``NAME_loc`` and ``NAME_scale``; ``NAME_weight``, ``NAME_lower`` and
        ``NAME_upper`` if the user gives these arguments.

    Raises
    ------
    ValueError
        If weights have no dimension ``component``, bounds have this dimension, a mixture has
        bounds, labels or units differ, or standard deviations in memory are negative.
    TypeError
        If an argument has another type than those above.

    Examples
    --------
    >>> loc = xr.DataArray([10.0, 20.0], dims="time", name="t2m")
    >>> xrecal.gaussian(loc, xr.full_like(loc, 2.0)).recal.quantile(0.5)["t2m"].values
    array([10., 20.])
    """
    given = {"loc": loc, "scale": scale, "weights": weights}
    _require_arrays({name: part for name, part in given.items() if part is not None})
    if weights is not None and "component" not in weights.dims:
        raise ValueError(
            f"weights need the dimension 'component'; they have {list(weights.dims)}. "
            "Rename the dimension that counts the components"
        )
    if scale.chunks is None and (scale < 0).any():
        raise ValueError(
            f"scale holds {int((scale < 0).sum())} negative values; give standard deviations >= 0"
        )
    name = "forecast" if loc.name is None else str(loc.name).removesuffix("_loc")
    parts = {f"{name}_loc": loc, f"{name}_scale": scale}
    if weights is not None:
        parts[f"{name}_weight"] = weights
    for end, bound in (("lower", lower), ("upper", upper)):
        if bound is not None:
            parts[f"{name}_{end}"] = _bound(bound, end, loc)
    dataset = xr.Dataset(_alike(parts))
    if lower is not None or upper is not None:
        read_forms(dataset, name="forecast")  # refuses mixtures and other units
    return dataset


def _bound(bound: xr.DataArray | float, end: str, loc: xr.DataArray) -> xr.DataArray:
    """Return a bound as a DataArray; refuse bounds that differ between components or members."""
    if not isinstance(bound, xr.DataArray):
        if np.ndim(bound):
            raise TypeError(f"{end} must be a number or a DataArray, got {type(bound).__name__}")
        units = {key: value for key, value in loc.attrs.items() if key == "units"}
        return xr.DataArray(np.asarray(bound, loc.dtype), attrs=units)
    taken = [d for d in bound.dims if d in ("component", *MEMBER.names, *LEVEL.names)]
    if taken:
        raise ValueError(
            f"{end} has the dimension {taken[0]!r}, but a whole distribution has one bound; "
            "select one bound"
        )
    return bound


def _require_arrays(parts: dict[str, xr.DataArray]) -> None:
    """Raise TypeError for parts that are not DataArrays."""
    for name, part in parts.items():
        if not isinstance(part, xr.DataArray):
            raise TypeError(
                f"{name} must be an xarray DataArray, got {type(part).__name__}; name its "
                f'dimensions: xr.DataArray({name}, dims=["time", ...])'
            )


def _require_finite_sums(weights: xr.DataArray, member_dim: Hashable) -> None:
    """Raise ValueError if finite weights in memory have an infinite sum.

    Division by such a sum would turn all weights into 0.
    """
    values = weights.data
    if not isinstance(values, np.ndarray) or not np.issubdtype(values.dtype, np.floating):
        return
    axis = weights.get_axis_num(member_dim)
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(axis, dtype=np.float64)
    overflows = np.isinf(total) & ~np.isinf(values).any(axis)
    if overflows.any():
        raise ValueError(
            f"the sum of weights along {member_dim!r} overflows in {int(overflows.sum())} of "
            f"{overflows.size} forecasts; the largest weight is {np.nanmax(values):.3g}. Only "
            f"ratios count: use weights / weights.max({member_dim!r})"
        )


def _alike(parts: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Return arrays with places in the order of the first array; raise ValueError if labels differ.

    Without this check, xarray would fill a Dataset with NaN where an array lacks a label.
    """
    (first, a), *others = parts.items()
    alike = {name: like_places(b, a, b.dims, names=(first, name)) for name, b in others}
    return {first: a, **alike}
