"""Recalibrated distributions of new forecasts, as weighted members or as parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from xrecal.arrays.dispatch import to_host
from xrecal.arrays.distributions.continuous import Tailed
from xrecal.arrays.distributions.forms import Empirical, Normal
from xrecal.chunks.blockwise import require_free
from xrecal.chunks.warnings import warn
from xrecal.fit.fitted import CASE, Fitted
from xrecal.fit.mismatch_warnings import OFTEN, first_place, warn_of_novel
from xrecal.inputs.between import BETWEEN, SIDE, SIDES, TAIL, TAIL_SHAPE
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import history_line, joined, with_conventions
from xrecal.methods.mixing import AVERAGE
from xrecal.typing import FloatArray

from .recalibrated import SLOT, Missing, Recalibrated, recalibrated, record_of
from .reductions import on_circle, on_device


@on_device
@on_circle
def weights_of(distribution: Empirical) -> tuple[FloatArray, ...]:
    """Weights (L, T, n) of n members, at L locations with T forecasts each."""
    assert distribution.weights is not None
    return (distribution.weights,)


@on_device
def members_and_weights(distribution: Empirical) -> tuple[FloatArray, ...]:
    """Members and weights (L, T, n) of weighted ensembles; each forecast has its own members.

    There are L locations, T forecasts at each location, and n members. If the ensembles have tails,
    the function also returns the shapes of the tails (L, T, 2).
    """
    members, weights = distribution
    assert weights is not None
    shape = distribution.shape if isinstance(distribution, Tailed) else None
    return (members, weights) if shape is None else (members, weights, shape)


OF_SHAPE = {
    "long_name": "shape of the generalised Pareto distribution that members of a tail represent",
    "units": "1",
    "role": TAIL_SHAPE,
}
"""Attributes of the variable that holds the shapes of the tails."""

FAR = 0.05
"""A warning counts the forecasts that give values far outside the observed range more than this
probability. Far means farther outside than this range is wide."""


def normal_parameters(distribution: Normal) -> tuple[FloatArray, ...]:
    """Means and standard deviations (L, T), at L locations with T forecasts each."""
    return distribution.loc[..., 0], distribution.scale[..., 0]


def model_apply(
    model: Fitted,
    forecast: Labelled,
    *,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> xr.Dataset:
    """Recalibrate forecasts with the model, and return distributions.

    Parameters
    ----------
    forecast : DataArray or Dataset
        New forecasts that have the form and the locations of the hindcast. They may have only some
        leads of the hindcast, in any order, or a single lead as a scalar coordinate: ``apply``
        finds the fit of a lead by the label of the lead. The calibration dimension may be missing
        (a single forecast) or chunked.
    covariates : dict from str to DataArray or Dataset, optional
        The covariates of the model that are not coordinates of the forecast. ``apply`` ignores
        other covariates.
    missing_covariates : {"refuse", "without"}
        Treatment of a forecast that lacks a covariate of the model. "refuse": raise an error that
        names the covariate. "without": use the median of the covariate over the hindcast, as for
        missing values.

    Returns
    -------
    Dataset
        A weighted ensemble for each variable: ``NAME`` has the members along the member dimension
        (``member`` for quantiles and normal distributions), and ``NAME_weight`` has the probability
        of each member. The coordinate ``calibration_<dim>`` has the label of the past case that
        each member comes from. Members that are past observations are the same for all forecasts.
        ``NAME_novelty`` is the result of ``model.novelty``: 0 for a forecast like past ones and 1
        for a forecast unlike all of them. Only methods that compare forecasts with past ones return
        a novelty. If members are not past observations, ``NAME_beyond`` is the probability of
        values farther outside the observed range than this range is wide. A shared fit, which pools
        more than 1500 cases of many places, returns 200 quantiles of equal mass as members. Shared
        fits, and pools with a shared fit as a component, also recalibrate forecasts at places that
        were not in the hindcast; they compare places by features. EMOS returns ``NAME_loc`` and
        ``NAME_scale`` of normal distributions. Unless bounds are switched off, these distributions
        are censored at ``NAME_lower`` and ``NAME_upper``. Values are NaN where the forecast or the
        fit is missing. If the model has covariates that a median can replace, ``NAME_status`` has
        one bit for each of these covariates. The bit is set where the median over the hindcast
        replaces the covariate, because the value of the covariate is missing or far outside the
        range of the hindcast.

    Raises
    ------
    ValueError
        If dimensions, labels or units differ from those of the hindcast, if a lead has no fit, or
        if the forecast lacks a covariate of the model.
    TypeError
        If the forecast is neither a DataArray nor a Dataset.

    Warns
    -----
    UserWarning
        - If the scalar coordinates of the forecast name another place or lead than those of the
          hindcast.
        - If all values of the forecast are farther outside the range of the hindcast than this
          range is wide. xrecal checks the range only if forecast and model are in memory, and only
          for the methods that keep the hindcast, :class:`CKME` and :class:`LinearPool`.
        - If one of the forecasts in memory has a novelty above 0.9, or if more than a tenth of them
          have a novelty above 0.5. The warning names the first forecast with more than 0.5.
        - If more than a tenth of the forecasts in memory have more than 5 % of their mass farther
          outside the observed range than this range is wide. The warning names the first one.
        - If medians replace values of covariates in memory. The warning names these covariates.

    Examples
    --------
    >>> calibrated = forecast.recal.apply(model)
    >>> calibrated["forecast_weight"].dims
    ('init', 'member', 'location')
    >>> calibrated.recal.mean()["forecast"].isel(init=0).round(1).values
    array([ 8.1, -2.6,  4.1,  9.1])
    """
    variables: dict[Hashable, xr.DataArray] = {}
    along: dict[Hashable, Hashable] = {}
    shared: dict[tuple[Hashable, ...], xr.DataArray] = {}
    sources = recalibrated(model, forecast, covariates, missing_covariates, beside=True)
    for name, source in sources.variables.items():
        base, fitted = "forecast" if name is None else name, source.fitted
        _require_free_names(base, source)
        if fitted.method.output == "normal":
            issued = _normal(source, base)
        else:
            issued = _weighted(source, base, shared.get(fitted.jointly))
            if fitted.jointly:  # weights are of whole vectors
                shared[fitted.jointly] = issued[f"{base}_weight"]
        issued = {variable: source.as_given(v) for variable, v in issued.items()}
        _require_same_places(base, issued, along)
        if f"{base}_novelty" in issued:
            warn_of_novel(issued[f"{base}_novelty"], name)
        variables |= issued
    attrs = forecast.attrs
    if isinstance(forecast, xr.DataArray):  # other attributes describe the variable
        attrs = {name: value for name, value in attrs.items() if name == "history"}
    line = joined(f"recalibrated by {model.method}", sources.remark)
    history = history_line(attrs, line)
    return xr.Dataset(variables, attrs=with_conventions(history))


def issue(
    model: Fitted,
    forecast: xr.Dataset,
    covariates: Given,
    product: Callable[[Recalibrated], xr.DataArray],
    line: str,
    missing_covariates: Missing = "refuse",
) -> xr.Dataset:
    """Compute a product of each variable, with the novelty, and the mass far beyond the record.

    Parameters
    ----------
    forecast, covariates, missing_covariates
        As for ``apply``.
    product : callable
        Function that computes the product from the distributions of one variable. It calls
        ``reduce`` of the distributions once.
    line : str
        Text about the product, for the attribute ``history``.

    Returns
    -------
    Dataset
        The product ``NAME``. Methods that compare forecasts with past ones add ``NAME_novelty``
        and, if their members are not past observations, ``NAME_beyond``. The Dataset is lazy if the
        forecast or the model is lazy.
    """
    sources = recalibrated(model, forecast, covariates, missing_covariates, beside=True)
    variables = {
        name: source if source.fitted.method.knows_novelty else replace(source, beside=None)
        for name, source in sources.variables.items()
    }
    issued = replace(sources, variables=variables).product(product, line)
    assert isinstance(issued, xr.Dataset)
    for name, source in variables.items():
        known = source.known_beside(name)
        beside = {of: source.as_given(known[of]) for of in sorted(known, key=str)}
        if beside:
            issued[name].attrs["ancillary_variables"] = " ".join(map(str, beside))
        issued = issued.assign({of: array.variable for of, array in beside.items()})
    return issued


def _require_free_names(base: Hashable, source: Recalibrated) -> None:
    """Raise ValueError if a dimension or coordinate of the forecast has the name of a result."""
    form, fitted = source.form, source.fitted
    ends: tuple[str, ...] = ("loc", "scale", "lower", "upper", "status")
    taken: set[Hashable] = set()
    if fitted.method.output != "normal":
        ends = ("weight", "novelty", "beyond", "status", TAIL_SHAPE)
        taken |= {name for name, labels in fitted.state.coords.items() if labels.dims == (CASE,)}
        taken |= {"component"} if fitted.method.slots(fitted.state.sizes[CASE])[1] else set()
    of_members = {name for name, c in form.loc.coords.items() if form.member_dim in c.dims}
    given = [name for name in (*form.dims, *form.loc.coords) if name not in of_members]
    require_free(given, taken | {f"{base}_{end}" for end in ends})
    if base in taken:
        raise ValueError(
            f"the variable {base!r} has the name of a coordinate of the result; rename it in "
            "hindcast and forecast"
        )


def _require_same_places(
    name: Hashable,
    issued: Mapping[Hashable, xr.DataArray],
    along: dict[Hashable, Hashable],
) -> None:
    """Raise ValueError if one coordinate lies along different dimensions in two variables.

    ``along`` has the dimension of each coordinate of the earlier variables. The function adds the
    coordinates of the variable ``issued`` to ``along``.
    """
    for variable in issued.values():
        for label, coordinate in variable.coords.items():
            if coordinate.ndim != 1:
                continue
            (dim,) = coordinate.dims
            if along.setdefault(label, dim) != dim:
                raise ValueError(
                    f"the members of {name!r} are along {dim!r}, but those of another variable are "
                    f"along {along[label]!r}. One Dataset cannot hold {label!r} along both: apply "
                    f"the model to each variable alone: model[{name!r}].apply(forecast[{name!r}])"
                )


def _normal(source: Recalibrated, base: Hashable) -> dict[Hashable, xr.DataArray]:
    """Means and standard deviations of normal distributions, and bounds of censored ones."""
    loc, scale = source.reduce(normal_parameters, {}, {})
    state, attrs = source.fitted.state, source.attrs
    units = {k: v for k, v in attrs.items() if k == "units"}
    described = units | {"long_name": "standard deviation of the recalibrated forecast"}
    parameters: dict[Hashable, xr.DataArray] = {
        f"{base}_loc": loc.assign_attrs(attrs),
        f"{base}_scale": scale.assign_attrs(described),
    }
    for end in ("lower", "upper"):
        if end in state:
            coords = [c for c in state.coords if c not in state[end].dims]
            parameters[f"{base}_{end}"] = (
                state[end]
                .astype(source.form.loc.dtype)
                .drop_vars(coords, errors="ignore")
                .assign_attrs(units | {"long_name": f"{end} bound, where the forecast is censored"})
            )
    return parameters | source.known_beside(base)


def _weighted(
    source: Recalibrated, base: Hashable, weights: xr.DataArray | None
) -> dict[Hashable, xr.DataArray]:
    """Members and weights, with novelty, status and shapes of tails, by the names of the results.

    Jointly fitted variables have the same weights, so one computation is enough. ``weights`` are
    the result of an earlier computation, or None.
    """
    fitted, member = source.fitted, source.form.member_dim_of_results
    n_cases = fitted.state.sizes[CASE]
    shape: list[xr.DataArray] = []
    if fitted.method.shares_members:
        if weights is None:
            (weights,) = source.reduce(weights_of, {CASE: n_cases})
        members = fitted.state["observations"]
        members = members.drop_vars(
            [  # the number of the forecast counts, if it differs
                name
                for name, coordinate in members.coords.items()
                if name not in members.indexes and (name in weights.coords or not coordinate.dims)
            ]
        ).rename({CASE: member})
        dims = [d for d in weights.dims if d in members.dims]
        members = members.transpose(*dims)
        members.attrs = {}  # these describe observations, not forecasts
    else:
        slots: dict[Hashable, int] = {SLOT: fitted.method.slots(n_cases)[0].size}
        tails = TAIL in (fitted.method.slots(n_cases)[1] or ())
        sides: list[dict[Hashable, int]] = [{SIDE: len(SIDES)}] if tails else []
        members, weights, *shape = source.reduce(members_and_weights, slots, slots, *sides)
        _warn_of_far(base, members, weights, source)
    about = {"long_name": "probability of each member", "role": "member_weight"}
    if fitted.method.between is not None:
        about[BETWEEN] = fitted.method.between
    beside = {f"{base}_weight": weights.assign_attrs(about), **source.known_beside(base)}
    for of_sides in shape:
        labelled = of_sides.assign_coords({SIDE: list(SIDES)})
        beside[f"{base}_{TAIL_SHAPE}"] = labelled.assign_attrs(OF_SHAPE)
    issued = source.attrs | {"ancillary_variables": " ".join(map(str, beside))}
    return {base: members.assign_attrs(issued), **beside}


def _warn_of_far(
    base: Hashable, members: xr.DataArray, weights: xr.DataArray, source: Recalibrated
) -> None:
    """Warn if more than a tenth of the forecasts in memory have much mass far beyond the record."""
    assert source.beside is not None
    beyond = source.beside["beyond"]
    if beyond.chunks is not None:
        return
    values = to_host(beyond.data)
    far = values > FAR
    n, n_far = np.count_nonzero(~np.isnan(values)), np.count_nonzero(far)
    if n_far <= OFTEN * n:
        return
    where = first_place(beyond.copy(data=far))
    where += _component(members, weights.where(beyond > FAR), record_of(source.fitted.observed))
    warn(
        f"{n_far} of {n} forecasts of {base!r} have more than {FAR:.0%} of their mass outside the "
        "observed range by more than the width of this range, up to "
        f"{np.nanmax(values):.0%}{where}. If that is not plausible, give the method bounds=, more "
        f"cases, or members that are past observations; {base}_beyond identifies these forecasts",
    )


def _component(members: xr.DataArray, weights: xr.DataArray, record: Sequence[xr.DataArray]) -> str:
    """Text that names the component with most of the mass far beyond the record.

    The text is empty if the method is no pool.
    """
    if "component" not in members.coords:
        return ""
    low, high = record
    width = high - low
    far = (members < low - width) | (members > high + width)
    dim = members["component"].dims[0]
    mass = weights.where(far).sum([d for d in weights.dims if d != dim])
    masses = mass.as_numpy().groupby("component").sum()
    # The average is as far off as its components, so a component is named.
    label = masses.drop_sel(component=AVERAGE, errors="ignore").idxmax().item()
    return f", most of it from the component {label!r}"
