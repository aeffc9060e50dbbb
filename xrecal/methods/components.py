"""Components of a linear pool: each fitted, and tried on cases that it has not seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.continuous import Tailed
from xrecal.arrays.distributions.forms import (
    N_QUANTILES,
    Distribution,
    Empirical,
    equal_mass_levels,
)
from xrecal.arrays.splitting import ROUNDING, Span, distance_to
from xrecal.inputs.covariates import SEASON
from xrecal.typing import FloatArray, IntArray

from .base import N_HELD_OUT, Cases, FitArrays, Method, NewCases, Parameter, count_cases
from .beyond import FITTED
from .covariates import count_features
from .folds import fold_groups
from .shared_ckme import OWN

T = TypeVar("T")

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

CASES = "calibration"
"""Dimension of parameters of each case."""

MOST_NAMED = 3
"""Covariates beside the season that a label names; of more it has the number."""

COMPONENT = "component"
"""Dimension of the weights in the state."""

OBSERVATIONS = "observations"
"""Name of the block of members that are past observations."""

MEMBERS = {
    "observations": "past observations",
    "mean": "past errors around the forecast mean",
    "regression": "past errors around a regression on the forecast mean",
    "standardised": "past errors in units of the spread that EMOS gives",
    "ratio": "past ratios to the forecast mean",
    "regression_plain": "past errors around a regression on the forecast mean, without predictors",
    "standardised_plain": "past errors in units of the spread that EMOS without predictors gives",
}
"""Members of a CKME by its support, in words."""


@dataclass(frozen=True)
class Component:
    """One of the distributions that are mixed: a method, and of a CKME one of its supports."""

    label: str
    method: Method
    support: str | None = None
    n_lacking: int = 0
    """Features of the season, where the others have it and this one has covariates without it."""

    @property
    def meaning(self) -> str:
        """The method that the label stands for, and where members of a CKME come from."""
        members = "" if self.support is None else f", members from {MEMBERS[self.support]}"
        return f"{self.method!r}{members}"

    @cached_property
    def forecaster(self) -> Method:
        """The method as it forecasts here."""
        return self.method.of_support(self.support)

    @cached_property
    def on_observations(self) -> bool:
        """Whether its members are the past observations."""
        return self.forecaster.shares_members

    @cached_property
    def block(self) -> str:
        """Name of the block of its members."""
        return OBSERVATIONS if self.on_observations else self.label

    @cached_property
    def on_cases(self) -> bool:
        """Whether each member comes from one past case."""
        return self.on_observations or self.support is not None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters of the method; covariates that it does not condition on do not count.

        Updates learn from the forecasts, which a pool keeps.
        """
        n_own = max(n_features - self.n_lacking, 1) if self.method.covariates else 0
        return _own_parameters(self.method, n_own)

    def stored_parameters(self, n_features: int) -> dict[str, Parameter]:
        """Parameters with the names and dimensions that they have in the state of the pool."""
        return {
            f"{self.label}_{name}": replace(p, dims={self.dim(d): n for d, n in p.dims.items()})
            for name, p in self.parameters(n_features).items()
        }

    def dim(self, name: str) -> str:
        """Name that a dimension of a parameter has in the state: with the label, but for cases."""
        return name if name == CASES or name.startswith(OWN) else f"{self.label}_{name}"

    def stored(self, fitted: FitArrays) -> Arrays:
        """Arrays of the state of the pool from what was fitted."""
        known = (name for name in self.parameters(1) if name in fitted)
        return {f"{self.label}_{name}": np.array(fitted[name]) for name in known}

    def named_as_choices(self, own: Mapping[str, T]) -> dict[str, T]:
        """Something by choice, under the names of these among those of the pool."""
        return {f"{self.label}.{name}": value for name, value in own.items()}

    def own_choices(self, choices: FitArrays) -> Arrays:
        """Choices among those of a pool, under their own names."""
        start = f"{self.label}."
        named = ((n.removeprefix(start), a) for n, a in choices.items() if n.startswith(start))
        return dict(named)

    def together(self, choices: FitArrays) -> Arrays:
        """Choices (1, ...) for all places among those of a pool, from those (L, ...) of some."""
        one = self.forecaster.together(self.own_choices(choices), in_pool=True)
        return self.named_as_choices(one)

    def with_own(self, together: FitArrays, own: FitArrays, share: FloatArray) -> Arrays:
        """Choices (L, ...) among those of a pool, between those of all places and the own ones."""
        of_all, of_place = (self.own_choices(choices) for choices in (together, own))
        one = self.forecaster.with_own(of_all, of_place, share, in_pool=True)
        return self.named_as_choices(one)

    def fit(self, cases: Cases, min_samples: int, choices: FitArrays | None) -> FitArrays:
        """Parameters with its choices among those of a pool, or with its own."""
        if choices is None:
            return self.method.fit_locations(cases, min_samples)
        return self.method.fit_locations(cases, min_samples, self.own_choices(choices))

    def taken_from(self, fitted: FitArrays) -> Arrays:
        """Parameters under their own names, from the state of the pool."""
        # One feature or more names all parameters.
        names = {name: f"{self.label}_{name}" for name in self.parameters(1)}
        own = {name: fitted[stored] for name, stored in names.items() if stored in fitted}
        return own | {"status": fitted["status"]}

    def predict(
        self, new: NewCases, cases: Cases, fitted: FitArrays, weight: FloatArray
    ) -> Distribution:
        """Forecasts by the state of a pool; one without weight (L,) may be left NaN."""
        own = self.taken_from(fitted)
        if self.support is not None:
            own["ridge"] = np.where(weight > 0, own["ridge"], np.nan)  # spares the work
        return self.forecaster.predict_locations(new, cases, own)


