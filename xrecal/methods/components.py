"""Components of a linear pool: the fits and the held-out forecasts of components."""

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
"""Name of the dimension along which parameters have a value for each case."""

MOST_NAMED = 3
"""Largest number of covariates, besides the season, that appear by name in the label of a
component. For more covariates, the label has only their number."""

COMPONENT = "component"
"""Name of the dimension of a pool's weights in the state."""

OBSERVATIONS = "observations"
"""Name of the block of members that are past observations. The members of a pool's forecast are in
blocks, such as one block for each component."""

MEMBERS = {
    "observations": "past observations",
    "mean": "past errors around the forecast mean",
    "regression": "past errors around a regression on the forecast mean",
    "standardised": "past errors in units of the spread that EMOS gives",
    "ratio": "past ratios to the forecast mean",
    "regression_plain": "past errors around a regression on the forecast mean, without predictors",
    "standardised_plain": "past errors in units of the spread that EMOS without predictors gives",
}
"""Descriptions of the members of a CKME, for each value of its setting ``support``."""


@dataclass(frozen=True)
class Component:
    """A method whose forecasts a pool mixes; a CKME has only one kind of members (``support``)."""

    label: str
    method: Method
    support: str | None = None
    n_lacking: int = 0
    """Number of features of the season if other components use the season, and this component uses
    only other covariates; otherwise 0."""

    @property
    def meaning(self) -> str:
        """Description of the component: its method, and the members of a CKME."""
        members = "" if self.support is None else f", members from {MEMBERS[self.support]}"
        return f"{self.method!r}{members}"

    @cached_property
    def forecaster(self) -> Method:
        """The method in the form that issues the forecasts of this component."""
        return self.method.of_support(self.support)

    @cached_property
    def on_observations(self) -> bool:
        """True if the members of the component are the past observations."""
        return self.forecaster.shares_members

    @cached_property
    def block(self) -> str:
        """Name of the block, in the pool's forecasts, that has the members of the component."""
        return OBSERVATIONS if self.on_observations else self.label

    @cached_property
    def on_cases(self) -> bool:
        """True if each member belongs to one past case."""
        return self.on_observations or self.support is not None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters of the method; ``n_features`` counts the features of the pool.

        The result leaves out parameters that only updates need, because a pool stores the past
        forecasts for its updates. It includes these parameters if the method has ``keeps_sums``.
        """
        n_own = max(n_features - self.n_lacking, 1) if self.method.covariates else 0
        return _own_parameters(self.method, n_own)

    def stored_parameters(self, n_features: int) -> dict[str, Parameter]:
        """Return the parameters with their names and dimensions in the state of the pool."""
        return {
            f"{self.label}_{name}": replace(p, dims={self.dim(d): n for d, n in p.dims.items()})
            for name, p in self.parameters(n_features).items()
        }

    def dim(self, name: str) -> str:
        """Return the name of a parameter's dimension in the state of the pool.

        The result is the label and the name. For the dimension of cases, and for dimensions of a
        shared fit, it is the name alone.
        """
        return name if name == CASES or name.startswith(OWN) else f"{self.label}_{name}"

    def stored(self, fitted: FitArrays) -> Arrays:
        """Return the arrays of a fit, under their names in the state of the pool."""
        known = (name for name in self.parameters(1) if name in fitted)
        return {f"{self.label}_{name}": np.array(fitted[name]) for name in known}

    def named_as_choices(self, own: Mapping[str, T]) -> dict[str, T]:
        """Return values of the component's choices, under the names that a pool uses for them."""
        return {f"{self.label}.{name}": value for name, value in own.items()}

    def own_choices(self, choices: FitArrays) -> Arrays:
        """Select the component's choices from a pool's choices, and remove the label from names."""
        start = f"{self.label}."
        named = ((n.removeprefix(start), a) for n, a in choices.items() if n.startswith(start))
        return dict(named)

    def together(self, choices: FitArrays) -> Arrays:
        """Return the component's joint choices (1, ...), from a pool's choices (L, ...)."""
        one = self.forecaster.together(self.own_choices(choices), in_pool=True)
        return self.named_as_choices(one)

    def with_own(self, together: FitArrays, own: FitArrays, share: FloatArray) -> Arrays:
        """Return choices (L, ...) of the component, between joint and own choices of a pool."""
        of_all, of_place = (self.own_choices(choices) for choices in (together, own))
        one = self.forecaster.with_own(of_all, of_place, share, in_pool=True)
        return self.named_as_choices(one)

    def fit(self, cases: Cases, min_samples: int, choices: FitArrays | None) -> FitArrays:
        """Fit the method with the choices of a pool, or with new choices if ``choices`` is None."""
        if choices is None:
            return self.method.fit_locations(cases, min_samples)
        return self.method.fit_locations(cases, min_samples, self.own_choices(choices))

    def taken_from(self, fitted: FitArrays) -> Arrays:
        """Select the method's parameters from a pool's state, and remove the label from names."""
        # The names do not depend on the number of features.
        names = {name: f"{self.label}_{name}" for name in self.parameters(1)}
        own = {name: fitted[stored] for name, stored in names.items() if stored in fitted}
        return own | {"status": fitted["status"]}

    def predict(
        self, new: NewCases, cases: Cases, fitted: FitArrays, weight: FloatArray
    ) -> Distribution:
        """Return forecasts (L, T) of the component; NaN is allowed where ``weight`` (L,) is 0."""
        own = self.taken_from(fitted)
        if self.support is not None:
            own["ridge"] = np.where(weight > 0, own["ridge"], np.nan)  # saves time
        return self.forecaster.predict_locations(new, cases, own)


