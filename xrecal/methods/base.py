"""Base class of all methods, and its inputs: cases, new forecasts and covariates."""

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
"""Bounds of a variable: estimated from observations, given, or none; or one of these at each
end."""


FitArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""Choices or fitted parameters at L locations, by name."""

Chosen: TypeAlias = FitArrays | None
"""Given choices of a fit; None to search for them."""

CHOSEN_FROM = "chosen_from"
"""Name of the number of places of a joint choice, among parameters and choices."""

N_HELD_OUT = 100
"""Number of quantiles that represent a held-out forecast when components are weighted."""


class Trial(NamedTuple):
    """Fitted component of a pool, and its forecasts of held-out cases."""

    choices: FitArrays
    fitted: FitArrays
    held_out: FloatArray
    """(L, 2, n, Q) quantiles of held-out cases: from other folds, and from earlier cases alone"""


ANY = -np.inf, np.inf
FINITE = float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)
SHARE = 0.0, 1.0
NOT_NEGATIVE = 0.0, FINITE[1]
POSITIVE = float(np.finfo(np.float64).tiny), FINITE[1]
POSITIVE_OR_INFINITE = POSITIVE[0], np.inf
"""Ranges of numbers that methods choose or fit: smallest and largest value, both included."""


@dataclass(frozen=True)
class Parameter:
    """Numbers that a method chooses at each location."""

    long_name: str
    in_units_of_variable: bool = False
    dtype: type = np.float64
    dims: Mapping[str, int | Callable[[int], int]] = field(default_factory=dict)
    """Dimensions besides the locations, with their sizes; a size may be a function of the slots."""
    flags: Sequence[str] = ()
    """Meanings of the values 0, 1, ... of a code."""
    description: str = ""
    """Meanings of the labels."""
    labels: Sequence[str] = ()
    """Labels along the only dimension."""
    of_slots: bool = False
    """True if values are positions of cases; -1 means none."""
    within: tuple[float, float] = FINITE
    """Smallest and largest value; NaN means none."""
    for_updates: bool = False
    """True if only updates need it, not forecasts."""
    of_all_places: bool = False
    """True if it is learned from all places together, with one value for all places of a fit."""

    def sizes(self, n: int) -> dict[str, int]:
        """Sizes of the dimensions with n slots."""
        return {d: size(n) if callable(size) else size for d, size in self.dims.items()}


FROM_PLACES = {
    CHOSEN_FROM: Parameter(
        "number of places that settings were chosen from", dtype=np.int32, within=(1, FINITE[1])
    )
}
"""Parameter of all methods that choose."""


class SharedFits(NamedTuple):
    """Fits shared by many places, for L of these places.

    No fit has learned from the cases that it predicts.
    """

    fits: npt.NDArray[Any]
    """(L,) objects: :class:`xrecal.arrays.shared.held_out.HeldOut`, or
    :class:`xrecal.arrays.shared.held_out.InTime` for a method that keeps learning; None without a
    fit"""
    place: IntArray
    """(L,) number of the place in the shared fit, -1 for a place outside it"""
    here: npt.NDArray[Any]
    """(L, k) features of the place"""


@dataclass(frozen=True)
class Cases:
    """Calibration cases at L locations."""

    forecasts: Forecasts | None
    """(L, n, m); None after the fit of a method that does not store them."""
    observations: FloatArray
    """(L, n), NaN in unusable slots."""
    covariates: Covariates
    axis: CaseAxis
    squared: FloatArray | None = None
    """(L, n, n) squared energy distances of the forecasts, if known already."""
    partners: tuple[FloatArray, ...] = ()
    """(L, n) observations of each further variable of a joint fit."""
    shared: SharedFits | None = None
    """For a pool with a component that places share."""
    common: Record | Timeline | None = None
    """Record of a first pass over places, or the common regrets that it found."""
    foretold: npt.NDArray[Any] | None = None
    """(L,) results of :meth:`Method.foretell_locations`, if known already."""
    mean: FloatArray | None = None
    """(L, n) means of the forecasts, if known already."""
    centres: dict[bytes, FloatArray] = field(default_factory=dict)
    """Cache of CKME centres fitted to some of the cases, shared by several methods."""
    compared: dict[Hashable, Any] = field(default_factory=dict)
    """Cache of locations with compared forecasts, shared by CKMEs that compare the same
    forecasts."""
    medians: dict[bytes, float] = field(default_factory=dict)
    """Cache of median distances of forecasts, shared by the same CKMEs."""

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
            foretold=None if self.foretold is None else self.foretold[block],
            mean=None if self.mean is None else self.mean[block],
            centres={},
            compared={},
        )

    def only(self, train: npt.NDArray[np.bool_]) -> Cases:
        """Cases in the same slots; methods learn only from ``train`` (L, n)."""
        return replace(self, observations=np.where(train, self.observations, np.nan))

    def select(self, which: IntArray) -> Cases:
        """Some of the cases (positions among the n), without the other cases."""
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
    """(L, T, n) squared energy distances to the calibration forecasts, if known already."""

    def take(self, block: slice | IntArray) -> NewCases:
        """Forecasts of some locations."""
        return NewCases(self.forecasts.take(block), self.covariates.take((block,)))


class Variables(NamedTuple):
    """Variables whose members are compared as vectors."""

    names: tuple[str, ...]
    periods: tuple[float | None, ...]
    """Periods of circular variables, None for other variables."""
    units: tuple[str | None, ...]
    own: int
    """Position of the variable that is recalibrated."""


class Method(ABC):
    """Base of all methods: frozen dataclasses of names and numbers.

    A method declares its capabilities by the attributes below; callers never ask for its class. A
    new method overrides :meth:`predict_locations`. It overrides :meth:`fit_locations` and
    :meth:`parameters` if it learns more than the cases themselves, and :meth:`choose_locations` if
    it searches for settings. It inherits the rest.
    """

    output: ClassVar[Output] = "weighted"
    keeps_cases: ClassVar[bool] = False
    """True if forecasts are compared with calibration forecasts, which the state stores."""
    recalibrates: ClassVar[bool] = True
    """True if its forecasts differ from the raw forecasts."""
    by_sums: ClassVar[bool] = False
    """True if it learns from many places at once, by sums over chunks of cases."""
    joins_variables: ClassVar[bool] = False
    """True if :class:`VectorCKME` can compare vectors, or points on a circle, with its settings."""
    updates: ClassVar[bool] = True
    """True if cases can be added to a fit."""
    relearns: ClassVar[bool] = False
    """True if it learns from all cases again after an update. A method that stores forecasts then
    learns its parameters of each case again, too."""
    keeps_sums: bool = False
    """True if a shared component keeps learning, by sums in the state."""
    keeps_choices: ClassVar[bool] = False
    """True if a pool keeps its parameters in an update."""
    in_order: ClassVar[bool] = False
    """True if it learns from the cases one after the other, so that their order matters."""

    in_common: ClassVar[tuple[str, ...]] = ()
    """Parameters that places learn from common regrets: a first pass finds them."""

    exchangeable: bool = True
    """True if members are exchangeable, that is, without names."""

    delay: int | str | None = None
    """Assumed delay of an observation after its valid time, if the method has one."""
    refit: int | str | None = None
    """Number of cases or length of time between two fits, if the method refits itself."""

    @property
    def on_device(self) -> bool:
        """True if it accepts CuPy arrays."""
        return False

    @property
    def between(self) -> Between | None:
        """Definition of quantiles between its members; None for steps."""
        return None

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Covariates given which the forecast is calibrated."""
        return None

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the required covariates."""
        return names_of(self.condition_on)

    @property
    def of_places(self) -> tuple[str, ...]:
        """Names of the covariates that identify the place of a case."""
        return ()

    @property
    def variables(self) -> Variables | None:
        """Variables that it compares as vectors; None for a single linear variable."""
        return None

    def of_variable(self, place: int) -> Method:
        """The method for another variable of the vector."""
        return self

    @property
    def shares_members(self) -> bool:
        """True if the members of all forecasts are the past observations."""
        return False

    @property
    def knows_novelty(self) -> bool:
        """True if it compares forecasts with past forecasts, and so can compute their novelty."""
        return any(method.knows_novelty for method in self.mixed)

    @property
    def not_by_sums(self) -> str | None:
        """Reason why places cannot share one fit to many pooled cases, and what to type.

        The result is None if places can share a fit.
        """
        name = type(self).__name__
        return f"{name} needs; leave pool out, or use xrecal.CKME() or xrecal.LinearPool()"

    @property
    def shared_by_places(self) -> Method | None:
        """Method of the component that places share, if many pooled cases have a pool each.

        None for a method that is not a pool.
        """
        return None

    @property
    def has_shared(self) -> bool:
        """True if all places share one of its components."""
        return any(method.by_sums for method in self.mixed)

    @property
    def mixed(self) -> tuple[Method, ...]:
        """Methods that a pool mixes."""
        return ()

    def with_shared(self, method: Method) -> Method:
        """The pool with one more component, which places share."""
        return self

    @property
    def alone(self) -> Method:
        """The method without a component that places share."""
        return self

    @property
    def supports(self) -> tuple[str | None, ...]:
        """Kind of members of each of its components in a pool; None if it has no choice."""
        return (None,)

    def of_support(self, support: str | None) -> Method:
        """The method of one component of a pool, by its support."""
        return self

    @property
    def shapes(self) -> bool:
        """True if forecasts are compared without their means."""
        return False

    @property
    def name_in_pool(self) -> str:
        """Name of its components in a pool, without covariates and supports."""
        return type(self).__name__.lower()

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Calibration case of each member (-1: none), and names of its components, if any."""
        return np.arange(n), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters chosen at each location; the covariates have ``n_features`` features."""
        return {}

    def parameters_in_pool(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters of a component of a pool."""
        return self.parameters(n_features)

    @property
    def n_weighed(self) -> int:
        """Number of components with held-out forecasts to weight."""
        return 0

    @property
    def mostly(self) -> Method:
        """The method that takes most of the time of a fit."""
        return self

    def columns(self, n: int) -> int:
        """Number of columns of the largest matrices, for n cases of a location."""
        return max((method.columns(n) for method in self.mixed), default=0)

    def in_time(self, gap: int | str, year_start: str | None) -> Method:
        """The method with the gap and year start of a pool, if it has none of its own."""
        return self

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """The method with its settings for these cases, and a remark on changes.

        Raises ValueError if the settings do not fit the dates or the number of the cases.
        """
        return self, period_of_cases(axis, names_of(self.condition_on), method=type(self).__name__)

    @property
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Names of choices, with the sizes of their axes after the axis of places.

        The result is empty if the method has no choices.
        """
        return {}

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Names and sizes of losses from which places choose together; fits do not need them."""
        return {}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Choices (L, ...) by name, for fits to these or other cases; empty without a search."""
        return {}

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Choices (1, ...) for all places of a kind, from the choices (L, ...) of a sample of them.

        Includes the evidence of all places if :meth:`with_own` needs it. ``in_pool`` is for a
        component of a pool, as other components balance its errors.
        """
        return {}

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Choices (L, ...) between joint and own choices; the own choices have a share (L,).

        A place without choices of its own gets the joint choices.
        """
        return together

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Parameters, ``n_cases`` and ``status`` (L,), with given or new choices.

        With given choices the fit skips the search. Choices may come from other cases or places, or
        be joined from several.
        """
        return count_cases(cases, min_samples)

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Trial of each component in a pool, by ``refits`` that leave out some of the cases.

        A method overrides this if its search has held out the cases already.
        """
        choices = self.choose_locations(cases, min_samples)
        return [Trial(choices, self.fit_locations(cases, min_samples, choices), refits(self))]

    @abstractmethod
    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Recalibrated forecasts (L, T)."""

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Recalibrated forecasts (L, T) and their novelty, from one comparison with past ones."""
        issued = self.predict_locations(new, cases, fitted)
        return issued, self.novelty_locations(new, cases, fitted)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Novelty (L, T) of forecasts, 0 to 1; NaN if unknown."""
        return np.full(new.forecasts.loc.shape[:2], np.nan)

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Parameters of the added cases (L, n): only those with a value for each case.

        ``fitted`` has the other parameters and the status; ``slots`` (n,) are positions in
        the order of arrival of all cases, one for each added case.
        """
        return {}

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Parameters that change, ``n_cases`` and ``status`` (L,), from all cases (L, n).

        ``fitted`` has the previous parameters and status; parameters of each case do not change.
        """
        return self.fit_locations(cases, min_samples)

    def foretell_locations(self, cases: Cases, fitted: FitArrays) -> Sequence[Any]:
        """Inputs of :meth:`relearn_locations` that each of L locations has for itself.

        The computation takes long, so it runs once, before a first pass over some locations.
        """
        return [None] * len(cases.observations)


