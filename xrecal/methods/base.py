"""What all methods have in common.

In this order: what a method is given and what it answers (:class:`Parameter`, :class:`Cases`,
:class:`NewCases`, the protocol :class:`Method`); settings as text, and names of settings that are
misspelt (:class:`Shown`); parts that several methods are made of (:class:`Conditioned`,
:class:`MemberPerCase`); what needs dates (half-life, season, folds); and how
forecasts become members and cases are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    cast,
    runtime_checkable,
)

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.distributions.forms import N_QUANTILES as N_QUANTILES
from xrecal.arrays.distributions.forms import equal_mass_levels as equal_mass_levels
from xrecal.inputs.covariates import SEASON
from xrecal.inputs.dates import CaseAxis, years_of_cases
from xrecal.typing import FloatArray, IntArray

from .ranges import FINITE
from .setting_checks import check_names, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from xrecal.arrays.distributions.forms import Distribution, Forecasts
    from xrecal.arrays.kernels.kernel import Features

Output: TypeAlias = Literal["weighted", "normal"]
"""Form of the recalibrated forecast."""

Bounds: TypeAlias = Literal["auto"] | tuple[float | None, float | None] | None
"""Bounds of a variable: read off the observations, given, or none."""


FitArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""What was fitted at L locations, by name."""


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


@dataclass(frozen=True)
class Covariates:
    """Values known when a forecast is issued, at L locations."""

    values: FloatArray
    """(L, n, p)"""
    names: tuple[str, ...] = ()
    periods: tuple[float | None, ...] = ()
    """(p,) of circular ones, None for others."""

    def take(self, part: tuple[slice | IntArray, ...]) -> Covariates:
        """Values of some locations, and perhaps cases."""
        return replace(self, values=self.values[part])

    def features(self, names: Sequence[str]) -> Features:
        """The covariates with these names, as the array layer takes them."""
        chosen = [self.names.index(name) for name in names]
        columns = [self.values[..., i] for i in chosen]
        values = np.stack(columns, axis=-1) if columns else self.values[..., :0]
        features: Features = arrays.features(values, tuple(self.periods[i] for i in chosen))
        return features


