"""Fit a Recalibrator to a hindcast and observations.

:func:`fit` matches forecasts with observations, prepares the cases of each variable with
:func:`prepare`, and fits the method to these cases. Cross-validation, plans and ridge curves also
prepare their cases with :func:`prepare`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.blockwise import require_one_chunk
from xrecal.chunks.progress import counted, reporting
from xrecal.chunks.warnings import warn
from xrecal.inputs.circular import PERIOD, refuse_circular
from xrecal.inputs.covariates import KNOWN, Given, read_covariates
from xrecal.inputs.forms import PARTS, Form, Labelled, require_distances
from xrecal.inputs.metadata import describing, joined
from xrecal.inputs.pairing import Observations, Pairs, pair_cases, pair_variables, to_learn_from
from xrecal.inputs.pool import MAX_POOLED, Pool, PoolOver
from xrecal.methods import CKME, Method
from xrecal.methods.shared_ckme import as_shared

from .conditioned import checked, names_in, settled
from .fitted import ABOUT, CASE, CASE_MEMBER, MODEL, SEEN, Fitted, FittedVariable
from .jointly import Period, as_one, common_cases, read_groups
from .kinds import TOGETHER, Choose
from .named_members import NamedMembers, weighed, with_members
from .natural_bounds import within_nature
from .pooling import read_features, read_pool
from .replaced import warn_of_idle
from .shared_component import fit_pools_that_share
from .shared_fit import fit_shared_state
from .shared_places import (
    in_one_order,
    places_of_fit,
    pools_share,
    require_few,
    shared_method,
    shares,
)
from .state import Prepared, axis_of, describe_state, fit_state, require_whole_cases

DEFAULT = CKME()
"""Default method of a fit."""


@reporting("xrecal fit")
def fit(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    pool: PoolOver = None,
    jointly: Sequence[Hashable] | None = None,
    period: Period = None,
    features: str | Sequence[str] = (),
    choose: Choose = TOGETHER,
    min_samples: int = 20,
    progress: bool = True,
) -> Fitted:
    """Fit a method to past forecasts and their observations.

    Parameters
    ----------
    hindcast : DataArray or Dataset
        Past forecasts in any of the four forms: members along a member dimension (the fit leaves
        out NaN members); members with weights (``NAME`` and ``NAME_weight``); quantiles along
        ``quantile`` (0-1) or ``percentile`` (0-100); normal distributions (``NAME_loc`` and
        ``NAME_scale``; a mixture also has ``NAME_weight``, over ``component``). A Dataset may hold
        several variables.
    observations : DataArray, Dataset or dict
        Observations in the units of the hindcast. xrecal matches observations to forecasts by their
        labels along the calibration dimension. Labels of locations must be equal; observations may
        lack a location dimension. For forecasts over starts and leads, observations may be over
        valid time (a dimension of dates; its name is free). Each forecast then gets the observation
        at its coordinate ``valid_time`` or, without this coordinate, at its start plus lead; the
        attribute ``units`` of the lead is the unit of leads. If the hindcast is a Dataset, give a
        Dataset with the same names, or a dict from name to observations. A DataArray is enough if
        the Dataset has forecasts of only one variable.
    method : Method
        Settings such as :class:`xrecal.CKME`, :class:`xrecal.LinearPool` or :class:`xrecal.EMOS`.
    dim : hashable, optional
        The calibration dimension. By default xrecal recognises it by its CF standard name or its
        name (time, init, ...).
    member_dim : hashable, optional
        The member dimension. By default xrecal recognises it by its CF standard name or its name
        (member, number, ...).
    condition_on : str or tuple of str, optional
        Covariates that are known when the forecast is issued: "season" (the day of the year of the
        valid time, at each lead), or names of covariates. The result is calibrated given the
        forecast and these covariates. The argument applies to a method whose own ``condition_on``
        is None. By default a method conditions on all ``covariates`` that you give. A pool also
        conditions on the season.
    covariates : dict from str to DataArray or Dataset, optional
        Covariates by name, along the calibration dimension and perhaps along locations. Coordinates
        of the hindcast are covariates too, if ``condition_on`` names them. A circular covariate
        needs an attribute ``period``. A covariate may be a forecast in any of the four forms. Its
        mean is then the covariate ``NAME``, and the logarithm of its standard deviation is the
        covariate ``NAME_spread``. If a value of a covariate is NaN, the median of this covariate
        over the record replaces it.
    pool : str, tuple of str or dict, optional
        Location dimensions. One fit learns from the cases of all positions along these dimensions,
        which helps if records are short. The same fit recalibrates the forecasts at all these
        positions. ``{"lat": 3, "lon": 3}`` instead gives each location a fit of its own, to the
        cases in a window of 3 by 3 positions (widths must be odd). With ``pool``, a quantity that
        differs between positions, such as the lead, may be a covariate. With more than 1500 pooled
        cases, all places share one CKME, which learns the errors of their forecasts. In a
        LinearPool this CKME is one more component at each place, and in an OnlinePool it is one
        more expert. Methods that do not compare cases with one another, such as EMOS, learn from
        all cases. With more than 1500 cases, ``fit`` raises an error for windows, and for settings
        that the shared CKME does not have.
    jointly : sequence of str, optional
        Variables that belong together, such as the components of the wind. The method compares
        forecasts as ensembles of vectors, each variable in units of its spread. A past case has one
        weight for all variables, so the members of the result are observed vectors.
    period : float or dict from str to float, optional
        Period of a circular variable, such as 360 for a wind direction in degrees; or periods of
        several variables, by name. The method then compares values as points on a circle. The
        attribute ``circular_period`` of the hindcast's variable has the same effect. The
        recalibrated forecast gets this attribute too.
    features : str or sequence of str, optional
        Coordinates with numbers along the pooled dimensions, such as ("slope", "coast"). A shared
        fit compares places by these numbers. It also uses latitude, longitude, height and lead, if
        the hindcast has them.
    choose : "together", "each", or name or names of dimensions
        Places that choose settings (kernel, support, ridge, weights of a pool and tails) together
        by cross-validation. "together": all places of a kind choose together, from a sample of at
        most 64 of these places. "each": each place chooses from its own cases alone, which
        determine the settings poorly. Names of dimensions, such as ("lat", "lon"): the places along
        these dimensions choose together, so each lead has its own settings.
    min_samples : int
        Least number of complete cases. Locations with fewer complete cases get NaN and a status.
    progress : bool
        Whether to show progress on standard error if the work takes more than 3 s. A terminal or a
        notebook shows a bar. Elsewhere a line appears every 10 s at first, later less often.

    Returns
    -------
    Recalibrator
        The model. It is lazy if an input is a Dask array; then
        :meth:`xrecal.Recalibrator.compute` does the work and shows the progress. A fit to arrays in
        memory uses one core. A fit to chunks of locations, such as ``hindcast.chunk({"lat": 8})``,
        uses all cores.

    Raises
    ------
    ValueError
        If dimensions, labels, units, chunks or the number of cases are wrong; the message names a
        remedy. Wrong values in the data raise no error; instead the location gets a status.
    TypeError
        If an input has a wrong type, or its values are integers or objects.

    Notes
    -----
    All dimensions except the calibration and the member dimension are location dimensions. Each
    location has a fit of its own unless ``pool`` joins locations. The fit does not change its
    inputs. Cross-validation holds out all pooled cases of a date together, and a gap counts dates,
    not cases. With windows the fitted state stores a case once for every window that contains its
    location.

    If places share a CKME fitted to more than 1500 cases, each place has a centre and a spread of
    its own, as far as its record determines these. The fit learns the errors around the centre, in
    units of the spread, from all places together. These errors depend on the shape of the forecast,
    on covariates, and on coordinates of the places (latitude, longitude, height, lead). Hindcast
    and observations may have several Dask chunks along cases and places. The members of the result
    are 200 quantiles of equal mass. They lie within the range of the errors, so there are no tails.
    The same model also recalibrates forecasts at places that were not in the hindcast, if the
    forecast has their coordinates. The array ``record`` of the state describes the record of each
    place: long enough, shorter than ``min_samples``, missing, or unlike all others. A record unlike
    all others perhaps has another unit.

    With more than 1500 pooled cases, a :class:`xrecal.LinearPool` makes a pool at each place. The
    last component of each pool is the shared CKME. The fit learns the weights from held-out
    forecasts of all components. At a place with fewer than ``min_samples`` cases, and at a place
    that was not in the hindcast, the shared CKME gets all the weight. Updates add cases to each
    place, but the shared CKME stays unchanged until the next fit. In an :class:`xrecal.OnlinePool`
    the shared CKME is one expert at each place, and updates change it too.

    Examples
    --------
    >>> model = hindcast.recal.fit(observations)
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.34
    >>> model = hindcast.recal.fit(observations, xrecal.EMOS(), pool="location")
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.33
    """
    method = checked(method, condition_on, min_samples, "hindcast.recal.fit", covariates)
    paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    groups: list[tuple[tuple[Hashable, ...], Method]] = [((name,), method) for name in paired]
    circular = any(form.period is not None for form, _ in paired.values())
    if jointly is not None or period is not None or circular:
        groups = read_groups(paired, method, jointly, period)
    variables: dict[Hashable, FittedVariable] = {}
    for names, own in counted(groups):
        group = {name: paired[name] for name in names}
        group = common_cases(group) if len(names) > 1 else group
        prepared = {
            name: prepare(
                pair_hindcast(*pair, own, dim),
                own,
                covariates,
                min_samples,
                pool,
                features,
                choose,
            )
            for name, pair in group.items()
        }
        observed = {name: observation.attrs for name, (_, observation) in group.items()}
        variables |= fit_group(prepared, observed, min_samples, choose)
    return Fitted(method, {name: variables[name] for name in paired})


def fit_group(
    prepared: Mapping[Hashable, Prepared],
    observed: Mapping[Hashable, Mapping[Any, Any]],
    min_samples: int,
    choose: Choose,
) -> dict[Hashable, FittedVariable]:
    """Fit one variable, or the variables of a joint fit; return fitted variables by name.

    ``observed`` has the attributes of the observations by variable.
    """
    one = next(iter(prepared.values()))
    method, vectors, periods = one.method, one.method.variables, one.periods
    if vectors is not None:
        one = one._replace(pairs=as_one({name: each.pairs for name, each in prepared.items()}))
    pairs = one.pairs
    assert pairs.dim is not None
    if one.of_all is not None:
        states = [fit_pools_that_share(one, one.of_all, min_samples, choose)]
    elif not method.by_sums:
        states = fit_state(one, min_samples, choose=choose)
    else:
        states = [fit_shared_state(one, min_samples)]
        periods = {name: period for name, period in periods.items() if name in method.covariates}
    variables: dict[Hashable, FittedVariable] = {}
    for number, (name, own) in enumerate(prepared.items()):
        form = own.pairs.form
        attrs = {k: v for k, v in observed[name].items() if k == "units"}
        attrs |= describing(form.loc.attrs)
        if vectors is not None:
            method = method.of_variable(number)
            if (period := vectors.periods[number]) is not None:
                attrs[PERIOD] = period
        variables[name] = FittedVariable(
            kind=form.kind,
            dim=pairs.dim,
            member_dim=form.member_dim,
            attrs=attrs,
            axis=one.axis,
            method=method,
            periods=periods,
            n_matched=pairs.n_matched,
            n_forecasts=pairs.observations.sizes[pairs.dim],
            min_samples=min_samples,
            note=joined(own.pairs.note, one.note) or None,
            state=with_members(
                _described(states[number], method, attrs, one, periods), one.members
            ),
            pool=pairs.pool,
            leads=pairs.leads,
            jointly=tuple(prepared) if len(prepared) > 1 else (),
        )
    return variables


def _described(
    state: xr.Dataset,
    method: Method,
    attrs: dict[str, Any],
    prepared: Prepared,
    periods: Mapping[str, float | None],
) -> xr.Dataset:
    """Add attributes that explain the arrays of a state and its covariates."""
    state = describe_state(state, method, attrs, periods)
    if method.by_sums:
        own = {name: prepared.covariates[name].attrs for name in periods}
        kept = {n: {k: str(a[k]) for k in ("units", KNOWN) if k in a} for n, a in own.items()}
        state[SEEN].attrs[ABOUT] = json.dumps(kept)
    return state


def pair_hindcast(
    form: Form, observed: xr.DataArray, method: Method, dim: Hashable | None
) -> Pairs:
    """Return the cases of a variable in order of time.

    Raises ValueError if the method cannot compare the forecasts.
    """
    require_distances(form, name="hindcast")
    if form.period is not None and method.variables is None:
        refuse_circular(form.period, form.name, "only a fit with CKME can use the circle")
    return to_learn_from(pair_cases(form, observed, dim, name="hindcast"))


def prepare(
    pairs: Pairs,
    method: Method,
    covariates: Given,
    min_samples: int,
    pool: PoolOver = None,
    features: str | Sequence[str] = (),
    choose: Choose = TOGETHER,
    *,
    in_splits: bool = False,
) -> Prepared:
    """Prepare the cases of a variable: their pool, dates, covariates and features of places.

    With ``in_splits``, each fit later gets only some of the dates, pools their cases, and weighs
    named members (models). So this function itself neither pools cases nor weighs members.
    """
    dim = pairs.dim
    assert dim is not None
    n_dates = pairs.observations.sizes[dim]
    pooled = None if pool is None else read_pool(pool, pairs.form, dim, features)
    _require_use(features, method, pooled, n_dates)
    method, bounded = within_nature(pairs.form, pairs.observations, method)
    pairs = replace(pairs, note=joined(pairs.note, bounded) or None)
    pairs, members = weighed(pairs, pooled, method, choose, in_splits=in_splits)
    form = pairs.form
    shared, of_places = None, None
    if pooled is not None and pools_share(method, pooled, n_dates) and not in_splits:
        return _with_shared(pairs, method, covariates, min_samples, pooled, members)
    if pooled is not None and shares(method, pooled, n_dates):
        pooled = in_one_order(pooled, form)
        shared, of_places = shared_method(method, pairs, pooled)
    elif pooled is not None and not in_splits:
        require_few(method, pooled, n_dates)
    positions = () if pooled is None else pooled.dims
    whole = () if pooled is None else pooled.forecast_dims
    n_positions = 1 if pooled is None else len(pooled.taken)
    _require_enough(pairs, min_samples, None if pooled is None else n_positions)
    one_by_one = shared is not None and not in_splits
    if one_by_one:
        assert shared is not None
        method = shared
    _refuse_reserved(form, method)
    if not one_by_one:
        require_whole_cases(pairs, whole)
    axis = axis_of(pairs)
    axis = axis if pooled is None or in_splits or one_by_one else pooled.axis(axis, n_dates)
    method, note = settled(method, axis, n_dates * n_positions, names_in(covariates))
    if note is not None:
        warn(note)
    given: dict[str, xr.DataArray] = {}
    if method.covariates or covariates is not None:
        given = read_covariates(
            method.covariates, form, dim, covariates, name="hindcast", cases=(dim, *positions)
        )
    warn_of_idle(given, (dim, *positions))
    for name, value in given.items():
        if not one_by_one:
            require_one_chunk(value, (dim, *whole), name=f"the covariate {name!r}")
    if shared is not None:
        assert pooled is not None
        places = places_of_fit(form, shared, pooled)
        given |= {name: value.expand_dims({dim: n_dates}) for name, value in places.items()}
    note = joined(of_places, note) or None
    pairs = replace(pairs, pool=pooled)
    return Prepared(pairs, method, axis, given, note, shared, None, members)


def _require_use(
    features: str | Sequence[str], method: Method, pool: Pool | None, n_dates: int
) -> None:
    """Raise ValueError if the user names features of places, but the fit uses no features."""
    if not features:
        return
    if pool is None or not (pools_share(method, pool, n_dates) or shares(method, pool, n_dates)):
        raise ValueError(
            f"features are for places that share one fit: more than {MAX_POOLED} cases pooled "
            "over places without windows, by CKME or LinearPool; for fewer cases use "
            f"condition_on={read_features(features)!r}, or leave features out"
        )


def _require_enough(pairs: Pairs, min_samples: int, n_positions: int | None) -> None:
    """Raise ValueError if no fit can have enough cases; a pooled fit counts all places' cases."""
    if pairs.n_matched * (n_positions or 1) >= min_samples:
        return
    each = "" if n_positions is None else f", at {n_positions} pooled positions each,"
    raise ValueError(
        Advice(
            f"only {pairs.n_matched} cases along {pairs.dim!r}{each} have a label in hindcast and "
            "observations, fewer than ",
            Typed("min_samples", min_samples),
            "; pool neighbours or leads (",
            Typed("pool", ...),
            "), give more cases, or a smaller ",
            Typed("min_samples"),
            " to fit with so few",
        )
    )


