"""Equally weighted members that represent distributions."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution, Empirical, equal_mass_levels
from xrecal.fit.fitted import Fitted
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.typing import FloatArray, IntArray

from .coherence import Coherence, check_coherence, coherent_members
from .coherence_dates import observations_of
from .of_model import sources_of
from .recalibrated import Missing, Recalibrated, recalibrated
from .reductions import Reduction, on_circle
from .schaake_dates import Template
from .source import Source, check_count, reduce


@on_circle
def members_of(
    distribution: Distribution, cases: IntArray, *location: IntArray, levels: FloatArray, seed: int
) -> tuple[FloatArray, ...]:
    """Put n quantiles of each forecast in a random order that differs by case and location.

    The seed, the index of the case and the index of the location determine the order. The index of
    the location is the sum of the arrays ``location`` (L, T), for T cases at L locations.
    """
    from xrecal.arrays import shuffled_members

    members = distribution.quantile(levels)
    return (shuffled_members(members, seed, sum(location, np.zeros_like(cases)), cases),)


@on_circle
def vectors_of(
    distribution: Empirical, cases: IntArray, *location: IntArray, n: int, seed: int
) -> tuple[FloatArray, ...]:
    """Draw n past observations for each forecast, with the weights of the distribution.

    Variables that have the same weights get the same past cases.
    """
    from xrecal.arrays.distributions.members import systematic_draws, whole_weights

    assert distribution.weights is not None
    at = cases, sum(location, np.zeros_like(cases))
    slots = systematic_draws(whole_weights(distribution.weights), n, seed, *at)
    past = np.broadcast_to(distribution.members[:, np.newaxis], distribution.weights.shape)
    return observations_of(distribution, slots, past)


def members(
    forecast: Labelled, n: int, *, seed: int = 0, member_dim: Hashable | None = None
) -> Labelled:
    """Equally likely members that represent each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    n : int
        Number of members, at least 1. It may exceed the size of the ensemble; see Notes.
    seed : int
        Seed of the order of the members. Another seed gives the same members in another order.
    member_dim : hashable, optional
        As for :func:`xrecal.products.probabilities.exceedance`.

    Returns
    -------
    DataArray or Dataset
        A plain ensemble with n members along the member dimension of the forecast (``member`` for
        quantiles and normal distributions); lazy if an input is lazy.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number, or ``seed`` is not a whole number.

    Notes
    -----
    Members are the quantiles at the levels (i - ½)/n, for i from 1 to n. No other n values
    represent the distribution better. An ensemble of m members, plain or weighted, has only m
    values. If n is larger than m, several members are equal: each value occurs in proportion to its
    weight (n / m times if the weights are equal and n / m is whole). Each location and case has its
    own random order, which depends on the position of the location and case. So member k at one
    location has no relation to member k at another location, and the fields of one member are not
    coherent in space or time.

    Examples
    --------
    >>> forecast.recal.apply(model).recal.members(20).sizes["member"]
    20
    """
    check_count(n, seed)
    sources = sources_of(forecast, member_dim)
    return sources.product(partial(drawn, n=n, seed=seed), members_line(n, seed))


def model_members(
    model: Fitted,
    forecast: Labelled,
    n: int | None = None,
    *,
    coherence: Coherence | None = None,
    template: Template = None,
    seed: int = 0,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> Labelled:
    """Equally likely members of the recalibrated forecasts, computed chunk by chunk.

    Parameters
    ----------
    forecast, covariates, missing_covariates
        As for :meth:`apply`.
    n : int, optional
        Number of members, at least 1. You must give this number unless ``coherence="ecc"`` or
        ``template`` determines it.
    coherence : {"ecc", "schaake", "dates"}, optional
        Method that arranges members so that member k, taken at all locations, lead times and
        variables of a case, forms one realistic field. None: each location and case has its own
        random order.
    template : sequence of labels, optional
        Past dates for ``"schaake"``, one for each member, as labels along the calibration dimension
        of the hindcast. The default is the n dates nearest in season to each forecast; of
        equally near dates, xrecal takes the latest. If the labels are not dates, the default is the
        last n cases.
    seed : int
        Seed of all random choices: orders of members, ranks of equal values, and dates.

    Returns
    -------
    DataArray or Dataset
        A plain ensemble of n members, see :func:`xrecal.products.members.members`. With
        ``"schaake"`` and ``"dates"``, the coordinate ``calibration_<dim>`` has the past date of
        each member.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number or differs from the number of raw members or
        template dates, if a template date is unknown, if the form of the forecast or the model does
        not support ``coherence``, or as for :meth:`apply`.

    Notes
    -----
    Without coherence, and with ``"ecc"`` and ``"schaake"``, each location has the quantiles at the
    levels (i - ½)/n, for i from 1 to n. These results differ only in the order of the members:

    - ``"ecc"``, ensemble copula coupling [1]_: members have the order of the raw members at the
      location. The forecasts must be plain ensembles, and n is the number of raw members.
    - ``"schaake"``, the Schaake shuffle [2]_: members have the order of the observations at the
      location on n past dates. All methods and forms support this order, except models with
      ``pool=``.

    If variables were fitted jointly and ``coherence`` is None, member k of all these variables
    comes from the same past case. xrecal draws this case at each location, with the weights of the
    cases.

    Equal values (dry members) of a case get a random order, which is the same at all locations. A
    raw member or past observation that is missing at a place gets a random rank at that place, from
    a random number that is the same at all places.

    ``"dates"``: each member is the field observed at one past date. For each case, systematic
    sampling draws n dates. The weight of a date is its mean weight over all locations. All
    locations count equally, whatever their area. The fields are as consistent as observed fields,
    but the distribution at a single location differs from that of :meth:`apply`. ``"dates"`` needs
    a method whose members are past observations (``CKME(support="observations")``, ``IDR``,
    ``Climatology``). Values are NaN where a drawn date has no observation. xrecal computes the
    weights twice: to draw the dates, and to find missing values. If the forecasts have several
    chunks along the calibration dimension, weights differ by rounding, which rarely changes a drawn
    date. Chunks along other dimensions make no difference.

    The members of a lead do not depend on the other leads that you pass, with two exceptions:
    ``"dates"`` averages weights over the leads that you pass, and the order of members of a model
    with ``pool="lead"`` depends on the positions of the leads among those that you pass.

    References
    ----------
    .. [1] Schefzik, Thorarinsdottir & Gneiting (2013), Uncertainty quantification in complex
       simulation models using ensemble copula coupling. https://doi.org/10.1214/13-STS443
    .. [2] Clark et al. (2004), The Schaake shuffle.
       https://doi.org/10.1175/1525-7541(2004)005<0243:TSSAMF>2.0.CO;2

    Examples
    --------
    >>> model.members(forecast, 20).sizes["member"]
    20
    >>> model.members(forecast, coherence="ecc").sizes["member"]
    8
    """
    if coherence is not None:
        check_coherence(coherence, template)
        sources = recalibrated(model, forecast, covariates, missing_covariates)
        return coherent_members(sources, n, coherence, template, seed)
    if template is not None:
        raise ValueError(
            "template names the dates whose order members follow; add coherence='schaake', or "
            "leave template out"
        )
    n = check_count(n, seed)
    line = f"{members_line(n, seed)}, after recalibration by {model.method}"
    sources = recalibrated(model, forecast, covariates, missing_covariates)
    return sources.product(partial(drawn_by_model, n=n, seed=seed), line)


def drawn_by_model(source: Recalibrated, n: int, seed: int) -> xr.DataArray:
    """Members of recalibrated forecasts; jointly fitted variables get the same past cases."""
    if not source.fitted.jointly:
        return drawn(source, n, seed)
    return _arranged(source, n, partial(vectors_of, n=n, seed=seed))


def drawn(source: Source, n: int, seed: int) -> xr.DataArray:
    """Members of each distribution; each case and location has its own random order."""
    return _arranged(source, n, partial(members_of, levels=equal_mass_levels(n), seed=seed))


def _arranged(source: Source, n: int, reduction: Reduction) -> xr.DataArray:
    new = {source.form.member_dim_of_results: n}
    result = reduce(source, reduction, new, source.numbers()).assign_attrs(source.attrs)
    return result.assign_coords(source.form.labels_of_members(n))


def members_line(n: int, seed: int) -> str:
    """Line of the history about members."""
    return f"{n} equally likely members, order of seed {seed}"