@lru_cache(maxsize=256)
def _own_parameters(method: Method, n_features: int) -> Mapping[str, Parameter]:
    """Parameters of a method in a pool; those for updates alone only if it learns from these."""
    every = method.parameters_in_pool(n_features)
    kept = {name: p for name, p in every.items() if method.keeps_sums or not p.for_updates}
    return MappingProxyType(kept)


def stored_together(fits: Iterable[tuple[Component, FitArrays]]) -> Arrays:
    """Parameters of components in the state of a pool, and the ``status`` of all."""
    state: Arrays = {}
    for component, fitted in fits:
        status = np.asarray(fitted["status"], np.int64) | state.get("status", 0)
        state |= component.stored(fitted) | {"status": status}
    return state


def updated_together(
    components: Iterable[Component], added: Cases, fitted: FitArrays, slots: IntArray
) -> Arrays:
    """Parameters of added cases of components that keep what they have learned."""
    state: Arrays = {}
    for component in components:
        if component.method.keeps_choices:
            own = component.taken_from(fitted)
            state |= component.stored(component.method.update_locations(added, own, slots))
    return state


def components_of(methods: Sequence[Method]) -> tuple[Component, ...]:
    """Components of a pool of methods, in the order in which they are fitted."""
    components: list[Component] = []
    taken: list[str] = []
    in_season = any(SEASON in method.covariates for method in methods)
    for method in methods:
        lacks = in_season and bool(method.covariates) and SEASON not in method.covariates
        n_lacking = count_features({SEASON: 1.0}) if lacks else 0
        name = "_".join((method.name_in_pool, *_named(method.covariates)))
        for support in method.supports:
            label = f"{name}_{support}" if len(method.supports) > 1 else name
            taken.append(label)
            number = taken.count(label)
            label = f"{label}_{number}" if number > 1 else label
            components.append(Component(label, method, support, n_lacking))
    return tuple(components)


def _named(covariates: tuple[str, ...]) -> tuple[str, ...]:
    """Names of covariates in a label, or how many they are beside the season."""
    beside = [name for name in covariates if name != SEASON]
    if len(beside) <= MOST_NAMED:
        return covariates
    return (*(name for name in covariates if name == SEASON), f"{len(beside)}_covariates")


