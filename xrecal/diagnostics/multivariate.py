"""Score fields (all places together) and vectors (several variables together).

A field has dimensions such as latitude and longitude. A vector has the dimension ``VARIABLE``,
along which :func:`as_vectors` puts several variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk, work_on
from xrecal.chunks.run import Named, run
from xrecal.fit.jointly import read_joint_names, with_vector
from xrecal.inputs.circular import refuse_circular
from xrecal.inputs.dims import Dims, listed
from xrecal.inputs.forecasts import weighted
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.pairing import Observations, known_pairs, pair_cases, pair_variables
from xrecal.inputs.roles import CALIBRATION
from xrecal.products.scores import Score, score_entry, score_variables
from xrecal.typing import FloatArray

from .evidence import by_name, in_one_chunk

VARIABLE = "vector_component"
"""Dimension of the variables of a vector."""

Scale: TypeAlias = Mapping[Hashable, float | xr.DataArray] | None
"""Numbers by which the variables of a vector are divided."""

FieldScore: TypeAlias = Callable[..., FloatArray]
"""Function from observations (..., d), members (..., d, m), weights (..., m) to scores (...)."""

_MISSING = "left out: places without observation or members, then members missing at other places"


@score_entry(whole=True)
def energy_score(
    forecast: Labelled,
    observations: Observations,
    over: Dims = None,
    dim: Dims = None,
    *,
    jointly: Sequence[Hashable] | None = None,
    scale: Scale = None,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the energy score of fields: a CRPS with distances between whole fields.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Plain ensembles, or weighted ensembles whose weights do not vary over the field. Each
        variable is scored alone, unless ``jointly`` names several.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    over : hashable or sequence of hashable, optional
        Dimensions of a field, such as latitude, longitude and lead time. By default, a field has
        all dimensions except those of the cases and members.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. The mean leaves out missing scores. If xrecal does not
        recognise the dimension of the cases, name it here.
    jointly : sequence of str, optional
        Variables that are scored together as vectors. Each place has a vector of its own, unless
        ``over`` names dimensions of places, too. Each member must have one weight for its whole
        vector, as in forecasts of a model fitted with ``jointly``.
    scale : dict or Dataset, optional
        Number by which each variable of ``jointly`` is divided, such as
        ``observations.std("time")``; needed if the units of the variables differ.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each field in the unit of the variable. The result is lazy if an input is
        lazy.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the inputs do not match, or if Dask has a field in several
        chunks. Also if the forecast consists of quantiles or normal distributions, or has weights
        that differ between places: these have no joint distribution of places. Then make members
        with ``model.members(forecast, n, coherence=...)``.

    Notes
    -----
    See :func:`xrecal.arrays.energy_score` [1]_ for the formula and missing values. All places count
    equally. The score depends more on position and spread of the members than on dependence between
    places; :func:`variogram_score` is more sensitive to this dependence. The cost is O(m² d) for m
    members of a field of d places.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> forecast.recal.energy_score(observations, over="location", dim="init").round(2).item()
    1.0
    """
    if jointly is None and scale is not None:
        raise ValueError("scale is for variables that are scored together; name them: jointly=...")
    if jointly is not None:
        forecast, observations = as_vectors(forecast, observations, jointly, scale, member_dim)
        over = VARIABLE if over is None else [VARIABLE, *listed(over)]

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        return _of_fields(form, observed, by_name("energy_score"), over, "energy score")

    text = Score("energy_score", "energy score", _MISSING)
    return score_variables(forecast, observations, one, dim, member_dim, text)


