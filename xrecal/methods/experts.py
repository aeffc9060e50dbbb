"""Experts of an online pool: methods that forecast quantiles, from cases that have verified.

An online pool averages the forecasts of its experts. It fits slow experts, such as a linear pool,
at intervals. Between two fits, slow experts do not change. Fast experts learn anew for each
forecast, from the last verified cases. Each expert forecasts J quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import (
    distribution_of,
    equal_mass_levels,
    moments,
    sort_members,
)
from xrecal.inputs.dates import CaseAxis
from xrecal.typing import FloatArray, IntArray

from .base import CHOSEN_FROM, Bounds, Cases, FitArrays, NewCases, Parameter, missing_forecasts
from .ckme import CKME
from .components import CASES, Component, Forecasting, components_of
from .corrected import CORRECTED, POOL, RECENT
from .emos import EMOS
from .pool import LinearPool
from .shared_ckme import SharedCKME

N_LEVELS = 100
"""Number of quantiles that an expert forecasts."""

WINDOWS = (30, 60, 120)
"""Lengths of windows: three fast experts fit EMOS to this number of the last verified cases."""

N_ERRORS = 91
"""Number of the latest errors that a fast expert adds to the ensemble mean. If cases are daily,
these errors are from a quarter of a year."""

MEMORY, HALF_LIFE = 250, 60.0
"""Settings of the fast expert "recent CKME": the number of the last verified cases that it uses,
and its half-life, the number of newer cases after which a case has half of its weight."""

PLACES_TOGETHER = 64
"""Largest number of forecasts that experts compute at once, counted over several places."""

EMOS_LABEL, RAW, ERRORS = "slow_emos", "raw", "errors"
"""Labels of experts: EMOS on all cases, the raw forecast, and errors added to the mean."""

MANY = 10**9
"""Number of cases, larger than any record. If the size of a parameter depends on the number of
cases, this number gives the largest size."""

LEVELS = equal_mass_levels(N_LEVELS)
"""Levels of the quantiles of experts."""


@dataclass(frozen=True)
class Experts:
    """Experts of an online pool, with their fits and forecasts."""

    pool: LinearPool
    """Linear pool that is one of the experts."""
    bounds: Bounds = "auto"
    law: SharedCKME | None = None
    """Method of the shared expert, which is one fit for all places; None without such an expert."""

    @cached_property
    def emos(self) -> Component:
        """Slow expert: EMOS, fitted to all cases with the covariates of the pool."""
        method = EMOS(bounds=self.bounds, condition_on=self.pool.covariates or None)
        return Component(EMOS_LABEL, method)

    @cached_property
    def recent(self) -> Component:
        """Recent CKME: a CKME of the last errors around a regression on the ensemble mean.

        Newer cases have more weight. Each fit of the slow experts also chooses the settings of the
        recent CKME. Its cases are always the last verified cases.
        """
        method = CKME(
            support="regression",
            half_life=HALF_LIFE,
            tails=None,
            solver="exact",
            bounds=self.bounds,
        )
        return Component(RECENT, method, "regression")

    @cached_property
    def shared(self) -> Component | None:
        """Expert with one distribution of errors for all places; None without such an expert."""
        return None if self.law is None else components_of((self.law,))[0]

    @property
    def mixed(self) -> tuple[Component, ...]:
        """Components of the linear pool that are experts too; all except the raw forecast.

        The raw forecast is left out, because it is always an expert, even if it is not a component.
        """
        return tuple(c for c in self.pool.components if c.method.recalibrates)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all experts; the last is the linear pool."""
        windows = (f"emos_{w}" for w in WINDOWS)
        mixed = [c.label for c in self.mixed]
        if self.shared is not None:
            mixed.append(self.shared.label)
        errors = f"{ERRORS}_{N_ERRORS}"
        return (RAW, EMOS_LABEL, *windows, errors, RECENT, *mixed, *CORRECTED, POOL)

    def parameters(self, n_features: int) -> dict[str, Parameter]:
        """Return the parameters of the slow experts, except those with a value for each case.

        The state does not store parameters with a value for each case, because the experts compute
        them again for every forecast.
        """
        parameters = dict(self.pool.parameters(n_features))
        del parameters[CHOSEN_FROM]
        for component in (self.emos, self.recent):
            parameters |= component.stored_parameters(n_features)
        return {
            name: replace(parameter, dims=parameter.sizes(MANY))
            for name, parameter in parameters.items()
            if CASES not in parameter.dims
        }

    @property
    def choice_sizes(self) -> dict[str, tuple[int, ...]]:
        """Sizes of the choices of the linear pool and of the recent CKME."""
        own = self.recent.named_as_choices(self.recent.forecaster.choice_sizes)
        return {**self.pool.choice_sizes, **own}

    @property
    def evidence_sizes(self) -> dict[str, tuple[int, ...]]:
        """Sizes of the losses from which the linear pool and the recent CKME make choices."""
        own = self.recent.named_as_choices(self.recent.forecaster.evidence_sizes)
        return {**self.pool.evidence_sizes, **own}

    def together(self, choices: FitArrays) -> dict[str, npt.NDArray[Any]]:
        """Return choices (1, ...) of the pool and the recent CKME for all places of a kind."""
        return {**self.pool.together(choices), **self.recent.together(choices)}

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray
    ) -> dict[str, npt.NDArray[Any]]:
        """Return choices (L, ...) that lie between joint choices and the places' own choices."""
        recent = self.recent.with_own(together, own, share)
        return {**self.pool.with_own(together, own, share), **recent}

    def choose(self, cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
        """Choose the settings (1, ...) of the pool and of the recent CKME at one location."""
        choices = dict(self.pool.choose_locations(cases, min_samples))
        own = self.recent.method.choose_locations(last_cases(cases), min_samples)
        return choices | self.recent.named_as_choices(own)

    def fit(
        self, cases: Cases, min_samples: int, choices: FitArrays | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Fit the slow experts (1, ...) to all cases, and the recent CKME to the last cases."""
        learned = dict(self.pool.fit_locations(cases, min_samples, choices))
        for component, own in ((self.emos, cases), (self.recent, last_cases(cases))):
            learned |= component.stored(component.fit(own, min_samples, choices))
        return learned

    def slow_quantiles(
        self, new: NewCases, cases: Cases, slow: FitArrays, n_slow: int
    ) -> dict[str, FloatArray]:
        """Return J quantiles (L, T, J) of slow experts, fitted to the first ``n_slow`` cases."""
        learned = cases.select(np.arange(n_slow))
        whole, every = self._with_cases(learned, slow), np.ones(len(learned.observations))
        pooled = Forecasting(self.pool.components, new, learned, whole)
        novelty = pooled.judged()
        found = {c.label: _quantiles(pooled.of(c, every)) for c in pooled.components}
        found[EMOS_LABEL] = _quantiles(self.emos.predict(new, learned, whole, every))
        return found | {POOL: _quantiles(self.pool.mix(pooled, novelty))}

    def fast_quantiles(
        self, new: NewCases, cases: Cases, slow: FitArrays, known: int
    ) -> dict[str, FloatArray]:
        """Return J quantiles (L, T, J) of the fast experts, from the first ``known`` cases.

        All L places must have observations of the same cases.
        """
        places = [slice(i, i + 1) for i in range(len(cases.observations))]
        fitted = {**slow, "status": np.zeros(len(places), np.int64)}
        verified, every = last_cases(cases, known), np.ones(len(places))
        recent = np.full((*new.forecasts.loc.shape[:2], N_LEVELS), np.nan)
        if verified.observations.size:
            recent = _quantiles(self.recent.predict(new, verified, fitted, every))
        each = [
            {
                RAW: _as_issued(new.take(at)),
                **rolling(
                    new.take(at),
                    verified.take(at),
                    self.limits({name: array[at] for name, array in slow.items()}),
                ),
            }
            for at in places
        ]
        return {RECENT: recent, **{n: np.stack([said[n] for said in each]) for n in each[0]}}

    def quantiles_at(
        self,
        new: NewCases,
        cases: Cases,
        slow: FitArrays,
        n_slow: IntArray,
        known: IntArray,
    ) -> Iterator[tuple[int, dict[str, FloatArray]]]:
        """Yield the position of each place with slow experts, and quantiles (T, J) of its experts.

        The quantiles are from slow and fast experts, but not from corrected experts or a shared
        expert.

        The slow experts were fitted to the first ``n_slow`` (L,) cases; ``n_slow`` is 0 at a place
        without slow experts. The fast experts know the first ``known`` (L,) cases. To save time,
        the function computes places together if both numbers are equal at these places, and if they
        have observations of the same cases.
        """
        step = max(PLACES_TOGETHER // max(new.forecasts.loc.shape[1], 1), 1)
        verified = np.isfinite(cases.observations)
        alike: dict[Any, list[int]] = {}
        for place in np.flatnonzero(n_slow > 0).tolist():
            knows = int(n_slow[place]), int(known[place])
            alike.setdefault((*knows, verified[place, : knows[1]].tobytes()), []).append(place)
        for (fitted_to, n_known, _), places in alike.items():
            for some in (places[i : i + step] for i in range(0, len(places), step)):
                at = np.array(some)
                own = {name: array[at] for name, array in slow.items()}
                given = new.take(at), cases.take(at), own
                said = self.slow_quantiles(*given, fitted_to) | self.fast_quantiles(*given, n_known)
                for i, place in enumerate(some):
                    yield place, {label: quantiles[i] for label, quantiles in said.items()}

    def shared_quantiles(
        self, cases: Cases, which: IntArray, known: IntArray
    ) -> dict[str, FloatArray]:
        """Return quantiles (k, J) of the shared expert for cases at positions ``which`` (k,).

        To forecast a case, the shared expert learns from the first ``known`` (k,) cases alone.
        The result is empty if there is no shared expert.
        """
        if self.shared is None or self.law is None:
            return {}
        return {self.shared.label: self.law.said(cases, which, known, LEVELS)}

    def shared_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return quantiles (L, T, J) of the shared expert, and the novelty (L, T) of forecasts.

        Without a shared expert, the results are None and NaN.
        """
        novelty = np.full(new.forecasts.loc.shape[:2], np.nan)
        if self.shared is None or self.law is None:
            return None, novelty
        own = self.shared.taken_from(fitted)
        return self.law.quantiles_with_novelty(new, cases, own, LEVELS)

    def stacked(self, said: Mapping[str, FloatArray]) -> FloatArray:
        """Stack the quantiles (T, J) of K experts to one array (1, T, K, J)."""
        return np.stack([said[label] for label in self.labels], axis=1)[np.newaxis]

    def novelty(self, new: NewCases, cases: Cases, slow: FitArrays, n_slow: int) -> FloatArray:
        """Return the novelty (1, T) of forecasts: the pool compares them with its cases."""
        learned = cases.select(np.arange(n_slow))
        return self.pool.novelty_locations(new, learned, self._with_cases(learned, slow))

    def limits(self, slow: FitArrays) -> tuple[float, float]:
        """Return the lower and the upper bound at one location; infinite if there is no bound."""
        if self.bounds is None:
            return -np.inf, np.inf
        lower, upper = (float(slow[f"{EMOS_LABEL}_{end}"][0]) for end in ("lower", "upper"))
        return (-np.inf if np.isnan(lower) else lower), (np.inf if np.isnan(upper) else upper)

    def _with_cases(self, learned: Cases, slow: FitArrays) -> dict[str, npt.NDArray[Any]]:
        """Add the parameters with a value for each case to the parameters of the slow experts."""
        whole = dict(slow) | {"status": np.zeros(len(learned.observations), np.int64)}
        slots = np.arange(learned.observations.shape[1])
        for component in self.pool.components:
            method = component.method
            if any(CASES in p.dims for p in component.parameters(1).values()):
                own = method.update_locations(learned, component.taken_from(whole), slots)
                whole |= component.stored(own)
        return whole


def last_cases(cases: Cases, known: int | None = None) -> Cases:
    """Return the last 250 verified cases among the first ``known`` cases; by default, of all cases.

    All places must have observations of the same cases. The dates of the result are the numbers 0,
    1, ... of the cases. So a half-life is a number of cases, and the time between cases has no
    effect.
    """
    which = np.flatnonzero(np.isfinite(cases.observations[0, :known]))[-MEMORY:]
    return replace(cases.select(which), axis=CaseAxis(days=np.arange(which.size, dtype=np.float64)))


def rolling(new: NewCases, verified: Cases, bounds: tuple[float, float]) -> dict[str, FloatArray]:
    """Return J quantiles (T, J) of the fast experts that use EMOS or add past errors."""
    from xrecal.arrays.online.rolling import rolling_emos, rolling_errors

    n = verified.observations.shape[1]
    last = verified.select(np.arange(max(n - max(*WINDOWS, N_ERRORS), 0), n))
    assert last.forecasts is not None
    (means, variances), (now, spread) = moments(last.forecasts), moments(new.forecasts)
    past, issued = (means[0], variances[0]), (now[0], spread[0])
    observed = last.observations[0]
    found = {
        f"emos_{window}": rolling_emos(past, observed, issued, window, LEVELS, bounds)
        for window in WINDOWS
    }
    errors = rolling_errors(past[0], observed, issued[0], N_ERRORS, LEVELS, bounds)
    return found | {f"{ERRORS}_{N_ERRORS}": errors}


def _as_issued(new: NewCases) -> FloatArray:
    """Return J quantiles (T, J) of raw forecasts (1, T); NaN for a missing forecast.

    If members have weights, quantiles are interpolated between members. The level of a member is
    the middle of its step in the CDF.
    """
    missing = missing_forecasts(new.forecasts)[0]
    loc, scale, weights = sort_members(new.forecasts)
    if weights is None or scale is not None:
        quantiles = np.array(_quantiles(distribution_of(new.forecasts))[0])
    else:
        quantiles = np.full((missing.size, N_LEVELS), np.nan)
        for t in np.flatnonzero(~missing):
            there = np.isfinite(loc[0, t]) & (weights[0, t] > 0)
            mass = weights[0, t, there] / weights[0, t, there].sum(dtype=np.float64)
            quantiles[t] = np.interp(LEVELS, np.cumsum(mass) - mass / 2, loc[0, t, there])
    quantiles[missing] = np.nan
    return quantiles


def _quantiles(distribution: Any) -> FloatArray:
    """Return quantiles (L, T, J) of distributions at the J levels that experts use."""
    return np.asarray(distribution.quantile(LEVELS), np.float64)
