"""Sources of distributions, and their common interface for products.

=============================================  =====================================================
:class:`Issued`                                raw forecasts, in any form
:class:`~.recalibrated.Recalibrated`           forecasts recalibrated by a model
:class:`~xrecal.fit.held_out.HeldOut`          held-out cases, predicted by fits without these cases
=============================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy.typing as npt
import xarray as xr

from xrecal.arrays.distributions.continuous import Between, continuous
from xrecal.arrays.distributions.forms import Empirical
from xrecal.arrays.distributions.from_parts import distribution_from
from xrecal.arrays.rows import is_whole
from xrecal.chunks.blockwise import require_one_chunk, work_on
from xrecal.chunks.run import EACH, Inputs, Named, run, with_core_last
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.forms import TRAITS, Form, Kind, Labelled, numbers_of, read_forms, task_parts
from xrecal.inputs.metadata import describing, history_line, joined, with_conventions
from xrecal.inputs.missing import known_values
from xrecal.methods import Method

from .reductions import Reduction, name_of, of_circular, takes_device_arrays


class Source(Protocol):
    """The distributions of one variable."""

    @property
    def form(self) -> Form:
        """Forecasts that have these distributions."""

    @property
    def dim(self) -> Hashable | None:
        """Dimension of the cases; None if it is unknown."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes for values of the variable, such as its unit."""

    @property
    def threshold_dtype(self) -> npt.DTypeLike:
        """Floating type of thresholds, and of the values to compare with thresholds."""

    def reduce(
        self,
        reduction: Reduction,
        *out: Mapping[Hashable, int],
        extras: Sequence[Any] = (),
    ) -> tuple[xr.DataArray, ...]:
        """Return the results of a reduction, one for each mapping in ``out``.

        In each result, the dimensions in its mapping replace the member dimension.

        ``extras`` are further arguments of the reduction: arrays, or for held-out cases also names
        of arrays that the source knows.
        """

    def numbers(self) -> list[xr.DataArray]:
        """Indices of the case and of the location, which determine the random order of members."""

    def as_given(self, result: xr.DataArray) -> xr.DataArray:
        """Return a result without dimensions that the user's forecast lacks, such as leads."""


S = TypeVar("S", bound=Source)


def reduce(
    source: Source,
    reduction: Reduction,
    new: Mapping[Hashable, int] | None = None,
    extras: Sequence[Any] = (),
) -> xr.DataArray:
    """One result of a reduction, with dimensions ``new`` in place of the members."""
    (result,) = source.reduce(reduction, new or {}, extras=extras)
    return result


@dataclass(frozen=True)
class Sources(Generic[S]):
    """The distributions of every variable of a forecast."""

    forecast: Labelled
    """Forecast as given by the user."""
    variables: Mapping[Hashable, S]
    method: Method | None = None
    """Settings of the model that recalibrates the forecast; None for raw forecasts."""
    remark: str | None = None
    """Text to add to the history, for example about places matched by position."""

    @property
    def after(self) -> str:
        """End of a line of the history that names the method; empty for raw forecasts."""
        return "" if self.method is None else f" after {self.method}"

    @property
    def after_recalibration(self) -> str:
        """End of a line of the history about a property of the distributions."""
        if self.method is None:
            return " of the forecast distribution"
        return f" after recalibration by {self.method}"

    def product(
        self, function: Callable[[S], xr.DataArray], line: str, name: str | None = None
    ) -> Labelled:
        """Apply a function to each variable; return a result of the same type as the forecast.

        The method adds ``line`` to the history. A DataArray gets the name ``name``, or the name
        of the forecast if ``name`` is None.
        """
        results = {key: one.as_given(function(one)) for key, one in self.variables.items()}
        result: Labelled
        if isinstance(self.forecast, xr.DataArray):
            result = next(iter(results.values())).rename(name or self.forecast.name)
        else:
            result = xr.Dataset(results, attrs=with_conventions(self.forecast.attrs))
        return result.assign_attrs(history_line(result.attrs, joined(line, self.remark)))