def _with_shared(
    pairs: Pairs,
    method: Method,
    covariates: Given,
    min_samples: int,
    pool: Pool,
    members: NamedMembers | None,
) -> Prepared:
    """Prepare a pool of methods at each place, with a component that all places share."""
    dim, pairs = pairs.dim, replace(pairs, pool=None)
    require_whole_cases(pairs)
    axis = axis_of(pairs)
    own, note = settled(method, axis, pairs.observations.sizes[dim], names_in(covariates))
    component = own.shared_by_places
    assert component is not None
    of_all = prepare(pairs, component, covariates, min_samples, pool.dims, pool.features)
    shared = as_shared(of_all.method)
    form, alone = pairs.form, [name for name in own.covariates if name not in of_all.covariates]
    given = {name: of_all.covariates[name] for name in own.covariates if name not in alone}
    given |= read_covariates(alone, form, dim, None, name="hindcast", cases=(dim,))
    for name, value in given.items():
        require_one_chunk(value, (dim,), name=f"the covariate {name!r}")
    method = own.with_shared(shared)
    _refuse_reserved(pairs.form, method)
    if note is not None and note != of_all.note:  # reported before
        warn(note)
    whole = f"one component from the cases of all {shared.places} places"
    note = joined(whole, note, of_all.note)
    return Prepared(pairs, method, axis, given, note, None, of_all, members)


def _refuse_reserved(form: Form, method: Method) -> None:
    """Raise ValueError if a dimension has a name that the state needs."""
    taken = {CASE, CASE_MEMBER, MODEL, "quantile", *PARTS, "observations", "n_cases", "status"}
    for name, parameter in method.parameters(0).items():
        taken |= {name, *parameter.dims}
    found = [d for d in form.dims if d in taken]
    if found:
        raise ValueError(
            f"the dimension {found[0]!r} has a name that xrecal uses; rename it in "
            f"hindcast, observations and forecasts: .rename({found[0]}=...)"
        )
