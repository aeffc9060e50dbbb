"""Groups of outputs by name."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import xrecal

from .cases import (
    MIDDLE,
    Cases,
    Output,
    days,
    direction,
    grid,
    in_form,
    known_network,
    leads,
    leads_with_index,
    network,
    pair,
    rain,
    temperature,
)
from .commands import by_command, mornings, scored_by_command
from .device import lazily, on_device
from .forecasts import (
    compared,
    compared_otherwise,
    drawn,
    explained,
    issued,
    judged,
    judged_together,
    skill,
)
from .methods import METHODS
from .models import (
    briefly,
    fitted,
    followed,
    held_out,
    in_full,
    predicted,
    predicted_products,
    reopened,
    unstored,
    updated,
    with_covariates,
)

BY_ROUNDING = ("ckme_lowrank", "ckme_lowrank.updated")
"""Groups of which no numbers are stored: rounding decides which cases become landmarks."""
ONLY_SUMMED = (
    "on_device", "products.pit", "products.conformal", "products.climatology_window",
    "products.raw", "products.pool.variables", "products.by_sums", "online_pool.of_defaults",
    "windows.pool", "predicted.by_sums", "issued.censored", "judged.weighted", "judged.mixture",
    "judged.censored", "reopened.ckme", "reopened.emos", "reopened.online_pool",
    "reopened.jointly", "reopened.windows", "command.scores", "cycle.ckme",
)  # fmt: skip
"""Groups of which only sums of all bytes are made, so that tests are fast."""


Groups = dict[str, Callable[[], Output]]


def groups() -> Groups:
    """What makes the outputs of each group.

    Without that of a stand-in for devices where there is a library of real ones.
    """
    device: Groups = {} if find_spec("cupy") else {"on_device": on_device}
    return (
        of_states() | of_forms() | of_products() | of_lives() | of_predictions() | of_evidence()
        | of_files() | device
    )  # fmt: skip


def stored_groups() -> Groups:
    """Those of which numbers are stored."""
    return {name: make for name, make in groups().items() if name not in ONLY_SUMMED}


def of_states() -> Groups:
    """Fits with their state, which is stored too, their products, and forecasts as issued."""
    found: Groups = {}
    for name, method in METHODS.items():
        found[name] = lambda m=method: fitted(temperature(), m)
    plain = ("ckme", "ckme_errors", "emos", "idr", "pool_of_two", "pit", "conformal", "climatology")
    for name in plain:
        for form in ("weighted", "quantiles", "gaussian"):
            found[f"{name}.{form}"] = lambda m=METHODS[name], f=form: briefly(
                in_form(temperature(), f), m
            )
    for name in ("ckme", "ckme_auto", "ckme_shapes", "emos", "idr", "pool", "pit"):
        found[f"{name}.rain"] = lambda m=METHODS[name]: fitted(rain(), m)
    for name in ("ckme", "emos", "pool_of_two"):
        found[f"{name}.pooled"] = lambda m=METHODS[name]: briefly(temperature(), m, pool="station")
        found[f"{name}.float32"] = lambda m=METHODS[name]: briefly(
            Cases(*(a.astype("float32") for a in temperature())), m
        )
    for name in ("ckme", "emos"):
        found[f"{name}.leads"] = lambda m=METHODS[name]: fitted(leads(), m)
    found["ckme.variables"] = lambda: fitted(pair(), METHODS["ckme"])
    found["ckme.jointly"] = lambda: fitted(pair(), METHODS["ckme"], jointly=("t2m", "rain"))
    found["ckme.circular"] = lambda: fitted(direction(), METHODS["ckme"], period=360)
    for name in ("ckme", "ckme_auto", "ckme_season", "emos", "idr", "pool_of_two", "climatology"):
        found[f"{name}.cross_validated"] = lambda m=METHODS[name]: held_out(temperature(), m)
    for name in ("ckme", "ckme_auto", "ckme_lowrank", "emos", "idr", "pool_of_two", "pit",
                 "climatology", "raw"):  # fmt: skip
        found[f"{name}.updated"] = lambda m=METHODS[name]: updated(temperature(), m)
    found["ckme.pooled.updated"] = lambda: updated(temperature(), METHODS["ckme"], pool="station")
    for form in ("plain", "weighted", "quantiles", "gaussian"):
        found[f"issued.{form}"] = lambda f=form: issued(in_form(temperature(), f), MIDDLE)
    found["issued.rain"] = lambda: issued(rain(), 2.5)
    found["issued.variables"] = lambda: issued(pair(), 2.5)
    return found | {"skill": skill, "compared": compared, "lazily": lazily}


def of_forms() -> Groups:
    """Forms that the groups of states lack."""
    found: Groups = {}
    plain = ("ckme", "ckme_errors", "emos", "idr", "pool_of_two", "pit", "conformal", "climatology")
    for name in plain:
        found[f"{name}.mixture"] = lambda m=METHODS[name]: unstored(
            briefly(in_form(temperature(), "mixture"), m)
        )
    found["ckme.circular.weighted"] = lambda: unstored(
        briefly(in_form(direction(), "weighted"), METHODS["ckme"], period=360)
    )
    return found


def of_products() -> Groups:
    """Products of models that the groups of states lack."""
    found: Groups = {}
    for name in ("ckme", "ckme_errors", "ckme_auto_season", "emos", "idr", "pool_of_two", "pit",
                 "conformal", "climatology_window", "raw"):  # fmt: skip
        found[f"products.{name}"] = lambda m=METHODS[name]: in_full(temperature(), m)
    for form in ("weighted", "quantiles", "mixture"):
        found[f"products.ckme.{form}"] = lambda f=form: in_full(
            in_form(temperature(), f), METHODS["ckme_errors"]
        )
    found["products.emos.rain"] = lambda: in_full(rain(), METHODS["emos"])
    found["products.pool.variables"] = lambda: in_full(pair(), METHODS["pool_of_two"])
    found["products.ckme.leads"] = lambda: in_full(leads(), METHODS["ckme"])
    found["products.ckme.jointly"] = lambda: in_full(
        pair(), METHODS["ckme"], jointly=("t2m", "rain")
    )
    found["products.by_sums"] = lambda: in_full(network(), xrecal.CKME(), pool="station")
    return found


FEW = (xrecal.Climatology(), xrecal.EMOS(bounds=None))
ONLINE = xrecal.OnlinePool(FEW, refit=12, bounds=None)
ONLINE_LATE = xrecal.OnlinePool(FEW, delay=2, refit=12, condition_on="season")
BY_SEASON = xrecal.CKME(condition_on="season", support="errors")
BY_INDEX = xrecal.CKME(condition_on=("season", "index"))
OF_TWO = xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS()), condition_on=())

LIVES: dict[str, tuple[Callable[[], Cases], Any, dict[str, Any]]] = {
    "online_pool": (days, ONLINE, {}),
    "online_pool.late_by_season": (temperature, ONLINE_LATE, {}),
    "online_pool.of_defaults": (days, xrecal.OnlinePool(condition_on=()), {}),
    "by_sums.season": (network, xrecal.CKME(condition_on="season"), {"pool": "station"}),
    "by_sums.pool": (known_network, OF_TWO, {"pool": "station"}),
    "some_of_many.emos": (network, xrecal.EMOS(), {"pool": "station"}),
    "by_sums.gap": (network, xrecal.CKME(gap="40D", half_life=300), {"pool": "station"}),
    "windows.ckme": (grid, xrecal.CKME(), {"pool": {"lat": 3, "lon": 1}}),
    "windows.emos": (grid, xrecal.EMOS(), {"pool": {"lat": 3}}),
    "windows.pool": (grid, OF_TWO, {"pool": {"lat": 3}}),
    "pooled.grid": (grid, BY_SEASON, {"pool": ("lat", "lon")}),
    "pooled.leads": (leads, METHODS["ckme_errors"], {"pool": "lead"}),
    "jointly.pooled": (pair, METHODS["ckme"], {"pool": "station", "jointly": ("t2m", "rain")}),
    "covariates.leads": (leads_with_index, BY_INDEX, {}),
    "covariates.emos": (leads_with_index, xrecal.EMOS(condition_on="index"), {}),
    "covariates.pooled": (leads_with_index, BY_INDEX, {"pool": "lead"}),
}
"""Cases, method and options of models that are followed from their fit through updates."""


def of_lives() -> Groups:
    """Models from their fit through updates to what they issue then."""
    found: Groups = {
        name: lambda c=cases, m=method, o=options: followed(c(), m, **o)
        for name, (cases, method, options) in LIVES.items()
    }
    for name in ("ckme_errors", "ckme_season", "ckme_half_life", "ckme_shapes", "emos_season",
                 "idr_season", "pool", "pit_season", "conformal", "climatology_season"
                 ):  # fmt: skip
        found[f"followed.{name}"] = lambda m=METHODS[name]: followed(temperature(), m)
    return found


def of_predictions() -> Groups:
    """Cross-validation by ways that the groups of states lack."""
    found: Groups = {"predicted.products": predicted_products, "covariates.given": with_covariates}
    for name in ("ckme_errors", "ckme_half_life_cv", "emos_season", "pit", "conformal", "raw",
                 "pool_of_two", "idr_season", "climatology_window"):  # fmt: skip
        found[f"predicted.{name}"] = lambda m=METHODS[name]: predicted(temperature(), m)
    found["predicted.online_pool"] = lambda: predicted(days(), ONLINE, "rolling")
    found["predicted.pooled"] = lambda: predicted(temperature(), OF_TWO, pool="station")
    found["predicted.windows"] = lambda: predicted(grid(), xrecal.EMOS(), pool={"lat": 3, "lon": 1})
    found["predicted.by_sums"] = lambda: predicted(
        network(), xrecal.CKME(), "block", pool="station", blocks=2
    )
    found["predicted.leads"] = lambda: predicted(leads(), METHODS["emos"])
    for form in ("quantiles", "mixture"):
        found[f"predicted.{form}"] = lambda f=form: predicted(
            in_form(temperature(), f), METHODS["ckme_errors"]
        )
    return found


def of_evidence() -> Groups:
    """Evidence on forecasts as issued that the groups of states lack."""
    found: Groups = {}
    for form in ("mixture", "censored"):
        found[f"issued.{form}"] = lambda f=form: issued(in_form(temperature(), f), MIDDLE)
    found["issued.circular"] = lambda: issued(in_form(direction(), "circular"), 170.0)
    for form in ("plain", "weighted", "quantiles", "mixture", "censored"):
        found[f"judged.{form}"] = lambda f=form: judged(in_form(temperature(), f), MIDDLE)
    found["judged.circular"] = lambda: judged(in_form(direction(), "circular"), 170.0)
    found["judged.rain"] = lambda: judged(rain(), 2.5)
    return found | {
        "judged.together": judged_together,
        "explained": explained,
        "compared.otherwise": compared_otherwise,
        "drawn": drawn,
    }


def of_files() -> Groups:
    """What is written to files, read again, and printed."""
    return {
        "reopened.ckme": lambda: reopened(temperature(), METHODS["ckme_auto_season"], "nc"),
        "reopened.emos": lambda: reopened(leads(), METHODS["emos"], "zarr"),
        "reopened.online_pool": lambda: reopened(days(), ONLINE, "nc"),
        "reopened.jointly": lambda: reopened(
            pair(), METHODS["ckme"], "zarr", jointly=("t2m", "rain")
        ),
        "reopened.windows": lambda: reopened(grid(), METHODS["idr"], "nc", pool={"lat": 3}),
        "command": by_command,
        "command.scores": scored_by_command,
        "cycle.emos": lambda: mornings(xrecal.EMOS()),
        "cycle.ckme": lambda: mornings(xrecal.CKME(), "--keep", "3"),
    }
