"""Members that are named models: their weights and offsets, and matching by name.

The offset of a model is its mean difference from the weighted mean of all models. With
``exchangeable=False`` every method gets weighted ensembles, whose members are the forecasts of the
models minus their offsets. Places that choose together share one set of weights; each fit has its
own offsets.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.arrays.distributions.forms import Forecasts
from xrecal.chunks.blockwise import require_one_chunk, work_on
from xrecal.chunks.run import EACH, Array, Inputs, Named, Outputs, run, total
from xrecal.chunks.tree import inputs_after
from xrecal.inputs.forms import Form
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import Pool
from xrecal.methods import Method
from xrecal.typing import FloatArray

from .fitted import MODEL, MODEL_PARTS, FittedVariable
from .kinds import Choose, read_choose
from .more_places import dims_of_places

CASES, MEMBERS, SUMS = "xrecal_case", "xrecal_member", "xrecal_sums"
"""Names of dimensions inside tasks."""


class NamedMembers(NamedTuple):
    """Weights of models, which add up to one, and offsets of models, over places and ``MODEL``."""

    weights: xr.DataArray
    offsets: xr.DataArray

    def weighted(self, form: Form) -> Form:
        """Return forecasts as weighted ensembles, with the offsets of models subtracted.

        Forecasts and weights must have the same places, in the same order.
        """
        member = form.member_dim
        own = [one.rename({MODEL: member}) for one in self]
        bare = form.loc.variable
        weights, offsets = (one.variable.astype(bare.dtype) for one in own)
        loc = (bare - offsets).transpose(*bare.dims)
        known = form.loc.copy(data=loc.data)
        return replace(form, kind="weighted", loc=known, weights=xr.DataArray(weights))

    def of_models(self, labels: Sequence[Any], given: Sequence[Any]) -> NamedMembers:
        """Return weights and offsets of the models in ``given``, in this order."""
        at = pd.Index(labels).get_indexer(pd.Index(given))
        return NamedMembers(*(one.isel({MODEL: at}) for one in self))

    def inputs(self, pool: Pool | None) -> dict[str, tuple[xr.DataArray, list[Hashable]]]:
        """Return the arrays as inputs of tasks; with windows, all positions get the same values."""
        own: dict[Hashable, int] = {}
        if pool is not None and pool.windows:
            own = dict(zip(pool.dims, pool.sizes, strict=True))
        core = [*own, MODEL]
        lacking = [{d: n for d, n in own.items() if d not in one.dims} for one in self]
        wide = (one.expand_dims(more) for one, more in zip(self, lacking, strict=True))
        return {
            name: (one.transpose(..., *core), core)
            for name, one in zip(MODEL_PARTS, wide, strict=True)
        }


def labels_of_models(form: Form, name: str) -> list[Any]:
    """Return the labels of the members of a forecast; each label must be unique.

    Raises
    ------
    ValueError
        If the forecast is not a plain ensemble, or its members have no unique labels.
    """
    member = form.member_dim
    if form.kind != "ensemble":
        raise ValueError(
            f"exchangeable=False weighs the members of plain ensembles, but {name} is a forecast "
            f"of the form {form.kind!r}; leave exchangeable out"
        )
    if member not in form.loc.indexes:
        raise ValueError(
            f"exchangeable=False needs the names of the models along {member!r} of {name}; use "
            f"{name}.assign_coords({member}=[...])"
        )
    index = form.loc.indexes[member]
    if not index.is_unique or index.hasnans:
        raise ValueError(
            f"exchangeable=False needs a different name for each model along {member!r} of {name}, "
            f"got {index.tolist()!s:.200}; use {name}.assign_coords({member}=[...])"
        )
    return [str(one) if isinstance(one, str) else one for one in index.tolist()]


def learn_members(pairs: Pairs, method: Method, choose: Choose) -> NamedMembers | None:
    """Return weights and offsets of the models of a hindcast; None if members are exchangeable.

    Places that choose together get the same weights. Pooled positions get the same weights and the
    same offsets. The result is lazy if an input is lazy.
    """
    if method.exchangeable:
        return None
    labels = labels_to_learn(pairs, method)
    form, pooled = pairs.form, () if pairs.pool is None else pairs.pool.dims
    places = [d for d in form.dims if d != pairs.dim]
    together = list(dict.fromkeys([*pooled, *read_choose(choose, places)]))
    core = _arrays(pairs, [*together, *(d for d in places if d not in together)])
    n_dates = core["members"][0].sizes[CASES]
    sizes: dict[Hashable, int] = {MODEL: len(labels)}
    what = work_on("the weights of models", form.name)
    out: Outputs = dict.fromkeys(("bias", "error"), (sizes, np.float64))
    biases = run(_biases, {"cases": core}, out, what=what)
    sums = _sums(core, biases["bias"], together, len(labels), what)
    weights = run(
        _WeightTask(n_dates, len(labels)),
        {"sums": {0: (sums, [SUMS])}},
        {"weights": (sizes, np.float64)},
        what=what,
    )["weights"]
    last = [*pooled, MODEL]
    offsets = run(
        _OffsetTask(n_dates, len(pooled)),
        {
            "biases": {name: (_in_one(one, pooled), last) for name, one in biases.items()},
            "weights": {0: (weights, [MODEL])},
        },
        {"offsets": (sizes, np.float64)},
        what=what,
    )["offsets"]
    return NamedMembers(*(one.assign_coords({MODEL: labels}) for one in (weights, offsets)))


def labels_to_learn(pairs: Pairs, method: Method) -> list[Any]:
    """Return the names of the models of a hindcast.

    Raises ValueError if a fit cannot learn weights of these models.
    """
    if method.variables is not None:
        raise ValueError(
            "exchangeable=False is for variables that are neither recalibrated jointly nor "
            "circular; leave jointly and period out, or leave exchangeable out"
        )
    form = pairs.form
    for array in (form.loc, pairs.observations):
        name = "hindcast" if array is form.loc else "observations"
        require_one_chunk(array, (pairs.dim, form.member_dim), name=name)
    return labels_of_models(form, "hindcast")


Core: TypeAlias = dict[Any, tuple[Array, Sequence[Hashable]]]
"""Arrays by name, each with its core dimensions."""


def _arrays(pairs: Pairs, places: Sequence[Hashable]) -> Core:
    """Return members and observations for tasks, with their places in the given order."""
    names = {pairs.dim: CASES, pairs.form.member_dim: MEMBERS}
    members, observed = (
        array.drop_vars(list(array.coords))
        .rename({d: n for d, n in names.items() if d in array.dims})
        .transpose(*(d for d in places if d in array.dims), ...)
        for array in (pairs.form.loc, pairs.observations)
    )
    return {"members": (members, (CASES, MEMBERS)), "observed": (observed, (CASES,))}


def _sums(
    core: Core, bias: xr.DataArray, together: Sequence[Hashable], n_members: int, what: str
) -> xr.DataArray:
    """Return the sum of the products of errors, for each pair of models.

    The sum is over cases, and over places that choose together.
    """
    from xrecal.arrays.baselines.named_members import sums_size

    alone = [d for d in core["members"][0].dims if d not in (*together, CASES, MEMBERS)]
    given: Inputs = {
        "cases": {name: (array, (EACH, *own)) for name, (array, own) in core.items()},
        "learned": {"bias": (bias, (EACH, MODEL))},
    }
    out: dict[Hashable, int] = {SUMS: sums_size(n_members)}
    return total(_SumTask(), given, out, over=together, what=what, each=alone)


def _in_one(array: xr.DataArray, dims: Sequence[Hashable]) -> xr.DataArray:
    """Return an array with one Dask chunk along ``dims``; the array must be small."""
    return array.chunk(dict.fromkeys(dims, -1)) if array.chunks is not None and dims else array


def weigh(pairs: Pairs, members: NamedMembers | None) -> Pairs:
    """Return cases with weighted ensembles; Dask reads a lazy hindcast once more for this."""
    if members is None:
        return pairs
    form = pairs.form
    before = [one.data for one in members]
    read = inputs_after({"cases": {"loc": (form.loc, [])}}, before)["cases"]["loc"][0]
    assert isinstance(read, xr.DataArray)
    return replace(pairs, form=members.weighted(replace(form, loc=read)))


def weighed(
    pairs: Pairs, pool: Pool | None, method: Method, choose: Choose, *, in_splits: bool
) -> tuple[Pairs, NamedMembers | None]:
    """Return cases for a method, and the weights of models.

    With ``in_splits``, the cases stay unchanged, because each split learns its own weights later.
    """
    if in_splits:
        if not method.exchangeable:
            labels_to_learn(pairs, method)
        return pairs, None
    members = learn_members(replace(pairs, pool=pool), method, choose)
    return weigh(pairs, members), members


def with_members(state: xr.Dataset, members: NamedMembers | None) -> xr.Dataset:
    """Add the weights and offsets of models at each location to a state."""
    if members is None:
        return state
    status = state["status"]
    known = {}
    for name, one in zip(MODEL_PARTS, members, strict=True):
        wide = one.broadcast_like(status.drop_vars(list(status.coords)))
        cut = {d: n for d, n in status.chunksizes.items() if d in wide.dims}
        wide = wide.chunk(cut) if one.chunks is not None or cut else wide
        known[name] = wide.transpose(*status.dims, MODEL)
    known[MODEL_PARTS[0]].attrs = {"long_name": "weights of the models", "units": "1"}
    known[MODEL_PARTS[1]].attrs = {"long_name": "offsets of the models from their weighted mean"}
    return state.assign(known)


def matched_members(form: Form, fitted: FittedVariable, name: str) -> Form:
    """Return the forecast as a weighted ensemble, with models matched by their labels.

    The forecast must have the places of the fits, in the same order.

    Raises
    ------
    ValueError
        If the forecast has no labels of models, or has a model that was not in the hindcast.
    """
    if MODEL not in fitted.state.dims:
        return form
    labels, known = labels_of_models(form, name), fitted.state[MODEL].to_numpy().tolist()
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(
            f"{name} has the model {unknown[0]!r} along {form.member_dim!r}, but the model was "
            f"fitted on {known}; leave it out, {name}.drop_sel({form.member_dim}={unknown!r}), or "
            "fit again with it"
        )
    places = form.loc.dims
    parts = (fitted.state[one].reset_coords(drop=True) for one in MODEL_PARTS)
    pooled = dims_of_places(fitted) if fitted.method.has_shared else ()
    alike = {d: 0 for d in fitted.locations if d in pooled or d not in places}
    own = (part.isel(alike, drop=True) for part in parts)
    return NamedMembers(*own).of_models(known, labels).weighted(form)


def weigh_cases(forecasts: Forecasts, members: Named) -> Forecasts:
    """Apply weights and offsets (B, m) of m models in B fits to ensembles (B t, n, m)."""
    from xrecal.arrays.baselines.named_members import as_weighted

    weights, offsets = (members[name] for name in MODEL_PARTS)
    each = len(forecasts.loc) // max(len(weights), 1)
    return as_weighted(forecasts, np.repeat(weights, each, 0), np.repeat(offsets, each, 0))


def _biases(cases: Named) -> dict[str, FloatArray]:
    from xrecal.arrays.baselines.named_members import member_biases

    return dict(zip(("bias", "error"), member_biases(**_without_absurd(cases)), strict=True))


def _without_absurd(cases: Named) -> dict[str, FloatArray]:
    """Replace absurdly large members (L, n, m) and observations (L, n) by NaN."""
    from xrecal.arrays.distributions.missing import absurd_among

    arrays = cases["members"], cases["observed"]
    masks = absurd_among(*arrays)
    members, observed = (np.where(mask, np.nan, a) for mask, a in zip(masks, arrays, strict=True))
    return {"members": members, "observations": observed}


class _SumTask:
    """Task that sums the products of errors of each pair of models over L places.

    It takes arrays (L, T, ...) and returns sums (1, T, ...). T is the number of groups of places
    that choose together; each group has its own sums.
    """

    def __call__(self, cases: Named, learned: Named) -> dict[Any, Any]:
        from xrecal.arrays.baselines.named_members import error_sums

        sums = [
            error_sums(
                **_without_absurd({name: a[:, one] for name, a in cases.items()}),
                bias=learned["bias"][:, one],
            )
            for one in range(learned["bias"].shape[1])
        ]
        return {None: np.array(sums)[np.newaxis]}


@dataclass(frozen=True)
class _WeightTask:
    """Task that computes weights of models from the sums of :class:`_SumTask`."""

    n_dates: int
    n_members: int

    def __call__(self, sums: Named) -> dict[str, FloatArray]:
        from xrecal.arrays.baselines.named_members import member_weights

        found = [member_weights(one, self.n_dates, self.n_members) for one in sums[0]]
        return {"weights": np.array(found).reshape(-1, self.n_members)}


@dataclass(frozen=True)
class _OffsetTask:
    """Task that computes offsets (L, m) of models.

    It takes biases (L, pooled dimensions, m) and weights (L, m).
    """

    n_dates: int
    n_pooled: int

    def __call__(self, biases: Named, weights: Named) -> dict[str, FloatArray]:
        from xrecal.arrays.baselines.named_members import mean_of_known, offsets_from

        bias, error = (biases[name] for name in ("bias", "error"))
        if self.n_pooled:
            n_members = bias.shape[-1]
            bias, error = (
                mean_of_known(np.swapaxes(a.reshape(len(a), -1, n_members), 1, 2))
                for a in (bias, error)
            )
        offsets = offsets_from(bias, error, self.n_dates)
        return {"offsets": offsets - (offsets * weights[0]).sum(-1, keepdims=True)}
