"""The dimension of the cases of forecasts, where no rule recognises it."""

from __future__ import annotations

from collections.abc import Hashable

from .dims import Dims, listed
from .forms import Form
from .metadata import OF_CASES
from .roles import CALIBRATION, LEAD, candidates


def with_named_cases(form: Form, dim: Dims) -> Form:
    """The forecast, which names the dimension of its cases where ``dim`` does and no rule."""
    usual = candidates(form.broadcast().loc, CALIBRATION)
    if dim is None or dim is ... or len(usual) == 1:
        return form
    named = [d for d in listed(dim) if d in (usual or form.dims)]
    if len(named) > 1:
        named = [d for d in named if d not in candidates(form.broadcast().loc, LEAD)]
    if len(named) != 1:
        return form
    mark = {OF_CASES: str(named[0])}
    return form.with_parts({name: part.assign_attrs(mark) for name, part in form.parts.items()})


def of_cases(form: Form, dim: Hashable | None) -> dict[str, str]:
    """Attribute that names the dimension of the cases, where no rule recognises it."""
    loc = form.broadcast().loc
    if dim not in loc.dims or candidates(loc, CALIBRATION) == [dim]:
        return {}
    return {OF_CASES: str(dim)}
