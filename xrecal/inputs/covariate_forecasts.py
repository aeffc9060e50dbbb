"""Replace covariates that are forecasts by their mean and the logarithm of their spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.from_parts import distribution_from
from xrecal.chunks.blockwise import require_one_chunk
from xrecal.chunks.run import Named, run

from .circular import PERIOD
from .forms import Labelled, read_forms, task_parts
from .missing import MEMBERS
from .roles import Roles

SPREAD = "_spread"
"""Ending of the name of a covariate that is the logarithm of the spread of a forecast."""

ROUNDING = 1e-12
"""A spread of at most this share of the absolute mean counts as 0: it comes from rounding of equal
members."""

Given = Mapping[str, Labelled] | None
"""The user's covariates of ``fit`` and ``apply``, by name: numbers, or forecasts of any form."""


def names_of_given(given: Given) -> dict[str, tuple[str, ...]]:
    """Return the names of each covariate of the user: one, or two if the covariate is a forecast.

    The two names are those of the mean and of the spread of the forecast.

    Raises
    ------
    TypeError
        If ``given`` is not a mapping.
    ValueError
        If two covariates have the same name.
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"covariates must be a dict {{name: DataArray}}, got {type(given).__name__}"
        )
    names: dict[str, tuple[str, ...]] = {
        name: (name, f"{name}{SPREAD}") if _is_forecast(value) else (name,)
        for name, value in (given or {}).items()
    }
    twice = [spread for _, *own in names.values() for spread in own if spread in names]
    if twice:
        raise ValueError(
            f"two covariates are called {twice[0]!r}: one that you pass, and the spread of the "
            f"covariate {twice[0].removesuffix(SPREAD)!r}, which has members; rename one"
        )
    return names


def _is_forecast(value: object) -> bool:
    """Return whether a covariate has members, quantiles or the parts of a distribution."""
    array = isinstance(value, xr.DataArray) and bool(Roles(value).members)
    return array or isinstance(value, xr.Dataset)


def without_members(given: Given) -> dict[str, xr.DataArray]:
    """Return covariates with one number per case; each covariate that is a forecast becomes two.

    The two are the mean of the forecast, and the logarithm of its spread.

    Raises
    ------
    ValueError
        If a covariate holds forecasts of several variables, or of a circular variable.
    """
    found: dict[str, xr.DataArray] = {}
    names = names_of_given(given)
    for name, value in (given or {}).items():
        single = {name: cast("xr.DataArray", value)}
        found |= _moments(name, value) if len(names[name]) > 1 else single
    return found


def _moments(name: str, value: Labelled) -> dict[str, xr.DataArray]:
    """Return the mean and the log spread of a forecast; the log of a spread of zero is NaN."""
    what = f"the covariate {name!r}"
    forms = read_forms(value, name=what)
    if len(forms) > 1:
        raise ValueError(f"{what} holds the forecasts {list(forms)}; pass each as a covariate")
    form = next(iter(forms.values())).broadcast()
    whole = form.roles.obj
    if "period" in whole.attrs or PERIOD in whole.attrs:
        raise ValueError(
            f"{what} is a forecast of a circular variable; give a direction for each case, such as "
            "a mean direction, or forecasts of the sine and the cosine"
        )
    for part in form.parts.values():
        require_one_chunk(part, (form.member_dim,), name=what)
    parts = task_parts(form, form.dims, {form.member_dim: MEMBERS})
    made = run(
        _MomentsTask(form.kind == "censored"),
        {"forecasts": {part: (array, (MEMBERS,)) for part, array in parts.items()}},
        {"mean": ({}, np.float64), "spread": ({}, np.float64)},
        what=f"the mean of {what}",
    )
    mean, spread = (whole.copy(data=a.transpose(*whole.dims).data) for a in made.values())
    kept = {key: value.attrs[key] for key in ("known",) if key in value.attrs}
    spread.attrs = {key: whole.attrs[key] for key in ("known",) if key in whole.attrs}
    return {
        name: mean.assign_attrs(kept),
        f"{name}{SPREAD}": spread.assign_attrs(long_name="logarithm of the spread", **kept),
    }


@dataclass(frozen=True)
class _MomentsTask:
    """Task that computes mean and log standard deviation (L,) of L forecasts with m members."""

    censored: bool

    def __call__(self, forecasts: Named) -> Named:
        distribution = distribution_from(forecasts, censored=self.censored)
        mean, spread = distribution.mean(), distribution.std()
        known = np.where(spread > ROUNDING * abs(mean), spread, np.nan)
        return {"mean": mean, "spread": np.log(known)}
