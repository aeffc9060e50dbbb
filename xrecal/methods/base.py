"""The base of all methods, and what it is given: cases, new forecasts and covariates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.continuous import Between
from xrecal.arrays.distributions.forms import VALID, Distribution, Empirical, Forecasts, verdicts
from xrecal.arrays.status import TOO_FEW
from xrecal.inputs.dates import CaseAxis
from xrecal.typing import FloatArray, IntArray

from .covariates import Covariates
from .folds import period_of_cases

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Record, Timeline


E = TypeVar("E", bound=Empirical)

Output: TypeAlias = Literal["weighted", "normal"]
"""Form of the recalibrated forecast."""

Bound: TypeAlias = float | Literal["auto"] | None
Bounds: TypeAlias = Literal["auto"] | tuple[Bound, Bound] | None
"""Bounds of a variable: read off the observations, given, or none; or so at each end."""


FitArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""What was chosen or fitted at L locations, by name."""

Chosen: TypeAlias = FitArrays | None
"""Choices that a fit is given; without any it makes its own."""

CHOSEN_FROM = "chosen_from"
"""Name of the number of places that choices come from, among parameters and choices."""

N_HELD_OUT = 100
"""Quantiles that stand for a held-out forecast when components are weighed."""


class Trial(NamedTuple):
    """What a component of a pool has learned, and its forecasts of cases that it had not seen."""

    choices: FitArrays
    fitted: FitArrays
    held_out: FloatArray
    """(L, 2, n, Q) quantiles of cases forecast without their fold, and from earlier ones alone"""


ANY = -np.inf, np.inf
FINITE = float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)
SHARE = 0.0, 1.0
NOT_NEGATIVE = 0.0, FINITE[1]
POSITIVE = float(np.finfo(np.float64).tiny), FINITE[1]
POSITIVE_OR_INFINITE = POSITIVE[0], np.inf
"""Ranges of numbers that methods choose or fit: least and greatest, both included."""


@dataclass(frozen=True)
class Parameter:
    """Numbers that a method chooses at each location."""

    long_name: str
    in_units_of_variable: bool = False
    dtype: type = np.float64
    dims: Mapping[str, int | Callable[[int], int]] = field(default_factory=dict)
    """Dimensions besides the locations, and their sizes, perhaps as a function of the slots."""
    flags: Sequence[str] = ()
    """Meanings of the values 0, 1, ... of a code."""
    description: str = ""
    """Meanings of the labels."""
    labels: Sequence[str] = ()
    """Labels along the only dimension."""
    of_slots: bool = False
    """Whether values are the positions of cases; -1 stands for none."""
    within: tuple[float, float] = FINITE
    """Least and greatest value; NaN stands for none."""
    for_updates: bool = False
    """Whether updates alone need it, and no forecast."""
    of_all_places: bool = False
    """Whether it is learned from all places together, and the same for those of a fit."""

    def sizes(self, n: int) -> dict[str, int]:
        """Sizes of the dimensions with n slots."""
        return {d: size(n) if callable(size) else size for d, size in self.dims.items()}


FROM_PLACES = {
    CHOSEN_FROM: Parameter(
        "number of places that settings were chosen from", dtype=np.int32, within=(1, FINITE[1])
    )
}
"""Parameter of methods that choose."""


PAST_ENSEMBLES = {
    "inverse_size": Parameter(
        "mean of one over the number of members of past ensembles", within=SHARE
    ),
    "past_variance": Parameter("mean variance of past ensembles", within=NOT_NEGATIVE),
    "past_variance_spread": Parameter(
        "variance of the variances of past ensembles", within=NOT_NEGATIVE
    ),
}
"""Parameters of methods that allow for other numbers of members than those they learned from."""


class SharedFits(NamedTuple):
    """What many places share, for L of them, by fits that have not seen what they are asked for."""

    fits: npt.NDArray[Any]
    """(L,) of :class:`xrecal.arrays.shared.held_out.HeldOut`, for a method that goes on learning
    of :class:`xrecal.arrays.shared.held_out.InTime`; None where nothing was learned"""
    place: IntArray
    """(L,) number of the place in the shared fit, -1 for one that is not of it"""
    here: npt.NDArray[Any]
    """(L, k) features of the place"""


