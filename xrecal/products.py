"""Probabilities of exceeding a threshold, and equally likely members, of forecasts of any form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from .attributes import describing, history_line
from .dims import CALIBRATION, candidates
from .ensembles import map_forms, reduce_form
from .forms import Form, Labelled
from .labels import require_equal_labels
from .methods.base import equal_mass_levels, is_whole
from .parallel import require_one_chunk
from .reductions import Reduction, exceedance_of, members_of
from .units import check_units

Threshold: TypeAlias = float | Sequence[float] | np.ndarray | xr.DataArray
"""One number, several, or values that differ from place to place."""

THRESHOLD = "threshold"
"""Dimension of several thresholds."""


def exceedance(
    forecast: Labelled, threshold: Threshold, *, member_dim: Hashable | None = None
) -> Labelled:
    """``P(Y > threshold)``, strictly, of each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    threshold : float, sequence of float or DataArray
        In the unit of the variable. A DataArray may have dimensions of the forecast other than
        the members (thresholds by location, or by date), and one new one.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities in [0, 1], one minus the CDF; lazy if an input is. With ``threshold``, or
        the new dimension of a DataArray, in place of the members; without for one number. NaN
        where the forecast or the threshold is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the threshold do not fit.
    TypeError
        If it holds no numbers.

    Notes
    -----
    Thresholds are compared in the floating type of the variable: no float32 member 0.1 exceeds 0.1.
    """

    def one(form: Form) -> xr.DataArray:
        wanted = read_thresholds(threshold, form, form.loc.dtype)
        new = {wanted.dim: wanted.values.sizes[wanted.dim]}
        result = reduce_form(form, exceedance_of, new, [wanted.values])
        return wanted.label(result, form.loc.attrs)

    result = map_forms(forecast, member_dim, one)
    if isinstance(result, xr.DataArray):
        result = result.rename("exceedance")
    return result.assign_attrs(history_line(result.attrs, "probability of exceeding a threshold"))


def members(
    forecast: Labelled, n: int, *, seed: int = 0, member_dim: Hashable | None = None
) -> Labelled:
    """Equally likely members that stand for each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    n : int
        How many, at least 1.
    seed : int
        Of the order of the members. Another one gives the same members in another order.
    member_dim : hashable, optional
        As for :func:`exceedance`.

    Returns
    -------
    DataArray or Dataset
        A plain ensemble as the forecast, with n members along its member dimension (``member``
        for quantiles and normal distributions); lazy if an input is.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number, or ``seed`` not whole.

    Notes
    -----
    Quantiles at the levels (i - ½)/n, which represent the distribution best for their number. Each
    location and case has them in an order of its own, drawn by its position: rank k here says
    nothing of rank k elsewhere, so fields of one member are not coherent in space or time.
    """
    check_count(n, seed)

    def one(form: Form) -> xr.DataArray:
        dims = candidates(form.broadcast().loc, CALIBRATION)
        numbers = numbers_of(form, dims[0] if len(dims) == 1 else None)
        result = reduce_form(form, drawn(n, seed), {form.member_dim_of_results: n}, numbers)
        return result.assign_attrs(describing(form.loc.attrs))

    result = map_forms(forecast, member_dim, one)
    return result.assign_attrs(history_line(result.attrs, members_line(n, seed)))


class Thresholds(NamedTuple):
    """Thresholds as tasks take them."""

    values: xr.DataArray
    """Over dimensions of the forecast, and ``dim`` last."""
    dim: Hashable
    """Dimension of the thresholds in the result."""
    coords: Mapping[Hashable, Any]
    """Of that dimension, or of the scalar that it was."""
    several: bool
    """Whether the dimension stays."""

    def label(self, result: xr.DataArray, attrs: Mapping[Any, Any]) -> xr.DataArray:
        """Coordinates and attributes of probabilities, from those of the variable."""
        if not self.several:
            result = result.isel({self.dim: 0})
        name = attrs.get("long_name", "the variable")
        described = {"long_name": f"probability that {name} exceeds the threshold", "units": "1"}
        return result.assign_coords(self.coords).assign_attrs(described)


def read_thresholds(threshold: Threshold, form: Form, dtype: npt.DTypeLike) -> Thresholds:
    """Check thresholds against a forecast, and bring them to a floating type."""
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    if not isinstance(threshold, xr.DataArray):
        numbers = _numbers(threshold)
        if THRESHOLD in (*form.dims, form.member_dim_of_results):
            raise ValueError(
                f"the forecast has a dimension {THRESHOLD!r}, which is that of the result; rename "
                f"it: forecast.rename({THRESHOLD}=...)"
            )
        label = numbers if numbers.ndim else numbers[()]
        dims = (THRESHOLD,) if numbers.ndim else ()
        coords: dict[Hashable, Any] = {THRESHOLD: (dims, label, units)}
        values = xr.DataArray(np.atleast_1d(numbers).astype(dtype), dims=[THRESHOLD])
        return Thresholds(values, THRESHOLD, coords, numbers.ndim > 0)
    if threshold.dtype.kind not in "iuf":
        raise TypeError(f"threshold must hold numbers, got {threshold.dtype}")
    check_units("forecast", units.get("units"), "threshold", threshold.attrs.get("units"))
    new = _new_dim(threshold, form)
    for dim in (d for d in threshold.dims if d in form.dims):
        whole = next(part for part in form.parts.values() if dim in part.dims)
        require_equal_labels(whole, threshold, dim, names=("forecast", "threshold"))
    kept = [d for d in threshold.dims if d != new and d in threshold.indexes]
    values = threshold.drop_vars([c for c in threshold.coords if c not in kept]).astype(dtype)
    if new is None:
        return Thresholds(values.expand_dims(THRESHOLD, -1), THRESHOLD, {}, False)
    require_one_chunk(threshold, (new,), name="threshold")
    coords = {c: v.variable for c, v in threshold.coords.items() if v.dims == (new,)}
    return Thresholds(values.transpose(..., new), new, coords, True)


def _numbers(threshold: object) -> npt.NDArray[np.float64]:
    """A number, or several along one axis."""
    try:
        numbers = np.asarray(threshold, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"threshold must be a number, a list of numbers or a DataArray, got {threshold!r:.60}"
        ) from None
    if numbers.ndim > 1:
        raise ValueError(
            f"threshold has shape {numbers.shape}; name its dimensions with a DataArray"
        )
    return numbers


def _new_dim(threshold: xr.DataArray, form: Form) -> Hashable | None:
    """The dimension of a threshold that the forecast lacks, if there is one."""
    if form.member_dim in threshold.dims:
        raise ValueError(
            f"threshold has the dimension {form.member_dim!r} of the forecast's members; rename "
            f"it: threshold.rename({form.member_dim}={THRESHOLD!r})"
        )
    new = [d for d in threshold.dims if d not in form.dims]
    if len(new) > 1:
        raise ValueError(
            f"threshold has the dimensions {new} that the forecast lacks, which has "
            f"{list(form.dims)}; one of them may be new: select or stack"
        )
    return new[0] if new else None


def numbers_of(form: Form, dim: Hashable | None) -> list[xr.DataArray]:
    """Numbers that tell forecasts apart: of the case along ``dim``, and parts of the location's.

    The location's number counts through its dimensions sorted by name, and is the sum of an array
    along each of them: tasks get the few values they need, whatever the number of locations.
    """
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    cases = xr.DataArray(np.int64(0))
    if dim in form.dims:
        cases = xr.DataArray(np.arange(sizes[dim]), dims=[dim])
    parts, stride = [], 1
    for d in sorted((d for d in form.dims if d != dim), key=str, reverse=True):
        parts.append(xr.DataArray(np.arange(sizes[d]) * stride, dims=[d]))
        stride *= sizes[d]
    return [cases, *parts]


def drawn(n: int, seed: int) -> Reduction:
    """Reduction to n equally likely members."""
    return partial(members_of, levels=equal_mass_levels(n), seed=seed)


def check_count(n: int | None, seed: int) -> int:
    """The number of members; raises ValueError unless it and the seed are whole."""
    if n is None or not is_whole(n) or n < 1:
        raise ValueError(f"n must be a whole number of members from 1 on, got {n!r}")
    check_seed(seed)
    return n


def check_seed(seed: int) -> None:
    """Raise ValueError unless the seed is whole."""
    if not is_whole(seed):
        raise ValueError(f"seed must be a whole number, got {seed!r}")


def members_line(n: int, seed: int) -> str:
    """What the history tells of members."""
    return f"{n} equally likely members, order of seed {seed}"
