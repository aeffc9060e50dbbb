"""Scores of distributions against observations, and the probability integral transform."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.chunks.over_cases import over_cases
from xrecal.fit.fitted import Fitted, FittedVariable
from xrecal.fit.held_out import HeldOut
from xrecal.fit.loop import KnownName
from xrecal.fit.mismatch_warnings import warn_of_unseen_values, without_unseen_values
from xrecal.fit.select_fits import explicit_member_dim, single_dims
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import Dims, at_scalars, dims_as_text, listed
from xrecal.inputs.forms import Form, Labelled, levels_of, require_plain, with_named_cases
from xrecal.inputs.leads import equal_labels
from xrecal.inputs.metadata import history_only, joined
from xrecal.inputs.pairing import (
    Observations,
    known_pairs,
    pair_cases,
    pair_variables,
    paired_by_position,
)
from xrecal.inputs.places import at_places
from xrecal.inputs.thresholds import Threshold, Thresholds, read_thresholds
from xrecal.methods.call_errors import explained
from xrecal.typing import FloatArray, IntArray

from .of_model import Forecasts, OfModel
from .recalibrated import Missing, Recalibrated, recalibrated
from .reductions import Reduction, on_circle
from .source import Issued, Source, Sources, check_seed, reduce

AS_ISSUED = "score of the issued distribution, not corrected for ensemble size"
FAIR = "fair: score of an infinite ensemble, estimated from exchangeable members"
PROBABILITY_AS_ISSUED = "score of the issued probability, not corrected for ensemble size"


class Score(NamedTuple):
    """Name and attributes of a score."""

    name: str
    long_name: str
    estimator: str = AS_ISSUED
    units: Mapping[str, str] | None = None
    """Attribute ``units``; None for the units of the variable."""

    def of(self, estimator: str) -> Score:
        """Return this score with another text about its estimator."""
        return self._replace(estimator=estimator)

    def attrs(self, units: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes of the values of this score."""
        return {"long_name": self.long_name, "estimator": self.estimator, **units}


P = ParamSpec("P")
R = TypeVar("R")


class ScoreEntry(NamedTuple):
    """A score in the table: its function, and facts about its result."""

    function: Callable[..., Any]
    variable: str | None = None
    """Variable of the Dataset that the function returns; None if it returns the score alone."""
    each: bool = False
    """True if the score of several locations is the mean of the scores of all locations. A score of
    the cases of all locations together would reward a forecast for knowing which places are warm
    or wet."""
    whole: bool = False
    """True for a score of whole fields, which the code must not compute for blocks of locations."""

    @property
    def by_case(self) -> bool:
        """True if each case has a score; then ``cross_validate`` offers this score."""
        return self.variable is None and not self.whole

    @property
    def thresholds(self) -> str | None:
        """Name of the parameter for thresholds; None if the function has no thresholds."""
        names = inspect.signature(self.function).parameters
        return next((name for name in ("threshold", "edges") if name in names), None)


SCORES: dict[str, ScoreEntry] = {}
"""Table of scores by name; :func:`score_entry` fills it."""


