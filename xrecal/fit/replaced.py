"""Missing or broken covariates of forecasts: a status of each forecast, and a warning.

A value is broken if it is outside the plausible range of the record. The record of a covariate
consists of its values in past cases. The median of the record replaces missing and broken values;
see :class:`xrecal.methods.covariates.Covariates`. A shared fit stores no cases, so it stores the
usual values of each covariate, such as median and range.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.predictors import unstacked, usual_of
from xrecal.chunks.run import EACH, Inputs, Named, Outputs, run, with_core_last
from xrecal.chunks.warnings import warn_once
from xrecal.methods.covariates import may_break
from xrecal.methods.shared_packing import USUAL

from .cases import COVARIATE
from .fitted import CASE, FittedVariable

LAST_BIT = 30
"""Last bit of a status. All covariates without a bit of their own share this bit."""

SHOWN = 6
"""Largest number of covariates in a warning."""

OF_ALL = 0
"""Key of the array with the usual values of all covariates. The keys of other arrays are texts."""


def replaceable(fitted: FittedVariable) -> dict[str, int]:
    """Return the status bit of each covariate that may be replaced in a forecast."""
    by_sums = fitted.method.by_sums
    kept = [n for n in fitted.periods if may_break(n)]
    kept = [n for n in kept if by_sums or COVARIATE + n in fitted.arrays]
    return {name: 1 << min(bit, LAST_BIT) for bit, name in enumerate(kept)}


def _records(fitted: FittedVariable) -> dict[Any, tuple[xr.Variable, Sequence[Hashable]]]:
    """Return the arrays of the state that show the usual values of covariates.

    These arrays have the covariates of past cases. A shared fit instead has a single array, with
    the usual values of all covariates. Each array comes with its core dimensions.
    """
    if fitted.method.by_sums:
        usual = fitted.arrays[USUAL]
        return {OF_ALL: (usual, [d for d in usual.dims if d not in fitted.locations])}
    return {name: (fitted.arrays[COVARIATE + name], [CASE]) for name in replaceable(fitted)}


def status_of_forecasts(
    covariates: Mapping[str, xr.DataArray], fitted: FittedVariable, each: Sequence[Hashable]
) -> xr.DataArray | None:
    """Return the bits of the replaced covariates of each forecast; None if this fit replaces none.

    The result has the locations of the fit, and no labels. It also has the dimensions in ``each``,
    such as starts, that at least one covariate has.
    """
    bits = replaceable(fitted)
    if not bits:
        return None
    return _found(covariates, fitted, each)["replaced"].assign_attrs(
        long_name="covariates replaced by their median of the record",
        flag_masks=np.array(list(dict.fromkeys(bits.values())), np.int32),
        flag_meanings=" ".join(name.replace(" ", "_") for name in list(bits)[: LAST_BIT + 1]),
        role="status",
    )


def warn_of_replaced(
    covariates: Mapping[str, xr.DataArray],
    fitted: FittedVariable,
    each: Sequence[Hashable],
    *,
    name: str = "forecast",
) -> None:
    """Warn about covariates in memory that are broken or unexpectedly missing.

    Missing values are expected if many cases of the record lack the covariate, too.
    """
    bits = replaceable(fitted)
    if not bits:
        return
    records = _records(fitted)
    given = [covariates[name].variable for name in bits]
    given += [fitted.arrays["status"], *(record for record, _ in records.values())]
    if not all(isinstance(variable.data, np.ndarray) for variable in given):
        return
    found, texts = _found(covariates, fitted, each), []
    for place, (covariate, bit) in enumerate(bits.items()):
        broken, missing = (int((found[how] & bit > 0).sum()) for how in ("broken", "missing"))
        size, value = found["broken"].size, covariates[covariate]
        if broken:
            record = records.get(covariate, (None,))[0]
            if record is None:
                record = records[OF_ALL][0].data[..., place, -2:]
            ends = (float(of(a)) for a in (value, record) for of in (np.nanmin, np.nanmax))
            low, high, first, last = (f"{end:.4g}" for end in ends)
            texts.append(
                f"{covariate!r} in {broken} of {size} cases ({low} to {high}, where the record "
                f"has {first} to {last})"
            )
        elif missing:
            texts.append(f"{covariate!r}, which is missing in {missing} of {size} cases")
    if texts:
        more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        then = "are replaced by their median of the record"
        then = then if name == "forecast" else "count as missing"
        warn_once(
            f"covariates of {name} are unlike those of the fit, and {then}: "
            f"{'; '.join(texts[:SHOWN])}{more}. Give them in the same unit and from the same "
            "data source as in the hindcast, or fit with a hindcast that has such values"
        )


def warn_of_idle(covariates: Mapping[str, xr.DataArray], cases: Sequence[Hashable]) -> None:
    """Warn about covariates in memory that are missing or constant in all cases of each place."""
    for name, value in covariates.items():
        if not may_break(name) or not isinstance(value.data, np.ndarray):
            continue
        own = [d for d in cases if d in value.dims]
        if not bool(value.notnull().any()):
            how = "missing"
        elif bool((value.max(own) - value.min(own) > 0).any()):
            continue
        else:
            how = "the same"
        warn_once(
            f"the covariate {name!r} is {how} in all cases of hindcast, so it has no effect; leave "
            "it out, or correct it"
        )


def _found(
    covariates: Mapping[str, xr.DataArray], fitted: FittedVariable, each: Sequence[Hashable]
) -> dict[Any, xr.DataArray]:
    """Return bits that mark replaced, broken or unexpectedly missing covariates of forecasts."""
    bits = replaceable(fitted)
    given_dims = {d for name in bits for d in covariates[name].dims}
    each = [d for d in each if d in given_dims]
    loops = [*fitted.locations, *each]
    bare = {name: covariates[name].drop_vars([*covariates[name].coords]) for name in bits}
    given: Inputs = {
        "status": {0: (fitted.arrays["status"], ())},  # the first array must have all locations
        "record": _records(fitted),
        "covariates": {name: with_core_last(bare[name], loops) for name in bits},
    }
    task = _Judge(bits, {name: fitted.periods[name] for name in bits})
    out: Outputs = {name: ({EACH: 0}, np.int32) for name in ("replaced", "broken", "missing")}
    return run(task, given, out, what="the check of covariates", each=each)


@dataclass(frozen=True)
class _Judge:
    """Task that compares covariates (L, T) with those of the record (L, n); returns bits (L, T)."""

    bits: Mapping[str, int]
    periods: Mapping[str, float | None]
    on_device = True

    def __call__(self, status: Named, record: Named, covariates: Named) -> Named:
        """Return the bits of replaced, broken and missing covariates, by name."""
        found: dict[str, Any] = {"replaced": 0, "broken": 0, "missing": 0}
        stored = unstacked(record[OF_ALL]) if OF_ALL in record else []
        known = dict(zip(self.bits, stored, strict=False))
        for name, bit in self.bits.items():
            values = covariates[name]
            usual = known.get(name) or usual_of(record[name], self.periods[name])
            unusable, broken = usual.unusable(values), usual.broken(values)
            expected = {"replaced": unusable, "broken": broken}
            expected["missing"] = unusable & ~broken & ~usual.mixed
            found = {how: found[how] | there * np.int32(bit) for how, there in expected.items()}
        return found
