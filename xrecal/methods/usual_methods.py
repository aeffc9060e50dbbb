"""Default methods of a linear pool."""

from __future__ import annotations

from dataclasses import replace

from xrecal.inputs.covariates import SEASON

from .base import Bounds, Method
from .ckme import CKME
from .ckme_choices import Support
from .climatology import Climatology
from .covariates import may_break
from .forest import Forest
from .idr import IDR
from .raw import Raw


def usual_methods(
    names: tuple[str, ...] | None, bounds: Bounds, *, forest: bool
) -> tuple[Method, ...]:
    """Return the default methods of a pool with the covariates ``names`` (None: no covariates)."""
    ckme = CKME(support="regression", bounds=bounds)
    others = tuple(name for name in names or () if name != SEASON)
    plain = () if names is None else (replace(ckme, condition_on=others or None),)
    support: Support = "standardised"
    if any(map(may_break, names or ())):
        support = "standardised_both"
    of_spread = replace(ckme, support=support, bandwidth="cv", condition_on=names)
    given = ckme if names is None else of_spread
    shapes = replace(given, support=support, compare="shapes")
    forests = (Forest(bounds, names),) if forest else ()
    return (given, shapes, *plain, *forests, IDR(condition_on=names), Climatology(), Raw())
