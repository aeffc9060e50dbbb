"""Text below a table of methods, if a test rejects the calibration of the best method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xrecal.typing import FloatArray

from .p_values import rejections, shown_p
from .rows import SEASON

if TYPE_CHECKING:
    import xarray as xr

CLIMATOLOGY = "climatology"
TESTS = {"pit_p_value": "PIT", "skce_p_value": "SKCE"}
CLEAR = 2.0
"""The text names an error of the mean or variance of the PIT if the error exceeds this number of
standard errors."""


def remark_on_best(comparison: xr.Dataset, crps: FloatArray) -> str:
    """Return a sentence on the method with the best CRPS, or "" if no test rejects its calibration.

    Parameters
    ----------
    comparison : Dataset
        Result of :func:`xrecal.compare`, with the p-values and moments of the PIT.
    crps : ndarray (methods,)
        Mean CRPS of each method over all locations.
    """
    best = int(np.nanargmin(crps)) if np.isfinite(crps).any() else 0
    p_values = {test: _rows(comparison[name]) for name, test in TESTS.items()}
    found = {test: rejections(p[best]) for test, p in p_values.items()}
    if not any(rejected for rejected, _ in found.values()):
        return ""
    labels = [str(label) for label in comparison["method"].to_numpy()]
    if labels[best] == CLIMATOLOGY and YEARS in comparison.attrs.get("cross_validation", ""):
        return f"{CLIMATOLOGY} has the best CRPS; {_TIED}"
    test = next(test for test, (rejected, _) in found.items() if rejected)
    rejected, n = found[test]
    noun = "seasons and places" if SEASON in comparison["crps"].dims else "locations"
    where = f"p {_shown(p_values[test][best, 0])}" if n == 1 else f"at {rejected} of {n} {noun}"
    reason = _reason(comparison, best) if test == "PIT" else _GIVEN
    text = f"{labels[best]} has the best CRPS, but {test} rejects it ({where}): {reason}"
    passed = [
        i
        for i in np.argsort(crps)
        if np.isfinite(crps[i]) and not any(rejections(p[i])[0] for p in p_values.values())
    ]
    if passed:
        more = crps[passed[0]] / crps[best] - 1
        text += f"; {labels[passed[0]]}, which neither test rejects, has a CRPS {more:.1%} higher"
    return text


YEARS = "by='year'"
"""Text in an attribute of a comparison, if each year is held out from a fit to all others."""

_TIED = (
    "tests may reject it only because climatology without a year is tied to this year: where the "
    "year is high, the others are low"
)
_GIVEN = "calibrated on average, but not given the forecast; reliability diagrams may show how"


def _reason(comparison: xr.Dataset, best: int) -> str:
    """Describe how the forecasts are wrong, from the mean and the variance of their PIT."""
    of_best = comparison[["pit_mean", "pit_variance", "n_cases"]].isel(method=best)
    n = int(of_best["n_cases"].sum())
    mean, variance = (
        float(of_best[name].weighted(of_best["n_cases"]).mean())
        for name in ("pit_mean", "pit_variance")
    )
    reasons = []
    # The mean of n uniform numbers has the variance 1/(12 n), and the mean of 12 (u - 1/2)^2 has
    # 0.8/n.
    if abs(mean - 0.5) * np.sqrt(12 * n) > CLEAR:
        reasons.append(f"too {'high' if mean < 0.5 else 'low'} (mean PIT {mean:.2f}, not 0.5)")
    if abs(variance - 1) * np.sqrt(n / 0.8) > CLEAR:
        way = "narrow" if variance > 1 else "wide"
        reasons.append(f"too {way} (PIT varies {variance:.2f} times as much as it should)")
    return "forecasts are " + (" and ".join(reasons) or "of another shape than the observations")


def _rows(array: xr.DataArray) -> FloatArray:
    """Return values as an array (methods, locations)."""
    values = array.transpose("method", ...).to_numpy().astype(np.float64)
    return values.reshape(len(values), -1)


def _shown(p: float) -> str:
    text = shown_p(p)
    return text if text.startswith("<") else f"= {text}"
