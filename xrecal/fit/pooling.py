"""Pooling: cases of several locations together, where there are too few dates for each alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.parallel import run_blockwise
from xrecal.inputs.forms import Form
from xrecal.inputs.labels import text_of
from xrecal.inputs.pool import HINDCAST_LABELS, Pool, PoolOver

from .fitted import CASE, CASE_MEMBER
from .tasks_pool import Arrays, PooledTask

DATE = "calibration_date"
"""Dimension of the dates inside a task whose cases are dates at several positions."""


def read_pool(given: PoolOver, form: Form, dim: Hashable) -> Pool | None:
    """What ``fit`` is asked to pool, checked against the hindcast; None for nothing.

    All positions, of which :meth:`Pool.learning_from` takes as many as a fit can.

    Raises
    ------
    ValueError
        If a dimension is no location dimension, or a window has no width that fits.
    """
    if given is None:
        return None
    windows = given if isinstance(given, Mapping) else None
    dims = tuple(given) if isinstance(given, (Mapping, tuple, list)) else (given,)
    _check_dims(dims, form, dim)
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    widths = None
    if windows is not None:
        for d, width in windows.items():
            _check_width(d, width, sizes[d])
        widths = tuple(int(windows[d]) for d in dims)
    whole = math.prod(sizes[d] for d in dims) if widths is None else math.prod(widths)
    return Pool(dims, tuple(sizes[d] for d in dims), widths, tuple(range(whole)))


def _check_dims(dims: tuple[Hashable, ...], form: Form, dim: Hashable) -> None:
    locations = [d for d in form.dims if d != dim]
    roles = {dim: "calibration dimension", form.member_dim: "member dimension"}
    for d in dims:
        if d in roles:
            raise ValueError(
                f"pool names the {roles[d]} {d!r}; it takes location dimensions, here {locations}"
            )
        if d not in locations:
            raise ValueError(f"pool: hindcast has no location dimension {d!r}; it has {locations}")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(
            f"pool must name one location dimension or several different ones, got {dims!r}"
        )


def _check_width(d: Hashable, width: object, size: int) -> None:
    whole = isinstance(width, (int, np.integer)) and not isinstance(width, bool)
    if not whole or width < 1 or width % 2 == 0:  # type: ignore[operator]
        raise ValueError(
            f"pool: the window along {d!r} must be an odd whole number, with the location in the "
            f"middle, got {width!r}"
        )
    if width > size:  # type: ignore[operator]
        raise ValueError(
            f"pool: the window {width} along {d!r} is larger than its {size} positions; use "
            f"pool={d!r} for one fit from all of them"
        )


def run_on_cases(
    task: Callable[..., Arrays],
    pool: Pool | None,
    parts: Mapping[str, xr.DataArray],
    others: Mapping[str, xr.DataArray],
    *,
    out: Sequence[Sequence[Hashable]],
    dtypes: Sequence[Any],
    sizes: Mapping[Hashable, int],
    what: str,
) -> tuple[xr.DataArray, ...]:
    """Run a task on calibration cases, pooled or not; one call for each block of locations.

    ``parts`` (..., case, member) and ``others`` (..., case) are those of
    :func:`xrecal.fit.state.task_arguments`; ``out`` names the axes after the locations.
    """
    if pool is None:
        core = [(CASE, CASE_MEMBER)] * len(parts) + [(CASE,)] * len(others)
        return run_blockwise(
            task,
            *parts.values(),
            *others.values(),
            core=core,
            out=out,
            dtypes=dtypes,
            sizes=sizes,
            what=what,
        )
    return run_blockwise(
        PooledTask(task, pool, (2,) * len(parts) + (1,) * len(others)),
        *parts.values(),
        *others.values(),
        core=[(*pool.dims, DATE, CASE_MEMBER)] * len(parts) + [(*pool.dims, DATE)] * len(others),
        out=[(*pool.own_fits, *dims) for dims in out],
        dtypes=dtypes,
        sizes={**sizes, **dict(zip(pool.dims, pool.sizes, strict=True))},
        what=what,
    )


def pooled_covariate(value: xr.DataArray, pool: Pool) -> xr.DataArray:
    """A covariate (..., date) for each pooled case (..., case), as the state keeps it."""
    n = value.sizes[DATE]
    if not set(pool.dims) & set(value.dims):
        return value.isel({DATE: pool.repeat(np.arange(n))}).rename({DATE: CASE})
    (found,) = run_blockwise(
        PooledTask(_Unchanged(), pool, (1,)),
        across(value, pool),
        core=[(*pool.dims, DATE)],
        out=[(*pool.own_fits, CASE)],
        dtypes=[value.dtype],
        sizes={CASE: n * len(pool.taken), **dict(zip(pool.dims, pool.sizes, strict=True))},
        what="the pooling of a covariate",
    )
    return found


class _Unchanged:
    """What it is given."""

    on_device = True

    def __call__(self, cases: npt.NDArray[Any]) -> Arrays:
        return cases


def across(value: xr.DataArray, pool: Pool) -> xr.DataArray:
    """An array that has all pooled dimensions, before the dates."""
    sizes = dict(zip(pool.dims, pool.sizes, strict=True))
    value = value.expand_dims({d: size for d, size in sizes.items() if d not in value.dims})
    others = [d for d in value.dims if d not in (*pool.dims, DATE)]
    return value.transpose(*others, *pool.dims, DATE)


def position_coordinates(form: Form, pool: Pool, n_dates: int) -> dict[str, Any]:
    """Coordinates of the state: of each pooled case, or of the locations with windows."""
    known = {n: c for part in form.parts.values() for n, c in part.coords.items()}
    if pool.own_fits:
        return {
            str(name): c.variable
            for name, c in known.items()
            if set(c.dims) <= set(pool.dims) and c.dims
        }
    at = dict(zip(pool.dims, np.unravel_index(np.array(pool.taken), pool.sizes), strict=True))
    return {
        f"calibration_{d}": (
            CASE,
            np.tile(known[d].to_numpy()[at[d]], n_dates),
            known[d].attrs | ({} if pool.note is None else {HINDCAST_LABELS: _plain(known[d])}),
        )
        for d in pool.dims
        if d in known
    }


def _plain(labels: xr.DataArray) -> npt.NDArray[Any]:
    """Labels as attributes of files hold them: numbers, or text."""
    if labels.dtype.kind in "iuf":
        return labels.to_numpy()
    return np.array([text_of(label) for label in labels.to_index()])
