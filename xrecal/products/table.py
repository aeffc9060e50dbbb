"""Table of products, with the methods of forecasts and of models that compute them.

To add a product, write its function, and add a line to ``PRODUCTS`` and to both classes.
"""

from collections.abc import Callable
from typing import Any

from xrecal.methods.doors import Accessor, door, verb

from .categories import categories, model_categories
from .members import members, model_members
from .of_model import of_model
from .probabilities import cdf, exceedance
from .statistics import mean, quantile, std

PRODUCTS: dict[str, Callable[..., Any]] = {
    "mean": mean,
    "std": std,
    "quantile": quantile,
    "exceedance": exceedance,
    "cdf": cdf,
    "members": members,
}
"""Products of raw, recalibrated and held-out distributions."""


class ProductDoors(Accessor):
    """Products as methods of forecasts."""

    mean = door(mean)
    std = door(std)
    quantile = door(quantile)
    exceedance = door(exceedance)
    cdf = door(cdf)
    categories = door(categories)
    members = door(members)


class ProductVerbs:
    """Products as methods of a model."""

    mean = of_model(mean)
    std = of_model(std)
    quantile = of_model(quantile)
    exceedance = of_model(exceedance)
    cdf = of_model(cdf)
    categories = verb(model_categories, "categories")
    members = verb(model_members, "members")
