"""CKME for many places with one law of errors: the distribution of errors, given the forecast."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from xrecal.arrays.distributions.continuous import Between, Linear
from xrecal.arrays.distributions.forms import (
    N_QUANTILES,
    Distribution,
    Forecasts,
    equal_mass_levels,
)
from xrecal.arrays.predictors import N_NUMBERS, NO_PREDICTORS, Usual
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.lengths import as_span
from xrecal.typing import FloatArray, IntArray

from .base import (
    ANY,
    N_HELD_OUT,
    NOT_NEGATIVE,
    POSITIVE_OR_INFINITE,
    Cases,
    Chosen,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    Trial,
    equally_likely,
    missing_forecasts,
)
from .ckme import CKME
from .covariates import Covariates, may_break
from .folds import fold_groups, period_of_cases
from .shared_cases import IN_MEMORY, InMemory, OfDates, members_of
from .shared_packing import NO_RECORD, RECORDS, USUAL, Packing

if TYPE_CHECKING:
    from xrecal.arrays.shared.folds import Folds
    from xrecal.arrays.shared.issuing import Issued
    from xrecal.arrays.shared.network import Cases as ArrayCases
    from xrecal.arrays.shared.packed import Sizes
    from xrecal.arrays.shared.passes import Learned, Shared
    from xrecal.arrays.shared.samples import Values

PLACE = "xrecal_place"
"""Name of a covariate: the index of the place of a case; -1 for a place outside the fit."""

FEATURE = "xrecal_feature_"
"""Prefix of the names of covariates that are features of a place, such as its height."""

OWN = "shared_"
"""Prefix of the names of dimensions of a shared fit in the state; other dimensions lack it."""

NUMBER, HERE = "place", "here"
"""Names of two parameters of each place: its index in the shared fit (-1 for a place outside this
fit), and its features."""

SUMMED = "summed"
"""Name of the parameter with the number of dates whose cases are in the sums of a shared fit. These
are the first dates of the record; updates add later dates."""


@dataclass(frozen=True)
class SharedCKME(Method):
    """:class:`CKME` of many places; ``fit(..., pool=...)`` of more than 1500 cases makes it.

    Parameters
    ----------
    method : CKME
        CKME with all other settings.
    places : int
        Number of places in the fit.
    features : tuple of str
        Names of the known features of places: some of "latitude", "longitude", "height" and
        "lead".
    rank : int
        Largest number of landmarks, the past cases that represent all others.
    middle_longitude : float
        Central longitude of the places, in degrees.
    keeps_sums : bool
        True if the pools of all places share the method as a component, and updates add new cases
        to it. The state then contains the sums over cases from which the method learns.
    """

    method: CKME
    places: int
    features: tuple[str, ...]
    rank: int
    middle_longitude: float = 0.0
    keeps_sums: bool = False

    by_sums = True
    keeps_choices = True
    knows_novelty = True
    between: ClassVar[Between] = "linear"
    name_in_pool = "ckme_shared"

    @property
    def exchangeable(self) -> bool:  # type: ignore[override]
        """Setting ``exchangeable`` of the CKME."""
        return self.method.exchangeable

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Setting ``condition_on`` of the CKME."""
        return self.method.condition_on

    @property
    def of_places(self) -> tuple[str, ...]:
        """Names of the covariates that identify the place of a case."""
        return (PLACE, *(FEATURE + name for name in self.features))

    @property
    def breakable(self) -> tuple[str, ...]:
        """Names of the covariates that may be missing or broken."""
        return tuple(filter(may_break, self.covariates))

    def slots(self, n: int) -> tuple[IntArray, None]:
        """Return -1 for each issued quantile, because quantiles belong to no past case."""
        return np.full(N_QUANTILES, -1), None

    def sizes(self, n_covariates: int) -> Sizes:
        """Return the sizes of arrays in the state, if covariates have ``n_covariates`` features."""
        from xrecal.arrays.shared.packed import Sizes

        return Sizes(self.places, len(self.features), n_covariates, self.rank)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: law of errors, corrections of places, and sums for updates."""
        from xrecal.arrays.shared.packed import ENTRIES

        sizes = self.sizes(n_features).of_dims
        parameters = {
            name: Parameter(
                entry.long_name,
                dims={OWN + d: sizes[d] for d in entry.dims},
                dtype=np.int32 if entry.whole else np.float64,
                for_updates=entry.for_updates,
                within=POSITIVE_OR_INFINITE if name == "shape_bandwidth" else ANY,
            )
            for name, entry in ENTRIES.items()
        }
        parameters["record"] = Parameter(
            "kind of record of each place",
            dims={OWN + "place": self.places},
            dtype=np.int8,
            flags=RECORDS,
        )
        if self.breakable:
            dims = {OWN + "covariate": len(self.breakable), OWN + "usual_value": N_NUMBERS}
            parameters[USUAL] = Parameter(
                f"usual values of covariates: {', '.join(Usual._fields)}",
                dims=dims,
                within=ANY,
            )
        parameters["lower"] = Parameter("lower bound", True, within=ANY)
        parameters["upper"] = Parameter("upper bound", True, within=ANY)
        return parameters

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method, and a remark about the season or None.

        Raises ValueError if folds, gap, season or half-life need dates that the cases lack.
        """
        self.method.check_dates(axis)
        return self, period_of_cases(axis, self.covariates, method="CKME")

    def for_cases(self, n: int) -> SharedCKME:
        """Return the method, with ``rank`` set to the largest number of landmarks for n cases."""
        from xrecal.arrays.shared.passes import landmarks_for

        return replace(self, rank=landmarks_for(n))

    def parameters_in_pool(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters of the method as a component that the pools of all places share."""
        number = Parameter("number of the place", dtype=np.int32, within=(-1, self.places - 1))
        every = {**self.parameters(n_features), NUMBER: number}
        if self.features:
            dims = {OWN + "place_feature": len(self.features)}
            every[HERE] = Parameter("features of the place", dims=dims)
        if self.keeps_sums:
            dates = "number of dates, from the first on, whose cases are in the sums"
            every[SUMMED] = Parameter(dates, dtype=np.int32, for_updates=True, within=NOT_NEGATIVE)
        return {name: replace(p, of_all_places=True) for name, p in every.items()}

    def in_parts(self, axis: CaseAxis, n: int) -> tuple[OfDates, Folds]:
        """Return the part and the weight of each of n cases or dates, and the folds.

        There are at most five folds, which consist of one or more parts. If the setting
        ``folds`` makes folds of years, each fold has whole years.
        """
        from xrecal.arrays.ckme.folds import gap_axis
        from xrecal.arrays.shared.folds import folds_of, parts_of

        method = self.method
        fold = folds_of(fold_groups(method.folds, axis, n, method.year_start)[0])
        gap = as_span(method.gap) if isinstance(method.gap, str) else method.gap
        weights = self.weights(axis, n)
        part, folds = parts_of(fold, gap_axis(gap, axis.steps(n), axis.days), weights)
        return OfDates(part, weights), folds

    def weights(self, axis: CaseAxis, n: int) -> FloatArray:
        """Return the weight of each of n cases or dates; the weight follows from the half-life.

        The sum of the weights is the effective number of cases: this many cases with equal weights
        would determine a mean as precisely.
        """
        if self.method.half_life is None:
            return np.ones(n)
        assert axis.days is not None
        assert not isinstance(self.method.half_life, (str, datetime.timedelta, np.timedelta64))
        weights = 0.5 ** ((axis.days.max() - axis.days) / self.method.half_life)
        return np.asarray(weights * weights.sum() / (weights**2).sum())

    @property
    def ridges(self) -> FloatArray:
        """Ridges from which cross-validation chooses; only one if the settings have a ridge."""
        from xrecal.arrays.shared.law import RIDGES

        return RIDGES if isinstance(self.method.ridge, str) else np.array([self.method.ridge])

    def values(self, covariates: Covariates, date: IntArray) -> Values:
        """Return a sample of the values of covariates (1, n) that may be missing or broken."""
        from xrecal.arrays.shared.samples import draw_values

        at = [covariates.names.index(name) for name in (PLACE, *self.breakable)]
        place, values = covariates.values[0][:, at[0]], covariates.values[0][:, at[1:]]
        return draw_values(values, place.astype(np.int64), date)

    def in_memory(
        self,
        cases: tuple[Forecasts, FloatArray, Covariates],
        of: OfDates,
        date: IntArray,
        step: int = IN_MEMORY,
    ) -> tuple[InMemory, FloatArray]:
        """Return an engine that reads n cases in memory, and k features (n, k) of their places.

        ``cases`` has forecasts, observations and covariates; ``date`` (n,) has the index of the
        date of each case.
        """
        usual: FloatArray = NO_PREDICTORS
        if self.breakable:
            periods = dict(zip(cases[2].names, cases[2].periods, strict=True))
            known = self.values(cases[2], date)
            usual = known.usual([periods[name] for name in self.breakable])
        own, features = self.array_cases(*cases, of, usual)
        return InMemory(own, date, step, usual), features

    def _given(self, covariates: Covariates, usual: FloatArray) -> FloatArray:
        """Return q features (n, q) of covariates; medians replace missing and broken values."""
        judged = covariates.judged_by(self.breakable, usual)
        return np.asarray(judged.features(self.covariates).values[0])

    def array_cases(
        self,
        forecasts: Forecasts,
        observed: FloatArray,
        covariates: Covariates,
        of: OfDates,
        usual: FloatArray,
    ) -> tuple[ArrayCases, FloatArray]:
        """Return n cases of one fit for ``xrecal.arrays``, and k features (n, k) of their places.

        ``usual`` (1, p, 8) has eight usual values, such as the median, of each of p covariates that
        may be missing or broken.
        """
        from xrecal.arrays.shared.network import Cases as ArrayCases

        columns = [covariates.names.index(name) for name in self.of_places]
        place, *features = covariates.values[0][:, columns].T
        given = self._given(covariates, usual)
        cases = ArrayCases(
            members_of(forecasts)[0],
            np.where(np.isfinite(given).all(-1), observed[0].astype(np.float64), np.nan),
            place.astype(np.int64),
            of.part,
            given,
            of.weight,
        )
        return cases, np.stack(features, -1) if features else np.empty((place.size, 0))

    def at_place(
        self,
        forecasts: Forecasts,
        covariates: Covariates,
        number: int,
        of: OfDates,
        usual: FloatArray,
    ) -> ArrayCases:
        """Return forecasts (1, n) at the place with index ``number``, for ``xrecal.arrays``."""
        from xrecal.arrays.shared.network import Cases as ArrayCases

        place, unknown = np.full(of.part.size, number, np.int64), np.full(of.part.size, np.nan)
        given = self._given(covariates, usual)
        return ArrayCases(members_of(forecasts)[0], unknown, place, of.part, given, of.weight)

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit the method at each of L locations; cases (L, n) of all places are in memory."""
        n = cases.observations.shape[1]
        of_dates, folds = self.in_parts(cases.axis, n)
        date = cases.axis.steps(n)
        fits = []
        for location in range(len(cases.observations)):
            one = cases.take(slice(location, location + 1))
            assert one.forecasts is not None
            given = one.forecasts, one.observations, one.covariates
            engine, of_cases = self.in_memory(given, of_dates, date)
            features = np.full((self.places, len(self.features)), np.nan)
            features[engine.cases.place] = of_cases
            fits.append(self.learn(engine, features, folds, min_samples))
        return {name: np.stack([fit[name] for fit in fits]) for name in fits[0]}

    def learn(self, engine: Any, features: FloatArray, folds: Folds, min_samples: int) -> Any:
        """Fit one location, and return its arrays of the state: as values, or as tasks of Dask."""
        learned = self._run(engine, features, folds)
        packing = Packing(self.sizes(0), self.method.bounds, min_samples)
        return engine.once(packing, learned.fit, learned.sample, engine.usual)

    def _run(self, engine: Any, features: FloatArray, folds: Folds) -> Learned:
        """Run the passes of a fit; raise ValueError if a gap leaves a fold no training cases."""
        from xrecal.arrays.shared.passes import run

        alone = (folds.learned == 0).all(1)
        if self.method.gap and alone.any():
            raise ValueError(
                f"CKME: gap={self.method.gap!r} leaves {alone.sum()} of {alone.size} folds no "
                "cases to learn from; use a shorter gap"
            )
        return run(engine, features, folds, self.rank, self.ridges)

    def learn_and_hold_out(
        self, engine: Any, features: FloatArray, folds: Folds, min_samples: int
    ) -> tuple[Any, Any]:
        """Fit one location as :meth:`learn` does, and also make fits for held-out dates."""
        from xrecal.arrays.shared.held_out import hold_out
        from xrecal.arrays.shared.passes import IfAny

        learned = self._run(engine, features, folds)
        packing, usual = Packing(self.sizes(0), self.method.bounds, min_samples), engine.usual
        packed = engine.once(packing, learned.fit, learned.sample, usual)
        sums = learned.started, learned.place_sums, learned.law_sums
        return packed, engine.once(IfAny(hold_out), learned.fit, *sums, usual)

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Return a trial: quantiles of forecasts of held-out cases, at places of the shared fit.

        The quantiles come from the fits in ``cases.shared``, which earlier passes over all cases
        have made.
        """
        assert cases.shared is not None
        assert cases.forecasts is not None
        shape = cases.observations.shape
        levels, (of_dates, _) = equal_mass_levels(N_HELD_OUT), self.in_parts(cases.axis, shape[1])
        found = np.full((shape[0], 2, shape[1], N_HELD_OUT), np.nan)
        given = zip(cases.shared.fits, cases.shared.place, strict=True)
        for location, (fits, number) in enumerate(given):
            if fits is not None:
                block = slice(location, location + 1)
                own = cases.forecasts.take(block), cases.covariates.take((block,))
                here = self.at_place(*own, number, of_dates, fits.usual)
                found[location] = fits.quantiles(here, levels)
        return [Trial({}, {}, found)]

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return 200 quantiles of each forecast, as members with equal weights."""
        return self.predict_with_novelty(new, cases, fitted)[0]

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Return novelty (L, T) of forecasts; see :func:`xrecal.arrays.shared.issuing.issue`."""
        return self.predict_with_novelty(new, cases, fitted)[1]

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Return 200 quantiles of each forecast, and the novelty (L, T) of the forecasts."""
        levels = equal_mass_levels(N_QUANTILES)
        values, novelty = self.quantiles_with_novelty(new, cases, fitted, levels)
        return equally_likely(values, new.forecasts.loc.dtype, Linear), novelty

    def quantiles_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays, levels: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return quantiles (L, T, q) at q levels, and the novelty (L, T) of the forecasts."""
        shape = new.forecasts.loc.shape[:2]
        values, novelty = np.full((*shape, levels.size), np.nan), np.full(shape, np.nan)
        fit: Shared | None = None
        unpacked: tuple[int, ...] = ()
        for location in range(shape[0]):
            own = {name: a[location] for name, a in fitted.items()}
            if np.isnan(own["regression"]).any():
                continue
            where = addresses(own)
            if fit is None or where != unpacked:  # many places share one fit
                fit, unpacked = unpack_fit(own), where
            block = slice(location, location + 1)
            issued = self._issued(fit, new.take(block), cases.take(block), own, levels)
            values[location] = np.clip(issued.quantiles, own["lower"], own["upper"])
            novelty[location] = issued.novelty
        return values, novelty

    def said(
        self, cases: Cases, which: IntArray, known: IntArray, levels: FloatArray
    ) -> FloatArray:
        """Return q quantiles (k, q) of k cases ``which``, using only cases known at their issue.

        Each case gets quantiles from a shared fit to the first cases alone; ``known`` (k,) has the
        number of these first cases. The quantiles are NaN if there is no such fit.
        """
        assert cases.shared is not None
        fits, number, features = (part[0] for part in cases.shared)
        found = np.full((which.size, levels.size), np.nan)
        if fits is None:
            return found
        # A place outside the fit adds its own cases to the fit.
        turn = fits.number[known] if number >= 0 else known
        for one in np.unique(turn):
            rows = np.flatnonzero(turn == one)
            count = int(known[rows[0]])
            if (fit := fits.known(count)) is not None:
                record = cases.select(np.arange(count if number < 0 else 0))
                at = int(number), np.asarray(features, np.float64), fits.usual
                issued = self.issued_at(fit, cases.as_new(which[rows]), record, at, levels)
                found[rows] = np.clip(issued.quantiles, *fits.bounds)
        return found

    def _issued(
        self, fit: Shared, new: NewCases, cases: Cases, own: FitArrays, levels: FloatArray
    ) -> Issued:
        """Return forecasts (1, T) at one location, from the parameters ``own`` of this location."""
        from xrecal.arrays.shared.issuing import issue

        n = new.forecasts.loc.shape[1]
        usual = own[USUAL][np.newaxis] if self.breakable else NO_PREDICTORS
        if NUMBER in own:
            number, features = int(own[NUMBER]), own.get(HERE, np.empty(0))
            if number >= 0 and self._is_bare(own, number):
                number, features = -1, own["features"][number]
            return self.issued_at(fit, new, cases, (number, features, usual), levels)
        unknown = np.full((1, n), np.nan), new.covariates.joining(cases.covariates)
        here, features = self.array_cases(new.forecasts, *unknown, OfDates.alike(n), usual)
        bare = (here.place >= 0) & self._is_bare(own, here.place)
        if bare.any():
            features = np.where(bare[:, np.newaxis], own["features"][here.place], features)
            here = here._replace(place=np.where(bare, -1, here.place))
        return issue(fit, self._without_missing(here, new), features, levels)

    def _is_bare(self, own: FitArrays, place: Any) -> Any:
        """Return whether a place has no past cases, so that features determine its forecasts.

        The result is False if the fit has no features of places.
        """
        return (own["record"][place] == NO_RECORD) & bool(self.features)

    def issued_at(
        self,
        fit: Shared,
        new: NewCases,
        cases: Cases,
        at: tuple[int, FloatArray, FloatArray],
        levels: FloatArray,
    ) -> Issued:
        """Return forecasts (1, T) at one place, which has cases (1, n).

        ``at`` has the index of the place, its features (k,), and the usual values of covariates.
        The forecasts use ``cases`` only if the place is outside the fit (index -1), because a place
        in the fit has its own corrections.
        """
        from xrecal.arrays.shared.issuing import at_own_place, issue

        (number, own, usual), n = at, new.forecasts.loc.shape[1]
        given = new.forecasts, new.covariates.joining(cases.covariates)
        here = self.at_place(*given, number, OfDates.alike(n), usual)
        features = np.tile(own, (n, 1))
        if number < 0 and np.isfinite(cases.observations).any():
            assert cases.forecasts is not None
            record = self.at_place(
                cases.forecasts, cases.covariates, 0, OfDates.alike(cases.observations.size), usual
            )._replace(observations=cases.observations[0].astype(np.float64))
            fit = at_own_place(fit, record, features[:1])
            here = here._replace(place=np.zeros(n, np.int64))
        return issue(fit, self._without_missing(here, new), features, levels)

    def _without_missing(self, here: ArrayCases, new: NewCases) -> ArrayCases:
        """Set the members of missing forecasts (1, T) to NaN."""
        gone = missing_forecasts(new.forecasts)[0]
        return here._replace(members=np.where(gone[:, np.newaxis], np.nan, here.members))


def unpack_fit(own: FitArrays) -> Shared:
    """Rebuild a shared fit from the arrays of one location in the state."""
    from xrecal.arrays.shared.packed import unpack

    return unpack(own)


def addresses(own: FitArrays) -> tuple[int, ...]:
    """Return the memory addresses of a fit's arrays; locations that share a fit share arrays."""
    from xrecal.arrays.shared.packed import ENTRIES

    return tuple(own[name].ctypes.data for name in ENTRIES if name in own)


def as_shared(method: Method) -> SharedCKME:
    """Return the method itself; type checkers then know that it is a :class:`SharedCKME`."""
    assert isinstance(method, SharedCKME)
    return method