@dataclass(frozen=True)
class Issued:
    """Raw forecast distributions of one variable."""

    form: Form
    dim = None

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the forecast that also describe a statistic of the forecast."""
        return describing(self.form.loc.attrs)

    @property
    def threshold_dtype(self) -> npt.DTypeLike:
        """Floating type of the forecast."""
        return self.form.loc.dtype

    def reduce(
        self,
        reduction: Reduction,
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray] = (),
    ) -> tuple[xr.DataArray, ...]:
        """Reduce each forecast distribution; see :class:`Source`.

        If many forecasts share members (past observations), the members are not copied for each
        forecast.
        """
        form = self.form
        if form.period is not None:
            reduction = of_circular(reduction, form.period, form.name, form.kind)
        shared = [d for d in form.dims if d not in form.loc.dims]
        if form.kind != "weighted" or not set(form.loc.dims) < set(form.parts["weights"].dims):
            shared = []  # each case has its own members
        loops = [*(d for d in form.dims if d not in shared), *shared]
        for part in form.parts.values():
            require_one_chunk(part, (form.member_dim,), name="forecast")
        parts = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
        each: tuple[Hashable, ...] = (EACH,) if shared else ()
        given: Inputs = {
            "forecasts": {
                name: (part, (*(each if name != "loc" else ()), NEW_MEMBER))
                for name, part in parts.items()
            },
            "extras": {i: with_core_last(extra, loops, each) for i, extra in enumerate(extras)},
        }
        task = StatisticTask(reduction, form.kind)
        if form.continuous is not None and form.period is None:
            between, shape, slots = form.continuous
            known = {} if shape is None else {"shape": with_core_last(shape, loops, each)}
            given = {**given, "tails": known}
            task = replace(task, between=between, tail_slots=slots)
        results = run(
            task,
            given,
            {i: ({**dict.fromkeys(each, 0), **new}, form.loc.dtype) for i, new in enumerate(out)},
            what=work_on("a statistic", form.name),
            each=shared,
        ).values()
        return tuple(
            result.transpose(*form.order(tuple(new)))
            for result, new in zip(results, out, strict=True)
        )

    def numbers(self) -> list[xr.DataArray]:
        """Indices of the case and of the location; see :func:`xrecal.inputs.forms.numbers_of`."""
        cases = self.form.roles.cases
        return numbers_of(self.form, cases[0] if len(cases) == 1 else None)

    def as_given(self, result: xr.DataArray) -> xr.DataArray:
        """Return the result unchanged."""
        return result


def issued(forecast: Labelled, member_dim: Hashable | None) -> Sources[Issued]:
    """Raw distributions of every forecast variable."""
    forms = read_forms(forecast, member_dim)
    known = {}
    for name, form in forms.items():
        (loc,) = known_values(form.loc, None, form.member_dim)
        known[name] = Issued(replace(form, loc=loc))
    return Sources(forecast, known)


def check_count(n: int | None, seed: int) -> int:
    """Return the number of members; raise ValueError unless it and the seed are valid integers."""
    if n is None or not is_whole(n) or n < 1:
        raise ValueError(f"n must be a whole number of members, 1 or more, got {n!r}")
    check_seed(seed)
    return n


def check_seed(seed: int) -> None:
    """Raise ValueError unless the seed is an integer."""
    if not is_whole(seed):
        raise ValueError(f"seed must be a whole number, got {seed!r}")


@dataclass(frozen=True)
class StatisticTask:
    """Task that reduces L forecasts, such as ensembles of m members (L, m).

    Further arrays of the reduction have the shape (L, ...). If T forecasts at each of L locations
    share the members (L, m), weights have the shape (L, T, m), and further arrays (L, T, ...).
    """

    reduction: Reduction
    kind: Kind
    between: Between | None = None
    tail_slots: tuple[int, ...] = ()

    @property
    def on_device(self) -> bool:
        """True if the reduction accepts CuPy arrays."""
        return takes_device_arrays(self.reduction) and not TRAITS[self.kind].has_scale

    @property
    def description(self) -> str:
        """Name of the product, for messages."""
        return f", {name_of(self.reduction)},"

    def __call__(self, forecasts: Named, extras: Named, tails: Named | None = None) -> Named:
        """Run the task on one chunk."""
        distribution = distribution_from(forecasts, censored=self.kind == "censored")
        if self.between is not None:
            assert isinstance(distribution, Empirical)
            distribution = continuous(distribution, self.between, self.tail_slots, **(tails or {}))
        return dict(enumerate(self.reduction(distribution, *extras.values())))
