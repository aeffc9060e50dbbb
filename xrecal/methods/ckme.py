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
"""Values of settings that a shared fit (one fit to many cases of several places) allows. A shared
fit does not compare cases one by one, and its members are standardised errors."""


@dataclass(frozen=True, repr=False)
class CKME(Settings):
    """Conditional kernel mean embedding with the Energy Distance Kernel.

    The recalibrated forecast is a weighted ensemble. Its members are past observations, or past
    errors added to the new forecast; cross-validation chooses observations or errors. Each past
    case gets a weight by the similarity of its forecast to the new forecast, so the recalibrated
    forecast is calibrated given the raw forecast.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"}
        Formula for the similarity of two forecasts: exp(-D²/s) or exp(-D/s), where D² is their
        squared energy distance.
    bandwidth : "median", "cv" or float
        The number s in the formula of the kernel. "median" is the median of D² (Gaussian kernel) or
        of D (Laplace kernel) over all pairs of different forecasts. "cv" chooses by
        cross-validation among 1, 4 and 16 times this median. A number has the unit of the variable;
        for the Laplace kernel it has the square root of this unit.
    ridge : "cv" or float
        Regularisation λ in the inverse (K + λ n I)⁻¹, where K is the matrix of similarities of n
        cases. A large λ makes the weights of the cases more equal. "cv" chooses λ by
        cross-validation.
    loss : {"crps", "laplace"}
        Loss that cross-validation minimises: the CRPS of held-out cases, or the distance between
        the forecast and the observation in the space of a Laplace kernel.
    folds : {"auto", "year", "block", "random"}
        Cases that cross-validation holds out together: years, five contiguous blocks, or five
        random parts. Random parts make scores too good if cases are autocorrelated. "auto" means
        years if the cases have five years or more, and blocks otherwise. If the folds are years
        with several cases each, a ridge may seem best by chance. So the fit uses the largest ridge,
        unless the loss of the best ridge is smaller by at least one standard error. This error
        comes from differences between years.
    gap : int, str or timedelta
        Width of the gap on both sides of the held-out cases: a number of cases, or a length of time
        such as "5D" or "12h". The fit does not learn from cases in the gap.
    projection : {"euclidean", "energy"}
        Step that turns weights, some of which may be negative, into probabilities. "euclidean"
        takes the probabilities that are nearest to the weights in Euclidean distance. "energy"
        takes the probabilities whose distribution is nearest, in energy distance, to the
        distribution with the original weights.
    solver : {"auto", "exact", "lowrank"}
        Computation of the weights. "exact" needs O(n³) time for n cases. "lowrank" needs O(n r²)
        time: r landmarks, at most 1000, represent all cases. "lowrank" uses as many landmarks as
        the ridge needs, and chooses settings by its forecasts of some of the cases. "auto" is
        "exact" for up to 250 cases of a location, and always with the Laplace kernel, which
        landmarks approximate badly. Otherwise "auto" is "lowrank".
    support : {"observations", "errors", "auto"}, or one kind of errors
        Values that members may have. "observations": past observations, so no member lies outside
        the observed range. "errors": past errors added to a centre, which is a value computed from
        the forecast. Errors are of four kinds. The centre of ``"mean"`` is the forecast mean, and
        the centre of ``"regression"`` is a regression on the forecast mean. ``"standardised"`` has
        errors in units of the spread that EMOS gives, and ``"ratio"`` has ratios of the observation
        to the forecast mean. "errors" selects the kind with the smallest CRPS on held-out cases,
        and "auto" selects the best of these kinds and past observations. Predictors are covariates
        other than the season. ``"regression_plain"`` and ``"standardised_plain"`` are like the
        kinds without ``_plain``, but their centres do not use predictors. ``"standardised_both"``
        selects ``"standardised_plain"`` or ``"standardised"``. Cross-validation fits the centres
        again for each fold. ``CKME(support="observations")`` is the CKME as it was published.
    tails : "auto" or None
        Distribution beyond the outermost past errors, if members are errors. "auto": a generalised
        Pareto tail replaces the outermost 5 to 10 % of the mass, on each side without a bound.
        None: no tail.
    novelty : "auto" or None
        This setting has an effect with ``support="auto"``, at places where the fit selects past
        observations. "auto": weight moves from past observations to past errors added to the
        forecast, if the forecast is unlike past forecasts, or if these errors put much of the mass
        outside the observed range. None: past observations keep their weight.
    half_life : timedelta, float or "cv", optional
        Age at which a past case has half the weight of a new case; a number is in days. A half-life
        helps if the forecast system changes. "cv" chooses the half-life with which past cases
        predict later cases best.
    bounds : "auto", (lower, upper) or None
        Values that the variable cannot pass, such as 0 for rain. "auto": an end of a location's
        observed range is a bound if at least 5 % of its past observations equal this end exactly.
        The lower bound is 0 if the standard name or unit of the variable excludes negative values.
        Bounds that you give apply at places where no past observation violates them; ``status``
        marks the other places.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. The recalibrated forecast is calibrated given the raw
        forecast and the covariates. Cross-validation chooses how strongly covariates count; it can
        also leave them out.
    compare : {"forecasts", "shapes"}
        Part of the forecasts that the kernel compares. "forecasts" compares whole forecasts.
        "shapes" compares spread and form of the forecasts, without their means. With "shapes", past
        forecasts of similar shape get large weights, whatever their mean. The members are then
        errors in units of the spread that EMOS gives, or ratios to the mean.
    year_start : str or int, optional
        Date at which years of cases begin, such as "07-01", or a month. By default, years begin in
        the longest time of the year without cases, so that no season of cases, such as a winter, is
        cut in two. Years begin on 1 January if this time contains 1 January, or if it is shorter
        than 30 days.

    Notes
    -----
    With ``pool=`` and more than 1500 cases, places share one fit. Its members are standardised
    errors, and its kernel compares shapes. A shared fit accepts any ``gap``, any ``year_start``,
    and a ``half_life`` in days.

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
                "CKME: the fit compares supports by the CRPS; use support='observations' with "
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
        """Kinds of members that the settings allow, such as past observations."""
        supports = SUPPORTS[self.support]
        if self.shapes:
            supports = tuple(s for s in supports if s in OF_SHAPES)
        if len(supports) > 1 and not any(map(may_break, self.covariates)):
            supports = tuple(s for s in supports if s not in PLAIN)
        return supports

    def of_support(self, support: str | None) -> CKME:
        """Return the method with one kind of members, without tails and without ``novelty``."""
        alone: dict[str, Any] = {"support": support, "tails": None, "novelty": None}
        return replace(self, **alone)

    @property
    def shapes(self) -> bool:
        """True if the kernel compares forecasts without their means."""
        return self.compare == "shapes"

    @property
    def on_device(self) -> bool:
        """True if the settings allow CuPy arrays."""
        return self.projection == "euclidean" and self.loss == "crps" and self.solver != "lowrank"

    @property
    def shares_members(self) -> bool:
        """True if the members are the past observations."""
        return self.support == "observations"

    @property
    def between(self) -> Between | None:
        """Rule for quantiles between members: "mean" with tails; None if the CDF has steps."""
        return None if self.tails is None or self.shares_members else "mean"

    @property
    def gives_way(self) -> bool:
        """True if past errors may replace past observations as members."""
        return self.support == "auto" and self.novelty is not None and not self.shapes

    @property
    def not_by_sums(self) -> str | None:
        """End of a message: the first setting that a shared fit does not allow, and what to type.

        The property is None if a shared fit allows all settings.
        """
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
        """First part of the labels that components of this method have in a pool."""
        return "ckme_shapes" if self.shapes else "ckme"

    def in_time(self, gap: int | str, year_start: str | None) -> CKME:
        """Return the method; if it sets no gap or no year start, it gets that of the pool."""
        gap = self.gap if self.folds == "random" else self.gap or gap
        return replace(self, gap=gap, year_start=self.year_start or year_start)

    def slots(self, n: int) -> tuple[IntArray, Sequence[str] | None]:
        """Return the position of each member's past case (-1 in tails), and its component."""
        cases, components = np.arange(n), ["errors"] * n
        if self.gives_way:
            cases = np.concatenate([cases, cases])
            components = ["observations"] * n + components
        elif self.tails is None or self.shares_members:
            return super().slots(n)
        return (cases, components) if self.tails is None else with_tail_slots(cases, components)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: bandwidth, ridge, and others that depend on the settings."""
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
        """Return the parameters that the method has if it is a component of a pool.

        The parameters do not include errors that replace past observations, because other
        components of the pool replace past observations.
        """
        own = replace(self, novelty=None).parameters(n_features)
        return {name: p for name, p in own.items() if name != CHOSEN_FROM}

    def columns(self, n: int) -> int:
        """Return the number of columns of the largest matrices: n, or the number of landmarks."""
        from xrecal.arrays.ckme.solvers import is_low_rank

        return self._landmarks(n) if is_low_rank(self.solver, self.kernel, n) else n

    def _landmarks(self, n: int) -> int:
        """Return the number of slots for landmarks, given n slots for cases."""
        from xrecal.arrays.ckme.solvers import landmark_slots

        return landmark_slots(self.solver, self.kernel, n, shapes=self.shapes)

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method and a remark for the user.

        Raises ValueError if folds, gap, season or half-life need dates that the cases lack.
        """
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
        """Return the settings in the form that ``xrecal.arrays`` takes."""
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
        """Return the arguments of :func:`xrecal.arrays.fit_ckme`, without choices."""
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
        """Names and sizes of the choices that are one number per location."""
        from xrecal.arrays.ckme.embedding import TABLES, Choices

        return {name: () for name in Choices._fields if name not in TABLES}

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Size of the losses at a location, one loss for each candidate of cross-validation.

        See :class:`xrecal.arrays.ckme.embedding.Choices`.
        """
        from xrecal.arrays.ckme.embedding import TABLES
        from xrecal.arrays.ckme.ridge_rules import GRID

        settings = self.array_settings(2)
        n_candidates = len(settings.kernels) * len(settings.supports) * GRID.size
        return dict.fromkeys(TABLES, (n_candidates,))

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Return joint choices; see :func:`xrecal.arrays.ckme.together.together`."""
        from xrecal.arrays.ckme.embedding import Choices
        from xrecal.arrays.ckme.together import SLACK, together

        settings, slack = self.array_settings(2), 0.0 if in_pool else SLACK
        one = together(Choices(**choices), settings.kernels, settings.supports, slack)
        fields: FitArrays = one._asdict()
        return fields

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Mix joint and own choices; see :func:`xrecal.arrays.ckme.together.with_own`."""
        from xrecal.arrays.ckme.embedding import Choices
        from xrecal.arrays.ckme.together import SLACK, with_own

        settings, slack = self.array_settings(2), 0.0 if in_pool else SLACK
        both = Choices(**together), Choices(**own)
        one = with_own(*both, share, settings.kernels, settings.supports, slack)._asdict()
        return {name: one[name] for name in self.choice_sizes}

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Choose kernel, support, ridge and half-life; see :func:`xrecal.arrays.choose_ckme`."""
        choices = arrays.choose_ckme(**self.array_arguments(cases, min_samples))
        fields: FitArrays = choices._asdict()
        return fields

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit a CKME at each location; see :func:`xrecal.arrays.fit_ckme`."""
        given = self.array_arguments(cases, min_samples)
        fields: FitArrays = arrays.fit_ckme(
            **given, choices=as_choices(choices), medians=cases.medians
        )._asdict()
        return fields

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Return a trial of each support; a single search finds the choices of all supports."""
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
        """Return weighted ensembles; see :func:`xrecal.arrays.ckme_weights`."""
        return self._issued(new, cases, fitted)[0]

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Return weighted ensembles, and the novelty (L, T) of the forecasts."""
        issued, novelty = self._issued(new, cases, fitted, with_novelty=True)
        assert novelty is not None
        return issued, novelty

    def _issued(
        self, new: NewCases, cases: Cases, fitted: FitArrays, *, with_novelty: bool = False
    ) -> tuple[Empirical, FloatArray | None]:
        """Return weighted ensembles, and the novelty (L, T) of the forecasts, or None.

        Past errors replace past observations as members if ``gives_way`` is true.
        """
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
        """Return weighted ensembles, with tails unless the settings exclude tails."""
        from xrecal.arrays.ckme.errors import case_tails

        if self.tails is None or self.shares_members:
            return issued
        assert cases.forecasts is not None
        features = cases.covariates.features(self.covariates)
        tails = case_tails(cases.forecasts, cases.observations, features, fitted)
        return tailed(issued, *tails)

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Return the novelty (L, T) of forecasts; see :func:`xrecal.arrays.ckme_novelty`."""
        return arrays.ckme_novelty(**self.comparison(new, cases, fitted))  # type: ignore[no-any-return]

    def comparison(self, new: NewCases, cases: Cases, fitted: FitArrays) -> dict[str, Any]:
        """Return the arguments with which ``xrecal.arrays`` compares forecasts with past cases."""
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
    """Return choices in the form that ``xrecal.arrays`` takes; None if there are no choices."""
    from xrecal.arrays.ckme.embedding import Choices

    if choices is None:
        return None
    codes = [name for name, default in Choices._field_defaults.items() if isinstance(default, int)]
    known = {name: np.nan_to_num(choices[name]).astype(np.int8) for name in codes}
    return Choices(**{**choices, **known})