@lru_cache(maxsize=256)
def _own_parameters(method: Method, n_features: int) -> Mapping[str, Parameter]:
    """Return a method's parameters in a pool, without parameters that only updates need."""
    every = method.parameters_in_pool(n_features)
    kept = {name: p for name, p in every.items() if method.keeps_sums or not p.for_updates}
    return MappingProxyType(kept)


def stored_together(fits: Iterable[tuple[Component, FitArrays]]) -> Arrays:
    """Return the parameters of components as a pool stores them, and one ``status`` of the pool."""
    state: Arrays = {}
    for component, fitted in fits:
        status = np.asarray(fitted["status"], np.int64) | state.get("status", 0)
        state |= component.stored(fitted) | {"status": status}
    return state


def updated_together(
    components: Iterable[Component], added: Cases, fitted: FitArrays, slots: IntArray
) -> Arrays:
    """Return the values of the added cases, for parameters with a value for each case.

    The function skips components that updates fit again.
    """
    state: Arrays = {}
    for component in components:
        if component.method.keeps_choices:
            own = component.taken_from(fitted)
            state |= component.stored(component.method.update_locations(added, own, slots))
    return state


def components_of(methods: Sequence[Method]) -> tuple[Component, ...]:
    """Return the components that a pool makes of its methods, in the order of the methods."""
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
    """Return parts of a label: the covariates, or "season" and the number of other covariates."""
    beside = [name for name in covariates if name != SEASON]
    if len(beside) <= MOST_NAMED:
        return covariates
    return (*(name for name in covariates if name == SEASON), f"{len(beside)}_covariates")


def require_same_covariates(methods: Iterable[Method], names: tuple[str, ...]) -> None:
    """Raise ValueError unless each method has all ``names``, all but the season, or none."""
    given = [method.covariates for method in methods]
    if not {*given} <= {(), names, tuple(name for name in names if name != SEASON)}:
        raise ValueError(
            "LinearPool: methods must condition on the same covariates, with or without the "
            f"season, or on none, got {given}"
        )


def held_out_by_refits(
    method: Method, cases: Cases, gap: Span = 0, year_start: str | None = None
) -> FloatArray:
    """Return quantiles (L, 2, n, Q) for each of n cases, from fits that leave this case out.

    Along the second axis, the first quantiles come from fits without the fold of the case, and the
    second quantiles come from fits to earlier cases alone. All fits also leave out the cases within
    the gap around the cases that they forecast. Years of cases begin on ``year_start``.
    """
    from xrecal.arrays.ckme.folds import assign_folds, gap_axis
    from xrecal.arrays.ckme.search import LATER_PARTS

    known = np.isfinite(cases.observations)
    n_locations, n = known.shape
    groups, blocks = fold_groups("auto", cases.axis, n, year_start)
    fold = assign_folds(groups, known, blocks, cases.axis.step)
    # Blocks hide changes of the forecast system, so later cases are also forecast from earlier
    # ones.
    later = assign_folds(cases.axis.steps(n), known, LATER_PARTS)
    quantiles = np.full((n_locations, 2, n, N_HELD_OUT), np.nan)
    position, length = gap_axis(gap, cases.axis.steps(n), cases.axis.days)
    # A method without a fit issues the same forecast for any training cases: once is enough.
    issued = None if method.recalibrates else _quantiles(method, cases, np.arange(n))
    for f in range(fold.max() + 1):
        train = known & (fold != f) & _apart(fold == f, position, length)
        _forecast(method, cases.only(train), fold == f, quantiles[:, 0], issued)
    for f in range(1, later.max() + 1):
        train = known & (later < f) & _apart(later == f, position, length)
        _forecast(method, cases.only(train), later == f, quantiles[:, 1], issued)
    return quantiles


def _apart(held: npt.NDArray[np.bool_], position: FloatArray, gap: float) -> npt.NDArray[np.bool_]:
    """Mark the cases (L, n) outside the gap around held-out cases; without a gap, mark all."""
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
    """Fill ``out`` with Q quantiles (L, n, Q) for the cases that ``held`` (L, n) marks.

    The quantiles come from ``issued`` (L, n, Q), or from a fit to ``learned`` if ``issued`` is
    None.
    """
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
    """Return quantiles (L, k, Q) for the cases ``which`` (k,), from a fit to ``learned``."""
    fitted = method.fit_locations(learned, 2)
    issued = method.predict_locations(learned.as_new(which), learned, fitted)
    if type(issued) is Empirical:  # rounding must not decide on which side of a step a level lies
        issued = Tailed(*issued)
    return issued.quantile(equal_mass_levels(N_HELD_OUT))