def require_same_covariates(methods: Iterable[Method], names: tuple[str, ...]) -> None:
    """Raise ValueError unless each method has all covariates, all but the season, or none."""
    given = [method.covariates for method in methods]
    if not {*given} <= {(), names, tuple(name for name in names if name != SEASON)}:
        raise ValueError(
            "LinearPool: methods must condition on the same covariates, with or without the "
            f"season, or on none, got {given}"
        )


def held_out_by_refits(
    method: Method, cases: Cases, gap: Span = 0, year_start: str | None = None
) -> FloatArray:
    """Quantiles (L, 2, n, Q) from refits without parts of the cases.

    They are of cases forecast without their fold, and of cases forecast from earlier ones alone; in
    both, without the cases nearer than a gap. Years of cases begin on ``year_start``.
    """
    from xrecal.arrays.ckme.folds import assign_folds, gap_axis
    from xrecal.arrays.ckme.search import LATER_PARTS

    known = np.isfinite(cases.observations)
    n_locations, n = known.shape
    groups, blocks = fold_groups("auto", cases.axis, n, year_start)
    fold = assign_folds(groups, known, blocks, cases.axis.step)
    # Blocks hide a change of the forecast system: later cases are forecast from earlier ones too.
    later = assign_folds(cases.axis.steps(n), known, LATER_PARTS)
    quantiles = np.full((n_locations, 2, n, N_HELD_OUT), np.nan)
    position, length = gap_axis(gap, cases.axis.steps(n), cases.axis.days)
    # A method that learns nothing forecasts the same, whatever it is trained on: once is enough.
    issued = None if method.recalibrates else _quantiles(method, cases, np.arange(n))
    for f in range(fold.max() + 1):
        train = known & (fold != f) & _apart(fold == f, position, length)
        _forecast(method, cases.only(train), fold == f, quantiles[:, 0], issued)
    for f in range(1, later.max() + 1):
        train = known & (later < f) & _apart(later == f, position, length)
        _forecast(method, cases.only(train), later == f, quantiles[:, 1], issued)
    return quantiles


def _apart(held: npt.NDArray[np.bool_], position: FloatArray, gap: float) -> npt.NDArray[np.bool_]:
    """Where cases (L, n) are further than the gap from all those held out; all without a gap."""
    apart = np.ones(held.shape, np.bool_)
    if gap > 0:
        for kept, of_location in zip(apart, held, strict=True):
            which = np.flatnonzero(of_location)
            if which.size:
                kept[:] = distance_to(which, position) > gap + ROUNDING
    return apart


def _forecast(
    method: Method,
    learned: Cases,
    held: npt.NDArray[np.bool_],
    out: FloatArray,
    issued: FloatArray | None,
) -> None:
    """Quantiles (L, n, Q) of the cases ``held`` (L, n), by others or as they were issued."""
    which = np.flatnonzero(held.any(0))
    if which.size == 0:
        return
    if issued is None:
        quantiles = _quantiles(method, learned, which)
    else:
        quantiles = issued[:, which]
        quantiles[count_cases(learned, 2)["status"] > 0] = np.nan
    location, case = np.nonzero(held[:, which])
    out[location, which[case]] = quantiles[location, case]


def _quantiles(method: Method, learned: Cases, which: IntArray) -> FloatArray:
    """Quantiles (L, k, Q) of some of the cases, from a fit to those that can be learned from."""
    fitted = method.fit_locations(learned, 2)
    issued = method.predict_locations(learned.as_new(which), learned, fitted)
    if type(issued) is Empirical:  # rounding must not decide on which side of a step a level falls
        issued = Tailed(*issued)
    return issued.quantile(equal_mass_levels(N_HELD_OUT))


def keep_within(values: FloatArray, bounds: FloatArray) -> None:
    """Move values (L, ...) beyond bounds (L, 2) to them: forecasts overshoot, rain below zero."""
    if np.isfinite(bounds).any():
        low, high = bounds.T.astype(values.dtype).reshape(2, -1, *[1] * (values.ndim - 1))
        np.clip(values, low, high, out=values)


