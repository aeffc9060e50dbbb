"""Monitoring of the forecasts that a daily cycle has issued."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from xrecal.diagnostics.monitor import Restart, monitor

SMALLEST = 2.0**-53
"""Smallest distance of a PIT value from 0 and 1; it keeps the normal quantile finite."""


@dataclass(frozen=True)
class Watch:
    """Settings of a monitor."""

    alpha: float
    run_length: int
    restart: Restart


def watched(
    scores: xr.Dataset, names: Iterable[Hashable], dim: Hashable, watch: Watch
) -> xr.Dataset:
    """Monitor each variable by its PIT values ``NAME_pit``; names of results begin with ``NAME``.

    The monitor takes forecasts and observations, not PIT values. So the function passes standard
    normal forecasts, and passes the normal quantiles of ``NAME_pit`` as observations. Such pairs
    have the PIT values ``NAME_pit``.
    """
    from scipy.special import ndtri

    parts = {}
    for name in names:
        pit = scores[f"{name}_pit"]
        # Labels of leads alone may not give the valid times.
        pit = pit.assign_coords(valid_time=scores[f"{name}_valid_time"].variable)
        # In float32 the upper limit would be 1, whose score is infinite and so not counted.
        transforms = pit.to_numpy().astype(np.float64)
        score = pit.copy(data=ndtri(transforms.clip(SMALLEST, 1 - SMALLEST)))
        score.attrs = {}
        standard = xr.Dataset(
            {f"{name}_loc": xr.zeros_like(score), f"{name}_scale": xr.ones_like(score)}
        )
        parts[name] = monitor(standard, {name: score}, dim, **asdict(watch))
    named = [part.rename({v: f"{name}_{v}" for v in part}) for name, part in parts.items()]
    return xr.merge(named, combine_attrs="override", join="exact", compat="no_conflicts")


def count_alarms(seen: xr.Dataset) -> dict[str, int]:
    """Count places and leads with an alarm after the last case, and all changes so far."""
    dim = next(iter(seen["restarts"].dims))
    alarms = [seen[name].isel({dim: -1}).sum() for name in seen if str(name).endswith("_alarm")]
    changes = [seen[name].sum() for name in seen if str(name).endswith("_change")]
    return {"alarms": int(sum(alarms)), "changes": int(sum(changes))}