@dataclass(frozen=True)
class Cases:
    """Calibration cases at L locations."""

    forecasts: Forecasts | None
    """(L, n, m); None after the fit of a method that does not keep them."""
    observations: FloatArray
    """(L, n), NaN in slots that cannot be learned from."""
    covariates: Covariates
    axis: CaseAxis
    squared: FloatArray | None = None
    """(L, n, n) squared energy distances of the forecasts, where known already."""
    partners: tuple[FloatArray, ...] = ()
    """(L, n) observations of each further variable that is recalibrated jointly."""
    shared: SharedFits | None = None
    """Of a pool in which one fit that places share competes with those of each place."""
    common: Record | Timeline | None = None
    """What places learn as a first pass records it, or had in common as that has found."""
    mean: FloatArray | None = None
    """(L, n) of the forecasts, where known already."""
    centres: dict[bytes, FloatArray] = field(default_factory=dict)
    """Centres of CKMEs that were fitted to some of the cases, which others may have as well."""
    compared: dict[Hashable, Any] = field(default_factory=dict)
    """Locations whose forecasts a CKME has compared, for others that compare the same ones."""
    medians: dict[bytes, float] = field(default_factory=dict)
    """Median distances of forecasts, likewise."""

    def take(self, block: slice | IntArray) -> Cases:
        """Cases of some locations."""
        return replace(
            self,
            forecasts=None if self.forecasts is None else self.forecasts.take(block),
            observations=self.observations[block],
            covariates=self.covariates.take((block,)),
            squared=None if self.squared is None else self.squared[block],
            partners=tuple(partner[block] for partner in self.partners),
            shared=None if self.shared is None else SharedFits(*(a[block] for a in self.shared)),
            mean=None if self.mean is None else self.mean[block],
            centres={},
            compared={},
        )

    def only(self, train: npt.NDArray[np.bool_]) -> Cases:
        """Cases in the same slots, of which only some (L, n) are to be learned from."""
        return replace(self, observations=np.where(train, self.observations, np.nan))

    def select(self, which: IntArray) -> Cases:
        """Some of the cases (positions among the n), as if there were no others."""
        squared = None if self.squared is None else self.squared[:, which[:, np.newaxis], which]
        new = self.as_new(which)
        observed, axis = self.observations[:, which], self.axis.take(which)
        return Cases(new.forecasts, observed, new.covariates, axis, squared)

    def as_new(self, which: IntArray) -> NewCases:
        """Some of the cases (positions among the n) as forecasts to recalibrate."""
        assert self.forecasts is not None
        at = slice(None), which
        return NewCases(
            self.forecasts.take(at),
            self.covariates.take(at),
            None if self.squared is None else self.squared[:, which],
        )


@dataclass(frozen=True)
class NewCases:
    """Forecasts to recalibrate at L locations."""

    forecasts: Forecasts
    """(L, T, p)"""
    covariates: Covariates
    """(L, T, p)"""
    across: FloatArray | None = None
    """(L, T, n) squared energy distances to the calibration forecasts, where known already."""

    def take(self, block: slice | IntArray) -> NewCases:
        """Forecasts of some locations."""
        return NewCases(self.forecasts.take(block), self.covariates.take((block,)))


class Variables(NamedTuple):
    """Variables whose members are compared as vectors."""

    names: tuple[str, ...]
    periods: tuple[float | None, ...]
    """Periods of those that are circular, None for others."""
    units: tuple[str | None, ...]
    own: int
    """Place of the variable that is recalibrated."""