@score_entry(whole=True)
def variogram_score(
    forecast: Labelled,
    observations: Observations,
    over: Dims = None,
    dim: Dims = None,
    *,
    order: float = 0.5,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the variogram score of fields: errors in the differences between places.

    Parameters
    ----------
    forecast, observations, over, dim, member_dim
        See :func:`energy_score`.
    order : float
        Order p > 0 of the variogram.

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each field, a sum over all pairs of its places, in the unit of the variable to
        the power of 2p. The result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        See :func:`energy_score`; also if the order is not positive.

    Notes
    -----
    See :func:`xrecal.arrays.variogram_score` [1]_ for the formula and missing values. All pairs of
    places count equally; a bias that all places share does not change the score. The cost is O(m
    d²) for each field.

    References
    ----------
    .. [1] Scheuerer & Hamill (2015), Variogram-based proper scoring rules for probabilistic
       forecasts of multivariate quantities. https://doi.org/10.1175/MWR-D-14-00269.1

    Examples
    --------
    >>> forecast.recal.variogram_score(observations, over="location", dim="init").round(1).item()
    0.8
    """
    if not 0 < order < np.inf:
        raise ValueError(f"order must be a positive number, got {order!r}")

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        rule = by_name("variogram_score", order=order)
        return _of_fields(form, observed, rule, over, "variogram score")

    units: dict[str, str] | None = None if order == 0.5 else {}
    text = Score("variogram_score", "variogram score", f"order {order:g}; {_MISSING}", units)
    return score_variables(forecast, observations, one, dim, member_dim, text)


def _of_fields(
    form: Form, observed: xr.DataArray, score: FieldScore, over: Dims, what: str
) -> xr.DataArray:
    """Compute the scores of one variable."""
    refuse_circular(form.period, form.name, "scores of fields need values on a line")
    pairs = known_pairs(pair_cases(form, observed, name="forecast", require_dim=False))
    form = pairs.form
    field = _field_dims(form, over)
    _require_joint(form, field, what)
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    observed = pairs.observations.expand_dims(
        {d: sizes[d] for d in field if d not in pairs.observations.dims}
    )
    require_one_chunk(form.loc, (form.member_dim, *field), name="forecast")
    require_one_chunk(observed, field, name="observations")
    given = {"observed": (observed, field), "members": (form.loc, (form.member_dim, *field))}
    if form.weights is not None:
        given["weights"] = (form.weights, (form.member_dim,))
    found = run(
        partial(_field_scores, score=score),
        {"given": given},
        {"score": ({}, form.loc.dtype)},
        what=work_on(f"the {what}", form.name),
    )
    return found["score"].transpose(*[d for d in form.dims if d not in field])


def _field_dims(form: Form, over: Dims) -> Sequence[Hashable]:
    """Return the dimensions of a field, sorted by name, so that sums always have the same order."""
    if over is None:
        case = form.roles.find(CALIBRATION, name="forecast")
        named = [d for d in form.dims if d != case]
    else:
        named = listed(over)
    unknown = [d for d in named if d not in form.dims]
    if unknown or not named or len(set(named)) < len(named):
        raise ValueError(
            f"over={over!r} must name dimensions of a field, each once; the forecast has "
            f"{list(form.dims)} besides its members"
        )
    return sorted(named, key=str)


def _require_joint(form: Form, field: Sequence[Hashable], what: str) -> None:
    """Raise ValueError unless each member of a forecast is a field."""
    per_place = form.weights is not None and set(form.weights.dims) & set(field)
    missing = [d for d in field if d not in form.loc.dims]
    if form.traits.has_members and not per_place and not missing:
        return
    actual = f"weights along {list(form.weights.dims)}" if per_place else f"the form {form.kind!r}"  # type: ignore[union-attr]
    raise ValueError(
        f"the {what} needs members that are fields over {list(field)}, but {form.name!r} has "
        f"{actual}, without a joint distribution; make such members: "
        "model.members(forecast, n, coherence='schaake')"
    )


def _field_scores(given: Named, score: FieldScore) -> Named:
    """Score the fields of a chunk; the axes of the dimensions of a field come last."""
    observed, members, *weights = given.values()
    places = math.prod(observed.shape[1:])
    y, x = (a.reshape(*a.shape[:n], places) for a, n in ((observed, 1), (members, 2)))
    return {"score": score(y, np.swapaxes(x, -1, -2), *weights)}


def as_vectors(
    forecast: Labelled,
    observations: Observations,
    names: Sequence[Hashable],
    scale: Scale,
    member_dim: Hashable | None,
) -> tuple[Labelled, xr.DataArray]:
    """Stack several variables of forecast and observations along a dimension of variables.

    Raises
    ------
    ValueError
        If a variable is missing, if variables differ in dimensions or weights, or if units differ
        and no scale is given.
    """
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    names = read_joint_names(paired, names, name="forecast")
    forms = {name: paired[name][0] for name in names}
    whole = with_vector(forms, names[0])  # checks dimensions and labels
    for name, form in forms.items():
        refuse_circular(form.period, name, "scores of vectors need values on a line")
    _require_same_weights(forms)
    divisors = dict.fromkeys(names, 1.0) if scale is None else _scales(scale, names)
    units = {name: form.loc.attrs.get("units") for name, form in forms.items()}
    if scale is None and len(set(units.values())) > 1:
        raise ValueError(
            f"the variables have the units {units}, so their distances cannot be added up; give a "
            "number to divide each variable by, such as scale=observations.std('time')"
        )
    members = _stacked([_divided(form.loc, divisors[name]) for name, form in forms.items()], names)
    observed = _stacked([_divided(paired[name][1], divisors[name]) for name in names], names)
    attrs = {"units": units[names[0]]} if scale is None and units[names[0]] is not None else {}
    members = members.assign_attrs(attrs).rename("vectors")
    observed = observed.assign_attrs(attrs)
    if whole.weights is None:
        return members, observed
    return weighted(members, whole.weights), observed


def _scales(scale: object, names: Sequence[Hashable]) -> Mapping[Hashable, float | xr.DataArray]:
    if not isinstance(scale, Mapping):
        raise TypeError(
            f"scale must be a dict or Dataset with {list(names)}, got {type(scale).__name__}"
        )
    missing = [name for name in names if name not in scale]
    if missing:
        raise ValueError(f"scale lacks {missing[0]!r}; it has {list(scale)}")
    for name in names:
        value = scale[name]
        if not isinstance(value, xr.DataArray) and not value > 0:
            raise ValueError(f"scale of {name!r} must be positive, got {value!r}")
    return scale


def _divided(array: xr.DataArray, scale: float | xr.DataArray) -> xr.DataArray:
    """Divide an array by a scale; the result has the type of the array."""
    return (array / scale).astype(array.dtype)


def _require_same_weights(forms: Mapping[Hashable, Form]) -> None:
    """Raise ValueError unless all variables have the same weights."""
    (first, one), *others = forms.items()
    for name, form in others:
        if one.kind != form.kind or not _same(one.weights, form.weights):
            raise ValueError(
                f"{first!r} and {name!r} have different weights, so they have no joint "
                "distribution (lazy weights cannot be compared: load them first); fit with "
                "jointly=..., or make members: model.members(forecast, n, coherence='schaake')"
            )


def _same(a: xr.DataArray | None, b: xr.DataArray | None) -> bool:
    """Return whether weights are equal; lazy weights are equal if they have the same graph."""
    if a is None or b is None:
        return a is b
    if a.chunks is not None or b.chunks is not None:
        return bool(getattr(a.data, "name", 0) == getattr(b.data, "name", 1))
    b = b.transpose(*a.dims)
    return bool(np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True))


def _stacked(arrays: Sequence[xr.DataArray], names: Sequence[Hashable]) -> xr.DataArray:
    labels = xr.Variable(VARIABLE, [str(name) for name in names])
    others = {name: c for name, c in arrays[0].coords.items() if name not in arrays[0].indexes}
    # Add other coordinates after joining: xarray would compare, and so compute, lazy ones.
    plain = [a.drop_attrs().drop_vars([c for c in a.coords if c not in a.indexes]) for a in arrays]
    vectors = xr.concat(plain, dim=VARIABLE, coords="minimal", compat="override", join="override")
    return in_one_chunk(vectors, VARIABLE).assign_coords({**others, VARIABLE: labels})
