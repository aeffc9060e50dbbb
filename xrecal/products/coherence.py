"""Members that belong together: across locations, lead times and variables of a case.

===========  ================================================================  ====================
``ecc``      calibrated quantiles in the order of the raw members              :func:`like_raw`
``schaake``  calibrated quantiles in the order of observations at past dates   :func:`like_past`
``dates``    observations of past dates that are drawn for a whole field       ``coherence_dates``
===========  ================================================================  ====================

The first two rearrange what each location has, so their distributions stay; tasks need nothing from
other locations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import xarray as xr

from xrecal.fit.fitted import Fitted, FittedVariable
from xrecal.fit.select_fits import match_variables
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import history_line
from xrecal.methods.base import equal_mass_levels

from .coherence_dates import Drawn, draw_dates, of_dates
from .predict import issued_attributes, map_variables, run_on_forecasts
from .products import check_count, numbers_of
from .reductions import members_like, members_like_past
from .schaake_dates import Template, past_observations, require_own_cases, template_slots

Coherence: TypeAlias = Literal["ecc", "schaake", "dates"]

RAW = "raw_member"
"""Dimension of the raw members inside a task, where results have theirs."""

_TOLD = {
    "ecc": "in the order of the raw members (ensemble copula coupling)",
    "schaake": "in the order of past observations (Schaake shuffle)",
    "dates": "each the observations of one past date",
}


def coherent_members(
    model: Fitted,
    forecast: Labelled,
    n: int | None,
    coherence: Coherence,
    template: Template = None,
    seed: int = 0,
    covariates: Given = None,
) -> Labelled:
    """Members of recalibrated forecasts that belong together; see :meth:`Recalibrator.members`."""
    if coherence not in get_args(Coherence):
        raise ValueError(
            f"coherence is {coherence!r}; give one of {list(get_args(Coherence))}, or None for "
            "members in an order of their own at each location"
        )
    if template is not None and coherence != "schaake":
        raise ValueError(
            f"template names the dates of coherence='schaake', but coherence is {coherence!r}; "
            "leave it out"
        )
    matched = match_variables(model, forecast)
    if coherence != "ecc":
        _require_one_member_dim(matched)
    size = check_count(_count(n, coherence, template, matched), seed)
    dates = draw_dates(matched, size, seed, covariates) if coherence == "dates" else None

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        if dates is not None:
            found = of_dates(form, fitted, dates, covariates)
        elif coherence == "ecc":
            found = like_raw(form, fitted, seed, covariates)
        else:
            found = like_past(form, fitted, size, template, seed, covariates)
        return found.assign_attrs(issued_attributes(form, fitted))

    result = map_variables(model, forecast, one, matched)
    line = f"{size} equally likely members, {_TOLD[coherence]}, seed {seed}"
    line += f", after recalibration by {model.method}"
    return result.assign_attrs(history_line(result.attrs, line))


def like_raw(
    form: Form, fitted: FittedVariable, seed: int, covariates: Given = None
) -> xr.DataArray:
    """Quantiles of recalibrated forecasts in the order of the raw members at each place."""
    n = form.loc.sizes[form.member_dim]
    raw = form.loc.drop_vars([c for c, v in form.loc.coords.items() if form.member_dim in v.dims])
    extras = [numbers_of(form, fitted.dim)[0], raw.rename({form.member_dim: RAW})]
    return _members(form, fitted, members_like, n, seed, extras, covariates)


def like_past(
    form: Form,
    fitted: FittedVariable,
    n: int,
    template: Template,
    seed: int,
    covariates: Given = None,
) -> xr.DataArray:
    """Quantiles of recalibrated forecasts in the order of observations at template dates."""
    require_own_cases(fitted, "schaake")
    slots = template_slots(template, n, form, fitted)
    extras = [numbers_of(form, fitted.dim)[0], slots, past_observations(fitted)]
    found = _members(form, fitted, members_like_past, n, seed, extras, covariates)
    return found.assign_coords(Drawn(slots, fitted).labels(form.member_dim_of_results))


def _members(
    form: Form,
    fitted: FittedVariable,
    rule: Any,
    n: int,
    seed: int,
    extras: Sequence[xr.DataArray],
    covariates: Given,
) -> xr.DataArray:
    member = form.member_dim_of_results
    (values,) = run_on_forecasts(
        form,
        fitted,
        partial(rule, levels=equal_mass_levels(n), seed=seed),
        [(member,)],
        {member: n},
        extras=extras,
        covariates=covariates,
    )
    return values


def _count(
    n: int | None,
    coherence: Coherence,
    template: Template,
    matched: Mapping[Hashable, tuple[Form, FittedVariable]],
) -> int:
    """Number of members: as many as there are raw ones or template dates, where these count."""
    if coherence == "ecc":
        for name, (form, _) in matched.items():
            size = _raw_size(name, form)
            if n is not None and n != size:
                raise ValueError(
                    f"coherence='ecc' makes one member of each raw one, and "
                    f"{_told(name)} has {size}, but n={n}; leave n out, or take "
                    "coherence='schaake', whose number is free"
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


def _require_one_member_dim(matched: Mapping[Hashable, tuple[Form, FittedVariable]]) -> None:
    """Raise ValueError unless the dates of members can stand along one dimension."""
    (first, member), *others = (
        (name, form.member_dim_of_results) for name, (form, _) in matched.items()
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
            f"coherence='ecc' takes the order of raw members, but {_told(name)} is a forecast of "
            f"the form {form.kind!r}, which has none; take coherence='schaake' or 'dates'"
        )
    return int(form.loc.sizes[form.member_dim])


def _told(name: Hashable) -> str:
    return "the forecast" if name is None else repr(name)
