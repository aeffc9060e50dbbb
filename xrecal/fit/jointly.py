"""Variables that one fit recalibrates jointly, as vectors, and variables on a circle."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import xarray as xr

from xrecal.inputs.circular import PERIOD, read_period
from xrecal.inputs.dims import require_equal_labels
from xrecal.inputs.forms import Form
from xrecal.inputs.pairing import Pairs
from xrecal.methods import CKME, Method, VectorCKME

Period: TypeAlias = float | Mapping[Hashable, float] | None
"""Period of the only variable, or periods of some variables by name."""


Paired: TypeAlias = Mapping[Hashable, tuple[Form, xr.DataArray]]
"""Forecasts and observations of variables by name."""


def read_groups(
    paired: Paired, method: Method, jointly: Sequence[Hashable] | None, period: Period
) -> list[tuple[tuple[Hashable, ...], Method]]:
    """Return groups with their methods; a group is one variable, or variables of a joint fit.

    The method of a group compares vectors if the group has several variables or a circular
    variable.

    Raises
    ------
    ValueError
        If ``jointly`` does not name several of the variables, if ``period`` is not a positive
        number or names an unknown variable, or if the method or a forecast does not support
        vectors.
    """
    periods = _periods(paired, period)
    joint = () if jointly is None else read_joint_names(paired, jointly, name="hindcast")
    groups = [(name,) for name in paired if name not in joint] + ([joint] if joint else [])
    methods: list[Method] = []
    for names in groups:
        if len(names) == 1 and periods[names[0]] is None:
            methods.append(method)
            continue
        for name in names:
            require_members(name, paired[name][0], alone=len(names) == 1, name="hindcast")
        methods.append(_of_vectors(method, {name: paired[name][0] for name in names}, periods))
    return list(zip(groups, methods, strict=True))


def _of_vectors(
    method: Method, forms: Mapping[Hashable, Form], periods: Mapping[Hashable, float | None]
) -> VectorCKME:
    """Return the method for vectors of these variables.

    Raises ValueError if the method does not support vectors.
    """
    names, own = tuple(map(str, forms)), tuple(periods[name] for name in forms)
    if not method.joins_variables:
        why = "jointly" if len(names) > 1 else f"on a circle of period {own[0]:g}"
        raise ValueError(
            f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} recalibrated {why}, "
            f"which {type(method).__name__} cannot do; take xrecal.CKME()"
        )
    units = tuple(form.loc.attrs.get("units") for form in forms.values())
    return VectorCKME(cast("CKME", method), names, own, units)


def read_joint_names(
    paired: Mapping[Hashable, object], jointly: Sequence[Hashable], *, name: str
) -> tuple[Hashable, ...]:
    """Return the names in ``jointly``, which must be two or more variables of the forecasts.

    ``name`` is the name of the forecasts in messages. Raises ValueError for other names, and
    TypeError for other types.
    """
    if not isinstance(jointly, (str, tuple, list)):
        raise TypeError(
            f"jointly must be a tuple of variables, such as ('u', 'v'), got {jointly!r:.60}"
        )
    names = (jointly,) if isinstance(jointly, str) else tuple(jointly)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"jointly must name two or more different variables, got {jointly!r}; the {name} "
            f"has {list(paired)}"
        )
    unknown = [variable for variable in names if variable not in paired]
    if unknown:
        raise ValueError(
            f"jointly names {unknown[0]!r}, but the forecast variables of the {name} are "
            f"{list(paired)}"
        )
    return names


def _periods(paired: Paired, period: Period) -> dict[Hashable, float | None]:
    """Return the period of each variable: from the user, or else from the variable's attribute."""
    given = period if isinstance(period, Mapping) else {}
    unknown = [name for name in given if name not in paired]
    if unknown:
        raise ValueError(
            f"period names {unknown[0]!r}, but the forecast variables of the hindcast are "
            f"{list(paired)}"
        )
    if period is not None and not isinstance(period, Mapping):
        if len(paired) > 1:
            raise ValueError(
                f"period={period!r} is for one variable, but the hindcast has {list(paired)}; name "
                f"the circular ones: period={{{next(iter(paired))!r}: {period!r}}}"
            )
        given = dict.fromkeys(paired, period)
    own = {name: form.loc.attrs.get(PERIOD) for name, (form, _) in paired.items()} | {**given}
    return {
        name: None if value is None else read_period(value, name) for name, value in own.items()
    }


def require_members(variable: Hashable, form: Form, *, alone: bool, name: str) -> None:
    """Raise ValueError unless a forecast has members, which a fit can compare as vectors."""
    if form.kind == "ensemble" or (alone and form.kind == "weighted"):
        return
    how = "on a circle" if alone else "jointly"
    raise ValueError(
        f"{variable!r} of {name} has the form {form.kind!r}, but only members can be recalibrated "
        f"{how}; take plain ensembles"
    )


def common_cases(paired: Paired) -> dict[Hashable, tuple[Form, xr.DataArray]]:
    """Reduce the observations of several variables to the labels that all these variables have.

    The function compares the labels of the observations along each of their dimensions. It does not
    change forecasts.
    """
    common = dict(paired)
    observed = [observations for _, observations in common.values()]
    for d in observed[0].dims:
        indexes = [array.indexes[d] for array in observed if d in array.indexes]
        if len(indexes) == len(observed) and not all(i.equals(indexes[0]) for i in indexes):
            shared = indexes[0]
            for index in indexes[1:]:
                shared = shared[shared.isin(index)]
            common = {
                name: (form, o.isel({d: o.indexes[d].isin(shared)}))
                for name, (form, o) in common.items()
            }
    return common


def as_one(pairs: Mapping[Hashable, Pairs]) -> Pairs:
    """Return the cases of the first variable, with the data of the other variables added.

    Raises
    ------
    ValueError
        If dimensions, labels or floating types differ between variables.
    """
    first, *others = pairs.values()
    form = with_vector({name: one.form for name, one in pairs.items()}, next(iter(pairs)))
    return replace(
        first,
        form=form,
        partners=tuple(other.observations for other in others),
        n_matched=min(one.n_matched for one in pairs.values()),
    )


def with_vector(forms: Mapping[Hashable, Form], name: Hashable) -> Form:
    """Return the forecast of one variable, with the members of all variables as vectors."""
    (first, one), *others = forms.items()
    for other, form in others:
        _require_alike(first, one, other, form)
    return replace(forms[name], vector=tuple(form.loc for form in forms.values()))


def _require_alike(name: Hashable, one: Form, other: Hashable, form: Form) -> None:
    differ = sorted(map(str, {*one.loc.dims} ^ {*form.loc.dims}))
    if differ:
        raise ValueError(
            f"{name!r} and {other!r} belong together, but only one of them has the "
            f"dimensions {differ}; select or broadcast"
        )
    if one.loc.dtype != form.loc.dtype:
        raise ValueError(
            f"{name!r} and {other!r} belong together, but have the types "
            f"{one.loc.dtype} and {form.loc.dtype}; use .astype({str(one.loc.dtype)!r})"
        )
    for d in one.loc.dims:
        require_equal_labels(one.loc, form.loc, d, names=(repr(name), repr(other)))
