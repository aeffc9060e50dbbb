"""The linear pool: methods together, weighted by what each says about unseen cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.inputs.covariates import SEASON
from xrecal.inputs.dates import CaseAxis, spread_of_season
from xrecal.inputs.lengths import as_span, read_gap, read_year_start
from xrecal.typing import FloatArray, IntArray

from .base import (
    N_QUANTILES,
    SHORTEST_SEASON,
    Bounds,
    Cases,
    FitArrays,
    Method,
    NewCases,
    Output,
    Parameter,
    Shown,
    check_folds,
    check_gap_in_time,
    names_of,
    near_other_folds,
    period_of_cases,
)
from .ckme import CKME
from .climatology import Climatology
from .components import (
    COMPONENT,
    N_HELD_OUT,
    OBSERVATIONS,
    Component,
    Forecasting,
    HeldOutInTime,
    components_of,
    fit_method,
    giving_way,
    issue_climatology,
    novelty_of,
    share_alone,
)
from .idr import IDR
from .mixing import AVERAGE, keep_within, mixture_of
from .novelty import shares_left
from .ranges import NOT_NEGATIVE
from .raw import Raw
from .setting_checks import check_bounds, check_choices, check_methods, check_names
from .shared_ckme import SharedCKME
from .tails import FITTED, SIDE, SIDES, tailed, tails_of_mixture, with_tail_slots

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution

NARROW = 10
"""Standard deviation, in days, of dates of the year below which the season tells nothing."""


@dataclass(frozen=True, repr=False)
class LinearPool(Shown):
    """Methods together, with the weights that forecast held-out cases best.

    No single method is right everywhere, and the one that looks best on few cases often is not.
    Weights come from the CRPS of mixtures of held-out forecasts, of blocks of cases and of later
    cases from earlier ones (which shows drift), drawn a little towards the methods that do best
    alone. With them half of the mass is the mixture of the distributions, half the average of
    their quantiles, which is sharper where methods agree on the shape and not on the place. At a
    bound its probability is mixed: the average of rain and none is no drizzle.
    The result is a weighted ensemble like any other: one block of past observations for all methods
    that weigh them, one of past errors for each CKME, 200 equal-mass quantiles for each other
    method and for the ``average``, told by ``component``.
    Where more than 1500 cases of places are pooled, there is a pool at each, with one component
    more, ``ckme_shared``: the :class:`CKME` that all places share.
    The ridge of a CKME is chosen on all calibration cases before its held-out forecasts are
    weighed, which flatters it a little against methods without one; so are its kernel and bounds.

    Components are named by method and covariates: ``ckme_season`` has errors around a regression on
    the forecast mean, weighed by likeness of forecast and season, ``ckme`` by that of the forecast
    alone; ``ckme_shapes_season`` compares forecasts without their means, and has errors in units of
    the spread that EMOS gives; then ``idr_season``, ``climatology`` and ``raw``, the forecast as it
    was issued. A CKME that is given with several supports to choose from adds that to its name:
    members at past ``observations``, or past errors around the ``mean``, around a ``regression``,
    ``standardised``, or as a ``ratio`` to the mean. ``model.state["pool_weight"].description`` has
    the settings of each.

    Parameters
    ----------
    methods : tuple of Method, optional
        What is mixed. A CKME with several supports to choose from enters with each of them. If not
        given: those above; without the season, or where it hardly varies, CKME, its shapes, IDR,
        climatology, and the raw forecast.
    average : "auto" or None
        Half of the mass is the average of quantiles, or all of it is the mixture.
    tails : "auto" or None
        What lies beyond the record: a generalised Pareto tail in place of the outer twentieth to
        tenth of the mass, on each side without a bound, or nothing. Fitted to the observations that
        exceeded mixtures of held-out forecasts.
    novelty : "auto" or None
        Where forecasts are unlike past ones, or much of what the errors of others lead to is beyond
        the observed range, components whose members are past observations give way to those whose
        are not, in the mixture and in the average; or they do not.
    bounds : "auto", (lower, upper) or None
        Of the methods mixed if none are given; as in :class:`CKME`.
    condition_on : str or tuple of str, optional
        Covariates. By default the season, where the cases have dates that cover most of a year and
        differ in their season; an empty tuple for none. Methods that are given take it where they
        leave theirs None.
    gap : int, str or timedelta
        Cases left out of training next to those held out, when components are weighed and, unless
        it has a gap of its own, when a CKME chooses: as in :class:`CKME`.
    year_start : str or int, optional
        Date on which years of cases begin, as in :class:`CKME`; likewise.

    Examples
    --------
    >>> method = xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS()))
    >>> model = hindcast.recal.fit(observations, method)
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.33
    """

    methods: tuple[Method, ...] | None = None
    average: Literal["auto"] | None = "auto"
    tails: Literal["auto"] | None = "auto"
    novelty: Literal["auto"] | None = "auto"
    bounds: Bounds = "auto"
    condition_on: str | tuple[str, ...] | None = None
    gap: int | str = 0
    year_start: str | None = None

    keeps_cases: ClassVar[bool] = True
    output: ClassVar[Output] = "weighted"
    shares_members: ClassVar[bool] = False

    def __post_init__(self) -> None:
        automatic = dict.fromkeys(("average", "tails", "novelty"), ("auto", None))
        check_choices("LinearPool", self, automatic)
        check_bounds(self)
        object.__setattr__(self, "gap", read_gap(self.gap, "LinearPool"))
        object.__setattr__(self, "year_start", read_year_start(self.year_start, "LinearPool"))
        if self.condition_on != ():
            check_names(self)
        if self.methods is None:
            return
        object.__setattr__(self, "methods", check_methods("LinearPool", self.methods))
        if self.bounds != "auto":
            raise ValueError("LinearPool: give bounds to the methods, which are named here")
        if len({m.covariates for m in self.mixed if m.covariates}) > 1:
            raise ValueError(
                "LinearPool: methods must condition on the same covariates or on none, got "
                f"{[m.covariates for m in self.mixed]}"
            )
        if len(set(self.mixed)) < len(self.mixed):
            raise ValueError(f"LinearPool: methods must differ, got {self.mixed!r}")

    @property
    def mixed(self) -> tuple[Method, ...]:
        """The methods that are mixed."""
        names = names_of(self.condition_on) or None
        if self.methods is not None:
            conditioned = (
                replace(m, condition_on=names)  # type: ignore[type-var]
                if names and m.condition_on is None and "condition_on" in vars(m)
                else m
                for m in self.methods
            )
            return tuple(self._in_time(m) for m in conditioned)
        ckme = CKME(support="regression", bounds=self.bounds, gap=self.gap)
        ckme = replace(ckme, year_start=self.year_start)
        given = ckme if names is None else replace(ckme, bandwidth="cv", condition_on=names)
        shapes = replace(given, support="standardised", compare="shapes")
        plain = () if names is None else (ckme,)
        return (given, shapes, *plain, IDR(condition_on=names), Climatology(), Raw())

    def _in_time(self, method: Method) -> Method:
        """A CKME with the gap and the years of the pool where it has none of its own."""
        if not isinstance(method, CKME):
            return method
        gap = method.gap if method.folds == "random" else method.gap or self.gap
        return replace(method, gap=gap, year_start=method.year_start or self.year_start)

    @property
    def shared(self) -> Component | None:
        """The component that places share, if there is one."""
        last = self.components[-1]
        return last if isinstance(last.method, SharedCKME) else None

    @property
    def compares(self) -> bool:
        """Whether a method that is mixed compares forecasts with past ones."""
        return any(getattr(method, "compares", False) for method in self.mixed)

    @property
    def components(self) -> tuple[Component, ...]:
        """Distributions that have a weight each."""
        return _components(self)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates of all methods."""
        return tuple(dict.fromkeys(name for method in self.mixed for name in method.covariates))

    def blocks(self, n: int) -> dict[str, int]:
        """Blocks of members and their sizes: shared observations first."""
        shared = any(c.on_observations for c in self.components)
        sizes = {OBSERVATIONS: n} if shared else {}
        for component in self.components:
            if not component.on_observations:
                sizes[component.label] = n if component.on_cases else N_QUANTILES
        return sizes if self.average is None else sizes | {AVERAGE: N_QUANTILES}

    def slots(self, n: int) -> tuple[IntArray, Sequence[str]]:
        """Cases of the members in all blocks, and the names of these."""
        on_cases = {c.label for c in self.components if c.on_cases} | {OBSERVATIONS}
        blocks = self.blocks(n)
        cases = [np.arange(k) if b in on_cases else np.full(k, -1) for b, k in blocks.items()]
        slots = np.concatenate(cases), [block for block, k in blocks.items() for _ in range(k)]
        return slots if self.tails is None else with_tail_slots(*slots)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Weights, and the parameters of each component under its label."""
        labels = tuple(component.label for component in self.components)
        parameters = {
            "pool_weight": Parameter(
                "weight of each component",
                dims={COMPONENT: len(labels)},
                labels=labels,
                within=NOT_NEGATIVE,
            )
        }
        if self.tails is not None:
            for name, meaning in FITTED.items():
                parameters[name] = Parameter(meaning, dims={SIDE: len(SIDES)}, labels=SIDES)
        for component in self.components:
            parameters |= {
                f"{component.label}_{name}": component.own(parameter)
                for name, parameter in component.parameters(n_features).items()
            }
        return parameters

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Settle on the covariates; without enough dates the season drops out, with a remark."""
        check_folds("LinearPool", "auto", axis, self.year_start)
        check_gap_in_time("LinearPool", self.gap, axis)
        near = None
        if not self.gap:
            near = near_other_folds("auto", axis, self.year_start)
        method, notes = self.with_covariates(axis, n_cases)
        return method, "; ".join(dict.fromkeys(n for n in (*notes, near) if n)) or None

    def with_covariates(
        self, axis: CaseAxis, n_cases: int
    ) -> tuple[LinearPool, Sequence[str | None]]:
        """The pool with its covariates settled, and remarks."""
        if self.methods is not None:
            checked = [method.check(axis, n_cases) for method in self.mixed]
            methods = tuple(method for method, _ in checked)
            notes = [note for _, note in checked]
            return replace(self, methods=methods, condition_on=None), notes
        if self.condition_on is not None:
            names = names_of(self.condition_on)
            return self, [period_of_cases(axis, names, method="LinearPool")]
        if axis.days is None:
            return replace(self, condition_on=()), ["no dates, so the pool leaves the season out"]
        if np.ptp(axis.days) < SHORTEST_SEASON:
            note = (
                f"cases span {np.ptp(axis.days):.0f} days, less than {SHORTEST_SEASON}, so the "
                "pool leaves the season out"
            )
            return replace(self, condition_on=()), [note]
        if axis.season is not None and spread_of_season(axis.season) < NARROW:
            return replace(self, condition_on=()), []
        remark = period_of_cases(axis, (SEASON,), method="LinearPool")
        return replace(self, condition_on=SEASON), [remark]

    def fit_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Components and their weights; see :func:`xrecal.arrays.pool_weights`."""
        from xrecal.arrays.rows import location_blocks
        from xrecal.arrays.status import TOO_FEW

        n_locations, n = cases.observations.shape
        bytes_each = 2 * 8 * len(self.components) * n * N_HELD_OUT
        parts = [
            self._fit_block(cases.take(block), min_samples)
            for block in location_blocks(n_locations, bytes_each)
        ]
        state = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        state["pool_weight"][(state["status"] & TOO_FEW) > 0] = np.nan
        state["status"] |= TOO_FEW * np.isnan(state["pool_weight"]).any(-1)
        if cases.shared is not None:
            share_alone(self.components, state, cases.shared)
        return state

    def _fit_block(self, cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
        """Fit and weigh the components at a few locations."""
        from xrecal.arrays.ckme.search import COMPARED

        n_locations, n = cases.observations.shape
        quantiles = np.empty((n_locations, 2, len(self.components), n, N_HELD_OUT))
        state: dict[str, npt.NDArray[Any]] = {
            "n_cases": np.isfinite(cases.observations).sum(-1).astype(np.int32),
            "status": np.zeros(n_locations, np.int64),
        }
        counted = np.ones((n_locations, 2, n), np.bool_)
        in_time = HeldOutInTime(as_span(self.gap), self.year_start)
        fits = (
            fit for method in self.mixed for fit in fit_method(method, cases, min_samples, in_time)
        )
        for c, (component, (fitted, held_out)) in enumerate(
            zip(self.components, fits, strict=True)
        ):
            state |= component.labelled(fitted)
            quantiles[:, :, c] = held_out
            if component is self.shared:
                continue
            state["status"] |= np.asarray(fitted["status"], np.int64)
            if component.support is not None:  # of many cases it holds out some, and so do all
                held = ~np.isnan(held_out[..., 0])
                many = np.asarray(fitted["n_cases"])[:, np.newaxis, np.newaxis] > COMPARED
                counted &= held | ~(many & held.any(-1, keepdims=True))
        np.moveaxis(quantiles, 3, 2)[~counted] = np.nan
        keep_within(quantiles, bounds := self._bounds(cases))
        state["pool_weight"] = arrays.pool_weights(quantiles, cases.observations)
        if self.tails is not None:
            held_out, weights = quantiles[:, 0], state["pool_weight"]
            tails = tails_of_mixture(held_out, weights, cases.observations, bounds)
            state |= {"tail_excess": tails.excess, "tail_shape": tails.shape}
        return issue_climatology(self.components, state)

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """No parameters: a case is its forecast and observation, from which others are learned."""
        return {}

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Components fitted to all cases, but for CKMEs: these, weights and tails stay."""
        from xrecal.arrays.status import NOT_CONVERGED

        learned = {"n_cases": np.isfinite(cases.observations).sum(-1).astype(np.int32)}
        status = fitted["status"] & ~NOT_CONVERGED
        for component in self.components:
            if isinstance(component.method, (CKME, SharedCKME)):
                continue
            own = component.method.fit_locations(cases, min_samples)
            status |= np.asarray(own["status"], status.dtype)
            learned |= component.labelled(own)
        return {**learned, "status": status}

    def _bounds(self, cases: Cases) -> FloatArray:
        """Bounds (L, 2) of the variable, as the methods that are mixed have them."""
        given = [vars(m)["bounds"] for m in self.mixed if "bounds" in vars(m)]
        found = arrays.find_bounds(cases.observations, given[0] if given else "auto")
        return np.stack(found[:2], axis=-1)

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Mixture of the components that have weight, and the novelty (L, T) of the forecasts."""
        novelty = self.novelty_locations(new, cases, fitted)
        return self.predict_locations(new, cases, fitted, novelty), novelty

    def predict_locations(
        self, new: NewCases, cases: Cases, fitted: FitArrays, novelty: FloatArray | None = None
    ) -> Distribution:
        """Mixture of the components that have weight; ``novelty`` (L, T) where it is known."""
        return self.mix(Forecasting(self.components, new, cases, fitted), novelty)

    def mix(self, forecasting: Forecasting, novelty: FloatArray | None = None) -> Distribution:
        """Mixture of the components that have weight, as they forecast."""
        from xrecal.arrays.distributions.forms import Empirical
        from xrecal.arrays.distributions.tails import Tails, mass_of

        new, cases, fitted = forecasting.new, forecasting.cases, forecasting.fitted
        n = cases.observations.shape[1]
        shares: FloatArray = fitted["pool_weight"]
        way = giving_way(self.components, shares)
        shares = shares if self.novelty is None else way.mixed
        blocks = self.blocks(n)
        bounds = self._bounds(cases)
        mixture = mixture_of(forecasting, shares, blocks, bounds)
        members, weights, _, missing = mixture
        shares = shares[:, np.newaxis]
        if self.novelty is not None and (way.of_observations > 0).any():
            known = self.novelty_locations(new, cases, fitted) if novelty is None else novelty
            taking = {self.components[i].block for i in np.flatnonzero(way.takers)}
            slots = np.repeat([block in taking for block in blocks], list(blocks.values()))
            beside = Empirical(members[..., slots], weights[..., slots])
            given = way.of_observations, way.own, known
            keeps, gets = shares_left(cases.observations, beside, *given)
            weights[..., :n] *= keeps
            weights[..., slots] *= gets
            shares = np.where([c.on_observations for c in self.components], keeps, 1.0) * shares
            shares = np.where(way.takers, gets, 1.0) * shares
        mixture.average(shares, bounds)
        weights[missing] = np.nan
        issued = Empirical(members, weights)
        if self.tails is None:
            return issued
        mass = mass_of(np.isfinite(cases.observations).sum(-1))
        tails = Tails(mass, fitted["tail_excess"], fitted["tail_shape"])
        return tailed(issued, tails, bounds)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Novelty (L, T) of forecasts; see :func:`.components.novelty_of`."""
        return novelty_of(Forecasting(self.components, new, cases, fitted))


@lru_cache(maxsize=64)
def _components(pool: LinearPool) -> tuple[Component, ...]:
    """Components of a pool, which are asked for with every forecast."""
    return components_of(pool.mixed)
