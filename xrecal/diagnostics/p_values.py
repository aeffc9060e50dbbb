"""Show p-values as text, and adjust them for many tests at once, such as on a map."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.over_cases import over_cases
from xrecal.methods.call_errors import explained

from .evidence import by_name

Adjust: TypeAlias = Literal["bh", "by", "holm"]

SIGNIFICANT = 0.05
"""Limit of the expected share of false rejections among the rejections at several locations."""


NO_P_VALUE = "?"
"""Text shown instead of a p-value if there are too few cases."""


ENOUGH = "with enough cases (dependent cases count as fewer)"


def shown_p(p: float) -> str:
    """Return a p-value with two digits, or a question mark if it is unknown."""
    if np.isnan(p):
        return NO_P_VALUE
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def note_on_tests(data: xr.Dataset, *, unknown: bool) -> str:
    """Return a note, for a table, on how tests of calibration allow for dependent cases.

    The note lists the block lengths of the tests. ``unknown`` is True if some p-value is unknown.
    """
    parts = []
    for name in ("pit", "skce"):
        if f"{name}_block_length" in data:
            lengths = data[f"{name}_block_length"]
            if "n_cases" in data:  # with longer dependence, all cases are one block
                lengths = lengths.where(lengths < data["n_cases"], data["n_cases"])
            length = lengths.to_numpy()
            length = length[length > 0]
            low, high = (int(length.min()), int(length.max())) if length.size else (1, 1)
            cases = f"{low}" if low == high else f"{low} to {high}"
            parts.append(f"{name.upper()} {cases}")
    told = f"successive cases that count as one: {', '.join(parts)}" if parts else ""
    few = f"{NO_P_VALUE}: too few cases (dependent cases count as fewer)" if unknown else ""
    few = few or (f"rejections among the locations {ENOUGH}" if _some_untested(data) else "")
    return "; ".join(filter(None, (told, few)))


def _some_untested(data: xr.Dataset) -> bool:
    """Return whether a test is missing at some, but not all, of the locations with cases."""
    names = [f"{name}_p_value" for name in ("pit", "skce") if "n_cases" in data]
    untested = [data[n].isnull() & (data["n_cases"] > 0) for n in names if n in data]
    return any(0 < one.sum() < one.size for one in untested)


def rejections(p_values: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of rejections by adjusted p-values, and the number of tests.

    A p-value of NaN does not count as a test.
    """
    from xrecal.arrays import adjusted_p_values as adjusted

    return int((adjusted(p_values) < SIGNIFICANT).sum()), int((~np.isnan(p_values)).sum())


@explained("xrecal.diagnostics.adjusted_p_values")
def adjusted_p_values(p_values: xr.DataArray, *, method: Adjust = "bh") -> xr.DataArray:
    """Adjust p-values for the number of tests, by false discovery rates or by Holm's method.

    Parameters
    ----------
    p_values : DataArray
        P-values in [0, 1] of one test at each location; NaN if there is no test.
    method : {"bh", "by", "holm"}
        "bh" (Benjamini-Hochberg) is for tests that are independent or positively dependent, such as
        those at the places of a field. "by" (Benjamini-Yekutieli) is for tests of any dependence.
        Suppose that you reject if the adjusted p-value is below q. With "bh" and "by", at most a
        share q of the rejections is then false on average. "holm" is for few tests of any
        dependence: the probability of any false rejection is at most q.

    Returns
    -------
    DataArray
        Adjusted p-values in [0, 1]. Adjustment never makes a p-value smaller; NaN stays NaN. The
        result is lazy if the input is lazy.

    Raises
    ------
    ValueError
        If a p-value is outside [0, 1] or the method is unknown.
    TypeError
        If the input is not a DataArray.

    Notes
    -----
    False discovery rates come from :func:`scipy.stats.false_discovery_control`. No p-value of a
    resampling test is below 1/(n_resamples + 1). So ``n_resamples`` should be at least twenty times
    the number of locations; with fewer resamples, the adjusted tests cannot reject if forecasts are
    wrong at only a few of many locations. The result has one chunk, because it needs all p-values
    together.

    References
    ----------
    .. [1] Benjamini & Hochberg (1995), Controlling the false discovery rate.
       https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    .. [2] Holm (1979), A simple sequentially rejective multiple test procedure.
       https://www.jstor.org/stable/4615733
    .. [3] Wilks (2016), "The stippling shows statistically significant grid points".
       https://doi.org/10.1175/BAMS-D-15-00267.1

    Examples
    --------
    >>> p_values = xr.DataArray([0.01, 0.02, 0.03, 0.5], dims="cell")
    >>> xrecal.diagnostics.adjusted_p_values(p_values).values
    array([0.04, 0.04, 0.04, 0.5 ])
    """
    if not isinstance(p_values, xr.DataArray):
        raise TypeError(f"p_values must be a DataArray, got {type(p_values).__name__}")
    names = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "holm": "Holm"}
    if method not in names:
        raise ValueError(f"method is {method!r}; give 'bh', 'by' or 'holm'")
    (result,) = over_cases(
        by_name("adjusted_p_values", method=method),
        p_values,
        dims=p_values.dims,
        out=[p_values.dims],
        what="the control of false discoveries",
    )
    text = p_values.attrs.get("long_name", "p-value")
    attrs = {**p_values.attrs, "long_name": f"{text}, adjusted by {names[method]}"}
    return result.assign_coords(p_values.coords).assign_attrs(attrs).rename(p_values.name)
