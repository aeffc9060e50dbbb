"""The conditional kernel mean embedding as a method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xrecal import arrays
from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.continuous import Between
from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.lengths import as_span, read_gap, read_year_start
from xrecal.typing import FloatArray, IntArray

from .base import (
    CHOSEN_FROM,
    FROM_PLACES,
    N_HELD_OUT,
    Bounds,
    Cases,
    Chosen,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    Trial,
)
from .beyond import joined, shares_left, tailed, with_tail_slots
from .ckme_choices import (
    CHOICES,
    COEFFICIENT,
    FEATURE,
    KEPT,
    KERNELS,
    OF_SHAPES,
    PLAIN,
    RANK,
    SUPPORTS,
    Support,
)
from .covariates import may_break
from .folds import check_folds, check_gap_in_time, fold_groups, near_other_folds
from .settings import HalfLife, Settings, check_choices, in_days, is_positive

if TYPE_CHECKING:
    from xrecal.arrays.ckme.embedding import Choices, FittedCKME
    from xrecal.arrays.ckme.embedding import Settings as ArraySettings

BY_SUMS = {
    "kernel": ("gaussian",),
    "bandwidth": ("median", "cv"),
    "loss": ("crps",),
    "solver": ("auto", "lowrank"),
    "support": ("auto", "errors", "standardised"),
}
"""Settings with which places can share a fit to many cases, without comparing them one by one. The
members are then standardised errors."""


@dataclass(frozen=True, repr=False)
class CKME(Settings):
    """Conditional kernel mean embedding with the Energy Distance Kernel.

    The recalibrated forecast is a weighted ensemble. Its members are past observations, or past
    errors added to the new forecast; cross-validation chooses observations or errors. Each past
    case has a weight by the similarity of its forecast to the new forecast, so the result is
    calibrated given the forecast.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"}
        Similarity of two forecasts at squared energy distance D²: exp(-D²/s) or exp(-D/s).
    bandwidth : "median", "cv" or float
        The number s. "median" is the median over pairs of different forecasts. "cv" chooses by
        cross-validation among 1, 4 and 16 times this median. A number has the unit of the variable
        (for the Laplace kernel, the unit of the root of the variable).
    ridge : "cv" or float
        Regularisation λ of (K + λ n I)⁻¹: chosen by cross-validation, or this number.
    loss : {"crps", "laplace"}
        Loss that cross-validation minimises: the held-out CRPS, or the distance between the
        forecast and the observation in the space of a Laplace kernel.
    folds : {"auto", "year", "block", "random"}
        Cases held out together: years, five contiguous blocks, or five random parts (which leak
        through serial correlation). "auto" takes years if there are five or more, and blocks
        otherwise. If the folds are years of several cases, the best ridge must beat the largest
        one by one standard error over the years; otherwise the fit takes the largest one.
    gap : int, str or timedelta
        Cases on either side of the held-out cases, from which the fit does not learn either: a
        number of cases, or a length of time such as "5D" or "12h".
    projection : {"euclidean", "energy"}
        Step from signed weights to probabilities: the nearest weights, or the nearest distribution.
    solver : {"auto", "exact", "lowrank"}
        How the fit solves for the weights. "exact" takes O(n³) time for n cases. "lowrank" takes at
        most 1000 cases as landmarks that represent all: O(n r²) time for r landmarks. It uses as
        many as the ridge needs, and chooses settings on a part of the held-out cases. "auto" is
        exact up to 250 cases of a location, and with the Laplace kernel, which landmarks
        approximate badly.
    support : {"observations", "errors", "auto"}, or one kind of errors
        Values that members may have. "observations" are past observations, so no member lies
        beyond the record. "errors" are past errors added to a centre of the forecast. There are
        four kinds: ``"mean"`` takes the mean of the forecast as centre, ``"regression"`` a
        regression on this mean, ``"standardised"`` has errors in units of the spread that EMOS
        gives, and ``"ratio"`` has ratios to the mean. "errors" takes the kind with the smallest
        held-out CRPS, the name of a kind takes this one, and "auto" takes the best of errors and
        observations.
        With predictors, which are covariates other than the season, ``"regression_plain"`` and
        ``"standardised_plain"`` have centres without them; ``"standardised_both"`` chooses between
        ``"standardised_plain"`` and ``"standardised"``. Each fold fits centres of its own.
        ``CKME(support="observations")`` is the method of the paper.
    tails : "auto" or None
        Distribution beyond the largest past error, if members are errors. "auto": a generalised
        Pareto tail replaces the outer twentieth to tenth of the mass, on each side without a bound.
        None: no tail.
    novelty : "auto" or None
        Only for ``support="auto"`` at places that have chosen past observations. "auto": past
        observations lose weight to past errors added to the forecast, if the forecast is unlike
        past ones or if these errors put much of the mass beyond the observed range. None: past
        observations keep their weight.
    half_life : timedelta, float or "cv", optional
        Age at which a calibration case has half the weight, in days if a number: for forecast
        systems that change. "cv" chooses the age with which past cases predict later ones best.
    bounds : "auto", (lower, upper) or None
        Values that the variable cannot pass, such as 0 for rain. "auto": an end of a location's
        observed range is a bound if at least 5 % of its calibration observations equal this end
        exactly. A variable that cannot be negative by its standard name or unit has the lower bound
        0. Given bounds hold at places where no observation violates them; see the status.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. The result is calibrated given the forecast and covariates.
        Cross-validation chooses how strongly covariates count, or that they do not count.
    compare : {"forecasts", "shapes"}
        Part of the forecasts that the kernel compares. "forecasts" compares them as they are.
        "shapes" compares them without their means, so by spread and form. Then the cases with
        forecasts of similar shape count, whatever the mean. The errors of these cases are in units
        of the spread that EMOS gives, or ratios to the mean.
    year_start : str or int, optional
        Date at which years of cases begin, such as "07-01", or a month. Without it, years begin in
        the largest gap that the dates of all cases leave in the calendar, so no winter is cut in
        two. They begin on 1 January if this gap contains it, or if no gap has 30 days or more.

    Notes
    -----
    If places share a fit, as with ``pool=`` and more than 1500 cases, members are standardised
    errors and the kernel compares shapes. ``gap``, ``half_life`` in days and ``year_start`` may
    have any value there.

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.CKME(condition_on="season"))
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.34
    """

    kernel: Literal["gaussian", "laplace"] = "gaussian"
    bandwidth: Literal["median", "cv"] | float = "median"
    ridge: Literal["cv"] | float = "cv"
    loss: Literal["crps", "laplace"] = "crps"
    folds: Literal["auto", "year", "block", "random"] = "auto"
    gap: int | str = 0
    projection: Literal["euclidean", "energy"] = "euclidean"
    solver: Literal["auto", "exact", "lowrank"] = "auto"
    support: Support = "auto"
    tails: Literal["auto"] | None = "auto"
    novelty: Literal["auto"] | None = "auto"
    half_life: HalfLife = None
    bounds: Bounds = "auto"
    condition_on: str | tuple[str, ...] | None = None
    compare: Literal["forecasts", "shapes"] = "forecasts"
    year_start: str | None = None

    keeps_cases = True
    keeps_choices = True
    knows_novelty = True
    joins_variables = True

    def __post_init__(self) -> None:
        check_choices("CKME", self, CHOICES)
        for name, automatic in (("bandwidth", ("median", "cv")), ("ridge", ("cv",))):
            value = getattr(self, name)
            if not (is_positive(value) or (isinstance(value, str) and value in automatic)):
                raise ValueError(
                    f"CKME: {name} must be {' or '.join(map(repr, automatic))} or a positive "
                    f"number, got {value!r}"
                )
        if self.ridge != "cv" and self.ridge < arrays.SMALLEST_RIDGE:
            raise ValueError(
                f"CKME: ridge must be at least {arrays.SMALLEST_RIDGE:g}, got {self.ridge!r}"
            )
        object.__setattr__(self, "gap", read_gap(self.gap, "CKME"))
        object.__setattr__(self, "year_start", read_year_start(self.year_start, "CKME"))
        if self.gap and self.folds == "random":
            raise ValueError("CKME: random folds have no neighbours; use gap=0 or folds='block'")
        if self.loss == "laplace" and self.support != "observations":
            raise ValueError(
                "CKME: supports are compared by the CRPS; use support='observations' with "
                f"loss='laplace', got support={self.support!r}"
            )
        if self.shapes and not set(OF_SHAPES) & set(SUPPORTS[self.support]):
            raise ValueError(
                "CKME: shapes do not give the position of the observation; use support='errors', "
                f"'standardised' or 'ratio' with compare='shapes', got support={self.support!r}"
            )
        object.__setattr__(self, "half_life", in_days("CKME", self.half_life))
        super().__post_init__()

    @property
    def supports(self) -> tuple[str, ...]:
        """Kinds of support of the array layer that the settings allow."""
        supports = SUPPORTS[self.support]
        if self.shapes:
            supports = tuple(s for s in supports if s in OF_SHAPES)
        if len(supports) > 1 and not any(map(may_break, self.covariates)):
            supports = tuple(s for s in supports if s not in PLAIN)
        return supports

    def of_support(self, support: str | None) -> CKME:
        """The method with one support, without tails or errors that replace observations."""
        alone: dict[str, Any] = {"support": support, "tails": None, "novelty": None}
        return replace(self, **alone)

    @property
    def shapes(self) -> bool:
        """True if forecasts are compared without their means."""
        return self.compare == "shapes"

    @property
    def on_device(self) -> bool:
        """True if CuPy arrays are accepted: array expressions support only the usual settings."""
        return self.projection == "euclidean" and self.loss == "crps" and self.solver != "lowrank"

    @property
    def shares_members(self) -> bool:
        """True if the members are the past observations."""
        return self.support == "observations"

    @property
    def between(self) -> Between | None:
        """Means over levels if members have tails."""
        return None if self.tails is None or self.shares_members else "mean"

    @property
    def gives_way(self) -> bool:
        """True if errors may replace past observations as members."""
        return self.support == "auto" and self.novelty is not None and not self.shapes

    @property
    def not_by_sums(self) -> str | None:
        """The first setting that sums over cases do not support, and what to type; or None."""
        for name, allowed in BY_SUMS.items():
            value = getattr(self, name)
            if value not in allowed:
                others = " or ".join(f"{name}={other!r}" for other in allowed)
                return f"CKME needs with {name}={value!r}; use {others}"
        if self.half_life == "cv":
            return "CKME needs with half_life='cv'; give days, such as half_life=730"
        return None

    @property
    def name_in_pool(self) -> str:
        """Name of its components in a pool, without covariates and supports."""
        return "ckme_shapes" if self.shapes else "ckme"

    def in_time(self, gap: int | str, year_start: str | None) -> CKME:
        """The method with the gap and year start of a pool, if it has none of its own."""
        gap = self.gap if self.folds == "random" else self.gap or gap
        return replace(self, gap=gap, year_start=self.year_start or year_start)

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Calibration case of each member, -1 in tails, and names of their components."""
        cases, components = np.arange(n), ["errors"] * n
        if self.gives_way:
            cases = np.concatenate([cases, cases])
            components = ["observations"] * n + components
        elif self.tails is None or self.shares_members:
            return super().slots(n)
        return (cases, components) if self.tails is None else with_tail_slots(cases, components)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Bandwidth and ridge, and further choices that the settings allow."""
        kept = {
            ("ridge", "bandwidth"): True,
            ("strength", "precision"): n_features > 0,
            ("support", "centre", "lower", "upper"): not self.shares_members,
            ("beside", "beside_centre"): self.gives_way,
            ("half_life",): self.half_life is not None,
            ("landmark",): self.solver != "exact",
        }
        sizes: dict[str, int | Callable[[int], int]] = {FEATURE: n_features, RANK: self._landmarks}
        sizes[COEFFICIENT] = 4 + 2 * n_features
        some = {name: KEPT[name] for names, there in kept.items() if there for name in names}
        own = {n: replace(p, dims={d: sizes[d] for d in p.dims}) for n, p in some.items()}
        return own | FROM_PLACES

    def parameters_in_pool(self, n_features: int) -> Mapping[str, Parameter]:
        """Parameters of a component of a pool: there, other components replace observations."""
        own = replace(self, novelty=None).parameters(n_features)
        return {name: p for name, p in own.items() if name != CHOSEN_FROM}

    def columns(self, n: int) -> int:
        """Columns of the matrices for n cases of a location: n, or the number of landmarks."""
        from xrecal.arrays.ckme.solvers import is_low_rank

        return self._landmarks(n) if is_low_rank(self.solver, self.kernel, n) else n

    def _landmarks(self, n: int) -> int:
        """Number of slots for landmarks, with n slots for cases."""
        from xrecal.arrays.ckme.solvers import landmark_slots

        return landmark_slots(self.solver, self.kernel, n, shapes=self.shapes)

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Raise ValueError if folds, season or half-life need dates that the cases lack."""
        self.check_dates(axis)
        near = None
        if not self.gap and self.ridge == "cv":
            near = near_other_folds(self.folds, axis, self.year_start)
        method, note = super().check(axis, n_cases)
        return method, "; ".join(remark for remark in (note, near) if remark) or None

    def check_dates(self, axis: CaseAxis) -> None:
        """Raise ValueError if folds, gap or half-life need dates that the cases lack."""
        check_folds("CKME", self.folds, axis, self.year_start)
        check_gap_in_time("CKME", self.gap, axis)
        if self.half_life is not None and axis.days is None:
            raise ValueError(
                "CKME: half_life needs dates (datetime64 or cftime) along the calibration "
                "dimension; add a coordinate, or leave half_life out"
            )

    def array_settings(self, min_samples: int) -> ArraySettings:
        """Settings of the array layer."""
        from xrecal.arrays.ckme.embedding import Settings

        wide = self.bandwidth == "cv"
        return Settings(
            kernel=self.kernel,
            bandwidth=None if isinstance(self.bandwidth, str) else self.bandwidth,
            ridge=None if isinstance(self.ridge, str) else self.ridge,
            loss=self.loss,
            projection=self.projection,
            gap=as_span(self.gap) if isinstance(self.gap, str) else self.gap,
            bounds=self.bounds,
            supports=self.supports,
            kernels=KERNELS[self.compare if wide else None, bool(self.covariates)],
            min_samples=min_samples,
            solver=self.solver,
            shapes=self.shapes,
        )

    def array_arguments(self, cases: Cases, min_samples: int) -> dict[str, Any]:
        """Arguments of :func:`xrecal.arrays.fit_ckme`, without choices."""
        n = cases.observations.shape[1]
        groups, blocks = fold_groups(self.folds, cases.axis, n, self.year_start)
        return {
            "cases": cases.forecasts,
            "observations": cases.observations,
            "settings": self.array_settings(min_samples),
            "features": cases.covariates.features(self.covariates),
            "days": cases.axis.days,
            "half_life": np.inf if self.half_life is None else self.half_life,
            "groups": groups,
            "blocks": blocks,
            "step": cases.axis.step,
            # Distances of shapes differ from distances of the forecasts.
            "squared": None if self.shapes else cases.squared,
        }

    @property
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """See :class:`xrecal.arrays.ckme.embedding.Choices`."""
        from xrecal.arrays.ckme.embedding import TABLES, Choices

        return {name: () for name in Choices._fields if name not in TABLES}

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Losses of all candidates; see :class:`xrecal.arrays.ckme.embedding.Choices`."""
        from xrecal.arrays.ckme.embedding import TABLES
        from xrecal.arrays.ckme.ridge_rules import GRID

        settings = self.array_settings(2)
        n_candidates = len(settings.kernels) * len(settings.supports) * GRID.size
        return dict.fromkeys(TABLES, (n_candidates,))

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """See :func:`xrecal.arrays.ckme.together.together`."""
        from xrecal.arrays.ckme.embedding import Choices
        from xrecal.arrays.ckme.together import SLACK, together

        settings, slack = self.array_settings(2), 0.0 if in_pool else SLACK
        one = together(Choices(**choices), settings.kernels, settings.supports, slack)
        fields: FitArrays = one._asdict()
        return fields

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """See :func:`xrecal.arrays.ckme.together.with_own`."""
        from xrecal.arrays.ckme.embedding import Choices
        from xrecal.arrays.ckme.together import SLACK, with_own

        settings, slack = self.array_settings(2), 0.0 if in_pool else SLACK
        both = Choices(**together), Choices(**own)
        one = with_own(*both, share, settings.kernels, settings.supports, slack)._asdict()
        return {name: one[name] for name in self.choice_sizes}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Kernel, support, ridge and half-life; see :func:`xrecal.arrays.choose_ckme`."""
        choices = arrays.choose_ckme(**self.array_arguments(cases, min_samples))
        fields: FitArrays = choices._asdict()
        return fields

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """See :func:`xrecal.arrays.fit_ckme`."""
        given = self.array_arguments(cases, min_samples)
        fields: FitArrays = arrays.fit_ckme(
            **given, choices=as_choices(choices), medians=cases.medians
        )._asdict()
        return fields

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Trial of each support, all from one search."""
        from xrecal.arrays.ckme.ckme import choose_and_fit_each

        given = self.array_arguments(cases, min_samples)
        *learned, quantiles = choose_and_fit_each(
            **given, n_quantiles=N_HELD_OUT, centres=cases.centres, compared=cases.compared
        )
        return [
            Trial(choices._asdict(), fitted._asdict(), quantiles[:, :, s])
            for s, (choices, fitted) in enumerate(zip(*learned, strict=True))
        ]

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Weighted ensembles; see :func:`xrecal.arrays.ckme_weights`."""
        return self._issued(new, cases, fitted)[0]

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Weighted ensembles, and the novelty (L, T) of the forecasts."""
        issued, novelty = self._issued(new, cases, fitted, with_novelty=True)
        assert novelty is not None
        return issued, novelty

    def _issued(
        self, new: NewCases, cases: Cases, fitted: FitArrays, *, with_novelty: bool = False
    ) -> tuple[Empirical, FloatArray | None]:
        """Weighted ensembles, in which errors may replace past observations; and novelty."""
        compared = self.comparison(new, cases, fitted) | {"projection": self.projection}
        of: FittedCKME = compared["fitted"]
        if not self.gives_way:
            members, weights, *known = arrays.ckme_weights(
                **compared, own_members=not self.shares_members, return_novelty=with_novelty
            )
            issued = self._with_tails(Empirical(members, weights), cases, of)
            return issued, known[0] if known else None
        members, weights, observed, novelty = arrays.ckme_weights_of_both(**compared)
        errors = self._with_tails(Empirical(members, weights), cases, of.of_errors())
        of_observations = namespace(of.ridge).where(of.beside != 0, 1.0, 0.0)
        shares = of_observations, 1.0 - of_observations
        keeps, gets = shares_left(cases.observations, errors, *shares, novelty)
        return joined(cases.observations, observed * keeps, errors, gets), novelty

    def _with_tails(self, issued: Empirical, cases: Cases, fitted: FittedCKME) -> Empirical:
        """Weighted ensembles, with tails if the settings ask for them."""
        from xrecal.arrays.ckme.errors import case_tails

        if self.tails is None or self.shares_members:
            return issued
        assert cases.forecasts is not None
        features = cases.covariates.features(self.covariates)
        tails = case_tails(cases.forecasts, cases.observations, features, fitted)
        return tailed(issued, *tails)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Novelty (L, T) of forecasts; see :func:`xrecal.arrays.ckme_novelty`."""
        return arrays.ckme_novelty(**self.comparison(new, cases, fitted))  # type: ignore[no-any-return]

    def comparison(self, new: NewCases, cases: Cases, fitted: FitArrays) -> dict[str, Any]:
        """Arguments of the array layer for comparing forecasts with the cases."""
        from xrecal.arrays.ckme.embedding import complete_fit

        features = cases.covariates.features(self.covariates)
        return {
            "forecasts": new.forecasts,
            "cases": cases.forecasts,
            "observations": cases.observations,
            "fitted": complete_fit(fitted, features.circular.size),
            "kernel": self.kernel,
            "features": features,
            "new_features": new.covariates.features(self.covariates, cases.covariates),
            "days": cases.axis.days,
            # Distances of shapes differ from distances of the forecasts.
            "across": None if self.shapes else new.across,
            "squared": None if self.shapes else cases.squared,
            "shapes": self.shapes,
        }


def as_choices(choices: FitArrays | None) -> Choices | None:
    """Choices in the form of the array layer, or None; codes may come as other numbers."""
    from xrecal.arrays.ckme.embedding import Choices

    if choices is None:
        return None
    codes = [name for name, default in Choices._field_defaults.items() if isinstance(default, int)]
    known = {name: np.nan_to_num(choices[name]).astype(np.int8) for name in codes}
    return Choices(**{**choices, **known})
