"""Base class of all methods, and the inputs of methods: cases, new forecasts and covariates."""

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
"""Form of recalibrated forecasts: weighted ensembles or normal distributions."""

Bound: TypeAlias = float | Literal["auto"] | None
Bounds: TypeAlias = Literal["auto"] | tuple[Bound, Bound] | None
"""Bounds of a variable. "auto": the fit finds them in the observations. None: the variable has no
bounds. A pair has the lower and the upper bound; each is a number, "auto" or None."""


FitArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""Arrays with a value for each of L locations. A key is the name of a parameter or of a choice. A
choice is a setting that cross-validation has chosen."""

Chosen: TypeAlias = FitArrays | None
"""Settings that a fit uses as they are; with None, the fit chooses the settings itself."""

CHOSEN_FROM = "chosen_from"
"""Key in parameters and choices. Its value is the number of places whose losses determined the
settings of a place."""

N_HELD_OUT = 100
"""Number of quantiles that represent a held-out forecast when a pool learns the weights of its
components."""


class Trial(NamedTuple):
    """A pool's component, fitted to all cases, and its forecasts of held-out cases."""

    choices: FitArrays
    fitted: FitArrays
    held_out: FloatArray
    """(L, 2, n, Q): Q quantiles of two forecasts of each of n held-out cases at L locations. The
    first forecast comes from a fit to the other folds, and the second forecast comes from a fit to
    earlier cases alone."""


ANY = -np.inf, np.inf
FINITE = float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)
SHARE = 0.0, 1.0
NOT_NEGATIVE = 0.0, FINITE[1]
POSITIVE = float(np.finfo(np.float64).tiny), FINITE[1]
POSITIVE_OR_INFINITE = POSITIVE[0], np.inf
"""Allowed ranges of parameters, from the smallest to the largest value."""


@dataclass(frozen=True)
class Parameter:
    """Description of a parameter: numbers that a method learns or chooses at each location."""

    long_name: str
    in_units_of_variable: bool = False
    dtype: type = np.float64
    dims: Mapping[str, int | Callable[[int], int]] = field(default_factory=dict)
    """Dimensions besides the locations, and their sizes. A size may be a function of the number of
    slots (the positions for cases in the arrays that a model stores)."""
    flags: Sequence[str] = ()
    """Meanings of the values 0, 1, ... of the parameter, if these values are codes."""
    description: str = ""
    """Text that explains the labels of the parameter."""
    labels: Sequence[str] = ()
    """Labels of the values, if the parameter has a single dimension besides the locations."""
    of_slots: bool = False
    """True if values are positions of cases; -1 means no case."""
    within: tuple[float, float] = FINITE
    """Smallest and largest allowed value. NaN, for an unknown value, is allowed too."""
    for_updates: bool = False
    """True if updates need the parameter and forecasts do not."""
    of_all_places: bool = False
    """True if the fit learns one value of the parameter from all places together."""

    def sizes(self, n: int) -> dict[str, int]:
        """Return the sizes of the dimensions, given n slots for cases."""
        return {d: size(n) if callable(size) else size for d, size in self.dims.items()}


FROM_PLACES = {
    CHOSEN_FROM: Parameter(
        "number of places that chose settings together", dtype=np.int32, within=(1, FINITE[1])
    )
}
"""Parameter of all methods that choose settings from cases."""


class SharedFits(NamedTuple):
    """Shared fits for each of L places; a shared fit learns from the cases of all places.

    The fits predict cases of the places, and no fit has learned from the cases that it predicts.
    """

    fits: npt.NDArray[Any]
    """(L,) objects with the fits of each place: :class:`xrecal.arrays.shared.held_out.HeldOut`, or
    :class:`xrecal.arrays.shared.held_out.InTime` if updates add cases to the method. None at a
    place without a shared fit"""
    place: IntArray
    """(L,) position of each place in its shared fit; -1 if the fit does not contain the place"""
    here: npt.NDArray[Any]
    """(L, k) values of the k features of each place"""