def score_entry(
    name: str | None = None,
    *,
    variable: str | None = None,
    each: bool = False,
    whole: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that adds a function of ``xrecal.diagnostics`` to the table of scores.

    The command offers all scores of the table as ``--score``. As ``output=``,
    ``cross_validate`` offers the scores that give each case a value. ``name`` is the name in the
    table, by default that of the function; the other parameters are fields of :class:`ScoreEntry`.
    If a call has wrong arguments, the error of the decorated function explains them.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        made = explained(f"xrecal.diagnostics.{function.__name__}")(function)
        SCORES[name or function.__name__] = ScoreEntry(made, variable, each, whole)
        return made

    return decorate


CRPS = Score("crps", "continuous ranked probability score")
BRIER = Score("brier_score", "Brier score", PROBABILITY_AS_ISSUED, {"units": "1"})
PIT = Score("pit", "probability integral transform of the observations", "", {"units": "1"})


@on_circle
def crps_of(distribution: Distribution, observations: FloatArray) -> tuple[FloatArray, ...]:
    """CRPS (L, T)."""
    return (distribution.crps(observations),)


def fair_crps_of(distribution: Empirical, observations: FloatArray) -> tuple[FloatArray, ...]:
    """Fair CRPS (L, T) of plain ensembles, at L locations with T forecasts each."""
    return (arrays.fair_crps(observations, distribution.members),)


def crps_between(
    distribution: Distribution, observations: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, ...]:
    """CRPS (L, T) over values between two thresholds, at L locations with T forecasts each."""
    return (distribution.threshold_weighted_crps(observations, lower, upper),)


def brier_of(
    distribution: Distribution, observations: FloatArray, thresholds: FloatArray, fair: bool
) -> tuple[FloatArray, ...]:
    """Brier scores (L, T, k) for k thresholds, at L locations with T forecasts each."""
    from xrecal.arrays.scores.event_scores import brier_score

    n_members = None
    if fair:
        n_members = (~np.isnan(distribution.as_members().members)).sum(-1).astype(np.float64)
    probability = distribution.exceedance(thresholds)
    observations = observations.astype(thresholds.dtype, copy=False)
    return (brier_score(observations, probability, thresholds, n_members),)


def pit_of(
    distribution: Distribution,
    observations: FloatArray,
    cases: IntArray,
    *location: IntArray,
    seed: int,
    augmented: bool = False,
) -> tuple[FloatArray, ...]:
    """PIT values (L, T) of T cases at L locations, drawn at random within jumps of the CDF.

    The seed, the index of the case and the index of the location determine the random numbers. The
    index of the location is the sum of the arrays ``location`` (L, T). With ``augmented``, the
    observation becomes a further member of the plain ensemble.
    """
    if augmented:
        assert isinstance(distribution, Empirical)
        joined = [distribution.members, observations[..., np.newaxis]]
        distribution = Empirical(np.concatenate(joined, axis=-1))
    uniform = uniform_of(seed, cases, location)
    return (distribution.pit(observations, uniform),)


def uniform_of(seed: int, cases: IntArray, location: Sequence[IntArray]) -> FloatArray:
    """Random numbers (L, T) in (0, 1) that follow from the seed, the location and the case."""
    from xrecal.arrays.distributions.draws import uniform_at

    return uniform_at(seed, sum(location, np.zeros_like(cases)), cases)


@score_entry()
def crps(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    fair: bool = False,
    lower: Threshold | None = None,
    upper: Threshold | None = None,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Continuous ranked probability score of forecasts of any form.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    observations : DataArray, Dataset or dict
        Observations in the same units, matched by label along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. The mean leaves out missing scores. If xrecal does not
        recognise the dimension of the cases, name it here.
    fair : bool
        Estimate the score of an infinite ensemble from exchangeable members [2]_. The forecasts
        must be plain ensembles of at least two members.
    lower, upper : float or DataArray, optional
        Limits of the values that count (threshold-weighted CRPS [3]_), in the unit of the variable.
        The limits in a DataArray may differ between places and dates.
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable; lazy if an input is lazy. The result is
        a DataArray if the forecast or the observations are a DataArray. Values are NaN where the
        observation or forecast is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units do not match, if ``fair`` is true for other forms than plain
        ensembles or together with ``lower`` or ``upper``, or if ``lower`` is above ``upper``.

    Notes
    -----
    The score of the issued distribution F and the observation y is
    :math:`E|X - y| - \frac12 E|X - X'| = \int (F(z) - 1\{y \le z\})^2 dz` [1]_; X and X' are
    independent draws from F. Each member has its weight. Each quantile has the mass between two
    levels: half-way to the next lower and to the next higher level. So the score differs from
    :func:`xrecal.diagnostics.wis`, in which all quantiles count equally. ``lower`` and ``upper``
    are the limits of the integral. For normal distributions, xrecal uses closed forms of the score.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270
    .. [3] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> forecast.recal.crps(observations, ["init", "location"]).round(2).item()
    0.39
    >>> forecast.recal.crps(observations, ["init", "location"], lower=5.0).round(2).item()
    0.13
    >>> model.crps(forecast, observations, dim=["init", "location"]).round(2).item()
    0.34
    """
    if fair and not (lower is None and upper is None):
        raise ValueError("fair=True has no thresholds; leave out lower and upper, or fair")
    numbers = [float(end) for end in (lower, upper) if isinstance(end, (int, float, np.number))]
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        raise ValueError(f"lower must not exceed upper, found {lower} and {upper}")
    if fair:
        estimator = FAIR
    else:
        ends = [
            f"{k} {_bound_text(v)}"
            for k, v in (("above", lower), ("below", upper))
            if v is not None
        ]
        estimator = AS_ISSUED + (f"; values {' and '.join(ends)} count" if ends else "")

    def rule(verified: Verified) -> xr.DataArray:
        form = verified.source.form
        if fair:
            require_plain(form, "fair=True")
        if lower is None and upper is None:
            return verified.reduce(fair_crps_of if fair else crps_of)
        extras = [_bound(lower, -np.inf, form), _bound(upper, np.inf, form)]
        return verified.reduce(crps_between, extras=extras)

    return scored(forecast, observations, rule, dim, member_dim, CRPS.of(estimator))


def _bound_text(bound: object) -> str:
    return "a threshold by place" if isinstance(bound, xr.DataArray) else str(bound)


def _bound(bound: Threshold | None, none: float, form: Form) -> xr.DataArray:
    """Threshold of each case, without the dimension of thresholds."""
    threshold: Thresholds = read_thresholds(none if bound is None else bound, form, form.loc.dtype)
    if threshold.several:
        raise ValueError(
            "lower and upper take one threshold each, but there are several along "
            f"{threshold.dim!r}; select one"
        )
    return threshold.values.isel({threshold.dim: 0}, drop=True)


class Verified(NamedTuple):
    """Distributions of one variable, and the observations at the labels of the forecasts."""

    source: Source
    observations: xr.DataArray | KnownName
    """Observations; for held-out cases, the name of the observations in ``source``."""

    @property
    def levels(self) -> FloatArray | None:
        """Levels of raw quantile forecasts; None for other distributions."""
        form = self.source.form
        as_issued = isinstance(self.source, Issued) and form.kind == "quantile"
        return levels_of(form) if as_issued else None

    def reduce(
        self,
        reduction: Reduction,
        new: Mapping[Hashable, int] | None = None,
        extras: Sequence[xr.DataArray] = (),
    ) -> xr.DataArray:
        """Apply a reduction to each distribution, its observation and ``extras``."""
        return reduce(self.source, reduction, new, [self.observations, *extras])

    def brier(self, thresholds: Thresholds, fair: bool = False) -> xr.DataArray:
        """Brier score of each case and threshold."""
        if fair:
            require_plain(self.source.form, "fair=True")
        new = {thresholds.dim: thresholds.values.sizes[thresholds.dim]}
        return thresholds.label(self.reduce(partial(brier_of, fair=fair), new, [thresholds.values]))


Rule: TypeAlias = Callable[[Verified], xr.DataArray]
"""Function that computes the scores of one variable."""


def scored(
    forecast: Forecasts,
    observations: Observations,
    rule: Rule,
    dim: Dims,
    member_dim: Hashable | None,
    score: Score,
) -> Labelled:
    """Scores of cases, averaged over ``dim``; for held-out forecasts, the score of every case."""
    if isinstance(forecast, HeldOut):
        units = forecast.units if score.units is None else score.units
        scores = rule(Verified(forecast, "observed")).rename(score.name)
        return scores.assign_attrs(score.attrs(units))
    if not isinstance(forecast, OfModel):
        return score_variables(
            forecast, observations, partial(_of_issued, rule=rule), dim, member_dim, score
        )
    of_sources = partial(_of_recalibrated, rule=rule, sources=recalibrated(*forecast))
    member_dim = explicit_member_dim(forecast.model, forecast.forecast)
    return score_variables(forecast.forecast, observations, of_sources, dim, member_dim, score)


def _of_issued(form: Form, observed: xr.DataArray, *, rule: Rule) -> xr.DataArray:
    pairs = known_pairs(pair_cases(form, observed, name="forecast", require_dim=False))
    return rule(Verified(Issued(pairs.form), pairs.observations))


def _of_recalibrated(
    form: Form, observed: xr.DataArray, *, rule: Rule, sources: Sources[Recalibrated]
) -> xr.DataArray:
    matched = sources.variables
    if form.name not in matched:
        raise ValueError(
            f"{form.name!r} is recalibrated jointly with other variables; score them with the "
            f"model of all these variables, then select: model.crps(...)[{next(iter(matched))!r}]"
        )
    source = matched[form.name]
    observed = _along_single(observed, sources.forecast, source.fitted)
    along = source.dim if source.dim in source.form.dims else None
    pairs = pair_cases(source.form, observed, along, name="forecast", require_dim=False)
    known = without_unseen_values(pairs.observations, source.fitted)
    if isinstance(known.data, np.ndarray):
        warn_of_unseen_values(pairs.observations, known)
    return source.as_given(rule(Verified(source, known)))


def model_pit(
    model: Fitted,
    forecast: Labelled,
    observations: Observations,
    *,
    seed: int = 0,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> Labelled:
    """Probability integral transform of observations in the recalibrated forecasts.

    Parameters
    ----------
    forecast : DataArray or Dataset
        As for :meth:`apply`.
    observations : DataArray, Dataset or dict
        Observations, matched by label.
    seed : int
        Seed of the random numbers that place an observation within a jump of the CDF.
    covariates, missing_covariates
        As for :meth:`apply`.

    Returns
    -------
    DataArray or Dataset
        Values in [0, 1], uniform for calibrated forecasts; see :func:`xrecal.diagnostics.pit`. The
        result has the dimensions of the forecast, without the member dimension. xrecal computes it
        chunk by chunk.

    Raises
    ------
    ValueError
        As for :meth:`apply`, or if observations do not match the forecasts.

    Examples
    --------
    >>> model.pit(forecast, observations).mean().round(2).item()
    0.52
    """
    check_seed(seed)

    def rule(verified: Verified) -> xr.DataArray:
        return verified.reduce(partial(pit_of, seed=seed), extras=verified.source.numbers())

    text = PIT.of(f"placed at random within jumps of the forecast's CDF, seed {seed}")
    made = OfModel(model, forecast, covariates, missing_covariates)
    return scored(made, observations, rule, None, None, text)


def verified_of(
    distribution: Distribution,
    observations: FloatArray,
    cases: IntArray,
    *location: IntArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """CRPS, PIT values and medians (L, T), at L locations with T forecasts each."""
    (crps,), (pit,) = (
        crps_of(distribution, observations),
        pit_of(distribution, observations, cases, *location, seed=seed),
    )
    return crps, pit, distribution.quantile(np.array([0.5]))[..., 0]


def verify(
    model: Fitted, forecast: xr.Dataset, observations: Observations, seed: int, covariates: Given
) -> dict[str, Labelled]:
    """Compute ``crps``, ``pit`` and ``median`` of recalibrated forecasts in one run.

    ``crps`` and ``pit`` equal the results of ``model.crps`` and ``model.pit``.
    """
    beside: dict[str, dict[Hashable, xr.DataArray]] = {"pit": {}, "median": {}}

    def rule(verified: Verified) -> xr.DataArray:
        source = verified.source
        extras = [verified.observations, *source.numbers()]
        own = {"units": source.attrs["units"]} if "units" in source.attrs else {}
        attrs = {"pit": PIT.attrs(PIT.units or {}), "median": {"long_name": "median", **own}}
        crps, *others = source.reduce(partial(verified_of, seed=seed), {}, {}, {}, extras=extras)
        for (what, kept), values in zip(beside.items(), others, strict=True):
            kept[source.form.name] = source.as_given(values.assign_attrs(attrs[what]))
        return crps

    made = OfModel(model, forecast, covariates)
    found = {"crps": scored(made, observations, rule, None, None, CRPS.of(AS_ISSUED))}
    return found | {what: xr.Dataset(kept) for what, kept in beside.items()}


def _along_single(
    observed: xr.DataArray, forecast: Labelled, fitted: FittedVariable
) -> xr.DataArray:
    """Observations at the single lead or place of a forecast, in a dimension of length one.

    Observations without such a label stay as they are: they are for all places, or lie along valid
    times.
    """
    single = single_dims(fitted, forecast)
    names = ("forecast", "observations")
    observed = at_places(observed, forecast, names=names[::-1], dims=single)
    observed = at_scalars(observed, forecast, names=names, dims=single)
    for d in single:
        if d in observed.coords and observed[d].ndim == 0:
            same = equal_labels(observed[d], forecast[d])
            observed = observed.expand_dims(d) if same else observed
    return observed


def score_variables(
    forecast: Labelled,
    observations: Observations,
    score: Callable[[Form, xr.DataArray], xr.DataArray],
    dim: Dims,
    member_dim: Hashable | None,
    text: Score,
) -> Labelled:
    """Score each forecast variable by its observations, and average over ``dim``."""
    results: dict[Hashable, xr.DataArray] = {}
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    remark = None
    for variable, (form, observed) in paired.items():
        scores = score(with_named_cases(form, dim), observed)
        remark = remark or paired_by_position(form.loc, observed, form.dims)
        over = _dims_to_average(dim, scores)
        if not set(over) <= set(scores.dims):
            raise ValueError(
                f"dim={dim!r} is not among the dimensions of the scores, {list(scores.dims)}"
            )
        units = text.units
        if units is None:
            units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
        if over:
            scores = _mean(scores, over)
        results[variable] = scores.assign_attrs(text.attrs(units))
    mean = f", mean over {dims_as_text(over)}" if over else ""
    history = history_only(forecast.attrs, joined(text.long_name + mean, remark))
    if isinstance(forecast, xr.DataArray) or isinstance(observations, xr.DataArray):
        return next(iter(results.values())).rename(text.name).assign_attrs(history)
    return xr.Dataset(results, attrs=history)


def _mean(scores: xr.DataArray, dims: Sequence[Hashable]) -> xr.DataArray:
    """Mean of the scores that are not missing, summed in float64.

    The order of the sum does not depend on chunks of locations. If there are several chunks of
    cases, Dask sums each chunk first.
    """
    if any(len(scores.variable.chunksizes.get(d, ())) > 1 for d in dims):
        return scores.mean(dims, dtype=np.float64).astype(scores.dtype)
    (mean,) = over_cases(_mean_of_known, scores, dims=dims, what="the mean of scores")
    coords = {name: c for name, c in scores.coords.items() if not set(c.dims) & set(dims)}
    return mean.assign_coords(coords).transpose(*[d for d in scores.dims if d not in dims])


def _mean_of_known(scores: np.ndarray) -> np.ndarray:
    """Mean (...) of the scores (..., n) that are not missing."""
    from xrecal.arrays.scores.significance import mean_of_cases

    return mean_of_cases(scores.astype(np.float64))


def _dims_to_average(dim: Dims, scores: xr.DataArray) -> list[Hashable]:
    if dim is None:
        return []
    if dim is ...:
        return list(scores.dims)
    return listed(dim)