class Forecasting:
    """Components of a pool as they forecast new cases; each is asked once."""

    def __init__(
        self, components: Sequence[Component], new: NewCases, cases: Cases, fitted: FitArrays
    ) -> None:
        self.components, self.new, self.cases, self.fitted = components, new, cases, fitted
        self._known: dict[str, Distribution] = {}

    def of(self, component: Component, weight: FloatArray) -> Distribution:
        """Forecasts of one component, which may be NaN where it has no weight (L,)."""
        if component.label not in self._known:
            self._known[component.label] = component.predict(
                self.new, self.cases, self.fitted, weight
            )
        return self._known[component.label]

    def members(self, component: Component, weight: FloatArray) -> Empirical:
        """Members (L, T, k), or (L, n) observations, and weights (L, T, k) of one component."""
        forecast = self.of(component, weight)
        if component.on_cases:
            assert isinstance(forecast, Empirical)
            return forecast
        members = forecast.quantile(equal_mass_levels(N_QUANTILES))
        return Empirical(members, np.where(np.isnan(members), np.nan, 1 / N_QUANTILES))

    def judged(self) -> FloatArray | None:
        """Novelty (L, T) of the forecasts to the judge, which forecasts by the same comparison."""
        judge = judge_of(self.components)
        if judge is None:
            return None
        own = judge.taken_from(self.fitted)
        self._known[judge.label], novelty = judge.forecaster.predict_with_novelty(
            self.new, self.cases, own
        )
        return novelty

    def novelty(self) -> FloatArray:
        """Novelty (L, T) of forecasts to the judge of a pool; none is known without one.

        Where a place has too short a record, to the component that places share.
        """
        judge = judge_of(self.components)
        asked = [c for c in self.components if c is judge or c.method.by_sums]
        known = np.full(self.new.forecasts.loc.shape[:2], np.nan if asked else 0.0)
        for component in asked:
            if np.isnan(known).any():
                own = component.taken_from(self.fitted)
                found = component.method.novelty_locations(self.new, self.cases, own)
                known = np.where(np.isnan(known), found, known)
        return known


def median_of_known(values: FloatArray) -> FloatArray:
    """Median (1, ...) over locations (L, ...) of values that are known; NaN where none is."""
    known = values[:, ~np.isnan(values).all(0)]
    median = np.full((1, *values.shape[1:]), np.nan)
    median[:, ~np.isnan(values).all(0)] = np.nanmedian(known, axis=0)
    return median


def judge_of(components: Sequence[Component]) -> Component | None:
    """The component that knows the novelty of forecasts: the first CKME, of forecasts first."""
    judges = [c for c in components if c.support is not None]
    return min(judges, key=lambda c: c.method.shapes, default=None)


def leave_alone(
    state: Mapping[str, npt.NDArray[Any]],
    where: npt.NDArray[np.bool_],
    components: Sequence[bool],
) -> None:
    """Give all weight to one of the components at some locations (L,), without tails."""
    state["pool_weight"][where] = components
    for name in FITTED:
        if name in state:
            state[name][where] = np.nan


class GivingWay(NamedTuple):
    """Weights of a pool in which past observations may give way to other components."""

    mixed: FloatArray
    """(L, C) with which to mix"""
    of_observations: FloatArray
    """(L,) sum of the weights of past observations"""
    takers: npt.NDArray[np.bool_]
    """(C,) which components get what observations lose"""
    own: FloatArray
    """(L,) sum of the weights that these have already"""


def giving_way(components: Sequence[Component], weight: FloatArray) -> GivingWay:
    """What past observations give way to, of weights (L, C).

    To all that is recalibrated, in proportion: never to the raw forecast, which has a small weight
    where it was found to be wrong. Where observations would have all the weight but for that, one
    that has errors as members is mixed too, so that there is something to give way to.
    """
    observed = np.array([c.on_observations for c in components])
    takers = np.array([c.method.recalibrates for c in components]) & ~observed
    of_observations, own = weight[:, observed].sum(-1), weight[:, takers].sum(-1)
    errors = [i for i, c in enumerate(components) if c.on_cases and not c.on_observations]
    mixed = weight.copy()
    if errors:
        mixed[(of_observations > 0) & (own == 0), errors[0]] = 1.0
    return GivingWay(mixed, of_observations, takers, own)