@dataclass(frozen=True)
class Cases:
    """Past cases at L locations, from which methods learn."""

    forecasts: Forecasts | None
    """Forecasts (L, n, m) of n cases by m members; None if a fitted method does not store them."""
    observations: FloatArray
    """Observations (L, n), NaN in slots without a usable case."""
    covariates: Covariates
    axis: CaseAxis
    squared: FloatArray | None = None
    """(L, n, n) squared energy distances between the forecasts, if known already."""
    partners: tuple[FloatArray, ...] = ()
    """(L, n) observations of each further variable of a joint fit."""
    shared: SharedFits | None = None
    """Shared fits of a pool's component; None if no component has a shared fit."""
    common: Record | Timeline | None = None
    """What places of an online pool have in common. In a first pass over a sample of the places,
    this is the record that collects predictors of errors and regrets of experts. Later, the
    attribute has the means over places that the first pass found."""
    foretold: npt.NDArray[Any] | None = None
    """(L,) objects with the results of :meth:`Method.foretell_locations`, if known already."""
    mean: FloatArray | None = None
    """(L, n) means of the forecasts, if known already."""
    centres: dict[bytes, FloatArray] = field(default_factory=dict)
    """Cache of fitted centres, from which CKMEs measure errors. A key identifies the kind of centre
    and the cases of its fit. Several methods share this cache."""
    compared: dict[Hashable, Any] = field(default_factory=dict)
    """Cache of distances between the forecasts of each location. Several CKMEs that compare the
    same forecasts use one cache."""
    medians: dict[bytes, float] = field(default_factory=dict)
    """Cache of median distances between forecasts. Several CKMEs that compare the same forecasts
    use one cache."""

    def take(self, block: slice | IntArray) -> Cases:
        """Return the cases of some of the locations."""
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
        """Return all cases, but only the cases in ``train`` (L, n) keep their observations.

        Methods then learn from the cases in ``train`` alone.
        """
        return replace(self, observations=np.where(train, self.observations, np.nan))

    def select(self, which: IntArray) -> Cases:
        """Return only the cases at the positions ``which`` (k,)."""
        squared = None if self.squared is None else self.squared[:, which[:, np.newaxis], which]
        new = self.as_new(which)
        observed, axis = self.observations[:, which], self.axis.take(which)
        return Cases(new.forecasts, observed, new.covariates, axis, squared)

    def as_new(self, which: IntArray) -> NewCases:
        """Return the forecasts of the cases at positions ``which`` (k,), as new forecasts."""
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
    """T forecasts (L, T, m) at each location, with m members."""
    covariates: Covariates
    """Covariates (L, T, p): p values for each of these forecasts."""
    across: FloatArray | None = None
    """(L, T, n) squared energy distances between new forecasts and forecasts of n past cases, if
    known already."""
    in_common: FloatArray | None = None
    """(L, T, 3) predictors of errors that places have in common, for an online pool; None if there
    are none."""

    def take(self, block: slice | IntArray) -> NewCases:
        """Return the forecasts of some of the locations."""
        in_common = None if self.in_common is None else self.in_common[block]
        covariates = self.covariates.take((block,))
        return NewCases(self.forecasts.take(block), covariates, in_common=in_common)


class Variables(NamedTuple):
    """Variables that a method compares together: vector k has member k of each variable."""

    names: tuple[str, ...]
    periods: tuple[float | None, ...]
    """Periods of circular variables, None for other variables."""
    units: tuple[str | None, ...]
    own: int
    """Position of the variable to recalibrate."""


