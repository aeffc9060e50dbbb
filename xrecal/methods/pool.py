"""Linear pool: a mixture of methods, with weights learned from forecasts of held-out cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from xrecal.arrays.distributions.continuous import Between, Tailed
from xrecal.arrays.distributions.forms import N_QUANTILES, Distribution, Empirical, find_bounds
from xrecal.arrays.status import IDENTICAL, NOT_CONVERGED, TOO_FEW
from xrecal.inputs.between import SIDE, SIDES
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.lengths import as_span, read_gap, read_year_start
from xrecal.typing import FloatArray, IntArray

from .base import (
    FROM_PLACES,
    N_HELD_OUT,
    NOT_NEGATIVE,
    Bounds,
    Cases,
    Chosen,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    between,
    names_of,
)
from .beyond import FITTED, shares_left, tailed, tails_of_mixture, with_tail_slots
from .ckme import CKME
from .components import (
    COMPONENT,
    OBSERVATIONS,
    Arrays,
    Component,
    Forecasting,
    components_of,
    giving_way,
    held_out_by_refits,
    judge_of,
    keep_within,
    leave_alone,
    median_of_known,
    require_same_covariates,
    stored_together,
    updated_together,
)
from .folds import (
    check_folds,
    check_gap_in_time,
    near_other_folds,
    period_of_cases,
    season_of_pool,
)
from .forest import grows
from .mixing import AVERAGE, mixture_of
from .seasons import forget_first_year, trust_in_season, with_season_in_doubt
from .settings import Settings, check_choices, check_methods, once
from .usual_methods import usual_methods
from .weighing import evidence, evidence_sizes, weights_at_places, weights_of_all

SCORES = "scores"
"""Key of the held-out CRPS of each component, divided by the smallest CRPS of all components."""

EVIDENCE = "evidence"
"""Key of a choice. At a single place, the choice is the number of cases. For all places together,
it is the trust in recalibration, from 1 to 0: less trust gives the raw forecast more weight."""

OF_POOL = ("pool_weight", *FITTED)
"""Keys of choices that belong to the pool itself; a stored model has parameters of these names."""


@dataclass(frozen=True, repr=False)
class LinearPool(Settings):
    """Mixture of methods, with the weights that forecast held-out cases best.

    No single method is the best everywhere, and few cases often do not show which method is best.
    So the pool mixes its components, each with a weight. The weights minimise the CRPS of mixtures
    of held-out forecasts. Some of these forecasts come from fits without the fold of the case.
    Others come from fits to earlier cases alone, and show whether the forecast system drifts. If
    the record has two years or more, the forecasts from earlier cases begin with the second year,
    so that the earlier cases contain all seasons. A small penalty draws the weights towards the
    components that are best alone. In a record of less than two years, a jump of the errors at one
    date may look like a seasonal cycle. If a jump explains the errors much better than a seasonal
    cycle, components that use the season lose weight.

    Half of the mass is the mixture of the components' distributions. The other half is the average
    of their quantiles. If components agree on the shape of the distribution, but not on its
    position, this average is sharper than the mixture. At a bound, the pool averages probabilities
    instead of quantiles, because an average of quantiles with and without rain would be drizzle.

    The recalibrated forecast is a weighted ensemble, whose members are in blocks. One block has the
    past observations. All methods that give weights to past observations share this block. Each
    CKME whose members are past errors added to the forecast has a block of these members. Every
    other method, and the ``average``, has a block of 200 quantiles at equally spaced levels. The
    coordinate ``component`` names the block of each member. With a pooled fit to more than 1500
    cases, each place has a pool of its own. Each of these pools has one more component,
    ``ckme_shared``: the :class:`CKME` that all places share.

    A CKME chooses its ridge, kernel and bounds from all past cases, and its held-out forecasts use
    these choices. So these forecasts know the held-out cases a little, and a CKME gets a slightly
    larger weight than methods without such choices.

    The name of a component consists of its method and its covariates:

    - ``ckme_season`` has errors in units of the spread that EMOS gives, with weights by similarity
      of forecast and season;
    - ``ckme_shapes_season`` is like ``ckme_season``, but compares forecasts without their means;
    - ``ckme`` has errors around a regression on the forecast mean, with weights by similarity of
      the forecast and of covariates other than the season;
    - ``idr_season`` and ``climatology`` are :class:`IDR` and :class:`Climatology`;
    - ``raw`` is the raw forecast.

    A CKME with a ``support`` of several kinds of members becomes one component for each kind. The
    name of such a component ends in its kind: ``observations`` for past observations, and ``mean``,
    ``regression``, ``standardised`` or ``ratio`` for the kinds of past errors. Predictors are
    covariates other than the season. With predictors, the first two components of the list occur
    twice: ``..._standardised`` uses predictors in EMOS, and ``..._standardised_plain`` does not.
    With many predictors, the pool also has ``forest_season_...``: errors in units of the spread
    that EMOS gives, with weights by the leaves of a forest.
    ``model.state["pool_weight"].description`` lists the settings of each component.

    Parameters
    ----------
    methods : tuple of Method, optional
        Methods to mix. A CKME with several kinds of members becomes one component for each kind. By
        default the pool has the components above. If the cases do not allow the season as a
        covariate, the default pool has CKME, CKME of shapes, IDR, climatology and the raw forecast.
    average : "auto" or None
        "auto": half of the mass is the average of quantiles. None: all mass is the mixture.
    tails : "auto" or None
        Distribution outside the observed range. "auto": a generalised Pareto tail replaces the
        outermost 5 to 10 % of the mass, on each side without a bound. The fit learns the tail from
        past observations that lie in the tails of held-out forecasts of the pool. None: no tail.
    novelty : "auto" or None
        "auto": components whose members are past observations lose weight to the other recalibrated
        components, in the mixture and in the average. They lose weight if the forecast is unlike
        past forecasts, or if the other components put much of the mass outside the observed range.
        None: all components keep their weight.
    bounds : "auto", (lower, upper) or None
        Bounds of the default methods, as in :class:`CKME`. Methods that you pass use their own
        bounds.
    condition_on : str or tuple of str, optional
        Covariates. The default is the season, if the dates of the cases span at least 240 days and
        are not all from the same few weeks of the year. An empty tuple means no covariates. Methods
        that you pass use the covariates of the pool if their own ``condition_on`` is None.
    gap : int, str or timedelta
        Width of the gap on both sides of the held-out cases, as in :class:`CKME`. The pool learns
        its weights with this gap. A CKME without a gap of its own makes its choices with this gap.
    year_start : str or int, optional
        Date at which years of cases begin, as in :class:`CKME`. The pool uses this date when it
        learns its weights. A CKME without a year start of its own makes its choices with it.
    forest : "auto", True or False
        True: the pool has a forest as a further component, which weights past errors by the leaves
        of trees. "auto": True if there are at least 200 cases, and at least five covariates besides
        the season. A fit needs scikit-learn to grow trees (``pip install 'xrecal[predictors]'``);
        forecasts and updates do not need it.

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
    forest: Literal["auto"] | bool = "auto"

    keeps_cases = True
    relearns = True
    settles_covariates = True
    between: ClassVar[Between] = "mean"

    def __post_init__(self) -> None:
        automatic = dict.fromkeys(("average", "tails", "novelty"), ("auto", None))
        check_choices("LinearPool", self, {**automatic, "forest": ("auto", True, False)})
        object.__setattr__(self, "gap", read_gap(self.gap, "LinearPool"))
        object.__setattr__(self, "year_start", read_year_start(self.year_start, "LinearPool"))
        super().__post_init__()
        if self.methods is None:
            return
        object.__setattr__(self, "methods", check_methods("LinearPool", self.methods))
        if self.bounds != "auto":
            raise ValueError("LinearPool: give bounds to the named methods, not to the pool")
        if self.forest is True:
            raise ValueError(
                "LinearPool: leave out forest or methods; a forest joins only the default methods"
            )
        require_same_covariates(self.mixed, self.covariates)
        if len(set(self.mixed)) < len(self.mixed):
            raise ValueError(f"LinearPool: methods must differ, got {self.mixed!r}")

    @property
    @once
    def mixed(self) -> tuple[Method, ...]:
        """Methods of the mixture, by default with the pool's covariates, gap and year start."""
        names = names_of(self.condition_on) or None
        mixed = self.methods
        if mixed is None:
            mixed = usual_methods(names, self.bounds, forest=self.forest is True)
        elif names:
            mixed = tuple(
                replace(m, condition_on=names)  # type: ignore[type-var]
                if m.condition_on is None and "condition_on" in vars(m)
                else m
                for m in mixed
            )
        return tuple(m.in_time(self.gap, self.year_start) for m in mixed)

    @property
    def shared_by_places(self) -> CKME:
        """Method of the component that all places share, if a fit pools many cases."""
        return CKME(
            condition_on=self.covariates or None,
            bounds=self._given_bounds,
            gap=self.gap,
            year_start=self.year_start,
        )

    def with_shared(self, method: Method) -> LinearPool:
        """Return the pool with one more component: a method whose fit all places share."""
        mixed = (*self.mixed, method)
        return replace(self, methods=mixed, bounds="auto", condition_on=None, forest="auto")

    @property
    def alone(self) -> LinearPool:
        """The pool without a shared component."""
        own = tuple(method for method in self.mixed if not method.by_sums)
        return replace(self, methods=own) if self.has_shared else self

    @property
    def _given_bounds(self) -> Bounds:
        """Bounds of the first method that has a setting ``bounds``; "auto" if there is none."""
        return next((vars(m)["bounds"] for m in self.mixed if "bounds" in vars(m)), "auto")

    @property
    @once
    def components(self) -> tuple[Component, ...]:
        """Components of the mixture, each with a weight."""
        return components_of(self.mixed)

    @property
    @once
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates of all methods."""
        return tuple(dict.fromkeys(name for method in self.mixed for name in method.covariates))

    @property
    def n_weighed(self) -> int:
        """Number of components; the pool learns all their weights from held-out forecasts."""
        return len(self.components)

    def blocks(self, n: int) -> dict[str, int]:
        """Return the number of members in each block of a forecast, by the names of blocks."""
        shared = any(c.on_observations for c in self.components)
        sizes = {OBSERVATIONS: n} if shared else {}
        for component in self.components:
            if not component.on_observations:
                sizes[component.label] = n if component.on_cases else N_QUANTILES
        return sizes if self.average is None else sizes | {AVERAGE: N_QUANTILES}

    def slots(self, n: int) -> tuple[IntArray, Sequence[str]]:
        """Return, for each member, the position of its past case (-1: no case), and its block."""
        on_cases = {c.label for c in self.components if c.on_cases} | {OBSERVATIONS}
        blocks = self.blocks(n)
        cases = [np.arange(k) if b in on_cases else np.full(k, -1) for b, k in blocks.items()]
        slots = np.concatenate(cases), [block for block, k in blocks.items() for _ in range(k)]
        return slots if self.tails is None else with_tail_slots(*slots)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: weights, tails, and all parameters of the components."""
        labels = tuple(component.label for component in self.components)
        parameters = {
            "pool_weight": Parameter(
                "weight of each component",
                dims={COMPONENT: len(labels)},
                labels=labels,
                description="; ".join(f"{c.label}: {c.meaning}" for c in self.components),
                within=NOT_NEGATIVE,
            )
        }
        if self.tails is not None:
            for name, meaning in FITTED.items():
                parameters[name] = Parameter(meaning, dims={SIDE: len(SIDES)}, labels=SIDES)
        for component in self.components:
            parameters |= component.stored_parameters(n_features)
        return parameters | FROM_PLACES

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method with its covariates, and a remark or None.

        A remark explains, for example, why the pool leaves the season out. Raises ValueError if the
        settings need dates that the cases lack.
        """
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
        """Return the pool, with covariates and a forest if the cases allow them, and remarks."""
        if self.methods is not None:
            checked = [method.check(axis, n_cases) for method in self.mixed]
            methods = tuple(method for method, _ in checked)
            notes = [note for _, note in checked]
            return replace(self, methods=methods, condition_on=None), notes
        if self.condition_on is not None:
            names = names_of(self.condition_on)
            note = period_of_cases(axis, names, method="LinearPool")
            return self.with_forest(n_cases), [note]
        season, note = season_of_pool(axis)
        return replace(self, condition_on=season).with_forest(n_cases), [note]

    def with_forest(self, n_cases: int) -> LinearPool:
        """Return the pool, with a forest if ``forest="auto"`` finds enough covariates and cases."""
        left = self.forest == "auto" and self.methods is None
        return replace(self, forest=True) if left and grows(self.covariates, n_cases) else self

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Return the values of added cases, for the parameters with one value per case."""
        return updated_together(self.components, added, fitted, slots)

    @property
    @once
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the choices: weights, tails, and choices of the components."""
        sizes: dict[str, tuple[int, ...]] = {"pool_weight": (len(self.components),), EVIDENCE: ()}
        if self.tails is not None:
            sizes |= dict.fromkeys(FITTED, (len(SIDES),))
        for component in self.components:
            sizes |= component.named_as_choices(component.forecaster.choice_sizes)
        return sizes

    @property
    @once
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the scores and losses from which places choose settings together."""
        sizes: dict[str, tuple[int, ...]] = {SCORES: (len(self.components),)}
        if self.has_shared:
            sizes |= evidence_sizes(len(self.components))
        for component in self.components:
            sizes |= component.named_as_choices(component.forecaster.evidence_sizes)
        return sizes

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Return joint choices (1, ...) of components, joint weights, and median tails."""
        from xrecal.arrays.distributions.pool import evidence_against, mean_weights

        whole: Arrays = {EVIDENCE: np.ones(1)}
        if self._issued is not None:
            found = evidence_against(choices[SCORES], self._issued, choices[EVIDENCE])
            whole[EVIDENCE][:] = found
        if self.has_shared:
            whole |= weights_of_all(self.components, choices, choices[EVIDENCE])
        else:
            weight = mean_weights(choices["pool_weight"])
            whole["pool_weight"] = self._faded(weight, whole[EVIDENCE])
        for name in FITTED:
            if name in choices:
                whole[name] = median_of_known(choices[name])
        for component in self.components:
            whole |= component.together(choices)
        return whole

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Return choices, weights and tails (L, ...) that lie between joint and own values."""
        faded = {**own, "pool_weight": self._faded(own["pool_weight"], together[EVIDENCE])}
        found: Arrays = {
            name: between(together[name], faded[name], share)
            for name in OF_POOL
            if name in together
        }
        found[EVIDENCE] = together[EVIDENCE]
        if self.has_shared:
            weights = weights_at_places(self.components, together, own, share)
            found["pool_weight"] = self._faded(weights, together[EVIDENCE])
        for component in self.components:
            found |= component.with_own(together, own, share)
        return found

    @property
    def _issued(self) -> int | None:
        """Position of the raw forecast among the components; None if it is not a component."""
        unchanged = [not c.method.recalibrates for c in self.components]
        return unchanged.index(True) if any(unchanged) else None

    def share_as_issued(self, weight: FloatArray) -> float:
        """Return the weight of the raw forecast among weights (C,); NaN if it is no component."""
        return np.nan if self._issued is None else float(weight[self._issued])

    def _faded(self, weight: FloatArray, evidence: FloatArray) -> FloatArray:
        """Scale weights (L, C) by the trust ``evidence`` (L,); the raw forecast gets the rest."""
        if self._issued is None:
            return weight
        faded = weight * evidence[:, np.newaxis]
        faded[:, self._issued] += 1.0 - evidence
        return faded

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Search for the choices of the components, and learn their weights and tails."""
        return self._tried(cases, min_samples)[0]

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit the components and their weights; see :func:`xrecal.arrays.pool_weights`."""
        if choices is None:
            choices, state = self._tried(cases, min_samples)
        else:
            own = [c for c in self.components if not c.method.by_sums]
            state = stored_together((c, c.fit(cases, min_samples, choices)) for c in own)
        weighed = {name: np.array(choices[name]) for name in OF_POOL if name in choices}
        n_cases = np.isfinite(cases.observations).sum(-1).astype(np.int32)
        state = {**state, **weighed, "n_cases": n_cases}
        judge = judge_of(self.components)
        # A CKME issues climatology if all past forecasts are equal; others, like raw, do not.
        alike = (state["status"] & IDENTICAL) > 0
        leave_alone(state, alike, [c is judge for c in self.components])
        state["pool_weight"][(state["status"] & TOO_FEW) > 0] = np.nan
        state["status"] |= TOO_FEW * np.isnan(state["pool_weight"]).any(-1)
        if cases.shared is not None:  # a place with too short a record has only this component
            there = np.array([fits is not None for fits in cases.shared.fits])
            alone = there & np.isnan(state["pool_weight"]).any(-1)
            leave_alone(state, alone, [c.method.by_sums for c in self.components])
        return state

    def _tried(self, cases: Cases, min_samples: int) -> tuple[Arrays, Arrays]:
        """Return the choices, and the parameters of the components, fitted with these choices."""
        from xrecal.arrays.rows import location_blocks

        n_locations, n = cases.observations.shape
        bytes_each = 2 * 8 * len(self.components) * n * N_HELD_OUT
        parts = [
            self._tried_block(cases.take(block), min_samples)
            for block in location_blocks(n_locations, bytes_each)
        ]
        choices, state = (
            {name: np.concatenate([part[name] for part in each]) for name in each[0]}
            for each in zip(*parts, strict=True)
        )
        return choices, state

    def _tried_block(self, cases: Cases, min_samples: int) -> tuple[Arrays, Arrays]:
        """Return the choices and the parameters of components at a few locations."""
        from xrecal.arrays.ckme.search import COMPARED
        from xrecal.arrays.distributions.forms import moments
        from xrecal.arrays.distributions.pool import (
            pool_scores,
            relative_crps,
            weights_of_scores,
        )

        assert cases.forecasts is not None
        cases = replace(cases, mean=moments(cases.forecasts)[0])  # refits need the mean again
        n_locations, n = cases.observations.shape
        quantiles = np.empty((n_locations, 2, len(self.components), n, N_HELD_OUT))
        counted = np.ones((n_locations, 2, n), np.bool_)
        choices: Arrays = {}
        fits: list[tuple[Component, FitArrays]] = []
        refits = partial(
            held_out_by_refits, cases=cases, gap=as_span(self.gap), year_start=self.year_start
        )
        trials = (
            trial
            for method in self.mixed
            for trial in method.try_locations(cases, min_samples, refits)
        )
        for c, (component, trial) in enumerate(zip(self.components, trials, strict=True)):
            quantiles[:, :, c] = trial.held_out
            if component.method.by_sums:
                continue
            choices |= component.named_as_choices(trial.choices)
            fits.append((component, trial.fitted))
            if component.support is not None:  # its search holds out only some of many cases
                held = ~np.isnan(trial.held_out[..., 0])
                many = np.asarray(trial.fitted["n_cases"])[:, np.newaxis, np.newaxis] > COMPARED
                counted &= held | ~(many & held.any(-1, keepdims=True))
        np.moveaxis(quantiles, 3, 2)[~counted] = np.nan
        forget_first_year(quantiles[:, 1], self.components, cases.axis.days)
        keep_within(quantiles, bounds := self._bounds(cases))
        scores = pool_scores(quantiles, cases.observations)
        weights, trust = weights_of_scores(scores), trust_in_season(self.components, cases)
        choices["pool_weight"] = with_season_in_doubt(self.components, weights, scores, trust)
        choices[SCORES] = relative_crps(scores)
        if self.has_shared:
            choices |= evidence(scores, trust)
        choices[EVIDENCE] = np.isfinite(cases.observations).sum(-1).astype(np.float64)
        if self.tails is not None:
            held_out, weights = quantiles[:, 0], choices["pool_weight"]
            tails = tails_of_mixture(held_out, weights, cases.observations, bounds)
            choices |= {"tail_excess": tails.excess, "tail_shape": tails.shape}
        return choices, stored_together(fits)

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Refit all components except CKMEs and forests; weights and tails do not change."""
        learned = {"n_cases": np.isfinite(cases.observations).sum(-1).astype(np.int32)}
        status = fitted["status"] & ~NOT_CONVERGED
        for component in self.components:
            if component.method.keeps_choices:
                continue
            own = component.method.fit_locations(cases, min_samples)
            status |= np.asarray(own["status"], status.dtype)
            learned |= component.stored(own)
        return {**learned, "status": status}

    def _bounds(self, cases: Cases) -> FloatArray:
        """Return the bounds (L, 2) of the variable, by the settings of the pool's methods."""
        found = find_bounds(cases.observations, self._given_bounds)
        return np.stack(found[:2], axis=-1)

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Return mixtures of the components, and the novelty (L, T) of the forecasts."""
        novelty = self.novelty_locations(new, cases, fitted)
        return self.predict_locations(new, cases, fitted, novelty), novelty

    def predict_locations(
        self, new: NewCases, cases: Cases, fitted: FitArrays, novelty: FloatArray | None = None
    ) -> Distribution:
        """Return mixtures (L, T) of the components; ``novelty`` (L, T) is None if it is unknown."""
        return self.mix(Forecasting(self.components, new, cases, fitted), novelty)

    def mix(self, forecasting: Forecasting, novelty: FloatArray | None = None) -> Distribution:
        """Mix the forecasts of the components; ``novelty`` (L, T) is None if it is unknown."""
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
            slots = np.flatnonzero(np.repeat([b in taking for b in blocks], list(blocks.values())))
            # Each row is one piece, so sums have the same order for any number of rows.
            beside = Empirical(*(np.take(part, slots, axis=-1) for part in (members, weights)))
            given = way.of_observations, way.own, known
            keeps, gets = shares_left(cases.observations, beside, *given)
            weights[..., :n] *= keeps
            weights[..., slots] *= gets
            shares = np.where([c.on_observations for c in self.components], keeps, 1.0) * shares
            shares = np.where(way.takers, gets, 1.0) * shares
        mixture.average(shares, bounds)
        weights[missing] = np.nan
        issued = Tailed(members, weights)
        if self.tails is None:
            return issued
        mass = mass_of(np.isfinite(cases.observations).sum(-1))
        tails = Tails(mass, fitted["tail_excess"], fitted["tail_shape"])
        return tailed(issued, tails, bounds)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Return the novelty (L, T) of forecasts; see :meth:`.components.Forecasting.novelty`."""
        return Forecasting(self.components, new, cases, fitted).novelty()
