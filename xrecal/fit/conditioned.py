"""Covariates of a method: covariates that the user names, or all covariates that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from xrecal.arrays.rows import is_whole
from xrecal.inputs.covariate_forecasts import Given, names_of_given
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import is_method, names_of
from xrecal.methods.call_errors import refuse_settings


def checked(
    method: Method,
    condition_on: str | tuple[str, ...] | None,
    min_samples: int,
    call: str,
    covariates: Given = None,
) -> Method:
    """Return the method with the covariates that the user's call names or gives.

    Raises
    ------
    TypeError or ValueError
        If the method, the number of cases or the covariates have a wrong type or value.
    """
    if not is_method(method):
        refuse_settings(method, call)
    if not is_whole(min_samples) or min_samples < 2:
        raise ValueError(f"min_samples must be a whole number, at least 2, got {min_samples!r}")
    given = names_in(covariates)
    if condition_on is None and given and not (_is_open(method) or _names_some(method)):
        condition_on = given
    return _widened(_filled(method, condition_on), names_of_given(covariates))


def names_in(given: Given) -> tuple[str, ...]:
    """Return the names of all given covariates.

    A covariate that is a forecast has two names: one for its mean and one for its spread.
    """
    return tuple(name for names in names_of_given(given).values() for name in names)


def _filled(method: Method, condition_on: str | tuple[str, ...] | None) -> Method:
    """Return the method; set ``condition_on`` if this is a field of the method and is None."""
    has_field = any(field.name == "condition_on" for field in fields(method))  # type: ignore[arg-type]
    if condition_on is None or method.condition_on is not None or not has_field:
        return method
    return replace(method, condition_on=condition_on)  # type: ignore[type-var]


def _widened(method: Method, names: Mapping[str, tuple[str, ...]]) -> Method:
    """Return the method with the names of mean and spread of covariates that are forecasts."""
    changes: dict[str, object] = {}
    own = names_of(method.condition_on)
    wide = tuple(dict.fromkeys(n for name in own for n in names.get(name, (name,))))
    if wide != own:
        changes["condition_on"] = wide
    if (methods := getattr(method, "methods", None)) is not None:
        mixed = tuple(_widened(one, names) for one in methods)
        changes |= {} if mixed == methods else {"methods": mixed}
    return replace(method, **changes) if changes else method  # type: ignore[type-var]


def _names_some(method: Method) -> bool:
    """Return whether ``condition_on`` of a method, or of a component of a pool, is not None."""
    return any(one.condition_on is not None for one in (method, *method.mixed))


def _is_open(method: Method) -> bool:
    """Return whether a method is a pool that uses the season if the dates of cases allow this."""
    of_season = getattr(method, "settles_covariates", False)
    return of_season and method.condition_on is None and getattr(method, "methods", None) is None


def settled(
    method: Method, axis: CaseAxis, n_cases: int, given: Sequence[str]
) -> tuple[Method, str | None]:
    """Return the method with its settings for these cases, and a remark; see :meth:`Method.check`.

    If the method is a pool that decides by itself about the season, the pool also conditions on the
    ``given`` covariates.
    """
    is_open = _is_open(method)
    method, note = method.check(axis, n_cases)
    if not is_open or not given:
        return method, note
    wide = replace(method, condition_on=(*names_of(method.condition_on), *given))  # type: ignore[type-var]
    return wide.check(axis, n_cases)[0], note  # check may add a forest


def name_some(
    methods: Iterable[Method], condition_on: str | tuple[str, ...] | None, given: Given
) -> bool:
    """Return whether ``condition_on`` or one of ``methods`` names one of the given covariates."""
    named = {*names_of(condition_on), *(n for method in methods for n in method.covariates)}
    return not named.isdisjoint(names_in(given))


def used_by(method: Method, given: Given, *, named: bool) -> Given:
    """Return the covariates that a checked method conditions on.

    ``named`` is true if some method in the user's call names a given covariate. If not, a pool that
    decides by itself about the season conditions on all given covariates.
    """
    if not named and _is_open(method):
        return given
    names = names_of_given(given)
    return {n: v for n, v in (given or {}).items() if {*names[n]} & {*method.covariates}}
