"""Score several methods on the same held-out or later cases, in one table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, get_args

import xarray as xr

from xrecal.arrays.rows import is_whole
from xrecal.arrays.status import FEWEST
from xrecal.chunks.blockwise import require_one_chunk
from xrecal.chunks.progress import counted, reporting
from xrecal.chunks.warnings import warn
from xrecal.fit.conditioned import checked, name_some, used_by
from xrecal.fit.held_out import By, Splits
from xrecal.fit.kinds import TOGETHER, Choose
from xrecal.fit.pooling import read_pool
from xrecal.fit.shared_places import takes_features
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import listed
from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.labels import read_labels
from xrecal.inputs.lengths import Span
from xrecal.inputs.missing import without_declared
from xrecal.inputs.pairing import pair_cases
from xrecal.inputs.pool import PoolOver
from xrecal.inputs.valid_time import lead_to_look_up
from xrecal.methods import CKME, EMOS, Climatology, LinearPool, Method
from xrecal.methods.call_errors import explained

from .best_not_calibrated import CLIMATOLOGY
from .compare_evidence import Candidate, as_issued, cross_validated, on_unseen, splits_of
from .comparison import RAW, Comparison, Dependence, Known, compare_scores
from .evidence import Cluster, case_dim
from .lags import verification_lag
from .rows import season_of_rows

DEFAULTS: dict[str, Method] = {"EMOS": EMOS(), "CKME": CKME(), "LinearPool": LinearPool()}
"""Default methods of a comparison."""

SPLITS: tuple[By, ...] = get_args(By)


@explained("xrecal.compare")
@reporting("xrecal compare")
def compare(
    hindcast: Labelled,
    observations: xr.DataArray,
    methods: Method | Sequence[Method] | Mapping[str, Method] | None = None,
    *,
    forecast: Labelled | None = None,
    verification: xr.DataArray | None = None,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    by: Hashable | tuple[By, Hashable] = "block",
    gap: Span | None = None,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
    refit: Span | None = None,
    year_start: str | int | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    pool: PoolOver = None,
    features: str | Sequence[str] = (),
    choose: Choose = TOGETHER,
    min_samples: int = 20,
    block_length: int | None = None,
    cluster: Cluster | None = None,
    sequential: bool = False,
    progress: bool = True,
) -> Comparison:
    """Score methods on cases that no fit has learned from: held-out cases or later forecasts.

    Parameters
    ----------
    hindcast, observations
        Past forecasts of one variable and their observations, from which methods learn; see
        ``hindcast.recal.fit``.
    methods : Method, sequence of it or mapping from label to it, optional
        Methods to compare; EMOS, CKME and LinearPool if not given. If a sequence has several
        methods of one class, their labels contain the settings that differ. The table always has
        rows for the raw forecast and for climatology, too. A method ``Climatology`` with the label
        "climatology" replaces the default reference.
    forecast : DataArray or Dataset, optional
        Forecasts to score, in the same form as the hindcast. If not given, cross-validation scores
        the hindcast.
    verification : DataArray, optional
        Observations of ``forecast``. If not given, ``observations`` must contain them, too.
    by : str or tuple of str
        How cross-validation splits the cases ("block", "year", "retrospective", "rolling"); see
        ``hindcast.recal.cross_validate``. With the name of a dimension of places or leads, such
        as "lead_time" or "station", the table has rows for each place or lead. With "season", it
        has rows for each season of the valid time (DJF, MAM, JJA, SON). You may pass a pair of a
        split and such a name: ``by=("year", "season")``.
    gap, blocks, window, every, refit, year_start
        See ``hindcast.recal.cross_validate``. With ``refit``, the models of all methods learn new
        cases between two fits, by updates. A method whose own setting ``refit`` is given uses that
        setting instead.
    condition_on : str or tuple of str, optional
        Covariates for all methods whose own ``condition_on`` is None. The reference, climatology,
        gets no covariates.
    covariates : dict from str to DataArray, optional
        Covariates that are not coordinates, with their values for the hindcast and for
        ``forecast``. If neither ``condition_on`` nor a method names a covariate, all methods except
        the reference condition on all covariates in ``covariates``.
    pool : str, tuple of str or dict, optional
        Location dimensions to pool. Each fit learns from the cases of all locations along these
        dimensions together; see ``hindcast.recal.fit``. Climatology is still fitted at each place
        alone, if the place has at least two cases. If places differ, one climatology of all places
        would be easy to beat.
    features : str or sequence of str, optional
        Names of coordinates that describe places; see ``hindcast.recal.fit``. Methods that do not
        compare features of places ignore this parameter.
    dim, member_dim, choose, min_samples
        See ``hindcast.recal.fit``.
    block_length : int, optional
        Number of successive cases that count as one in all tests and standard errors; 1 if cases
        are independent. By default, each test estimates this number from the data.
    cluster : {"year", "season"}, optional
        For standard errors and p-values of scores, treat whole years or seasons as independent of
        each other, instead of blocks of cases. Cases of one year or season may depend on each other
        in any way.
    sequential : bool
        True adds e-values: evidence that you may look at after every case. E-values need forecasts
        whose fits learned only from earlier cases. So pass ``forecast``, or use ``by``
        "retrospective" or "rolling". With such a split, ``gap`` must cover the cases that have not
        verified when a forecast is issued.
    progress : bool
        See ``hindcast.recal.fit``.

    Returns
    -------
    Dataset
        Over ``method`` and locations: ``crps`` and its standard error ``crps_error`` in the unit of
        the variable; ``skill_climatology`` and ``skill_raw`` (1 - CRPS / CRPS of the reference; 1
        is perfect, 0 no gain); ``p_climatology`` and ``p_raw``, the p-values of the differences in
        CRPS; ``pit_p_value``, the p-value of the PIT test; ``skce`` and ``skce_p_value``, the
        squared kernel calibration error and its p-value (computed from 200 quantiles of each
        recalibrated forecast, but from the members of raw forecasts); ``pit_mean``, the mean PIT,
        below 0.5 if forecasts are too high; ``pit_variance``, 12 times the mean of (PIT - 0.5)²,
        which is 1 for calibrated forecasts and above 1 if forecasts are too narrow;
        ``pit_block_length`` and ``skce_block_length``, the number of successive cases that count as
        one in these tests; ``n_cases``, the number of cases scored.

        Over ``method``: ``fit_seconds`` and ``apply_seconds``, the elapsed time in seconds of
        fitting and of forecasting for all locations. The sum of both times includes scores and
        tests, reading lazy input, and compiling code in the first call of a process.
        Cross-validation counts as fitting. If there are locations, the result also has
        ``overall_crps_error``, ``overall_p_climatology`` and ``overall_p_raw``, for all locations
        together.

        Over ``method`` and ``other``: ``p_pair``, the p-value of the difference in CRPS between any
        two methods, for all locations together; ``pairs()`` adjusts it for the number of pairs.
        Over ``method``, locations and cases, if ``sequential``: ``e_climatology`` and ``e_raw``,
        the e-values of each method against these references.

        If ``by`` names a dimension, the ``overall_`` results keep this dimension, and the table has
        a row for each of its positions and each method. ``by="season"`` adds a dimension ``season``
        to the scores and tests of each method.

        The result is in memory, even if the inputs are lazy, and prints as a table. Select a method
        by ``sel({"method": label})``; in plain Datasets, the parameter ``method`` of ``sel`` means
        something else. If a test rejects the calibration of the method with the smallest CRPS, the
        table reports how the forecasts of this method are wrong. The table then also names the best
        method that passes both tests.

    Raises
    ------
    ValueError
        If there is more than one variable, if ``forecast`` has no dimension of cases, or if inputs
        do not match.

    Notes
    -----
    All methods are scored on the same cases: the cases that every method predicts. The SKCE of a
    method uses all cases that this method predicts. In cross-validation, each fit knows the other
    cases of the sample. So the PIT histogram is flatter than for independent forecasts, and the
    p-values of the PIT test are too large. All standard errors and p-values, also in the tests of
    calibration, allow for dependence of successive cases; see
    :func:`xrecal.arrays.diebold_mariano`, :func:`xrecal.arrays.serial_uniform_test` and
    :func:`xrecal.diagnostics.skce_test`. With too few cases, p-values are NaN, and the table shows
    question marks. Each location has a test of its own, so some locations have small p-values by
    chance. For all locations together, the table tests one number of each case: the difference in
    CRPS, averaged over all locations. This is necessary because neighbouring locations often have
    the same errors, so they are not independent samples.

    The e-values of a sequential comparison are at least 0. Suppose that a method is never better on
    average than its reference, given all that is known when a forecast is issued. Then, for any
    alpha in (0, 1), its e-values reach 1 / alpha with a probability of at most alpha, however often
    you look; see :func:`xrecal.arrays.score_e_values`. E-values use 200 quantiles of each forecast,
    which stay in memory for all methods and cases. For forecasts that verify several cases later,
    see :func:`xrecal.diagnostics.monitor`.

    Cross-validation keeps 200 quantiles of each case in memory. It works on some of the locations
    at a time, but on all pooled locations together. It fits each method once for each split. If
    ``pool`` is a dict of windows, such as ``{"lat": 3}``, it fits each method once for each split
    and each place or lead. :class:`LinearPool` also fits its components, so it takes most of the
    time. For a first look, leave it out of ``methods``. If the grid is large, chunk its locations.

    Examples
    --------
    >>> comparison = xrecal.compare(hindcast, observations, [xrecal.EMOS()], blocks=10)
    >>> comparison.crps.mean("location").round(2).to_series().to_dict()
    {'raw': 0.27, 'climatology': 2.97, 'EMOS': 0.23}
    """
    form = _only_form(hindcast, member_dim, "hindcast")
    observed = _only_variable(observations, "observations")
    given = _with_covariates(_label(methods), condition_on, min_samples, covariates)
    labelled = {label: method for label, (method, _) in given.items()}
    _require_use_of(features, labelled)
    how = _dependence(block_length, cluster)
    whole = form.broadcast().loc.isel({form.member_dim: 0}, drop=True)
    case = case_dim(whole, dim, name="hindcast")
    positions = () if (pooled := read_pool(pool, form, case)) is None else pooled.forecast_dims
    _require_whole(form, observed, (case, *positions))
    given_observations, observed = observed, _at_leads(form, observed, case, "hindcast")
    learned: dict[str, Any] = {"pool": pool, "choose": choose, "min_samples": min_samples}
    roles = {"dim": dim, "member_dim": member_dim}
    split, rows = _split_and_rows(by)
    splits = Splits(
        split, gap, blocks, window, every, year_start=year_start, refit=refit, **learned
    )
    scored = form if forecast is None else _only_form(forecast, member_dim, "forecast")
    season = _season(rows, scored, case, "hindcast" if forecast is None else "forecast")
    lags = _lags(scored, case, split if forecast is None else None) if sequential else None
    if forecast is None:
        _check_held_out(verification, splits, labelled.values())
        issued = partial(as_issued, form, observed, case, name="hindcast")

        def score(candidate: Candidate, learned: dict[str, Any]) -> Known:
            return cross_validated(form, observed, candidate, case, replace(splits, **learned))
    else:
        _check_unseen(form, scored, case, splits)
        if verification is not None:
            given_observations = _only_variable(verification, "verification")
        verified = _at_leads(scored, given_observations, case, "forecast")
        issued = partial(as_issued, scored, verified, case)

        def score(candidate: Candidate, learned: dict[str, Any]) -> Known:
            past, unseen = (hindcast, observed), (forecast, verified)
            return on_unseen(past, unseen, candidate, case, {**roles, **learned})

    known_of = {}
    # Fits come first, because they raise errors for too few cases before any work.
    for label, pair in counted(given.items()):
        own = learned | {"features": features if takes_features(pair[0]) else ()}
        own |= _of_each_place(own) if label == CLIMATOLOGY else {}
        known_of[label] = score(Candidate(*pair, sequential, block_length, season), own)
    raw = {RAW: issued(sequential=sequential, block_length=block_length, season=season)}
    attrs = {"methods": "; ".join(f"{label}: {method!r}" for label, method in labelled.items())}
    attrs |= {} if pool is None else {"pool": repr(pool)}
    if forecast is None:
        attrs["cross_validation"] = str(splits_of(splits, labelled[CLIMATOLOGY]))
    return compare_scores(raw | known_of, case, attrs, lags, how, by=rows, season=season)


def _split_and_rows(by: Any) -> tuple[By, Hashable | None]:
    """Return the split and the rows that ``by`` names; rows are a dimension, "season" or None."""
    given = listed(by)
    splits = [one for one in given if one in SPLITS]
    rows = [one for one in given if one not in SPLITS]
    if not given or len(splits) > 1 or len(rows) > 1:
        raise ValueError(
            f"by={by!r} must name one split of {list(SPLITS)}, one kind of rows (a dimension of "
            "places or leads, or 'season'), or both"
        )
    return (splits or ["block"])[0], (rows or [None])[0]


def _season(rows: Hashable | None, scored: Form, case: Hashable, name: str) -> xr.DataArray | None:
    """Return the season of each case, or None if the rows of the table are not seasons."""
    if rows is None:
        return None
    return season_of_rows(rows, scored.roles.obj, case, name=name, others=SPLITS)


def _of_each_place(learned: Mapping[str, Any]) -> dict[str, Any]:
    """Change the parameters of a fit so that climatology is fitted at each place alone.

    If places differ, one climatology of all places is too easy to beat.
    """
    if learned["pool"] is None:
        return {}
    return {"pool": None, "min_samples": min(learned["min_samples"], FEWEST)}


def _require_use_of(features: str | Sequence[str], methods: Mapping[str, Method]) -> None:
    """Raise ValueError if there are features of places, but no method uses features."""
    if features and not any(map(takes_features, methods.values())):
        raise ValueError(
            "no method compares features of places; name xrecal.CKME() or xrecal.LinearPool() "
            "among the methods, or leave features out"
        )


def _dependence(block_length: int | None, cluster: Cluster | None) -> Dependence:
    if block_length is not None and (not is_whole(block_length) or block_length < 1):
        raise ValueError(f"block_length must be a whole number, at least 1, got {block_length!r}")
    if block_length is not None and cluster is not None:
        raise ValueError("give one of block_length and cluster, as each defines dependence")
    return Dependence(block_length, cluster)


def _lags(form: Form, case: Hashable, by: By | None) -> xr.DataArray:
    """Return, for each lead, the number of cases between issue and verification.

    Raise ValueError if the fits of the cross-validation learn from later cases.
    """
    if by not in (None, "retrospective", "rolling"):
        raise ValueError(
            "sequential=True compares forecasts that do not depend on later cases, but "
            f"by={by!r} learns from them; use by='retrospective' or 'rolling', or give forecast="
        )
    issued = form.broadcast().loc.isel({form.member_dim: 0}, drop=True)
    issued = issued.sortby(case) if case in issued.indexes else issued
    return verification_lag(issued, case, None)


def _at_leads(form: Form, observed: xr.DataArray, case: Hashable, name: str) -> xr.DataArray:
    """Return the observations at the valid times of the forecasts; all methods use this result."""
    if lead_to_look_up(form.roles, case, name=name) is None:
        return observed
    return pair_cases(form, observed, case, name=name).observations


def _require_whole(form: Form, observed: xr.DataArray, dims: tuple[Hashable, ...]) -> None:
    """Raise ValueError for Dask chunks that no fit accepts, before any score is computed."""
    for part in form.parts.values():
        require_one_chunk(part, (*dims, form.member_dim), name="hindcast")
    require_one_chunk(observed, dims, name="observations")


def _check_held_out(
    verification: xr.DataArray | None, splits: Splits, methods: Iterable[Method]
) -> None:
    """Raise ValueError, before any work, unless all methods support this cross-validation."""
    if verification is not None:
        raise ValueError("verification is given without forecast; give both parameters, or neither")
    for method in methods:
        splits_of(splits, method)


def _check_unseen(past: Form, new: Form, dim: Hashable, splits: Splits) -> None:
    """Raise ValueError if forecasts cannot be scored; warn if fits learned from some of them."""
    given = replace(splits, gap=splits.gap or 0, pool=None, min_samples=Splits.min_samples)
    given = replace(given, choose=TOGETHER)
    if given != Splits("block"):
        raise ValueError(
            "by, gap, blocks, window, every, refit, year_start split the hindcast, but there is "
            "a forecast to score; leave out these parameters or the forecast"
        )
    if dim not in new.dims:
        raise ValueError(
            f"forecast lacks the dimension {dim!r} of the cases to score; it has {list(new.dims)}"
        )
    whole = {c for part in new.parts.values() for c in part.coords}
    lead = lead_to_look_up(past.roles, dim, name="hindcast")
    if lead not in new.dims and lead in whole:
        raise ValueError(
            "forecast has a single lead, a scalar coordinate, but hindcast has leads along "
            f"{lead!r}; use forecast.expand_dims({lead!r}), so that all methods find the "
            "observations"
        )
    labels = [
        next((part.indexes[dim] for part in form.parts.values() if dim in part.indexes), None)
        for form in (past, new)
    ]
    if labels[0] is None or labels[1] is None:
        return
    seen = int(labels[1].isin(labels[0]).sum())
    if seen:
        warn(
            f"{seen} of {labels[1].size} forecasts to score are among those that the methods were "
            "fitted on, so their scores are too good; pass forecasts that the methods have not "
            "seen, or leave out forecast, to cross-validate",
        )


def _with_covariates(
    labelled: Mapping[str, Method],
    condition_on: str | tuple[str, ...] | None,
    min_samples: int,
    covariates: Given,
) -> dict[str, tuple[Method, Given]]:
    """Check each method and return it with its covariates; climatology gets no covariates.

    Raises
    ------
    ValueError
        If there is a covariate on which no method conditions.
    """
    for method in labelled.values():
        checked(method, None, min_samples, "xrecal.compare")
    named = name_some(labelled.values(), condition_on, covariates)
    used = {}
    for label, method in labelled.items():
        if label != CLIMATOLOGY:
            to_open = None if named else covariates
            method = checked(method, condition_on, min_samples, "xrecal.compare", to_open)
        used[label] = method, used_by(method, covariates, named=named or label == CLIMATOLOGY)
    known = {name for _, given in used.values() for name in given or ()}
    unknown = [name for name in covariates or () if name not in known]
    if unknown:
        raise ValueError(
            f"no method conditions on the covariates {unknown}; name them in condition_on or "
            "leave them out"
        )
    return used


def _only_form(forecast: Labelled, member_dim: Hashable | None, name: str) -> Form:
    forms = read_forms(forecast, member_dim, name=name)
    if len(forms) != 1:
        raise ValueError(f"compare takes one variable, but {name} has {list(forms)}; select one")
    return next(iter(forms.values()))


def _only_variable(observations: Labelled, name: str) -> xr.DataArray:
    """Return the only variable of a Dataset, or the DataArray, with NaN for missing values."""
    if isinstance(observations, xr.DataArray):
        return without_declared(read_labels(observations, name=name).obj)
    if not isinstance(observations, xr.Dataset) or len(observations.data_vars) != 1:
        raise ValueError(f"compare takes one variable; pass {name} as a DataArray")
    return _only_variable(next(iter(observations.data_vars.values())), name)


def _label(
    methods: Method | Sequence[Method] | Mapping[str, Method] | None,
) -> dict[str, Method]:
    """Return methods by label, with climatology; raise ValueError if methods share a label."""
    if methods is None:
        methods = DEFAULTS
    if isinstance(methods, (str, Method)):
        methods = [methods]
    if not isinstance(methods, Mapping):
        labels = [
            CLIMATOLOGY if method == Climatology() else _what_differs(method, methods)
            for method in methods
        ]
        if len(set(labels)) < len(labels):
            raise ValueError(f"methods must differ, got {labels}; leave one out or label them")
        methods = dict(zip(labels, methods, strict=True))
    if not isinstance(methods.get(CLIMATOLOGY, Climatology()), Climatology):
        raise ValueError(
            f"the label {CLIMATOLOGY!r} belongs to the reference; choose another for "
            f"{methods[CLIMATOLOGY]!r}"
        )
    if RAW in methods:
        raise ValueError(f"the label {RAW!r} belongs to the raw forecast; choose another")
    return {CLIMATOLOGY: Climatology(), **methods}


def _what_differs(method: Method, methods: Sequence[Method]) -> str:
    """Return the class name, with settings that differ from defaults and from other methods."""
    name = type(method).__name__
    alike = [other for other in methods if type(other) is type(method)]
    if len(alike) == 1 or not is_dataclass(method):
        return name
    settings = [
        f"{field.name}={getattr(method, field.name)!r}"
        for field in fields(method)
        if getattr(method, field.name) != field.default
        and any(getattr(other, field.name) != getattr(method, field.name) for other in alike)
    ]
    return f"{name}({', '.join(settings)})" if settings else name
