"""Shortfalls of a cycle: missing leads, members and starts, and too little disk space."""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from dask.utils import format_bytes

from xrecal.fit.fitted import FittedVariable
from xrecal.inputs.roles import Roles

from .archive import Verifying
from .findings import lead_text
from .outcome import Date, stem_of

MARGIN = 1_000_000
"""Number of bytes that must stay free after a run has written models, forecasts and scores."""


def missing_in(
    values: xr.Dataset,
    forecast: xr.Dataset,
    variables: Mapping[Hashable, Verifying],
    fits: Mapping[Hashable, FittedVariable],
) -> str:
    """Describe leads without values, and missing members, in the forecast of one start.

    Places without a fit never have values. So the function ignores these places if other places
    have a fit.
    """
    texts = []
    for name, one in variables.items():
        form, fit = one.pairs.form, fits.get(name, one.fitted)
        lead = [d for d in Roles(form.loc).leads if d in values[name].dims][:1]
        located = [d for d in values[name].dims if d in form.dims]
        empty = values[name].isnull().any([d for d in values[name].dims if d not in located])
        has_fit = fit.state["status"] == 0
        judged = has_fit | ~has_fit.any([d for d in has_fit.dims if d not in lead])
        places = [d for d in located if d not in lead]
        n_places = int(np.prod([empty.sizes[d] for d in places]))
        counts = np.atleast_1d((empty & judged).sum([*places]).to_numpy())
        for at in np.flatnonzero(counts):
            of = f"lead {lead_text(form.loc[lead[0]][at])}" if lead else "the forecast"
            where = f" at {counts[at]} of {n_places} places" if n_places > 1 else ""
            texts.append(f"{name}: {of} has no value{where}")
        if form.kind == "ensemble":
            lacking = forecast[name].isnull().sum([form.member_dim])
            n = forecast.sizes[form.member_dim]
            most = int(lacking.where(lacking < n, 0).max())
            texts += [f"{name}: {most} of {n} members are missing"] if most else []
    return "; ".join(texts)


def missing_starts(issued: Sequence[Date], now: Date) -> list[str]:
    """Find starts without a forecast, from the usual interval between issued starts.

    The next start counts as missing when 1.75 intervals have passed since the last issued start.
    """
    if len(issued) < 3:
        return []
    steps = np.diff(issued)
    usual = np.sort(steps)[steps.size // 2]
    gaps = [*zip(issued[:-1], steps, strict=True), (issued[-1], now - issued[-1])]
    return [
        stem_of(start + k * usual)
        for start, gap in gaps
        for k in range(1, int(np.floor(gap / usual + 0.25)))
    ]


def require_room(folder: Path, n_starts: int, each: int, rewritten: int) -> None:
    """Raise OSError unless the disk has room for ``n_starts`` starts and for rewritten files."""
    need, free = n_starts * each + rewritten + MARGIN, shutil.disk_usage(folder).free
    if free < need:
        raise OSError(
            f"{folder} has {format_bytes(free)} free, and this run needs about "
            f"{format_bytes(need)} for {n_starts} starts; make room, or hand over fewer starts at "
            "a time"
        )


def bytes_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a store; 0 if nothing is at the path."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file())