class SharedFits(NamedTuple):
    """What many places share, for L of them, that has not seen each fold of their dates."""

    held_out: npt.NDArray[Any]
    """(L,) of :class:`xrecal.arrays.shared.held_out.HeldOut`; None where nothing was learned"""
    place: IntArray
    """(L,) number of the place in the shared fit"""


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

    def take(self, block: slice) -> Cases:
        """Cases of some locations."""
        return replace(
            self,
            forecasts=None if self.forecasts is None else self.forecasts.take(block),
            observations=self.observations[block],
            covariates=self.covariates.take((block,)),
            squared=None if self.squared is None else self.squared[block],
            partners=tuple(partner[block] for partner in self.partners),
            shared=None if self.shared is None else SharedFits(*(a[block] for a in self.shared)),
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
        from xrecal.arrays.distributions.forms import Forecasts

        assert self.forecasts is not None
        parts = (None if part is None else part[:, which] for part in self.forecasts)
        return NewCases(
            Forecasts(*parts),  # type: ignore[arg-type]
            self.covariates.take((slice(None), which)),
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


class Method(Hashable, Protocol):
    """Protocol of all methods. Settings are frozen dataclasses of names and numbers."""

    keeps_cases: ClassVar[bool]
    """Whether forecasts are compared with those of the calibration cases."""
    output: ClassVar[Output]

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Covariates given which the forecast is calibrated."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates that are needed."""

    @property
    def shares_members(self) -> bool:
        """Whether the members of all forecasts are the past observations."""

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Calibration case of each member (-1: none), and names of their components if any."""

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters chosen at each location, the covariates being ``n_features`` features."""

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """The method as it can be used on these cases, and a remark on what had to change.

        Raises ValueError if the settings do not fit the dates or the number of the cases.
        """

    def fit_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Parameters, ``n_cases`` and ``status`` (L,)."""

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Recalibrated forecasts (L, T)."""


@runtime_checkable
class Updatable(Protocol):
    """Protocol of methods whose state keeps cases that more can join without a new fit."""

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Parameters of the added cases (L, n), those over the cases alone.

        ``fitted`` has the other parameters and the status; ``slots`` (n,) are the places of the
        cases in the order in which they came.
        """


@runtime_checkable
class Relearning(Updatable, Protocol):
    """Protocol of methods that, once more cases have joined, learn from all of them again.

    One that keeps forecasts learns parameters of each case again too.
    """

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Parameters that change, ``n_cases`` and ``status`` (L,), from all cases (L, n).

        ``fitted`` has the parameters and the status as they were, those of each case as they are.
        """


def is_method(value: object) -> bool:
    """Whether a value is a method with its settings; a name or a class is none."""
    return not isinstance(value, type) and hasattr(value, "fit_locations")


def method_on_device(method: Method) -> bool:
    """Whether a method fits and predicts CuPy arrays: it then has an attribute that says so."""
    return bool(getattr(method, "on_device", False))


class Shown:
    """Base of settings: their text has those that are not the default, a notebook shows all."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Say which settings there are where one is not known; Python's own message does not."""
        own = settings_of(cls)
        for name in given:
            if name not in own:
                others = [kind.__name__ for kind in kinds_with(name)]
                owners = f", which {' and '.join(others)} {'have' if others[1:] else 'has'}"
                raise TypeError(
                    f"{cls.__name__} has no setting {name!r}{owners if others else ''}"
                    f"{did_you_mean(name, own)} Its settings: {', '.join(own) or 'none'}"
                )
        return super().__new__(cls)

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in changed(self).items()]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _repr_html_(self) -> str:
        from .settings_html import settings_html

        return settings_html(self)


def settings_of(kind: type) -> tuple[str, ...]:
    """Names of the settings of a class."""
    return tuple(f.name for f in fields(cast("type[DataclassInstance]", kind)))


def changed(settings: Shown) -> dict[str, Any]:
    """Settings that are not the default."""
    values = ((f, getattr(settings, f.name)) for f in fields(cast("DataclassInstance", settings)))
    return {f.name: value for f, value in values if value != f.default}


def kinds_with(name: str) -> list[type[Shown]]:
    """Classes of settings of this package that have one of this name."""
    owners: list[type[Shown]] = []
    kinds = Shown.__subclasses__()
    for kind in kinds:  # which grows by the subclasses of each
        kinds += kind.__subclasses__()
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and is_dataclass(kind) and name in settings_of(kind):
            owners.append(kind)
    return sorted(owners, key=lambda kind: kind.__name__)


def names_of(condition_on: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the covariates in a setting, none or several."""
    if condition_on is None:
        return ()
    return (condition_on,) if isinstance(condition_on, str) else tuple(condition_on)


class Conditioned(Shown):
    """Part of methods that need the covariates they condition on, and no others."""

    condition_on: str | tuple[str, ...] | None

    def __post_init__(self) -> None:
        check_names(self)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates that the method conditions on."""
        return names_of(self.condition_on)

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Self, str | None]:
        """Raise ValueError if the season is asked for and the cases have no dates."""
        return self, period_of_cases(axis, self.covariates, method=type(self).__name__)


class MemberPerCase:
    """Part of methods whose forecasts have one member for each calibration case."""

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Calibration case of each member, of which there are as many."""
        return np.arange(n), None


SHORTEST_SEASON = 240
"""Days that the cases must span to learn the season from them."""

WHOLE_YEAR = 350
"""Days that leave no season out."""


def period_of_cases(axis: CaseAxis, names: tuple[str, ...], *, method: str) -> str | None:
    """Remark on a season learned from less than a year, or None; ValueError without dates."""
    if SEASON not in names:
        return None
    if axis.season is None or axis.days is None:
        raise ValueError(
            Advice(
                f"{method}: ",
                Typed("condition_on", "season"),
                " needs dates (datetime64 or cftime) along the calibration dimension; add a "
                "coordinate valid_time, or leave ",
                Typed("condition_on"),
                " out",
            )
        )
    span = np.ptp(axis.days)
    if span < SHORTEST_SEASON:
        raise ValueError(
            Advice(
                f"{method}: ",
                Typed("condition_on", "season"),
                f" needs cases from {SHORTEST_SEASON} days or more, but these span {span:.0f}: "
                "other seasons would be extrapolated; leave ",
                Typed("condition_on"),
                " out",
            )
        )
    if span < WHOLE_YEAR:
        return (
            f"season learned from {span:.0f} days: what is forecast for other dates is extrapolated"
        )
    return None


BLOCKS = 5
"""Folds of cases without years, and of random ones."""

YEARS_FOR_YEAR_FOLDS = 5
"""Years from which on each is a fold, with ``folds="auto"``."""


def fold_groups(
    folds: str, axis: CaseAxis, n_cases: int, year_start: str | None = None
) -> tuple[IntArray, int]:
    """Group of each case (n,), never divided between folds, and the number of folds.

    The number is 0 where each group is a fold. Years are those of the cases; see
    :func:`xrecal.inputs.dates.years_of_cases`.
    """
    year = years_of_cases(axis, year_start)
    enough = year is not None and np.unique(year).size >= YEARS_FOR_YEAR_FOLDS
    if year is not None and (folds == "year" or (folds == "auto" and enough)):
        return year, 0
    step = axis.steps(n_cases)
    if folds == "random":  # one shuffle for all locations, so chunks cannot matter
        return np.random.default_rng(0).permutation(step[-1:].sum() + 1)[step], BLOCKS
    return step, BLOCKS


def check_folds(method: str, folds: str, axis: CaseAxis, year_start: str | None = None) -> None:
    """Raise ValueError if year folds are asked for and cannot be made."""
    if year_start is not None and axis.month_day is None:
        raise ValueError(
            f"{method}: year_start needs dates along the calibration dimension (datetime64 or "
            "cftime); leave it out"
        )
    if folds != "year":
        return
    year = years_of_cases(axis, year_start)
    if year is None:
        raise ValueError(
            f"{method}: folds='year' needs dates along the calibration dimension (datetime64, "
            "cftime, or years from 1000 to 9999); use folds='block'"
        )
    if np.unique(year).size < 2:
        raise ValueError(
            f"{method}: folds='year' needs two years, but all cases are from {year[0]}"
            f"{told_year_start(axis, year)}; use folds='block'"
        )


def told_year_start(axis: CaseAxis, year: IntArray) -> str:
    """Remark where years do not begin on 1 January, for a message on their number."""
    if axis.year is None or np.array_equal(axis.year, year):
        return ""
    return (
        ", as years begin in the largest gap of the calendar of the cases (year_start='01-01' for "
        "calendar years)"
    )


def check_gap_in_time(method: str, gap: int | str, axis: CaseAxis) -> None:
    """Raise ValueError if a gap is a length of time and the cases have no dates."""
    if isinstance(gap, str) and axis.days is None:
        raise ValueError(
            f"{method}: gap={gap!r} needs dates (datetime64 or cftime) along the calibration "
            "dimension; add a coordinate, or give a number of cases"
        )


WEEK = 7.0
"""Days within which neighbours are taken to know of each other: about the memory of the weather."""

MANY_NEAR = 0.05
"""Share of the cases with such a neighbour in another fold from which on it is told: a few among
many give next to nothing away, and the end of each year of days has some."""


def near_other_folds(folds: str, axis: CaseAxis, year_start: str | None) -> str | None:
    """Remark on folds without a gap that part many cases from neighbours in time; or None."""
    from xrecal.arrays.ckme.folds import assign_folds, count_near

    if axis.days is None or folds == "random":  # which are asked for, and known to leak
        return None
    n_cases = axis.days.size
    groups, blocks = fold_groups(folds, axis, n_cases, year_start)
    fold = assign_folds(groups, np.ones((1, n_cases), np.bool_), blocks, axis.step)[0]
    parts = (fold == f for f in range(fold.max(initial=-1) + 1))
    near = sum(
        count_near(axis.days, np.flatnonzero(part), np.flatnonzero(~part), WEEK) for part in parts
    )
    if near < max(MANY_NEAR * n_cases, 1):
        return None
    return (
        f"{near} of {n_cases} cases have a neighbour within a week in another fold, which may give "
        f"them away: give the method gap='{WEEK:g}D', or as long as the weather is remembered"
    )


def missing_forecasts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Where forecasts (L, T, m) have no member that counts, or an invalid one, (L, T)."""
    from xrecal.arrays.distributions.forms import VALID, verdicts

    return np.asarray(verdicts(forecasts) != VALID)


def count_cases(cases: Cases, min_samples: int) -> dict[str, npt.NDArray[Any]]:
    """``n_cases`` to learn from at each location (L,), and ``status``: whether they are too few."""
    from xrecal.arrays.status import TOO_FEW

    n_cases = np.isfinite(cases.observations).sum(-1).astype(np.int32)
    return {"n_cases": n_cases, "status": TOO_FEW * (n_cases < min_samples)}
