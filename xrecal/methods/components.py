"""Components of a linear pool: each fitted, and tried on cases that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.arrays.splitting import Span
from xrecal.typing import FloatArray

from .base import (
    N_QUANTILES,
    Cases,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    SharedFits,
    equal_mass_levels,
    fold_groups,
)
from .ckme import CKME
from .raw import Raw
from .shared_ckme import OWN, SharedCKME
from .tails import FITTED

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution, Empirical

CASES = "calibration"
"""Dimension of parameters of each case."""

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
}
"""Members of a CKME by its support, in words."""

SHARED = "ckme_shared"
"""Label of the component that places share."""

N_HELD_OUT = 100
"""Quantiles that stand for a held-out forecast when components are weighed."""


@dataclass(frozen=True)
class Component:
    """One of the distributions that are mixed: a method, and of a CKME one of its supports."""

    label: str
    method: Method
    support: str | None = None

    @property
    def meaning(self) -> str:
        """The method that the label stands for, and where members of a CKME come from."""
        members = "" if self.support is None else f", members from {MEMBERS[self.support]}"
        return f"{self.method!r}{members}"

    @property
    def on_observations(self) -> bool:
        """Whether its members are the past observations."""
        return self.method.shares_members or self.support == "observations"

    @property
    def block(self) -> str:
        """Name of the block of its members."""
        return OBSERVATIONS if self.on_observations else self.label

    @property
    def on_cases(self) -> bool:
        """Whether each member comes from one past case."""
        return self.on_observations or self.support is not None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters of the method; covariates that it does not condition on do not count.

        Updates learn from the forecasts, which a pool keeps.
        """
        return _own_parameters(self.method, n_features)

    def labelled(self, fitted: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """What was fitted, under the names that it has in the pool."""
        known = (name for name in self.parameters(1) if name in fitted)
        return {f"{self.label}_{name}": np.array(fitted[name]) for name in known}

    def own(self, parameter: Parameter) -> Parameter:
        """A parameter whose dimensions, other than the cases, bear the label of the component."""
        dims = {self.dim(d): n for d, n in parameter.dims.items()}
        return replace(parameter, dims=dims)

    def dim(self, name: str) -> str:
        """Name that a dimension of a parameter has in the pool."""
        return name if name == CASES or name.startswith(OWN) else f"{self.label}_{name}"


@lru_cache(maxsize=256)
def _own_parameters(method: Method, n_features: int) -> Mapping[str, Parameter]:
    """Parameters of a method in a pool, those for updates alone left out."""
    n_own = n_features if method.covariates else 0
    if isinstance(method, SharedCKME):
        every: Mapping[str, Parameter] = method.in_pool(n_own)
    elif isinstance(method, CKME):  # in a pool the other components are those to give way to
        every = replace(method, novelty=None).parameters(n_own)
    else:
        every = method.parameters(n_own)
    return MappingProxyType({name: p for name, p in every.items() if not p.for_updates})


class HeldOutInTime(NamedTuple):
    """How cases are held out in time."""

    gap: Span = 0
    """Left out of training on either side."""
    year_start: str | None = None
    """Date on which years of cases begin."""


NEXT_TO_EACH_OTHER = HeldOutInTime()
"""Without a gap, in years of their own."""


def components_of(methods: Sequence[Method]) -> tuple[Component, ...]:
    """Components of a pool of methods, in the order in which they are fitted."""
    components: list[Component] = []
    taken: list[str] = []
    for method in methods:
        supports: tuple[str | None, ...] = (None,)
        names = [type(method).__name__.lower()]
        if isinstance(method, CKME):
            names, supports = names + ["shapes"] * method.shapes, method.supports
        if isinstance(method, SharedCKME):
            names = [SHARED]
        name = "_".join((*names, *method.covariates))
        for support in supports:
            label = f"{name}_{support}" if len(supports) > 1 else name
            taken.append(label)
            number = taken.count(label)
            label = f"{label}_{number}" if number > 1 else label
            components.append(Component(label, method, support))
    return tuple(components)


def fit_method(
    method: Method, cases: Cases, min_samples: int, in_time: HeldOutInTime = NEXT_TO_EACH_OTHER
) -> Iterator[tuple[Mapping[str, npt.NDArray[Any]], FloatArray]]:
    """Fitted parameters and held-out quantiles (L, 2, n, Q) of each component of a method.

    The quantiles are of cases forecast without their fold, and of cases forecast from earlier ones
    alone.
    """
    if isinstance(method, SharedCKME):  # which passes over the cases of all places have fitted
        yield {}, method.held_out_locations(cases, N_HELD_OUT)
        return
    if not isinstance(method, CKME):
        yield method.fit_locations(cases, min_samples), _held_out(method, cases, in_time)
        return
    family, quantiles = arrays.fit_ckme_family(
        cases.forecasts,
        cases.observations,
        method.array_settings(method.supports, min_samples),
        n_quantiles=N_HELD_OUT,
        **method.array_arguments(cases),
    )
    for s, fitted in enumerate(family):
        yield fitted._asdict(), quantiles[:, :, s]


def _held_out(method: Method, cases: Cases, in_time: HeldOutInTime) -> FloatArray:
    """Quantiles (L, 2, n, Q) from refits without parts of the cases."""
    from xrecal.arrays.ckme.choosing import LATER_PARTS
    from xrecal.arrays.ckme.folds import assign_folds, gap_axis

    known = np.isfinite(cases.observations)
    n_locations, n = known.shape
    groups, blocks = fold_groups("auto", cases.axis, n, in_time.year_start)
    fold = assign_folds(groups, known, blocks, cases.axis.step)
    # Blocks hide a change of the forecast system: later cases are forecast from earlier ones too.
    later = assign_folds(cases.axis.steps(n), known, LATER_PARTS)
    quantiles = np.full((n_locations, 2, n, N_HELD_OUT), np.nan)
    position, gap = gap_axis(in_time.gap, cases.axis.steps(n), cases.axis.days)
    for f in range(fold.max() + 1):
        train = known & (fold != f) & _apart(fold == f, position, gap)
        _forecast(method, cases, train, fold == f, quantiles[:, 0])
    for f in range(1, later.max() + 1):
        train = known & (later < f) & _apart(later == f, position, gap)
        _forecast(method, cases, train, later == f, quantiles[:, 1])
    return quantiles


def _apart(held: npt.NDArray[np.bool_], position: FloatArray, gap: float) -> npt.NDArray[np.bool_]:
    """Where cases (L, n) are further than the gap from all those held out; all without a gap."""
    from xrecal.arrays.ckme.folds import ROUNDING, distance_to

    apart = np.ones(held.shape, np.bool_)
    if gap > 0:
        for kept, of_location in zip(apart, held, strict=True):
            which = np.flatnonzero(of_location)
            if which.size:
                kept[:] = distance_to(which, position) > gap + ROUNDING
    return apart


def _forecast(
    method: Method,
    cases: Cases,
    train: npt.NDArray[np.bool_],
    held: npt.NDArray[np.bool_],
    out: FloatArray,
) -> None:
    """Quantiles (L, n, Q) of the cases ``held`` (L, n), learned from those to ``train`` on."""
    which = np.flatnonzero(held.any(0))
    if which.size == 0:
        return
    learned = cases.only(train)
    fitted = method.fit_locations(learned, 2)
    new = cases.as_new(which)
    quantiles = method.predict_locations(new, learned, fitted).quantile(
        equal_mass_levels(N_HELD_OUT)
    )
    location, case = np.nonzero(held[:, which])
    out[location, which[case]] = quantiles[location, case]


def predict_component(
    component: Component,
    new: NewCases,
    cases: Cases,
    fitted: Mapping[str, npt.NDArray[Any]],
    weight: FloatArray,
) -> Distribution:
    """Forecasts of one component; one without weight (L,) may be left NaN."""
    own = state_of(component, fitted)
    if component.support is None:
        return component.method.predict_locations(new, cases, own)
    assert isinstance(component.method, CKME)
    own["ridge"] = np.where(weight > 0, own["ridge"], np.nan)  # spares the work
    return component.method.weighted_ensembles(
        new, cases, own, own_members=not component.on_observations
    )


def state_of(
    component: Component, fitted: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Parameters of one component, under their own names."""
    prefix = f"{component.label}_"
    own = {name.removeprefix(prefix): v for name, v in fitted.items() if name.startswith(prefix)}
    # One feature or more names all parameters.
    own = {name: own[name] for name in component.parameters(1) if name in own}
    return own | {"status": fitted["status"]}


class Forecasting:
    """Components of a pool as they forecast new cases; each is asked once."""

    def __init__(
        self, components: Sequence[Component], new: NewCases, cases: Cases, fitted: FitArrays
    ) -> None:
        self.components, self.new, self.cases, self.fitted = components, new, cases, fitted
        self._known: dict[int, Distribution] = {}

    def of(self, place: int, share: FloatArray) -> Distribution:
        """Forecasts of one component; see :func:`predict_component`."""
        if place not in self._known:
            self._known[place] = predict_component(
                self.components[place], self.new, self.cases, self.fitted, share
            )
        return self._known[place]

    def with_novelty(self, place: int) -> FloatArray:
        """Novelty (L, T) of the forecasts to a CKME, which forecasts by the same comparison."""
        from xrecal.arrays.distributions.forms import Empirical

        component = self.components[place]
        method = component.method
        assert isinstance(method, CKME)
        compared = method.comparison(self.new, self.cases, state_of(component, self.fitted))
        how = {"projection": method.projection, "own_members": not component.on_observations}
        *issued, novelty = arrays.ckme_weights(**compared, **how, return_novelty=True)
        self._known[place] = Empirical(*issued)
        return novelty  # type: ignore[no-any-return]

    def members(self, place: int, share: FloatArray) -> Empirical:
        """Members (L, T, k), or (L, n) observations, and weights (L, T, k) of one component."""
        from xrecal.arrays.distributions.forms import Empirical

        forecast = self.of(place, share)
        if self.components[place].on_cases:
            assert isinstance(forecast, Empirical)
            return forecast
        members = forecast.quantile(equal_mass_levels(N_QUANTILES))
        return Empirical(members, np.where(np.isnan(members), np.nan, 1 / N_QUANTILES))


def judge_of(components: Sequence[Component]) -> int | None:
    """Place of the component that knows the novelty of forecasts; None if none does."""
    places = [i for i, c in enumerate(components) if isinstance(c.method, CKME)]
    places.sort(key=lambda i: components[i].method.shapes)  # type: ignore[attr-defined]
    return places[0] if places else None


def novelty_of(forecasting: Forecasting) -> FloatArray:
    """Novelty (L, T) of forecasts to the first CKME of a pool; none is known without one.

    Where a place has too short a record, to the component that places share.
    """
    components, new, cases, fitted = (
        forecasting.components,
        forecasting.new,
        forecasting.cases,
        forecasting.fitted,
    )
    judge = judge_of(components)
    asked = [] if judge is None else [components[judge]]
    if isinstance(components[-1].method, SharedCKME):
        asked.append(components[-1])
    known = np.full(new.forecasts.loc.shape[:2], np.nan if asked else 0.0)
    for component in asked:
        if np.isnan(known).any():
            method: Any = component.method
            found = method.novelty_locations(new, cases, state_of(component, fitted))
            known = np.where(np.isnan(known), found, known)
    return known


def share_alone(
    components: Sequence[Component], state: Mapping[str, npt.NDArray[Any]], shared: SharedFits
) -> None:
    """Give all weight to what places share where the own record is too short, without tails."""
    there = np.array([held_out is not None for held_out in shared.held_out])
    alone = there & np.isnan(state["pool_weight"]).any(-1)
    state["pool_weight"][alone] = [isinstance(c.method, SharedCKME) for c in components]
    for name in FITTED:
        if name in state:
            state[name][alone] = np.nan


def issue_climatology(
    components: Sequence[Component], state: dict[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Give all weight to the first CKME, without tails, where all past forecasts are the same.

    It issues climatology there, and other methods, such as the raw forecast, do not.
    """
    from xrecal.arrays.status import IDENTICAL

    alike = (state["status"] & IDENTICAL) > 0
    if alike.any():
        state["pool_weight"][alike] = np.arange(len(components)) == judge_of(components)
        for name in FITTED:
            if name in state:
                state[name][alike] = np.nan
    return state


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
    takers = np.array([not isinstance(c.method, Raw) for c in components]) & ~observed
    of_observations, own = weight[:, observed].sum(-1), weight[:, takers].sum(-1)
    errors = [i for i, c in enumerate(components) if c.on_cases and not c.on_observations]
    mixed = weight.copy()
    if errors:
        mixed[(of_observations > 0) & (own == 0), errors[0]] = 1.0
    return GivingWay(mixed, of_observations, takers, own)