class Method(ABC):
    """Base of all methods: frozen dataclasses of names and numbers.

    A method declares what it can do by the attributes below, and nobody asks for its class. A new
    one overrides :meth:`predict_locations`, and :meth:`fit_locations` and :meth:`parameters` where
    it learns more than the cases themselves, :meth:`choose_locations` where it searches; it
    inherits the rest.
    """

    output: ClassVar[Output] = "weighted"
    keeps_cases: ClassVar[bool] = False
    """Whether forecasts are compared with those of the calibration cases, which the state keeps."""
    recalibrates: ClassVar[bool] = True
    """Whether what it issues differs from the forecast as it was issued."""
    by_sums: ClassVar[bool] = False
    """Whether it learns from cases of many places at once, as sums over chunks of any cases."""
    joins_variables: ClassVar[bool] = False
    """Whether :class:`VectorCKME` can compare vectors, or points on a circle, by its settings."""
    updates: ClassVar[bool] = True
    """Whether more cases may join a fit."""
    relearns: ClassVar[bool] = False
    """Whether it learns from all cases again once more have joined.

    One that keeps forecasts learns parameters of each case again too.
    """
    keeps_sums: bool = False
    """Whether a component that places share goes on learning, by sums that the state keeps."""
    keeps_choices: ClassVar[bool] = False
    """Whether a pool keeps its parameters when more cases join."""
    in_order: ClassVar[bool] = False
    """Whether each case teaches it in turn, so that it matters in which order they come."""

    in_common: ClassVar[tuple[str, ...]] = ()
    """Parameters that places learn from what all of them have in common: a first pass finds it."""

    exchangeable: bool = True
    """Whether members have no names: it makes no difference which one is which."""

    delay: int | str | None = None
    """How much later than its valid time it takes an observation to be there, if it asks."""
    refit: int | str | None = None
    """Number of cases or length of time after which it fits itself again, if it does."""

    @property
    def on_device(self) -> bool:
        """Whether it fits and predicts CuPy arrays."""
        return False

    @property
    def between(self) -> Between | None:
        """How quantiles between the members that it issues are made; None for steps."""
        return None

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Covariates given which the forecast is calibrated."""
        return None

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates that are needed."""
        return names_of(self.condition_on)

    @property
    def of_places(self) -> tuple[str, ...]:
        """Names of the covariates that identify the place of a case."""
        return ()

    @property
    def variables(self) -> Variables | None:
        """Variables that it compares as vectors; None for a single one on a line."""
        return None

    def of_variable(self, place: int) -> Method:
        """The method for another one of the variables."""
        return self

    @property
    def shares_members(self) -> bool:
        """Whether the members of all forecasts are the past observations."""
        return False

    @property
    def knows_novelty(self) -> bool:
        """Whether it compares forecasts with past ones, so that it knows how novel they are."""
        return any(method.knows_novelty for method in self.mixed)

    @property
    def not_by_sums(self) -> str | None:
        """Why places cannot share one fit where many cases are pooled, and what to type instead.

        None where they do.
        """
        name = type(self).__name__
        return f"{name} needs; leave pool out, or use xrecal.CKME() or xrecal.LinearPool()"

    @property
    def shared_by_places(self) -> Method | None:
        """The method of the component that places share where many pooled cases have a pool each.

        None for a method that is no pool.
        """
        return None

    @property
    def has_shared(self) -> bool:
        """Whether one of its components is shared by all places."""
        return any(method.by_sums for method in self.mixed)

    @property
    def mixed(self) -> tuple[Method, ...]:
        """Methods that a pool mixes."""
        return ()

    def with_shared(self, method: Method) -> Method:
        """A pool with one more component, which places share."""
        return self

    @property
    def alone(self) -> Method:
        """The method without a component that places share."""
        return self

    @property
    def supports(self) -> tuple[str | None, ...]:
        """What members are in each component that it is in a pool; None where it has no choice."""
        return (None,)

    def of_support(self, support: str | None) -> Method:
        """The method that forecasts as one component of a pool."""
        return self

    @property
    def shapes(self) -> bool:
        """Whether forecasts are compared without their means."""
        return False

    @property
    def name_in_pool(self) -> str:
        """Name of its components in a pool, without covariates and supports."""
        return type(self).__name__.lower()

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Calibration case of each member (-1: none), and names of their components if any."""
        return np.arange(n), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters chosen at each location, the covariates being ``n_features`` features."""
        return {}

    def parameters_in_pool(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters of a component of a pool."""
        return self.parameters(n_features)

    @property
    def n_weighed(self) -> int:
        """Number of components whose held-out forecasts a fit weighs."""
        return 0

    @property
    def mostly(self) -> Method:
        """The method that takes most of the work of a fit."""
        return self

    def columns(self, n: int) -> int:
        """Columns of the largest matrices that n cases of a location take."""
        return max((method.columns(n) for method in self.mixed), default=0)

    def in_time(self, gap: int | str, year_start: str | None) -> Method:
        """The method with the gap and the years of a pool where it lacks its own."""
        return self

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """The method as it can be used on these cases, and a remark on what had to change.

        Raises ValueError if the settings do not fit the dates or the number of the cases.
        """
        return self, period_of_cases(axis, names_of(self.condition_on), method=type(self).__name__)

    @property
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Names of choices with the sizes of their axes after that of places; none without any."""
        return {}

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """The same of the losses by which places choose together, and that no fit needs."""
        return {}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Choices (L, ...) by name, for fits to these cases or others; none without a search."""
        return {}

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Choices (1, ...) for all places of a kind, from those (L, ...) of a sample of them.

        With the evidence of all, where :meth:`with_own` needs it. ``in_pool``: of a component of a
        pool, in which others balance its errors.
        """
        return {}

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Choices (L, ...) between those of all places and the own ones, which have a share (L,).

        Where a place has none of its own, those of all places.
        """
        return together

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Parameters, ``n_cases`` and ``status`` (L,), with given choices or its own.

        A fit with given choices searches nothing. They may come from other cases or places, or be
        joined from several.
        """
        return count_cases(cases, min_samples)

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Trial of each component that it is in a pool; ``refits`` without parts of the cases.

        A search has held out the cases already, and overrides this.
        """
        choices = self.choose_locations(cases, min_samples)
        return [Trial(choices, self.fit_locations(cases, min_samples, choices), refits(self))]

    @abstractmethod
    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Recalibrated forecasts (L, T)."""

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Recalibrated forecasts (L, T), and their novelty, by one comparison with past ones."""
        issued = self.predict_locations(new, cases, fitted)
        return issued, self.novelty_locations(new, cases, fitted)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Novelty (L, T) of forecasts, 0 to 1; NaN where it is not known."""
        return np.full(new.forecasts.loc.shape[:2], np.nan)

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Parameters of the added cases (L, n), those over the cases alone.

        ``fitted`` has the other parameters and the status; ``slots`` (n,) are the places of the
        cases in the order in which they came.
        """
        return {}

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Parameters that change, ``n_cases`` and ``status`` (L,), from all cases (L, n).

        ``fitted`` has the parameters and the status as they were, those of each case as they are.
        """
        return self.fit_locations(cases, min_samples)


def is_method(value: object) -> TypeGuard[Method]:
    """Whether a value is a method with its settings; a name or a class is none."""
    return isinstance(value, Method)


def between(together: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
    """Numbers (L, ...) between those of all places and own ones, which may be unknown."""
    own_share = share.reshape(-1, *(1,) * (own.ndim - 1))
    return np.where(np.isnan(own), together, (1 - own_share) * together + own_share * own)


def names_of(condition_on: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the covariates in a setting, none or several."""
    if condition_on is None:
        return ()
    return (condition_on,) if isinstance(condition_on, str) else tuple(condition_on)


def missing_forecasts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Where forecasts (L, T, m) have no member that counts, or an invalid one, (L, T)."""
    return np.asarray(verdicts(forecasts) != VALID)


def equally_likely(members: FloatArray, dtype: npt.DTypeLike, form: type[E]) -> E:
    """Distributions of a form whose members (L, T, k) have equal weights, NaN where a member is."""
    weights = np.where(np.isnan(members), np.nan, 1 / members.shape[-1])
    return form(members.astype(dtype), weights.astype(dtype))


def count_cases(cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
    """``n_cases`` to learn from at each location (L,), and ``status``: whether they are too few."""
    n_cases = np.isfinite(cases.observations).sum(-1).astype(np.int32)
    return {"n_cases": n_cases, "status": TOO_FEW * (n_cases < min_samples)}
