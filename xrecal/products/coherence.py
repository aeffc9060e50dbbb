"""Coherent members: consistent across locations, lead times and variables of a case.

===========  ================================================================  ====================
``ecc``      calibrated quantiles in the order of the raw members              :func:`like_raw`
``schaake``  calibrated quantiles in the order of observations at past dates   :func:`like_past`
``dates``    observations of past dates, drawn for whole fields                ``coherence_dates``
===========  ================================================================  ====================

``ecc`` and ``schaake`` only change the order of the members of each location. So distributions do
not change, and a task needs no data of other locations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution, equal_mass_levels
from xrecal.inputs.forms import Form, Labelled, numbers_of
from xrecal.typing import FloatArray, IntArray

from .coherence_dates import Drawn, draw_dates, of_dates
from .recalibrated import Recalibrated
from .schaake_dates import Template, past_observations, require_own_cases, template_slots
from .source import Sources, check_count, reduce

Coherence: TypeAlias = Literal["ecc", "schaake", "dates"]

RAW = "xrecal_raw_member"
"""Dimension of raw members in a task, the computation for one chunk. Members of results have
another dimension."""

_ORDERS = {
    "ecc": "in the order of the raw members (ensemble copula coupling)",
    "schaake": "in the order of past observations (Schaake shuffle)",
    "dates": "each the observations of one past date",
}


def members_like(
    distribution: Distribution,
    cases: IntArray,
    template: FloatArray,
    *,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Put the n quantiles of each forecast in the order of n other values, the template."""
    from xrecal.arrays.distributions.members import reordered_members

    return (reordered_members(distribution.quantile(levels), template, seed, cases),)


def members_like_past(
    distribution: Distribution,
    cases: IntArray,
    slots: IntArray,
    observations: FloatArray,
    *,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Put the n quantiles of each forecast in the order of the past observations of n cases.

    ``slots`` are the positions of these cases among all past cases.
    """
    template = np.take_along_axis(observations, slots, axis=-1)
    return members_like(distribution, cases, template, levels=levels, seed=seed)


def check_coherence(coherence: Coherence, template: Template) -> None:
    """Raise ValueError for an unknown coherence, or for a template that it does not use."""
    if coherence not in get_args(Coherence):
        raise ValueError(
            f"coherence is {coherence!r}; give one of {list(get_args(Coherence))}, or None for "
            "a random order of the members at each location"
        )
    if template is not None and coherence != "schaake":
        raise ValueError(
            f"template names the dates of coherence='schaake', but coherence is {coherence!r}; "
            "leave template out"
        )


def coherent_members(
    sources: Sources[Recalibrated],
    n: int | None,
    coherence: Coherence,
    template: Template,
    seed: int,
) -> Labelled:
    """Coherent members of recalibrated forecasts; see :meth:`Recalibrator.members`."""
    if coherence != "ecc":
        _require_one_member_dim(sources.variables)
    size = check_count(_count(n, coherence, template, sources.variables), seed)
    dates = draw_dates(sources.variables, size, seed) if coherence == "dates" else None

    def one(source: Recalibrated) -> xr.DataArray:
        if dates is not None:
            result = of_dates(source, dates)
        elif coherence == "ecc":
            result = like_raw(source, seed)
        else:
            result = like_past(source, size, template, seed)
        labels = source.form.labels_of_members(size)
        return result.assign_coords(labels).assign_attrs(source.attrs)

    line = f"{size} equally likely members, {_ORDERS[coherence]}, seed {seed}"
    return sources.product(one, f"{line}, after recalibration by {sources.method}")


def like_raw(source: Recalibrated, seed: int) -> xr.DataArray:
    """Quantiles of recalibrated forecasts in the order of the raw members at each place."""
    form = source.form
    n = form.loc.sizes[form.member_dim]
    raw = form.loc.drop_vars([c for c, v in form.loc.coords.items() if form.member_dim in v.dims])
    rule = partial(members_like, levels=equal_mass_levels(n), seed=seed)
    extras = [numbers_of(form, source.dim)[0], raw.rename({form.member_dim: RAW})]
    return reduce(source, rule, {form.member_dim_of_results: n}, extras)


def like_past(source: Recalibrated, n: int, template: Template, seed: int) -> xr.DataArray:
    """Quantiles of recalibrated forecasts in the order of observations at template dates."""
    form, fitted, member = source.form, source.fitted, source.form.member_dim_of_results
    require_own_cases(fitted, "schaake")
    slots = template_slots(template, n, form, fitted)
    rule = partial(members_like_past, levels=equal_mass_levels(n), seed=seed)
    extras = [numbers_of(form, source.dim)[0], slots, past_observations(fitted)]
    result = reduce(source, rule, {member: n}, extras)
    return result.assign_coords(Drawn(slots, fitted).labels(member))


def _count(
    n: int | None,
    coherence: Coherence,
    template: Template,
    variables: Mapping[Hashable, Recalibrated],
) -> int:
    """Number of members: ``n``, or the number of raw members or template dates."""
    if coherence == "ecc":
        for name, source in variables.items():
            size = _raw_size(name, source.form)
            if n is not None and n != size:
                raise ValueError(
                    f"coherence='ecc' makes one member from each raw member: "
                    f"{_named(name)} has {size} members, but n={n}; leave n out, or take "
                    "coherence='schaake', which allows any number"
                )
        return size
    if template is not None:
        if np.ndim(template) != 1 or not len(template):
            raise ValueError(
                "template must list labels of the calibration cases, one for each member, got "
                f"{template!r:.60}"
            )
        if n is not None and n != len(template):
            raise ValueError(
                f"template has {len(template)} dates, one for each member, but n={n}; leave n out"
            )
        return len(template)
    if n is None:
        raise ValueError(f"coherence={coherence!r} needs the number of members: n=50")
    return n


def _require_one_member_dim(variables: Mapping[Hashable, Recalibrated]) -> None:
    """Raise ValueError unless the results of all variables have the same member dimension."""
    (first, member), *others = (
        (name, source.form.member_dim_of_results) for name, source in variables.items()
    )
    for name, dim in others:
        if dim != member:
            raise ValueError(
                f"members of {name!r} are along {dim!r}, those of {first!r} along {member!r}; "
                f"rename one: forecast[{name!r}].rename({dim}={member!r})"
            )


def _raw_size(name: Hashable, form: Form) -> int:
    if form.kind != "ensemble":
        raise ValueError(
            f"coherence='ecc' takes the order of raw members, but {_named(name)} is a forecast of "
            f"the form {form.kind!r}, which has no members; take coherence='schaake' or 'dates'"
        )
    return int(form.loc.sizes[form.member_dim])


def _named(name: Hashable) -> str:
    return "the forecast" if name is None else repr(name)
