"""The loop of fit, apply and update over the cases of a chunk of locations, as a task runs it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.fit.fit_hindcast import Prepared, axis_of, fit_group, prepare
from xrecal.fit.fitted import CASE, CASE_MEMBER, FittedVariable
from xrecal.fit.folds import Fold, HeldOutReduction, Known, KnownName, as_arrays
from xrecal.fit.missing import without_unseen_values
from xrecal.fit.shared_places import pools_share
from xrecal.fit.update import with_cases
from xrecal.inputs.forms import Form
from xrecal.inputs.pairing import Pairs
from xrecal.typing import FloatArray, IntArray

from .recalibrated import Recalibrated

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution


class Round(NamedTuple):
    """One turn of the loop: cases that are learned, and those predicted then."""

    fit: Fold | None
    """The cases of a fit with the method and the pool as they suit them; None for an update."""
    learn: IntArray
    test: IntArray


class Settings(NamedTuple):
    """What a chunk of locations needs to know of the whole."""

    locations: tuple[Hashable, ...]
    pool: Any
    coords: xr.Dataset
    """Of the forecasts at all locations."""
    covariates: Mapping[str, Mapping[Any, Any]]
    """Attributes of the covariates."""
    min_samples: int
    new: tuple[Mapping[Hashable, int], ...]
    """Dimensions that results have in place of the members."""


class _Cases(NamedTuple):
    """All cases of a chunk of locations."""

    pairs: Pairs
    covariates: Mapping[str, xr.DataArray]
    known: xr.DataArray
    extras: Sequence[xr.DataArray]

    def learned(self, which: IntArray, at: int) -> tuple[Pairs, dict[str, xr.DataArray]]:
        """Some of the cases with the observations that are known as case ``at`` is issued."""
        pairs = self._of(self.pairs, which)
        given = pairs.observations
        observed = given.where(_along(self.known, pairs.dim, which) <= at)
        observed = observed.transpose(*given.dims, ...).astype(given.dtype, copy=False)
        pairs = replace(pairs, observations=observed.assign_attrs(given.attrs))
        return pairs, self.covariates_of(which)

    def covariates_of(self, which: IntArray) -> dict[str, xr.DataArray]:
        """Covariates of some of the cases."""
        return {n: _along(value, self.pairs.dim, which) for n, value in self.covariates.items()}

    def forecasts(self, which: IntArray) -> Form:
        """Forecasts of some of the cases."""
        return self._of(self.pairs, which).form

    @staticmethod
    def _of(pairs: Pairs, which: IntArray) -> Pairs:
        dim = pairs.dim
        parts = {name: _along(part, dim, which) for name, part in pairs.form.parts.items()}
        observed = _along(pairs.observations, dim, which)
        form = pairs.form.with_parts(parts)
        return replace(pairs, form=form, observations=observed, n_matched=which.size)


def _along(array: xr.DataArray, dim: Hashable | None, which: IntArray) -> xr.DataArray:
    """Some cases of an array that may have none."""
    return array.isel({dim: which}) if dim in array.dims else array


class ReplayTask:
    """Arrays of a chunk of locations in, a reduction of what the loop predicts out."""

    def __init__(
        self,
        pairs: Pairs,
        settings: Settings,
        rounds: Sequence[Round],
        inside: Mapping[str, tuple[Hashable, ...]],
        wanted: HeldOutReduction,
    ) -> None:
        self.pairs, self.settings, self.rounds = pairs, settings, rounds
        self.inside, self.wanted = inside, wanted

    def __call__(self, *args: npt.NDArray[Any]) -> Any:
        """Run the loop."""
        cases, shape = self._cases(args)
        dim, pool = self.pairs.dim, self.settings.pool
        assert dim is not None
        core: tuple[Hashable, ...] = (*(() if pool is None else pool.dims), dim)
        shape = (*shape, *(cases.pairs.observations.sizes[d] for d in core))
        results = self.wanted.empty(shape)
        fitted: FittedVariable | None = None
        for one in self.rounds:
            if one.learn.size:
                learned = cases.learned(one.learn, int(one.test[0]))
                if one.fit is not None:
                    fitted = self._fitted(one.fit, *learned)
                elif fitted is not None:
                    pairs, covariates = learned
                    pairs = replace(pairs, pool=fitted.pool)
                    fitted = with_cases(fitted, pairs, covariates)
            if fitted is None:
                continue
            for result, values, new in zip(
                results, self._predicted(fitted, cases, one.test), self.settings.new, strict=True
            ):
                values = values.transpose(*self.settings.locations, *core, *new)
                np.moveaxis(result, len(shape) - 1, 0)[one.test] = np.moveaxis(
                    values.to_numpy(), len(shape) - 1, 0
                )
        return as_arrays(results)

    def _fitted(
        self, fold: Fold, pairs: Pairs, covariates: dict[str, xr.DataArray]
    ) -> FittedVariable:
        """A fit of some cases, as ``fit`` makes it."""
        n_dates = pairs.observations.sizes[pairs.dim]
        axis, pool = axis_of(pairs), fold.pool
        if pool is not None and pools_share(fold.method, pool, n_dates):
            given = {n: v for n, v in covariates.items() if n in fold.method.covariates}
            least = self.settings.min_samples
            prepared = prepare(pairs, fold.method, given, least, pool.dims)
        else:
            axis = axis if pool is None else pool.axis(axis, n_dates)
            pairs = replace(pairs, pool=pool)
            prepared = Prepared(pairs, fold.method, axis, covariates, None)
        attrs = {pairs.form.name: pairs.observations.attrs}
        group = fit_group({pairs.form.name: prepared}, attrs, self.settings.min_samples)
        return group[pairs.form.name]

    def _predicted(
        self, fitted: FittedVariable, cases: _Cases, test: IntArray
    ) -> tuple[xr.DataArray, ...]:
        """The reduction of what a model makes of the tested cases."""
        dim = self.pairs.dim
        known = cases.covariates_of(test)
        covariates = {name: known[name] for name in fitted.periods} or None
        source = Recalibrated(cases.forecasts(test), fitted, covariates)
        names = [take for take in self.wanted.takes if isinstance(take, str)]
        extras = [_along(extra, dim, test) for extra in cases.extras]
        for name in names:
            if name == "observed":
                observed = _along(cases.pairs.observations, dim, test)
                extras.append(without_unseen_values(observed, fitted))
            elif name == "cases":
                extras.append(xr.DataArray(test, dims=[dim]))
            else:
                extras.append(fitted.climatology.rename({CASE: "xrecal_own_cases"}))
        reduction = partial(known_of, wanted=self.wanted, names=tuple(names))
        return source.reduce(reduction, *self.settings.new, extras=extras)

    def _cases(self, args: Sequence[npt.NDArray[Any]]) -> tuple[_Cases, tuple[int, ...]]:
        """Cases of the chunk with their labels, and the shape of its locations."""
        locations = self.settings.locations
        at = {d: np.ravel(a) for d, a in zip(locations, args, strict=False)}
        shape = tuple(a.size for a in at.values())
        coords = self.settings.coords.isel(
            {d: a for d, a in at.items() if d in self.settings.coords.dims}
        )
        named: dict[str, xr.DataArray] = {}
        for (name, inside), a in zip(self.inside.items(), args[len(locations) :], strict=True):
            core = a.shape[a.ndim - len(inside) :]
            whole = np.broadcast_to(a, (*shape, *core))
            array = xr.DataArray(whole, dims=(*locations, *inside))
            own = {n: c for n, c in coords.coords.items() if {*c.dims} <= {*array.dims}}
            named[name] = array.assign_coords(own)
        form = self.pairs.form
        members = {CASE_MEMBER: form.member_dim}
        parts = {
            name: named[f"part_{name}"].rename(members).rename(part.name).assign_attrs(part.attrs)
            for name, part in form.parts.items()
        }
        observed = named["observations"].assign_attrs(self.pairs.observations.attrs)
        pairs = replace(self.pairs, form=form.with_parts(parts), observations=observed)
        covariates = {
            name: named[f"covariate_{name}"].rename(name).assign_attrs(attrs)
            for name, attrs in self.settings.covariates.items()
        }
        extras = [array for name, array in named.items() if name.startswith("extra_")]
        return _Cases(pairs, covariates, named["known"], extras), shape


def known_of(
    distribution: Distribution,
    *given: npt.NDArray[Any],
    wanted: HeldOutReduction,
    names: tuple[KnownName, ...],
) -> tuple[FloatArray, ...]:
    """A reduction of distributions of held-out cases, with what is known of them given last."""
    arrays, rest = given[: len(given) - len(names)], given[len(given) - len(names) :]
    by_name: dict[str, Any] = dict(zip(names, rest, strict=True))
    if "learned" in by_name:  # the same for all forecasts of a fit
        by_name["learned"] = by_name["learned"][:, 0]
    if "cases" in by_name:
        by_name["cases"] = by_name["cases"].astype(np.int64)
    known = Known(*(by_name.get(name, np.empty(0)) for name in Known._fields))
    return wanted(distribution, known, arrays)
