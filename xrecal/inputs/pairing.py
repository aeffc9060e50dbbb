"""Pair forecasts and observations: variables by name, cases and locations by equal labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.distributions.missing import absurd_among
from xrecal.chunks.warnings import warn, warn_once
from xrecal.typing import FloatArray

from .dims import (
    at_scalars,
    refuse_unlike_cases,
    require_labels_of_cases,
    warn_of_other_labels,
)
from .forms import Form, Labelled, read_forms
from .labels import read_labels
from .leads import MatchedLeads, matched_leads
from .metadata import VALID_TIME, check_units, joined
from .missing import OTHERS, known_values, read_values, warn_of_absurd, warn_of_customary
from .places import at_places, lack_names, like_places
from .pool import Pool
from .roles import CALIBRATION, Roles, is_length
from .valid_time import read_times
from .valid_time_lookup import look_up

Observations = Labelled | Mapping[Hashable, xr.DataArray]


@dataclass(frozen=True)
class Pairs:
    """Forecasts and observations with the same labels."""

    form: Form
    observations: xr.DataArray
    dim: Hashable | None
    """Dimension of the cases; None for a forecast without such a dimension."""
    n_matched: int
    """Number of forecasts along ``dim`` with an observation, at the lead with most observations."""
    note: str | None
    """Remark on units, valid times and places; None without a remark."""
    pool: Pool | None = None
    """Places or leads whose cases are pooled; None if each fit learns from one location alone."""
    leads: MatchedLeads | None = None
    """Number of matched cases at each lead, if there are leads."""
    by_position: str | None = None
    """Remark on dimensions along which nothing identifies the places; ``note`` has it, too."""
    partners: tuple[xr.DataArray, ...] = ()
    """Observations of each further variable of a joint fit, which takes several variables
    together."""


def pair_variables(
    hindcast: Labelled, observations: Observations, member_dim: Hashable | None, *, name: str
) -> dict[Hashable, tuple[Form, xr.DataArray]]:
    """Match forecast variables with observed variables.

    Two DataArrays are a pair, whatever their names. A Dataset of forecasts needs a Dataset with the
    same names, or a mapping from forecast name to observation. If there is one forecast variable,
    observations may be a DataArray.

    Raises
    ------
    ValueError
        If a variable has no partner, or forecasts and observations seem to be swapped.
    TypeError
        If an argument has another type.
    """
    if _is_forecast(observations, member_dim) and not _is_forecast(hindcast, member_dim):
        raise ValueError(
            f"observations are an ensemble or a distribution and {name} is not: are the two "
            "swapped? Forecasts come first: hindcast.recal.fit(observations)"
        )
    forms = read_forms(hindcast, member_dim, name=name)
    if isinstance(observations, xr.DataArray):
        if len(forms) > 1:
            raise ValueError(
                f"{name} has several forecast variables, {list(forms)}, but observations are one "
                f"DataArray; pass a Dataset with these names or a dict, {{{next(iter(forms))!r}: "
                "observations, ...}"
            )
        observations = read_labels(observations, name="observations").obj
        return {variable: (form, observations) for variable, form in forms.items()}
    if not isinstance(observations, Mapping):  # a Dataset is a mapping
        raise TypeError(
            "observations must be a DataArray, a Dataset or a dict from forecast name to "
            f"DataArray, got {type(observations).__name__}"
        )
    variables = observations.data_vars if isinstance(observations, xr.Dataset) else observations
    observed = {
        v: read_labels(array, name="observations").obj if isinstance(array, xr.DataArray) else array
        for v in variables
        for array in (observations[v],)
    }
    if isinstance(hindcast, xr.DataArray) and len(observed) == 1:
        return {variable: (form, next(iter(observed.values()))) for variable, form in forms.items()}
    alone = [f"{v} (forecast)" for v in forms if v not in observed]
    alone += [f"{v} (observation)" for v in observed if v not in forms]
    if alone:
        raise ValueError(
            f"these variables of {name} and observations have no partner of the same name: "
            f"{', '.join(alone)}; select variables, or pass a dict {{forecast name: observation}}"
        )
    return {variable: (form, observed[variable]) for variable, form in forms.items()}


def _is_forecast(obj: object, member_dim: Hashable | None) -> bool:
    """Return whether an array has members, or a Dataset has a variable called NAME_loc."""
    arrays = obj.values() if isinstance(obj, Mapping) else [obj]
    return any(
        isinstance(a, xr.DataArray) and (member_dim in a.dims or bool(Roles(a).members))
        for a in arrays
    ) or (isinstance(obj, Mapping) and any(str(v).endswith("_loc") for v in obj))


def pair_cases(
    form: Form,
    observations: xr.DataArray,
    dim: Hashable | None = None,
    *,
    name: str,
    require_dim: bool = True,
) -> Pairs:
    """Align observations with the labels of the forecasts.

    Along the dimension of the cases, the function matches observations by label. It ignores
    observations without a forecast, and missing observations become NaN. Along location dimensions,
    labels must be equal, but observations may lack such a dimension. Labels, names or coordinates
    identify places, and observations get the order of the forecasts. If forecasts have a single
    label, as a scalar coordinate, they get the observations at this label. If forecasts are over
    starts and leads, observations may be over valid time; each forecast then gets the observation
    at its valid time. Labels of observations are valid times even if their dimension has the name
    of the starts, because observations have no starts. The same rules hold for forecasts of one
    lead. The function warns if only the forecasts, or only the observations, state their unit.

    Parameters
    ----------
    form : Form
        Forecasts.
    observations : DataArray
        Observations of the forecasts.
    dim : hashable, optional
        Dimension of the cases; by default xrecal recognises this dimension.
    name : str
        Name of the forecasts in messages.
    require_dim : bool
        Whether forecasts must have a dimension of cases.

    Raises
    ------
    ValueError
        If dimensions, labels or units of forecasts and observations do not agree.
    TypeError
        If observations are not of a floating type.
    """
    if not isinstance(observations, xr.DataArray):
        raise TypeError(f"observations must be a DataArray, got {type(observations).__name__}")
    observations = read_values(observations, name="observations")
    note = check_units(
        name, form.loc.attrs.get("units"), "observations", observations.attrs.get("units")
    )
    if note is not None:
        warn_once(note)
    roles, forecasts = form.roles, form.roles.obj
    dim = roles.find(CALIBRATION, dim, name=name)
    if dim is None and require_dim:
        raise ValueError(
            Advice(
                f"{name} has none of the known calibration dimensions "
                f"({CALIBRATION.usual}) among {list(form.dims)}; name it: ",
                Typed("dim", ...),
            )
        )
    _refuse_members(form, observations, name=name)
    names = (name, "observations")
    if _have_single_labels(forecasts, observations):
        beside = [n for n in Roles(observations).single_leads if is_length(observations[n])]
        # different leads have other valid times
        warn_of_other_labels(forecasts, observations.drop_vars(beside), names=names)
        observations = at_places(observations, forecasts, names=names[::-1])
    by_position = None
    if locations := [d for d in form.dims if d != dim and d in observations.dims]:
        by_position = paired_by_position(forecasts, observations, locations)
        observations = like_places(observations, forecasts, locations, names=names)
    observations, matched, leads, found_at = _at_cases(form, observations, dim, name=name)
    note = joined(note, found_at, by_position) or None
    unlabelled = [c for c in observations.coords if c not in observations.xindexes]
    observations = observations.drop_vars(unlabelled)
    of_places = {
        n: c.variable
        for n, c in forecasts.coords.items()
        if c.dims and {*c.dims} <= {*locations} and n not in forecasts.xindexes and c.chunks is None
    }
    observations = observations.assign_coords(of_places | _of_cases(roles, dim))
    return Pairs(form, observations, dim, matched, note, leads=leads, by_position=by_position)


def _have_single_labels(*arrays: xr.DataArray) -> bool:
    """Return whether an array has scalar coordinates, such as those of a single place or lead."""
    return any(not v.ndim for array in arrays for v in array.coords.variables.values())


def _of_cases(roles: Roles[xr.DataArray], dim: Hashable | None) -> dict[Hashable, xr.Variable]:
    """Return the valid times and the single lead of forecasts.

    With these coordinates, paired observations can be paired with forecasts again.
    """
    if dim is None:
        return {}
    coords = roles.obj.coords.variables
    own = list(roles.single_leads)
    if dim != VALID_TIME and VALID_TIME in coords and coords[VALID_TIME].dims == (dim,):
        own = [VALID_TIME, *own]
    return {n: coords[n] for n in own}


def paired_by_position(
    forecasts: xr.DataArray, observations: Labelled, dims: Iterable[Hashable]
) -> str | None:
    """Return a remark if nothing identifies the places of one object along a dimension."""
    shared = [d for d in dims if d in observations.dims and forecasts.sizes.get(d, 1) > 1]
    bare = [d for d in shared if d not in forecasts.indexes or d not in observations.indexes]
    unknown = [repr(d) for d in bare if lack_names(forecasts, observations, d)]
    return f"paired by position along {' and '.join(unknown)}" if unknown else None


def _refuse_members(form: Form, observations: xr.DataArray, *, name: str) -> None:
    if form.member_dim in observations.dims:
        raise ValueError(
            f"observations have the member dimension {form.member_dim!r} of {name}; pass one "
            f"observation per case, for instance observations.isel({form.member_dim}=0)"
        )


def _at_cases(
    form: Form, observations: xr.DataArray, dim: Hashable | None, *, name: str
) -> tuple[xr.DataArray, int, MatchedLeads | None, str | None]:
    """Return observations at the cases of forecasts, two counts and a remark on valid times.

    The counts are the number of matches, and the number of matches at each lead.
    """
    roles, forecasts = form.roles, form.roles.obj
    times = read_times(roles, dim, name=name) if roles.has_times_beside(dim) else None
    found = None if times is None else look_up(times, forecasts, observations)
    if found is not None:
        _check_dims(form, found[0], dim, name=name)
        return found
    several = None if times is None or times.single else times
    lead = None if several is None else several.lead
    if _have_single_labels(forecasts):
        observations = at_scalars(observations, forecasts, names=(name, "observations"))
    _check_dims(form, observations, dim, name=name, lead=lead)
    if dim is None:
        return observations, 0, None, None
    observations, matched = _match_labels(forecasts, observations, dim, name=name)
    if several is None:
        return observations, matched, None, None
    each, dated = np.full(forecasts.sizes[several.lead], matched), several.known() is not None
    return observations, matched, matched_leads(forecasts, several.lead, each, dated=dated), None


def _match_labels(
    forecasts: xr.DataArray, observations: xr.DataArray, dim: Hashable, *, name: str
) -> tuple[xr.DataArray, int]:
    """Return observations at the labels of forecasts, NaN if missing, and the number of matches.

    Raises
    ------
    ValueError
        If forecasts or observations have no labels, or one label twice, or no common labels.
    """
    wanted, observed = (array.indexes.get(dim) for array in (forecasts, observations))
    size, observed_size = forecasts.sizes[dim], observations.sizes[dim]
    if wanted is None and observed is None:
        if size != observed_size:
            raise ValueError(
                f"{name} has {size} cases along {dim!r}, observations have {observed_size}, and "
                "neither has labels to match them by; add a coordinate to both"
            )
        return observations, size
    if wanted is None or observed is None:
        bare = "observations" if observed is None else name
        raise ValueError(f"{bare} have no labels along {dim!r} to match by; add the coordinate")
    for index, owner in ((wanted, name), (observed, "observations")):
        if not index.is_unique or (index.nlevels == 1 and index.hasnans):
            require_labels_of_cases(index, dim, owner)
    same = wanted.equals(observed)
    # np.isin would compare objects pair by pair
    matched = size if same else int((observed.get_indexer(wanted) >= 0).sum())
    if matched == 0:
        refuse_unlike_cases(wanted, observed, dim, name=name)
    if matched < size / 2:
        warn(f"only {matched} of {size} forecasts along {dim!r} have an observation")
    if same:
        return observations, matched
    at_forecasts = observations.reindex_like(forecasts[dim])
    if len(observations.variable.chunksizes.get(dim, ())) == 1:
        # Filling the gaps, Dask cuts the single chunk, but every task needs all cases.
        at_forecasts = at_forecasts.chunk({dim: -1})
    return at_forecasts, matched


def _check_dims(
    form: Form,
    observations: xr.DataArray,
    dim: Hashable | None,
    *,
    name: str,
    lead: Hashable | None = None,
) -> None:
    extra = [d for d in observations.dims if d not in form.dims]
    if not extra and (dim is None or dim in observations.dims):
        return
    hint = ""
    if lead is not None and lead not in observations.dims:
        hint = (
            f". As {name} has lead times along {lead!r}, observations may be over valid time: a "
            "dimension with dates as its coordinate"
        )
    if single := Roles(form.loc).single_leads:
        hint = (
            f". {name} has a single {single[0]}: use {name}.expand_dims({single[0]!r}), "
            "so that xrecal pairs at valid times"
        )
    for mine, theirs in (("lat", "latitude"), ("lon", "longitude")):
        for wanted, other in ((mine, theirs), (theirs, mine)):
            if other in extra and wanted in form.dims:
                hint += f". For instance observations.rename({other}={wanted!r})"
    if extra:
        raise ValueError(
            f"observations have dimensions {extra} that {name} lacks; {name} has "
            f"{list(form.dims)}. Rename or select, so that each observation has one forecast{hint}"
        )
    raise ValueError(
        f"observations lack the calibration dimension {dim!r} of {name}; "
        f"they have {list(observations.dims)}{hint}"
    )


def _values_for_missing(pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """Return, as flat arrays, the members and the observations in memory that count as missing.

    The function does not check lazy arrays or arrays on a GPU.
    """
    loc, observed, dim = pairs.form.loc, pairs.observations, pairs.dim
    if (
        dim not in loc.dims
        or not loc.size
        or not all(isinstance(a.data, np.ndarray) for a in (loc, observed))
    ):
        return np.empty(0), np.empty(0)
    members = loc.transpose(..., dim, pairs.form.member_dim)
    first = members.isel({pairs.form.member_dim: 0}, drop=True)
    arrays = [members.to_numpy().reshape(-1, *members.shape[-2:])]
    if {*observed.dims} <= {*first.dims}:  # otherwise observations have more dimensions
        observed = observed.broadcast_like(first).transpose(*first.dims)
        arrays.append(observed.to_numpy().reshape(-1, observed.shape[-1]))
    found = [a[mask] for a, mask in zip(arrays, absurd_among(*arrays), strict=True)]
    found = [*found, arrays[0][:0].ravel()][:2]
    return found[0], found[1]


def known_pairs(pairs: Pairs, *, name: str = "forecast") -> Pairs:
    """Return forecasts and observations with NaN for absurdly large values."""
    form = pairs.form
    loc, observed = known_values(form.loc, pairs.observations, form.member_dim, name=name)
    return replace(pairs, form=replace(form, loc=loc), observations=observed)


def to_learn_from(pairs: Pairs) -> Pairs:
    """Return pairs in the order of their labels; warn about values that count as missing."""
    absurd = _values_for_missing(pairs)
    warn_of_absurd(*absurd, name="hindcast", beside=OTHERS)
    arrays = {"hindcast": pairs.form.loc, "observations": pairs.observations}
    warn_of_customary(
        {name: a.to_numpy() for name, a in arrays.items() if isinstance(a.data, np.ndarray)},
        np.concatenate(absurd),
    )
    return in_order(pairs)


def in_order(pairs: Pairs) -> Pairs:
    """Return pairs with cases sorted by label, so that cases follow each other in time."""
    dim = pairs.dim
    indexes = [part.indexes[dim] for part in pairs.form.parts.values() if dim in part.indexes]
    if dim is None or not indexes or indexes[0].is_monotonic_increasing:
        return pairs
    order = indexes[0].argsort()
    parts = {
        name: part.isel({dim: order}) if dim in part.dims else part
        for name, part in pairs.form.parts.items()
    }
    return replace(
        pairs, form=pairs.form.with_parts(parts), observations=pairs.observations.isel({dim: order})
    )
