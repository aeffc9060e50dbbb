"""Skill: how much better scores are than those of a reference."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from xrecal.attributes import shown_units
from xrecal.dims import CALIBRATION, find_dim
from xrecal.labels import require_equal_labels
from xrecal.units import check_units

from .cases import Dims, counted, listed, over_cases


def skill(scores: xr.DataArray, reference: xr.DataArray, dim: Dims = None) -> xr.Dataset:
    r"""Skill of scores against those of a reference, and its significance.

    Parameters
    ----------
    scores, reference : DataArray
        A score of each case, smaller is better: from ``crps``, ``brier_score``, ... of forecasts
        and of those they are compared with (raw, climatology), on the same labels.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; the calibration dimension (time, init, ...) if not given.

    Returns
    -------
    Dataset
        Over the other dimensions: ``skill`` :math:`1 - \bar S / \bar S_{ref}` over the cases that
        both have, 1 is perfect, 0 no gain; its standard error ``skill_error``; ``p_value``,
        two-sided, of equal scores (Diebold-Mariano); ``n_cases`` and ``status``. Errors and
        p-values allow for dependence of successive cases. NaN with fewer than 3 cases and
        against a perfect reference. Lazy if an input is.

    Raises
    ------
    TypeError
        If an argument is no DataArray.
    ValueError
        If dimensions, labels or units do not fit.
    """
    for name, array in {"scores": scores, "reference": reference}.items():
        if not isinstance(array, xr.DataArray):
            raise TypeError(
                f"{name} must be a DataArray, a score of each case, got {type(array).__name__}"
            )
    check_units("scores", scores.attrs.get("units"), "reference", reference.attrs.get("units"))
    dims = _dims(scores, dim)
    for d in scores.dims:
        if d in reference.dims:
            require_equal_labels(scores, reference, d, names=("scores", "reference"))
    extra = [d for d in reference.dims if d not in scores.dims]
    if extra:
        raise ValueError(f"reference has dimensions {extra} that scores lack; select or average")
    from xrecal.arrays import skill_score

    ordered = [_in_time(array, dims[0]) for array in (scores, reference)]
    found = over_cases(
        skill_score, *ordered, dims=dims, out=[()] * 3, what="the skill", dtypes=[np.float64] * 3
    )
    texts = {
        "skill": "skill: 1 - score / score of the reference",
        "skill_error": "standard error of the skill, with autocorrelation",
        "p_value": "two-sided p-value of equal scores, Diebold-Mariano with autocorrelation",
    }
    variables = {
        name: array.astype(scores.dtype).assign_attrs(long_name=text, units="1")
        for (name, text), array in zip(texts.items(), found, strict=True)
    }
    known = ordered[0].notnull() & ordered[1].notnull()
    name = scores.attrs.get("long_name", scores.name)
    units = shown_units(scores.attrs)
    attrs = {"score": f"{name} in {units}" if units else str(name)}
    return xr.Dataset(variables | counted(known, dims), attrs=attrs)


def _dims(scores: xr.DataArray, dim: Dims) -> tuple[Hashable, ...]:
    if dim is ...:
        return scores.dims
    if dim is not None:
        named = listed(dim)
        unknown = [d for d in named if d not in scores.dims]
        if unknown:
            raise ValueError(
                f"scores have no dimension {unknown[0]!r}; they have {list(scores.dims)}"
            )
        return tuple(named)
    found = find_dim(scores, CALIBRATION, name="scores")
    if found is None:
        raise ValueError(
            "scores have none of the known calibration dimensions "
            f"({', '.join(CALIBRATION.names)}) among {list(scores.dims)}; name it: dim=..."
        )
    return (found,)


def _in_time(scores: xr.DataArray, dim: Hashable) -> xr.DataArray:
    """By ascending label, so that neighbours are successive cases."""
    if dim not in scores.indexes or scores.indexes[dim].is_monotonic_increasing:
        return scores
    return scores.sortby(dim)
