"""Common parts of all diagnostics: read the inputs, count cases, describe the results.

``read_evidence`` pairs the forecasts of one variable with observations. ``Evidence`` reduces each
forecast to numbers, combines these numbers over the cases, and makes the Dataset of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.distributions.forms import N_QUANTILES, equal_mass_levels
from xrecal.arrays.status import (
    DEPENDENT,
    ENOUGH,
    EVIDENCE_MEANINGS,
    FEW,
    FEWEST,
    NO_EVENT,
    TOO_FEW,
)
from xrecal.chunks.blockwise import require_free, work_on
from xrecal.chunks.over_cases import over_cases
from xrecal.chunks.warnings import warn_once
from xrecal.inputs.circular import refuse_circular
from xrecal.inputs.dates import case_axis, clusters_of_cases
from xrecal.inputs.dims import Dims, dims_as_text, listed
from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.metadata import history_only, joined
from xrecal.inputs.pairing import (
    Observations,
    Pairs,
    in_order,
    known_pairs,
    pair_cases,
    pair_variables,
)
from xrecal.inputs.roles import CALIBRATION, Roles
from xrecal.products.reductions import Reduction
from xrecal.products.source import Issued, reduce
from xrecal.products.statistics import quantiles_of
from xrecal.typing import IntArray

Cluster: TypeAlias = Literal["year", "season"]

NO_UNIT = {"units": "1"}
"""Attribute of numbers without a unit."""


@dataclass(frozen=True)
class Evidence:
    """Forecasts of one variable, paired with their observations."""

    pairs: Pairs
    dims: tuple[Hashable, ...]
    """Dimensions of the cases; computation along the last dimension is the fastest."""
    attrs: Mapping[Any, Any] = field(default_factory=dict)
    """Attributes of the forecast that the user gave."""

    @property
    def form(self) -> Form:
        """Forecasts, read into the common form of all inputs."""
        return self.pairs.form

    @property
    def observations(self) -> xr.DataArray:
        """Observations with the labels and the floating type of the forecasts.

        So an observation of 0.7 mm equals a float32 member of 0.7 mm.
        """
        return self.pairs.observations.astype(self.form.loc.dtype, copy=False)

    @property
    def time(self) -> Hashable:
        """Dimension of the cases along which neighbouring cases follow each other in time."""
        return self.pairs.dim if self.pairs.dim in self.dims else self.dims[0]

    @property
    def dims_by_time(self) -> tuple[Hashable, ...]:
        """Dimensions of the cases, time first, so that cases of one date are adjacent."""
        return (self.time, *(d for d in self.dims if d != self.time))

    @property
    def _sizes(self) -> dict[Hashable, int]:
        return {d: n for part in self.form.parts.values() for d, n in part.sizes.items()}

    @property
    def simultaneous(self) -> int:
        """Number of cases at each date."""
        return math.prod(self._sizes[d] for d in self.dims if d != self.time)

    @property
    def dims_of_climate(self) -> list[Hashable]:
        """Dimensions over which a climatology averages: only time, if there are several dates.

        Cases of many places together would give one climatology for all places. Any forecast that
        knows which places are warm or wet would beat this climatology. Cases of one date alone
        would give a climatology that knows the outcome of the date.
        """
        has_time = self._sizes.get(self.pairs.dim, 1) > 1
        return [self.pairs.dim] if has_time else [*self.dims]

    @property
    def units(self) -> dict[str, Any]:
        """Attribute ``units`` of the variable; empty if the variable has no unit."""
        return {k: v for k, v in self.form.loc.attrs.items() if k == "units"}

    def reduce(
        self,
        reduction: Reduction,
        extras: Sequence[xr.DataArray] = (),
        new: Mapping[Hashable, int] | None = None,
    ) -> xr.DataArray:
        """Compute one number from each forecast, or several numbers along ``new`` dimensions."""
        return reduce(Issued(self.form), reduction, new, extras)

    def over_cases(
        self,
        function: Callable[..., Any],
        *values: xr.DataArray,
        out: Sequence[Sequence[Hashable]],
        what: str,
        sizes: Mapping[Hashable, int] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> tuple[xr.DataArray, ...]:
        """Apply an array function along the cases; messages call its result ``what``."""
        return over_cases(
            function,
            *values,
            dims=self.dims,
            out=out,
            sizes=sizes,
            dtypes=dtypes,
            what=self.work(what),
        )

    def work(self, what: str) -> str:
        """Return the name of the task that computes ``what``, for messages."""
        return work_on(what, self.form.name)

    def by_quantiles(self, *, keep: bool) -> tuple[Evidence, str]:
        """Replace the forecasts by 200 quantiles, unless ``keep`` is True; also return a note."""
        form = self.form
        if keep:
            return self, ""
        levels = equal_mass_levels(N_QUANTILES)
        values = self.reduce(partial(quantiles_of, levels=levels), new={"quantile": levels.size})
        values = values.assign_coords(quantile=levels).assign_attrs(form.loc.attrs)
        (quantiles,) = read_forms(values.rename(form.name)).values()
        pairs = replace(self.pairs, form=quantiles)
        return replace(self, pairs=pairs), f", of {N_QUANTILES} quantiles"

    def mean_of_known(self, values: xr.DataArray) -> xr.DataArray:
        """Return the mean over the cases, without missing values; it does not depend on chunks."""
        (mean,) = self.over_cases(_mean, values, out=[()], what="the mean")
        return mean

    def error_of_mean(self, influence: xr.DataArray) -> xr.DataArray:
        """Return the standard error of a result, from the influence of each case on the result.

        The result is the mean of the influences. The error allows for autocorrelation. If the cases
        have several dimensions, the influences are first averaged over all of these dimensions
        except time; see :func:`by_time`.
        """
        time = self.time
        series = by_time(influence, self.dims, time)
        series = series.isel(in_time(series, [time]))
        what = self.work("the error")
        (error,) = over_cases(by_name("standard_error"), series, dims=[time], what=what)
        return error

    def result(
        self,
        variables: Mapping[str, xr.DataArray],
        what: str,
        known: xr.DataArray | None = None,
        *,
        sure: bool = False,
        along: Mapping[str, tuple[Any, Mapping[str, Any]]] | None = None,
        **attrs: Any,
    ) -> xr.Dataset:
        """Join results into a Dataset; ``what`` describes the results in the history.

        Dimensions have the same order as in the forecast; new dimensions come last.

        Parameters
        ----------
        variables : mapping from str to DataArray
            Results with their attributes.
        what : str
            Description of the results, for the history.
        known : DataArray of bool, optional
            True for the cases that count. The Dataset then has the number of these cases, and a
            status that follows from this number.
        sure : bool
            True sets results to NaN at locations with too few cases.
        along : mapping from dimension to labels and attributes, optional
            Labels of new dimensions, and attributes of these labels.
        **attrs
            Further attributes of the Dataset.
        """
        if known is not None:
            counts = counted(known, self.dims)
            variables = where_enough(variables, counts) if sure else {**variables, **counts}
        require_free(self.form.dims, variables)
        line = joined(f"{what} over {dims_as_text(self.dims)}", self.pairs.by_position)
        # A scalar, such as the level of the atmosphere, is dropped for a new dimension of its name.
        names = {*variables, *(d for a in variables.values() for d in a.dims)}
        plain = {
            name: a.drop_vars([c for c in a.coords if c in names and a.coords[c].dims != (c,)])
            for name, a in variables.items()
        }
        result = xr.Dataset(plain, attrs={**attrs, **history_only(self.attrs, line)})
        result = result.transpose(*[d for d in self.form.dims if d in result.dims], ...)
        return result.assign_coords({d: (d, *labels) for d, labels in (along or {}).items()})


def read_evidence(
    forecast: Labelled,
    observations: Observations,
    dim: Dims,
    member_dim: Hashable | None,
    *,
    ordered: bool = True,
) -> Evidence:
    """Pair the only variable of a forecast with observations, and find the dimensions of the cases.

    Raises
    ------
    ValueError
        If there are several variables or no dimension of cases, or if labels or units do not match.
    """
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    if len(paired) > 1:
        raise ValueError(
            f"evidence is computed for one variable, but the forecast has {list(paired)}; select "
            f"one, such as forecast[{next(iter(paired))!r}]"
        )
    ((form, observed),) = paired.values()
    if form.period is not None:
        refuse_circular(form.period, form.name, "diagnostics need values that have an order")
    named = named_dims(dim, form.dims, name="forecast")
    along = _labelled_dim(form, named)
    pairs = pair_cases(form, observed, along, name="forecast", require_dim=not named)
    pairs = known_pairs(pairs)
    if ordered:
        pairs = in_order(pairs)
    return Evidence(pairs, named or (pairs.dim,), forecast.attrs)


def _labelled_dim(form: Form, named: Sequence[Hashable]) -> Hashable | None:
    """Return the dimension whose labels match observations to forecasts; None: the default."""
    usual = form.roles.cases
    labelled = [d for d in usual if d in named] if usual else list(named)
    if len(labelled) > 1:  # observations already have leads, or valid times
        labelled = [d for d in labelled if d not in form.roles.leads]
    return labelled[0] if len(labelled) == 1 else None


def named_dims(dim: Dims, dims: Sequence[Hashable], *, name: str) -> tuple[Hashable, ...]:
    """Return the dimensions of the cases that the user named; empty if the user named none.

    Raises
    ------
    ValueError
        If ``dim`` is empty, lists a dimension twice, or lists a dimension that ``name`` lacks.
    """
    if dim is None:
        return ()
    if dim is ...:
        return tuple(dims)
    named = listed(dim)
    if not named or len(set(named)) < len(named):
        raise ValueError(f"dim={dim!r} must name dimensions of the cases, each once")
    unknown = [d for d in named if d not in dims]
    if unknown:
        raise ValueError(
            f"dim={dim!r}, but {name} {'have' if name.endswith('s') else 'has'} no dimension "
            f"{unknown[0]!r} of cases or locations, only {list(dims)}"
        )
    return tuple(named)


def case_dim(array: xr.DataArray, dim: Hashable | None = None, *, name: str) -> Hashable:
    """Return the dimension of the cases, given or recognised; raise ValueError if there is none."""
    recognised = Roles(array).find(CALIBRATION, dim, name=name)
    if recognised is None:
        raise ValueError(
            Advice(
                f"{name} {'have' if name.endswith('s') else 'has'} none of the known calibration "
                f"dimensions ({CALIBRATION.usual}) among {list(array.dims)}; name it: ",
                Typed("dim", ...),
            )
        )
    return recognised


def by_time(value: xr.DataArray, dims: Sequence[Hashable], time: Hashable) -> xr.DataArray:
    """Average over all dimensions of the cases except time.

    Cases of one date depend on each other, so they do not count as independent samples: each date
    counts once.
    """
    others = [d for d in dims if d != time and d in value.dims]
    return value.mean(others) if others else value


def by_name(name: str, **options: Any) -> Callable[..., Any]:
    """Return the array function ``name``; it is imported only when a task calls it."""
    return partial(_called, name, options)


def _called(name: str, options: Mapping[str, Any], *values: np.ndarray) -> Any:
    return getattr(arrays, name)(*values, **options)


def _mean(values: np.ndarray) -> np.ndarray:
    from xrecal.arrays.scores.significance import mean_of_cases

    return mean_of_cases(values)


def clusters_along(obj: xr.DataArray, time: Hashable, cluster: str | None) -> IntArray | None:
    """Return the index of the year or season of each date, or None if ``cluster`` is None."""
    return None if cluster is None else clusters_of_cases(case_axis(obj, time), cluster)


def counted(known: xr.DataArray, dims: Sequence[Hashable]) -> dict[str, xr.DataArray]:
    """Return the number of cases, and the status that follows from this number."""
    n = known.sum(list(dims), keep_attrs=False)
    few = (n.data >= FEWEST) & (n.data < ENOUGH)
    status = n.copy(data=(n.data < FEWEST) * TOO_FEW + few * FEW)
    return {"n_cases": n.assign_attrs(long_name="number of cases"), "status": with_meanings(status)}


def flag_events(
    result: xr.Dataset, happened: xr.DataArray, dims: Sequence[Hashable], edges: Hashable = None
) -> xr.Dataset:
    """Mark a result, in its status, if an event happened in none or in all of the cases.

    Parameters
    ----------
    result : Dataset
        Result with a variable ``status``.
    happened : DataArray
        1 for an observation above a threshold, 0 for others, NaN if unknown.
    dims : sequence of hashable
        Dimensions of the cases.
    edges : hashable, optional
        Dimension of thresholds between categories. If it is given, the status marks results with a
        category that has no case. By default, each threshold is a separate event.
    """
    # Coordinates may have the names of results.
    happened = happened.drop_vars([name for name in happened.coords if name in result.data_vars])
    above, n = (f(list(dims), keep_attrs=False) for f in (happened.sum, happened.count))
    if edges is None:
        empty = (above == 0) | (above == n)
    else:
        ends = [n.isel({edges: [0]}, drop=True), above, 0 * above.isel({edges: [0]})]
        bare = [end.drop_vars([edges], errors="ignore") for end in ends]
        empty = (xr.concat(bare, edges).diff(edges) == 0).any([edges])
    flag = (empty & (result["n_cases"] >= FEWEST)) * NO_EVENT
    return result.assign(status=with_meanings(result["status"] + flag))


def where_enough(
    variables: Mapping[str, xr.DataArray], counts: Mapping[str, xr.DataArray]
) -> dict[str, xr.DataArray]:
    """Set results to NaN at locations with too few cases; add number of cases and status."""
    enough = counts["n_cases"] >= FEWEST
    return {name: array.where(enough) for name, array in variables.items()} | dict(counts)


def warn_of_dependence(status: xr.DataArray, instead: str) -> None:
    """Warn if a test assumed independent cases, but cases are dependent; skip lazy results."""
    if status.chunks is not None or not status.size:
        return
    share = float(((status.to_numpy() & DEPENDENT) != 0).mean())
    if share > MANY:
        where = "" if status.size == 1 else f" at {share:.0%} of {status.size} locations"
        warn_once(
            f"successive cases depend on each other{where}, but this test assumes "
            f"independence, so its p-values are too small; use {instead}"
        )


MANY = 0.1
"""A warning appears if cases depend on each other at more than this share of locations."""


def with_meanings(status: xr.DataArray) -> xr.DataArray:
    """Return the status with the CF attributes that explain its flags."""
    return status.astype(np.int16).assign_attrs(
        long_name="status of the diagnostic",
        flag_masks=np.array(list(EVIDENCE_MEANINGS), dtype=np.int16),
        flag_meanings=" ".join(EVIDENCE_MEANINGS.values()),
    )


def described(
    arrays: Sequence[xr.DataArray],
    texts: Mapping[str, str],
    units: Mapping[str, Any],
) -> dict[str, xr.DataArray]:
    """Return results by name; ``texts`` has the name and the long name of each result."""
    return {
        name: array.assign_attrs(long_name=text, **units)
        for (name, text), array in zip(texts.items(), arrays, strict=True)
    }


def stacked(parts: Sequence[xr.DataArray], dim: Hashable) -> xr.DataArray:
    """Stack results for several levels along a new dimension, in one Dask chunk."""
    return in_one_chunk(xr.concat(list(parts), dim), dim)


def in_time(array: xr.DataArray, dims: Sequence[Hashable]) -> dict[Hashable, np.ndarray]:
    """Return positions that sort the cases by label, so that successive cases are neighbours."""
    return {
        d: array.indexes[d].argsort()
        for d in dims
        if d in array.indexes and not array.indexes[d].is_monotonic_increasing
    }


def in_one_chunk(array: xr.DataArray, *dims: Hashable) -> xr.DataArray:
    """Return the array; a lazy array gets one Dask chunk along each of ``dims``."""
    whole = {d: -1 for d in dims if d in array.dims}
    return array if array.chunks is None else array.chunk(whole)
