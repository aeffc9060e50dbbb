"""Watching the calibration: the monitor as a command of its own, and within the daily cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.texts import quoted
from xrecal.diagnostics.monitor import Restart, monitor
from xrecal.inputs.pairing import pair_variables
from xrecal.storage.storage import open_data

from .blocks import write_in_blocks
from .fit_apply import Output, fingerprints, for_files
from .inputs import Pair, Source, forecast_variables
from .session import ALARMED, Result, Session

SMALLEST = 2.0**-53
"""Distance of a transform from 0 and 1 at least, so that its normal score is finite."""


@dataclass(frozen=True)
class Watch:
    """Settings of a monitor."""

    alpha: float
    run_length: int
    restart: Restart

    @property
    def options(self) -> dict[str, Any]:
        """As parameters."""
        return {"alpha": self.alpha, "run_length": self.run_length, "restart": self.restart}


def watched(
    scores: xr.Dataset, names: Iterable[Hashable], dim: Hashable, watch: Watch
) -> xr.Dataset:
    """The monitor of each variable whose transforms ``NAME_pit`` are known, under its name.

    The normal scores of transforms, against a standard normal forecast, have these transforms.
    """
    from scipy.special import ndtri

    parts = {}
    for name in names:
        pit = scores[f"{name}_pit"]
        # When each verifies, which labels of leads alone may not say.
        pit = pit.assign_coords(valid_time=scores[f"{name}_valid_time"].variable)
        score = pit.copy(data=ndtri(pit.to_numpy().clip(SMALLEST, 1 - SMALLEST)))
        score.attrs = {}
        standard = xr.Dataset(
            {f"{name}_loc": xr.zeros_like(score), f"{name}_scale": xr.ones_like(score)}
        )
        parts[name] = monitor(standard, {name: score}, dim, **watch.options)
    return together(parts)


def together(parts: dict[Hashable, xr.Dataset]) -> xr.Dataset:
    """Monitors of several variables as one Dataset."""
    named = [part.rename({v: f"{name}_{v}" for v in part}) for name, part in parts.items()]
    return xr.merge(named, combine_attrs="override", join="exact", compat="no_conflicts")


def count_alarms(seen: xr.Dataset) -> dict[str, int]:
    """Places and leads with an alarm at the end, and changes of calibration up to then."""
    dim = next(iter(seen["restarts"].dims))
    alarms = [seen[name].isel({dim: -1}).sum() for name in seen if str(name).endswith("_alarm")]
    changes = [seen[name].sum() for name in seen if str(name).endswith("_change")]
    return {"alarms": int(sum(alarms)), "changes": int(sum(changes))}


def monitor_files(session: Session, pair: Pair, output: Output, watch: Watch) -> Result:
    """Watch the calibration of forecasts of any form, and write the evidence."""
    inputs: tuple[Source, Source] = pair.forecasts, pair.observations
    read = fingerprints(*inputs)
    forecasts, observed, _ = pair.open()
    chosen = pair.chosen
    request = {"command": "monitor", **read, **vars(chosen), **watch.options}
    parts = {}
    for name in pair_variables(forecasts, observed, chosen.member_dim, name="forecast"):
        one, _ = forecast_variables(forecasts, str(name), chosen.member_dim, "forecast")
        value = observed if isinstance(observed, xr.DataArray) else observed[name]
        given: Any = {name: value}
        parts[name] = monitor(one, given, chosen.dim, member_dim=chosen.member_dim, **watch.options)
    seen = _as_numbers(for_files(together(parts)))
    run = output.run(request, *inputs)
    if output.dry_run:
        run.is_complete(overwrite=output.overwrite, resume=output.resume)
        planned = {"status": "planned", "output": str(run.target)}
        return Result(planned, f"monitor -> {quoted(run.target)}: {', '.join(map(quoted, parts))}")
    with run.alone():
        if not run.is_complete(overwrite=output.overwrite, resume=output.resume):
            run.make_way(overwrite=output.overwrite)
            write_in_blocks(seen.chunk(), run, session.compute)
    with open_data(run.target, str(run.target)) as written:
        counts = count_alarms(written)
    data = {"status": "complete", "output": str(run.target), **counts}
    text = f"wrote {quoted(run.target)}: {counts['alarms']} alarms, {counts['changes']} changes"
    alarmed = counts["alarms"] > 0
    return Result(data, text, ALARMED if alarmed else 0)


def _as_numbers(seen: xr.Dataset) -> xr.Dataset:
    """Truth values and dates as blocks are written, with the attributes by which they are read."""
    plain = {}
    for name, array in seen.data_vars.items():
        if array.dtype == bool:
            plain[name] = array.astype(np.int8).assign_attrs(array.attrs | {"dtype": "bool"})
        elif array.dtype.kind == "M":
            units = {"units": "seconds since 1970-01-01"}
            seconds = (array.data - np.datetime64(0, "s")) / np.timedelta64(1, "s")
            plain[name] = array.copy(data=seconds).assign_attrs(array.attrs | units)
    return seen.assign(plain)