def keep_within(values: FloatArray, bounds: FloatArray) -> None:
    """Move values (L, ...) that lie beyond the bounds (L, 2) to the bounds.

    Raw forecasts may have such values.
    """
    if np.isfinite(bounds).any():
        low, high = bounds.T.astype(values.dtype).reshape(2, -1, *[1] * (values.ndim - 1))
        np.clip(values, low, high, out=values)


class Forecasting:
    """Forecasts of new cases by a pool's components, computed once for each component."""

    def __init__(
        self, components: Sequence[Component], new: NewCases, cases: Cases, fitted: FitArrays
    ) -> None:
        self.components, self.new, self.cases, self.fitted = components, new, cases, fitted
        self._known: dict[str, Distribution] = {}

    def of(self, component: Component, weight: FloatArray) -> Distribution:
        """Return forecasts (L, T) of a component, which may be NaN where its weight (L,) is 0."""
        if component.label not in self._known:
            self._known[component.label] = component.predict(
                self.new, self.cases, self.fitted, weight
            )
        return self._known[component.label]

    def members(self, component: Component, weight: FloatArray) -> Empirical:
        """Return a component's members (L, T, k), or observations (L, n), and weights (L, T, k)."""
        forecast = self.of(component, weight)
        if component.on_cases:
            assert isinstance(forecast, Empirical)
            return forecast
        members = forecast.quantile(equal_mass_levels(N_QUANTILES))
        return Empirical(members, np.where(np.isnan(members), np.nan, 1 / N_QUANTILES))

    def judged(self) -> FloatArray | None:
        """Return the novelty (L, T) of forecasts, and keep the judge's forecasts for later.

        The judge is the component that computes novelty, see :func:`judge_of`. One comparison with
        past forecasts gives both the judge's forecasts and the novelty. Returns None if the pool
        has no judge.
        """
        judge = judge_of(self.components)
        if judge is None:
            return None
        own = judge.taken_from(self.fitted)
        self._known[judge.label], novelty = judge.forecaster.predict_with_novelty(
            self.new, self.cases, own
        )
        return novelty

    def novelty(self) -> FloatArray:
        """Return the novelty (L, T) of forecasts.

        The judge of the pool computes the novelty, see :func:`judge_of`. If the judge has no fit at
        a place, as with a short record, the shared component computes the novelty. Novelty is 0 if
        no component can compute it.
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
    """Return the median (1, ...) of known values over L locations; NaN if no value is known."""
    known = values[:, ~np.isnan(values).all(0)]
    median = np.full((1, *values.shape[1:]), np.nan)
    median[:, ~np.isnan(values).all(0)] = np.nanmedian(known, axis=0)
    return median


def judge_of(components: Sequence[Component]) -> Component | None:
    """Return the judge, the component that computes novelty; None if no component is a CKME.

    The judge is the first CKME that compares whole forecasts, or else the first CKME.
    """
    judges = [c for c in components if c.support is not None]
    return min(judges, key=lambda c: c.method.shapes, default=None)


def leave_alone(
    state: Mapping[str, npt.NDArray[Any]],
    where: npt.NDArray[np.bool_],
    components: Sequence[bool],
) -> None:
    """Give all weight to one component, without tails, at the locations marked in ``where`` (L,).

    ``components`` marks this component.
    """
    state["pool_weight"][where] = components
    for name in FITTED:
        if name in state:
            state[name][where] = np.nan


class GivingWay(NamedTuple):
    """Weights of a pool in which weight may move from past observations to other components."""

    mixed: FloatArray
    """(L, C) weights of the C components in the mixture"""
    of_observations: FloatArray
    """(L,) sum of the weights of components whose members are past observations"""
    takers: npt.NDArray[np.bool_]
    """(C,) true for components that take over the weight of past observations"""
    own: FloatArray
    """(L,) sum of the weights of components in ``takers``"""


def giving_way(components: Sequence[Component], weight: FloatArray) -> GivingWay:
    """Find which of C components, with weights (L, C), may replace past observations in a pool.

    All recalibrated components whose members are not past observations replace past observations,
    in proportion to their weights. The raw forecast does not replace past observations, because its
    errors are not corrected. At a location where past observations have all the weight, the first
    component with past errors as members replaces them.
    """
    observed = np.array([c.on_observations for c in components])
    takers = np.array([c.method.recalibrates for c in components]) & ~observed
    of_observations, own = weight[:, observed].sum(-1), weight[:, takers].sum(-1)
    errors = [i for i, c in enumerate(components) if c.on_cases and not c.on_observations]
    mixed = weight.copy()
    if errors:
        mixed[(of_observations > 0) & (own == 0), errors[0]] = 1.0
    return GivingWay(mixed, of_observations, takers, own)