class Method(ABC):
    """Base of all methods, which are frozen dataclasses of names and numbers.

    The attributes of a method describe its capabilities, so callers need not know its class. A new
    method overrides :meth:`predict_locations`. If its fit has parameters, it also overrides
    :meth:`fit_locations` and :meth:`parameters`. If it searches for settings, it overrides
    :meth:`choose_locations`. It can inherit all other attributes.
    """

    output: ClassVar[Output] = "weighted"
    keeps_cases: ClassVar[bool] = False
    """True if the method compares new forecasts with past forecasts. The state of a model, which is
    the arrays that it stores, then contains the past forecasts."""
    recalibrates: ClassVar[bool] = True
    """True if the method changes forecasts; False if it issues the raw forecasts."""
    by_sums: ClassVar[bool] = False
    """True if the method can make one fit to the cases of many places. Such a fit needs only sums
    over chunks of cases."""
    joins_variables: ClassVar[bool] = False
    """True if the method can also compare vectors, or points on a circle, as part of a
    :class:`VectorCKME`."""
    updates: ClassVar[bool] = True
    """True if an update can add cases to a fit of the method."""
    relearns: ClassVar[bool] = False
    """True if each update makes the method learn from all cases again. If the method stores
    forecasts, the update also renews the parameters that have a value for each case."""
    keeps_sums: bool = False
    """True if the method is a pool's component that all places share, and updates add new cases to
    its sums in the state."""
    keeps_choices: ClassVar[bool] = False
    """True if an update of a pool adds cases to the method, but leaves its fitted parameters as
    they are."""
    in_order: ClassVar[bool] = False
    """True if the method learns from one case after another, so the order of cases matters."""

    in_common: ClassVar[tuple[str, ...]] = ()
    """Names of parameters that contain what places have in common, such as common regrets. A first
    pass over a sample of the places computes them. Such a method has :meth:`predictors_of_new`."""

    exchangeable: bool = True
    """True if members have no names and their order has no meaning."""

    delay: int | str | None = None
    """Time from the valid time of an observation until this observation is known; None if the
    method has no such setting."""
    refit: int | str | None = None
    """Number of cases or length of time between two fits of a method that refits itself."""

    @property
    def on_device(self) -> bool:
        """True if the method accepts CuPy arrays."""
        return False

    @property
    def between(self) -> Between | None:
        """Rule for quantiles between members; None if the CDF has steps at the members."""
        return None

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Names of covariates: the method calibrates forecasts given these covariates."""
        return None

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of all covariates that the method needs."""
        return names_of(self.condition_on)

    @property
    def of_places(self) -> tuple[str, ...]:
        """Names of the covariates that identify the place of a case."""
        return ()

    @property
    def variables(self) -> Variables | None:
        """Variables of the vectors that the method compares; None if it compares no vectors."""
        return None

    def of_variable(self, place: int) -> Method:
        """Return the method for the variable at position ``place`` of the vector."""
        return self

    @property
    def shares_members(self) -> bool:
        """True if the members of all forecasts are the past observations."""
        return False

    @property
    def knows_novelty(self) -> bool:
        """True if the method can compute novelty: it compares forecasts with past forecasts."""
        return any(method.knows_novelty for method in self.mixed)

    @property
    def not_by_sums(self) -> str | None:
        """End of an error message: why places cannot share a fit, and what to type instead.

        The property is None if places can share a fit.
        """
        name = type(self).__name__
        return f"{name} needs; leave pool out, or use xrecal.CKME() or xrecal.LinearPool()"

    @property
    def shared_by_places(self) -> Method | None:
        """Method of the component that all places share, if a fit pools many cases.

        The property is None if the method is not a pool.
        """
        return None

    @property
    def has_shared(self) -> bool:
        """True if the method is a pool and all places share one of its components."""
        return any(method.by_sums for method in self.mixed)

    @property
    def mixed(self) -> tuple[Method, ...]:
        """Methods that a pool mixes; empty if the method is not a pool."""
        return ()

    def with_shared(self, method: Method) -> Method:
        """Return the pool with one more component: a method whose fit all places share."""
        return self

    @property
    def alone(self) -> Method:
        """The method itself, or the pool without the component that all places share."""
        return self

    @property
    def supports(self) -> tuple[str | None, ...]:
        """Kinds of members; a pool has a component for each. (None,) if there is one kind only."""
        return (None,)

    def of_support(self, support: str | None) -> Method:
        """Return the method with ``support`` as its only kind of members."""
        return self

    @property
    def shapes(self) -> bool:
        """True if the method compares forecasts without their means."""
        return False

    @property
    def name_in_pool(self) -> str:
        """First part of the labels that the method's components have in a pool.

        In these labels, the covariates and the support come after this part.
        """
        return type(self).__name__.lower()

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Return the position of each member's past case, and the component of each member.

        The position is -1 if a member belongs to no past case. ``n`` is the number of slots, which
        are the positions for cases in the state. The second result is None if the members do not
        come from several components.
        """
        return np.arange(n), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters at each location; the covariates have ``n_features`` features."""
        return {}

    def parameters_in_pool(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters that the method has as a component of a pool."""
        return self.parameters(n_features)

    @property
    def n_weighed(self) -> int:
        """Number of components that a pool weights by held-out forecasts; 0 for other methods."""
        return 0

    @property
    def mostly(self) -> Method:
        """The method that needs most of the time of a fit, such as the pool of an online pool."""
        return self

    def columns(self, n: int) -> int:
        """Return the number of columns of a fit's largest matrices, for n cases of a location."""
        return max((method.columns(n) for method in self.mixed), default=0)

    def in_time(self, gap: int | str, year_start: str | None) -> Method:
        """Return the method; if it sets no gap or no year start, it gets that of the pool."""
        return self

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method with settings for these cases, and a remark for the user or None.

        Raises ValueError if the dates or the number of the cases do not allow the settings.
        """
        return self, period_of_cases(axis, names_of(self.condition_on), method=type(self).__name__)

    @property
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Names of the choices, and the size of each choice at one place.

        The property is empty if the method has no choices.
        """
        return {}

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Names and sizes of the losses by which several places choose joint settings.

        Fits do not need these losses.
        """
        return {}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Choose settings (L, ...) by cross-validation, for fits to these or other cases.

        The result is empty if the method has nothing to choose.
        """
        return {}

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Return joint choices (1, ...) for places of a kind, from the choices of L sample places.

        If :meth:`with_own` needs further numbers of all places, such as mean scores, the result
        includes these numbers too. ``in_pool`` is true for a component of a pool, whose errors
        other components can balance.
        """
        return {}

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Return choices (L, ...) that lie between joint choices and the places' own choices.

        ``share`` (L,) is the weight of the own choices. With 1 the result is the own choices, and
        with 0 it is the joint choices. A place without choices of its own gets the joint choices.
        """
        return together

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit the method: return its parameters, ``n_cases`` (L,) and ``status`` (L,).

        The fit searches for choices if ``choices`` is None. Choices may come from other cases, or
        from several places together.
        """
        return count_cases(cases, min_samples)

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Return a trial of each component that a pool makes of the method.

        The function ``refits`` fits a method to other cases and returns quantiles of its forecasts
        of held-out cases. A method overrides :meth:`try_locations` if its search for choices
        already forecasts held-out cases.
        """
        choices = self.choose_locations(cases, min_samples)
        return [Trial(choices, self.fit_locations(cases, min_samples, choices), refits(self))]

    @abstractmethod
    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return the recalibrated forecasts (L, T)."""

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Return the recalibrated forecasts (L, T) and the novelty (L, T) of the raw forecasts.

        A method overrides this function if one comparison with past forecasts gives both results.
        """
        issued = self.predict_locations(new, cases, fitted)
        return issued, self.novelty_locations(new, cases, fitted)

    def predictors_of_new(self, new: NewCases, cases: Cases) -> FloatArray:
        """Return standardised predictors of errors (L, T, 3), whose means places have in common."""
        raise NotImplementedError

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Return the novelty (L, T) of forecasts, from 0 to 1; NaN if it is unknown."""
        return np.full(new.forecasts.loc.shape[:2], np.nan)

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Return the values of the added cases (L, n), for parameters with a value for each case.

        ``fitted`` has all other parameters and the status. ``slots`` (n,) has the position of each
        added case among all cases, in the order in which the model got them.
        """
        return {}

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Learn again from all cases (L, n): return changed parameters, ``n_cases`` and ``status``.

        ``fitted`` has the previous parameters and status. Parameters with a value for each case do
        not change.
        """
        return self.fit_locations(cases, min_samples)

    def foretell_locations(self, cases: Cases, fitted: FitArrays) -> Sequence[Any]:
        """Return L objects with results that :meth:`relearn_locations` needs at each location.

        An update may run :meth:`relearn_locations` in two passes over some locations. These results
        take long to compute, so the update computes them only once, before both passes.
        """
        return [None] * len(cases.observations)


def is_method(value: object) -> TypeGuard[Method]:
    """Return whether a value is a method with settings, rather than a name or a class."""
    return isinstance(value, Method)


def between(together: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
    """Return means (L, ...) of joint and own numbers; own numbers have the weight ``share`` (L,).

    The result is the joint number where the own number is NaN.
    """
    own_share = share.reshape(-1, *(1,) * (own.ndim - 1))
    return np.where(np.isnan(own), together, (1 - own_share) * together + own_share * own)


def names_of(condition_on: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of the covariates in a setting, as a tuple."""
    if condition_on is None:
        return ()
    return (condition_on,) if isinstance(condition_on, str) else tuple(condition_on)


def missing_forecasts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Mark forecasts (L, T) that are invalid, or have no member with a value and a weight."""
    return np.asarray(verdicts(forecasts) != VALID)


def equally_likely(members: FloatArray, dtype: npt.DTypeLike, form: type[E]) -> E:
    """Return distributions of the class ``form`` whose members (L, T, k) have equal weights.

    The weight of a missing member is NaN.
    """
    weights = np.where(np.isnan(members), np.nan, 1 / members.shape[-1])
    return form(members.astype(dtype), weights.astype(dtype))


def count_cases(cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
    """Return ``n_cases`` (L,), the number of usable cases, and ``status`` (L,).

    The status marks locations with fewer than ``min_samples`` cases.
    """
    n_cases = np.isfinite(cases.observations).sum(-1).astype(np.int32)
    return {"n_cases": n_cases, "status": TOO_FEW * (n_cases < min_samples)}
