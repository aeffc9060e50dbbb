"""Online pool: an average of experts, whose weights change with every verified case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from xrecal.arrays.distributions.continuous import Between, Linear
from xrecal.arrays.distributions.forms import Distribution, find_bounds
from xrecal.inputs.covariates import AHEAD
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.lengths import read_gap, read_length
from xrecal.typing import FloatArray, IntArray

from .base import (
    ANY,
    FROM_PLACES,
    NOT_NEGATIVE,
    Bounds,
    Cases,
    Chosen,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    count_cases,
    equally_likely,
)
from .components import Arrays
from .corrected import LAST_IN_COMMON, Errors, parameters_of_errors, standardised_predictors
from .experts import N_LEVELS, Experts
from .known import first_due, known_of
from .online_state import (
    COMMON,
    EARLIER,
    IN_COMMON,
    NOTHING_SAID,
    OF_WEIGHTS,
    Fitting,
    Said,
    blank_arrays,
    common_at_end,
    each_place,
    earlier_choices,
    learning_settings,
    predictors_recorded,
    quantiles_of_new,
    record_known,
    shaped_like,
    state_of,
    warm_up_cases,
    weights_learned,
)
from .pool import LinearPool
from .settings import Settings, once
from .shared_ckme import SharedCKME, as_shared

# Settings of the pool under the same names.
OF_POOL = ("methods", "condition_on", "forest", "gap")

FORMER = "former_"
"""Prefix of the names of parameters from an earlier fit of the slow experts: the fit before their
last fit. The method refits slow experts only at intervals."""

STRATEGY, SCORED, EXPERT, LEVEL = "pool_strategy", "scored_strategy", "expert", "expert_level"
"""Names of the dimensions of strategies (ways to weight experts), scores, experts, and levels."""


@dataclass(frozen=True, repr=False)
class OnlinePool(Settings):
    """Experts whose weights change with every verified case, for forecasts issued every day.

    A :class:`LinearPool` suits a forecast system that does not change. An online pool has a linear
    pool, called the pool below, as one of several experts. The other experts are the pool's
    components, the raw forecast, EMOS on all cases, and experts that learn only from the last
    verified cases: EMOS on 30, 60 and 120 cases, 91 errors added to the ensemble mean, and a CKME
    of 250 errors with a half-life of 60 cases. Three more experts are the pool or this CKME,
    corrected for the expected error: the pool in mean and spread, this CKME in mean and spread, and
    the pool in the mean alone. A regression on the last 400 errors of the uncorrected expert
    predicts the expected error. With several places, this regression also uses means over all
    places: of the last known errors, and of the differences between forecasts and last known cases.

    Each expert forecasts 100 quantiles. At each level, the issued quantile is a weighted average of
    the experts' quantiles. If the variable has a bound, the probability of the bound is an average
    of the experts' probabilities. Bernstein online aggregation [1]_ computes the weights at each
    level, from regrets smoothed over the levels [2]_. The aggregation forgets past cases at three
    rates. The weights at one rate are called a strategy, so there are three strategies. One more
    strategy gives all the weight to the pool. The issued forecast averages the strategies; a
    strategy with a smaller CRPS gets a larger weight. Before the first case the experts have equal
    weights. Only the raw forecast has a larger weight, up to half, if it has a large weight in the
    pool.

    With several places, the weights also depend on common regrets. A regret is the loss of the
    issued forecasts minus the loss of an expert, summed over cases. A common regret is the mean of
    the regrets of all places, each in units of the CRPS of its place. This mean includes all cases
    that have verified so far at any place. At each rate of forgetting there are two more
    strategies: one computes weights from half own and half common regrets, and the other computes
    weights from common regrets alone. If there are more than 64 places, a sample of 64 places,
    chosen by their labels, represents all places. An update of several places computes the common
    regrets and the mean errors of these places. An update of a single place uses the latest stored
    common regrets, and no mean errors. The means of forecasts are over the places of a call, so a
    call for all places can differ from calls for some of them. Places share nothing if labels are
    valid times and leads differ; a warning says so.

    If ``fit(..., pool=)`` pools more than 1500 cases, each place has experts of its own and one
    shared expert: a :class:`CKME` of the cases of all places. Before the first case the shared
    expert has at least 30 / (30 + n) of the weight, where n is the number of cases in the last fit
    of the place's slow experts. At a place with too few cases for experts of its own, the shared
    expert has all the weight. An update adds the new cases of all places to the sums of the shared
    expert. If an update adds a place, the shared expert forecasts this place from the features and
    the cases of the place.

    ``fit`` first fits the experts without the last cases of the hindcast, and learns the weights
    from the experts' forecasts of these last cases. Then ``fit`` fits the experts to all cases.
    ``model.update`` learns from the new cases, one after another. The experts first forecast a new
    case from the cases that had verified when it was issued. ``model.update`` compares these
    forecasts with the observation, and changes the weights. After that, the experts learn from the
    case. The slow experts, which are the pool, its components and EMOS on all cases, are fitted
    again at intervals of ``refit``. One update with thirty days makes the same model as thirty
    updates of one day.

    Parameters
    ----------
    methods : tuple of Method, optional
        Methods of the pool, as in :class:`LinearPool`.
    delay : int, str or timedelta
        Time from the valid time of an observation until it is known: a number of cases, or a length
        of time such as "2D". Valid times come from labels: start plus lead, or a coordinate
        ``valid_time``. Without these labels, the pool assumes that each case verifies before the
        next case is issued.
    refit : int, str or timedelta
        Time between two fits of the slow experts: a number of cases, or a length of time such as
        "90D". If forecasts take longer than ``refit`` to verify, the time between two fits is
        longer.
    bounds : "auto", (lower, upper) or None
        Bounds of the variable, as in :class:`CKME`. With "auto", each fit of the slow experts finds
        the bounds again.
    condition_on : str or tuple of str, optional
        Covariates of the pool and of EMOS on all cases; by default as in :class:`LinearPool`.
    forest : "auto", True or False
        Forest of the pool, as in :class:`LinearPool`. An update that fits the pool again needs
        scikit-learn too.
    gap : int, str or timedelta
        Gap of the pool, as in :class:`LinearPool`.

    References
    ----------
    .. [1] Wintenberger (2017), Optimal learning with Bernstein online aggregation.
       https://doi.org/10.1007/s10994-016-5592-6
    .. [2] Berrisch & Ziel (2023), CRPS learning. https://doi.org/10.1016/j.jeconom.2021.11.008

    Examples
    --------
    >>> model = hindcast[:40].recal.fit(observations, xrecal.OnlinePool())
    >>> model = model.update(hindcast[40:], observations)
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.33
    """

    methods: tuple[Method, ...] | None = None
    delay: int | str = 0
    refit: int | str = 90
    bounds: Bounds = "auto"
    condition_on: str | tuple[str, ...] | None = None
    forest: Literal["auto"] | bool = "auto"
    gap: int | str = 0

    keeps_cases = True
    relearns = True
    in_order = True
    settles_covariates = True
    has_own_bounds = True
    between: ClassVar[Between] = "linear"
    in_common = IN_COMMON

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", read_length(self.delay, "OnlinePool", "delay"))
        object.__setattr__(self, "refit", read_length(self.refit, "OnlinePool", "refit", least=1))
        object.__setattr__(self, "gap", read_gap(self.gap, "OnlinePool"))
        super().__post_init__()
        try:
            methods = self.pool.methods
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("LinearPool", "OnlinePool")) from None
        object.__setattr__(self, "methods", self._with_law(methods))

    @property
    def law(self) -> SharedCKME | None:
        """Method of the shared expert, which is one fit for all places; None without one."""
        given = self.methods if isinstance(self.methods, tuple) else ()
        return next((as_shared(m) for m in given if isinstance(m, Method) and m.by_sums), None)

    def _with_law(self, methods: tuple[Method, ...] | None) -> tuple[Method, ...] | None:
        """Add the method of the shared expert, if there is one, to the methods of the pool."""
        return methods if methods is None or self.law is None else (*methods, self.law)

    @property
    @once
    def pool(self) -> LinearPool:
        """The linear pool, which is one of the slow experts."""
        given, bounds = {name: getattr(self, name) for name in OF_POOL}, self.bounds
        if self.methods is not None:
            bounds = "auto"
        if self.methods is not None and self.law is not None:
            given["methods"] = tuple(m for m in self.methods if m is not self.law)
        return LinearPool(bounds=bounds, **given)

    @property
    @once
    def experts(self) -> Experts:
        """All experts of the online pool."""
        return Experts(self.pool, self.bounds, self.law)

    @property
    def mixed(self) -> tuple[Method, ...]:
        """Methods of the linear pool, EMOS, the recent CKME, and the shared expert's method."""
        experts, law = self.experts, self.law
        own = (*self.pool.mixed, experts.emos.method, experts.recent.method)
        return own if law is None else (*own, law)

    @property
    def shared_by_places(self) -> Method:
        """Method of the shared expert, if a fit pools many cases."""
        return self.pool.shared_by_places

    def with_shared(self, method: Method) -> OnlinePool:
        """Return the online pool with a shared expert, whose ``method`` learns with each update."""
        law = replace(as_shared(method), keeps_sums=True)
        methods = (*self.pool.mixed, law)
        return replace(self, methods=methods, condition_on=None, forest="auto")

    @property
    def alone(self) -> OnlinePool:
        """Online pool without the shared expert."""
        return self if self.law is None else replace(self, methods=self.pool.methods)

    @property
    def knows_novelty(self) -> bool:
        """True if the linear pool or the shared expert compares forecasts with past forecasts."""
        return self.pool.knows_novelty or self.law is not None

    @property
    def mostly(self) -> LinearPool:
        """The linear pool; its fit takes most of the time of a fit of the online pool."""
        return self.pool

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the linear pool's covariates, and of the time from issue to valid time."""
        return (*self.pool.covariates, AHEAD)

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Return -1 for each issued quantile, because quantiles belong to no past case."""
        return np.full(N_LEVELS, -1), None

    @once
    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters of each place, and the parameters of the shared expert."""
        shared, n = self.experts.shared, max(n_features - 1, 0)
        of_all = {} if shared is None else shared.stored_parameters(n)
        return {**self.parameters_of_place(n_features), **of_all}

    def parameters_of_place(self, n_features: int) -> Mapping[str, Parameter]:
        """Return parameters of the experts' weights, and of the last two fits of slow experts."""
        from xrecal.arrays.online.state import FORGETTING, PARTS

        labels = self.experts.labels
        n_strategies = len(FORGETTING)
        n_scored = n_strategies * (1 + len(PARTS)) + 1
        by_level = {STRATEGY: n_strategies, EXPERT: len(labels), LEVEL: N_LEVELS}
        by_expert = {STRATEGY: n_strategies, EXPERT: len(labels)}
        last = partial(Parameter, dtype=np.int32, of_slots=True)
        slow = self.experts.parameters(max(n_features - 1, 0))  # verification time is not a feature
        former = {
            FORMER + name: replace(p, labels=(), description="", for_updates=True)
            for name, p in slow.items()
        }
        return {
            "expert_weight": Parameter(
                "weight of each expert, mean over the levels",
                dims={EXPERT: len(labels)},
                labels=labels,
                within=NOT_NEGATIVE,
            ),
            "regret": Parameter("regret of each expert", True, dims=by_level),
            "square": Parameter("sum of squared regret steps", dims=by_level, within=NOT_NEGATIVE),
            "largest": Parameter("largest regret step", True, dims=by_expert, within=NOT_NEGATIVE),
            "score": Parameter("discounted CRPS of each strategy", True, dims={SCORED: n_scored}),
            "n_scored": Parameter("discounted number of cases in the scores", within=NOT_NEGATIVE),
            "lower": Parameter("lower bound", True, within=ANY),
            "upper": Parameter("upper bound", True, within=ANY),
            **parameters_of_errors(),
            "last_learned": last("last case from which weights were learned"),
            "last_fitted": last("last case of the last fit of slow experts"),
            f"{FORMER}last_fitted": last(
                "last case of the fit of slow experts before the last fit", for_updates=True
            ),
            **slow,
            **former,
            **FROM_PLACES,
            COMMON: Parameter(
                "regret of each expert, mean over places, in units of the CRPS of each place",
                dims=by_level,
                of_all_places=True,
            ),
        }

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method with the covariates that it uses, and a remark for the user or None.

        Raises ValueError if ``delay`` or ``refit`` is a length of time and the cases have no dates.
        """
        for name in ("delay", "refit"):
            if isinstance(getattr(self, name), str) and axis.days is None:
                raise ValueError(
                    f"OnlinePool: {name}={getattr(self, name)!r} needs dates (datetime64 or "
                    "cftime) along the calibration dimension; add a coordinate, or give a number "
                    "of cases"
                )
        try:
            pool, notes = self.pool.with_covariates(axis, n_cases)
        except (ImportError, ValueError) as error:
            raise type(error)(str(error).replace("LinearPool", "OnlinePool")) from None
        settled = replace(self, **{name: getattr(pool, name) for name in OF_POOL})
        settled = replace(settled, methods=self._with_law(pool.methods))
        return settled, "; ".join(dict.fromkeys(note for note in notes if note)) or None

    @property
    @once
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the choices. The fit makes each choice twice; see :meth:`choose_locations`."""
        own = self.experts.choice_sizes
        return {**own, **{EARLIER + name: size for name, size in own.items()}}

    @property
    @once
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the losses of candidates, for both choices of :meth:`choose_locations`."""
        own = self.experts.evidence_sizes
        return {**own, **{EARLIER + name: size for name, size in own.items()}}

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Return joint choices of places, for both choices of :meth:`choose_locations`."""
        of_warm_up = self.experts.together(earlier_choices(choices)).items()
        return self.experts.together(choices) | {EARLIER + n: a for n, a in of_warm_up}

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Return choices (L, ...) that lie between joint choices and the places' own choices."""
        earlier = (earlier_choices(together), earlier_choices(own))
        of_warm_up = self.experts.with_own(*earlier, share).items()
        both = self.experts.with_own(together, own, share)
        return both | {EARLIER + n: a for n, a in of_warm_up}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Choose settings twice: from all cases, and from the cases before the warm-up.

        The warm-up learns the first weights of the experts from the last cases. Its experts must
        not know these cases, so they use the second choices.
        """
        parts = []
        for one, _ in each_place(cases, {}):
            found = self.experts.choose(one, min_samples)
            first = warm_up_cases(one, known_of(one, self.delay), min_samples)
            if first.size:
                before = one.select(np.arange(int(known_of(one, self.delay)[first[0]])))
                earlier = self.experts.choose(before, min_samples)
            else:
                earlier = {name: np.full_like(a, np.nan, float) for name, a in found.items()}
            parts.append(found | {EARLIER + name: a for name, a in earlier.items()})
        return {name: np.concatenate([own[name] for own in parts]) for name in parts[0]}

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit the experts, and learn their weights from their forecasts of the last cases."""
        return self._learned(
            cases,
            blank_arrays(
                self.parameters_of_place(cases.covariates.n_features), *cases.observations.shape
            ),
            Fitting(min_samples, choices),
            together=True,
        )

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Update the weights with the new cases, one by one, and refit slow experts when due."""
        names = self.parameters_of_place(cases.covariates.n_features)
        own = {name: fitted[name] for name in names}
        return self._learned(cases, own, Fitting(min_samples), together=False)

    def foretell_locations(self, cases: Cases, fitted: FitArrays) -> Sequence[Said]:
        """Return the experts' quantiles of the first new cases at each location."""
        return quantiles_of_new(self.experts, self.delay, cases, fitted)

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return averages of the experts' quantiles, as members with equal weights."""
        from xrecal.arrays.online.aggregation import issue

        experts, n = self.experts, cases.observations.shape[1]
        members = np.full((*new.forecasts.loc.shape[:2], N_LEVELS), np.nan)
        shared, _ = experts.shared_with_novelty(new, cases, fitted)
        if shared is not None:  # the only expert if the record is too short
            members[:] = shared
        of_place = self.parameters_of_place(cases.covariates.n_features)
        slow = {name: fitted[name] for name in of_place.keys() & fitted.keys()}
        fits = (slow["last_fitted"] + 1) * bool(members.shape[1])
        for i, said in experts.quantiles_at(new, cases, slow, fits, np.full(fits.shape, n)):
            at = slice(i, i + 1)
            own, one, part = new.take(at), cases.take(at), {n: a[at] for n, a in slow.items()}
            if experts.shared is not None and shared is not None:
                said[experts.shared.label] = shared[i]
            errors, _ = Errors.of(part, one, self.delay)
            at_issue = errors.at_issue(one, own, part[LAST_IN_COMMON][0])
            said |= errors.correct(said, at_issue, n, experts.limits(part))
            settings, common = learning_settings(experts, one, part), part[COMMON][0]
            members[i] = issue(state_of(part), settings, experts.stacked(said), common)[0]
        return equally_likely(members, new.forecasts.loc.dtype, Linear)

    def predictors_of_new(self, new: NewCases, cases: Cases) -> FloatArray:
        """Return standardised predictors of errors (L, T, 3), whose means places have in common."""
        found = []
        for i, (one, _) in enumerate(each_place(cases, {})):
            of = new.forecasts.take(slice(i, i + 1))
            found.append(standardised_predictors(one, of, self.delay))
        return np.stack(found)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Return novelty (L, T) from the linear pool, or else from the shared expert."""
        _, novelty = self.experts.shared_with_novelty(new, cases, fitted)
        if not self.pool.knows_novelty:
            return novelty
        for i, (one, part) in enumerate(each_place(cases, fitted)):
            fits = int(part["last_fitted"][0]) + 1
            if fits > 0:
                own = new.take(slice(i, i + 1))
                novelty[i] = self.experts.novelty(own, one, part, fits)[0]
        return novelty

    def _learned(
        self, cases: Cases, given: Arrays, fitting: Fitting, *, together: bool
    ) -> FitArrays:
        """Fit locations without a fit, and update all others, starting from the state ``given``."""
        if predictors_recorded(cases, self.delay):
            return given | count_cases(cases, fitting.min_samples)
        parts, known = [], cases.foretold
        said = self.foretell_locations(cases, given) if known is None else known
        for i, (one, part) in enumerate(each_place(cases, given)):
            if begins := part["last_fitted"][0] < 0:  # a place that joined later has no weights yet
                part |= {name: np.zeros_like(part[name]) for name in OF_WEIGHTS}
            record_known(one, part)
            if begins:
                part = self._begun(one, part, fitting.at(i), together=together)
            else:
                part = self._advanced(one, part, fitting.at(i), before=said[i])
            parts.append(self._weighed(one, part | common_at_end(one)))
        whole: Arrays = {
            name: np.concatenate([part[name] for part in parts]).astype(like.dtype, copy=False)
            for name, like in given.items()
        }
        return whole | count_cases(cases, fitting.min_samples)

    def _begun(
        self, cases: Cases, blank: Arrays, fitting: Fitting, *, together: bool = False
    ) -> Arrays:
        """Fit the experts at a location for the first time, and train their weights.

        With ``together``, the method first fits the experts to the cases before the warm-up. It
        then updates the weights with the warm-up cases, and fits the experts to all cases. Without
        ``together``, it first fits the experts to the first ``min_samples`` cases. It then updates
        weights and fits with the later cases.
        """
        verified, min_samples = (
            np.flatnonzero(np.isfinite(cases.observations[0])),
            fitting.min_samples,
        )
        if verified.size < min_samples:
            return blank
        known = known_of(cases, self.delay)
        enough = warm_up_cases(cases, known, min_samples) if together else verified[:0]
        if enough.size == 0:  # weights will be learned from later cases
            n_first = verified[-1] if together else verified[min_samples - 1]
            part = self._fitted_again(cases, blank, int(n_first), fitting)
            part["last_learned"] = part["last_fitted"]
            return part if together else self._advanced(cases, part, fitting)
        before = fitting.in_warm_up()
        part = self._fitted_again(cases, blank, int(known[enough[0]]) - 1, before)
        part["last_learned"] = np.array([enough[0] - 1])
        part = self._advanced(cases, part, before, together=True)
        last = int(verified[-1])
        if int(part["last_fitted"][0]) < min(last, int(known[last])):
            part = self._fitted_again(cases, part, last, fitting)
        return part

    def _advanced(
        self,
        cases: Cases,
        part: Arrays,
        fitting: Fitting,
        *,
        together: bool = False,
        before: Said = NOTHING_SAID,
    ) -> Arrays:
        """Update a location with all cases that have verified since the last update.

        The experts forecast each case separately, so the result does not depend on the number of
        cases in an update. With ``together``, the experts forecast all cases between two fits at
        once, which is faster and gives the same result up to rounding. For some cases, ``before``
        already has the experts' quantiles.
        """
        known = known_of(cases, self.delay)
        verified = np.flatnonzero(np.isfinite(cases.observations[0]))
        verified = verified[verified > int(part["last_learned"][0])]
        while verified.size:
            due = first_due(cases.axis, verified, known, int(part["last_fitted"][0]), self.refit)
            now, verified = verified[: due + 1], verified[due + 1 :]
            said, errors = self._said(cases, now, known, part, before, together=together)
            learned = weights_learned(self.experts, cases, part, now, said)
            part = part | dict(zip(OF_WEIGHTS, learned, strict=True)) | errors.named()
            part["last_learned"] = now[-1:]
            if due < now.size:
                part = self._fitted_again(cases, part, int(now[-1]), fitting)
        return part

    def _weighed(self, cases: Cases, part: Arrays) -> Arrays:
        """If a location has a fit, add the mean weights of its experts to its parameters."""
        from xrecal.arrays.online.aggregation import mean_weights

        if part["last_fitted"][0] < 0:
            return part
        weights = mean_weights(
            state_of(part), learning_settings(self.experts, cases, part), part[COMMON][0]
        )
        return part | {"expert_weight": weights}

    def _said(
        self,
        cases: Cases,
        which: IntArray,
        known: IntArray,
        part: Arrays,
        before: Said,
        *,
        together: bool,
    ) -> tuple[FloatArray, Errors]:
        """Return J quantiles (1, T, K, J) of K experts for T cases, and the errors to store."""
        experts, said = self.experts, []
        errors, at_issue = Errors.of(part, cases, self.delay, which)
        slow = part, int(part["last_fitted"][0]) + 1
        former = (
            {n.removeprefix(FORMER): a for n, a in part.items() if n.startswith(FORMER)},
            int(part[FORMER + "last_fitted"][0]) + 1,
        )
        by_slow = known[which] >= slow[1]
        by_all = together and by_slow.all()
        every = experts.slow_quantiles(cases.as_new(which), cases, *slow) if by_all else {}
        parts = [slice(None)] if together else [slice(t, t + 1) for t in range(which.size)]
        asked = [experts.shared_quantiles(cases, which[p], known[which[p]]) for p in parts]
        shared = {label: np.concatenate([a[label] for a in asked]) for label in asked[0]}
        for t, case in enumerate(which):
            of, fits = slow if by_slow[t] or former[1] == 0 else former
            new = cases.as_new(which[t : t + 1])
            own, n_known = at_issue[t : t + 1], int(known[case])
            found = dict(before.get((int(case), fits), {}))
            if not found:
                issued_now = {n: q[:, t : t + 1] for n, q in every.items()}
                issued_now = issued_now or experts.slow_quantiles(new, cases, of, fits)
                issued_now |= experts.fast_quantiles(new, cases, of, n_known)
                found = {label: quantiles[0] for label, quantiles in issued_now.items()}
            found |= {label: quantiles[t : t + 1] for label, quantiles in shared.items()}
            found |= errors.correct(found, own, n_known, experts.limits(of))
            said.append(experts.stacked(found))
            errors = errors.plus(int(case), found, cases.observations[0, case], own, n_known)
        return np.concatenate(said, axis=1), errors

    def _fitted_again(self, cases: Cases, part: Arrays, last: int, fitting: Fitting) -> Arrays:
        """Refit the slow experts of a location to the cases up to position ``last``."""
        learned = cases.select(np.arange(last + 1))
        names = [n.removeprefix(FORMER) for n in part if n.startswith(FORMER)]
        former = {FORMER + name: part[name] for name in names}
        fitted = self.experts.fit(learned, *fitting)
        lower, upper, _ = find_bounds(learned.observations, self.bounds)
        new = {name: shaped_like(fitted[name], part[name]) for name in names if name in fitted}
        new |= {"lower": lower, "upper": upper, "last_fitted": np.array([last])}
        return {**part, **former, **new}