def is_method(value: object) -> TypeGuard[Method]:
    """Return whether a value is a method with its settings, not a name or a class."""
    return isinstance(value, Method)


def between(together: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
    """Numbers (L, ...) between joint and own numbers; own numbers may be unknown."""
    own_share = share.reshape(-1, *(1,) * (own.ndim - 1))
    return np.where(np.isnan(own), together, (1 - own_share) * together + own_share * own)


def names_of(condition_on: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the covariates in a setting, none or several."""
    if condition_on is None:
        return ()
    return (condition_on,) if isinstance(condition_on, str) else tuple(condition_on)


def missing_forecasts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Mark forecasts (L, T, m) that are invalid, or have no member that counts, (L, T)."""
    return np.asarray(verdicts(forecasts) != VALID)


def equally_likely(members: FloatArray, dtype: npt.DTypeLike, form: type[E]) -> E:
    """Distributions of one form with equally weighted members (L, T, k).

    They are NaN if a member is missing.
    """
    weights = np.where(np.isnan(members), np.nan, 1 / members.shape[-1])
    return form(members.astype(dtype), weights.astype(dtype))


def count_cases(cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
    """``n_cases``, the number of usable cases at each location (L,), and ``status`` for too few."""
    n_cases = np.isfinite(cases.observations).sum(-1).astype(np.int32)
    return {"n_cases": n_cases, "status": TOO_FEW * (n_cases < min_samples)}
