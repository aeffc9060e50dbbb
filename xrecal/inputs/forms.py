"""Read the form of a forecast, such as an ensemble or quantiles, from a DataArray or Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.blockwise import like
from xrecal.typing import FloatArray, Places

from .between import Continuous, read_continuous
from .circular import PERIOD, read_period
from .dims import Dims, listed
from .dims import Labelled as Labelled
from .labels import read_labels
from .metadata import OF_CASES, check_units
from .missing import read_values, require_readable, without_declared
from .roles import LEVEL, MEMBER, PROBABILITIES, Roles

Kind: TypeAlias = Literal["ensemble", "weighted", "quantile", "normal", "censored"]


class Traits(NamedTuple):
    """Properties of one kind of forecast."""

    words: str
    """Name of the kind in titles and messages."""
    has_members: bool = False
    """True if the values of a forecast are members; results keep the dimension of the members."""
    has_scale: bool = False
    """True if a forecast consists of means and standard deviations, not of members or quantiles."""
    has_distances: bool = True
    """True if a closed formula gives the energy distance of two forecasts of this kind."""


TRAITS: dict[Kind, Traits] = {
    "ensemble": Traits("plain ensemble", has_members=True),
    "weighted": Traits("weighted ensemble", has_members=True),
    "quantile": Traits("quantiles"),
    "normal": Traits("normal distributions", has_scale=True),
    "censored": Traits("censored normal distributions", has_scale=True, has_distances=False),
}
"""Properties of each kind. A new kind needs an entry here, a function below that reads forecasts of
this kind, and a distribution in ``xrecal.arrays.distributions.from_parts``."""

PARTS = ("loc", "scale", "weights", "levels", "lower", "upper")
"""Names of the arrays that a :class:`Form` may have; all but the first are optional."""

VECTOR = "vector_"
"""Prefix of the names of arrays in a joint fit, which takes several variables together; each array
has the members of one variable."""


@dataclass(frozen=True)
class Form:
    """One forecast variable: members with or without weights, quantiles, or normal distributions.

    A censored forecast is one normal distribution; the probability of values beyond a bound is
    moved to the bound.
    """

    name: Hashable | None
    kind: Kind
    member_dim: Hashable
    loc: xr.DataArray
    """Members, values of quantiles, or means of normal distributions."""
    scale: xr.DataArray | None = None
    weights: xr.DataArray | None = None
    levels: xr.DataArray | None = None
    """Levels in [0, 1] of quantiles. Tasks compute the probability mass of each quantile from the
    levels of the quantiles that are not missing."""
    lower: xr.DataArray | None = None
    upper: xr.DataArray | None = None
    continuous: Continuous | None = None
    """Continuous distribution of a weighted ensemble; None if the CDF is a step function."""
    vector: tuple[xr.DataArray, ...] = ()
    """Members of each variable, including this one, in a joint fit to several variables; empty in
    a fit to one variable."""

    @property
    def traits(self) -> Traits:
        """Properties of this kind of forecast."""
        return TRAITS[self.kind]

    @property
    def parts(self) -> dict[str, xr.DataArray]:
        """The arrays that this forecast has, by name."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def compared(self) -> dict[str, xr.DataArray]:
        """The arrays, by name, from which xrecal computes distances between forecasts."""
        if not self.vector:
            return self.parts
        weights = {} if self.weights is None else {"weights": self.weights}
        return {f"{VECTOR}{k}": array for k, array in enumerate(self.vector)} | weights

    @property
    def period(self) -> float | None:
        """Period of a circular variable, from its attribute; None for any other variable."""
        given = self.loc.attrs.get(PERIOD)
        return None if given is None else read_period(given, self.name)

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Dimensions of all arrays together, without the member dimension."""
        widest = max(self.parts.values(), key=lambda part: part.ndim)
        rest = [d for part in self.parts.values() for d in part.dims]
        return tuple(d for d in dict.fromkeys([*widest.dims, *rest]) if d != self.member_dim)

    @property
    def member_dim_of_results(self) -> Hashable:
        """Member dimension of results: that of the forecast if it has members, else ``member``."""
        return self.member_dim if self.traits.has_members else "member"

    def labels_of_members(self, n: int) -> dict[Hashable, xr.Variable]:
        """Return labels for n members, by name of their dimension; {} if members have no labels.

        If the forecast has n members, the function returns their labels. Otherwise it returns n
        successive numbers, with the attributes of the labels of the forecast.
        """
        if self.member_dim not in self.loc.xindexes or not self.traits.has_members:
            return {}
        given = self.loc[self.member_dim]
        labels = given.to_numpy()
        if labels.size != n:
            first = labels.min() if labels.dtype.kind in "iu" else 0
            labels = np.arange(first, first + n)
        return {self.member_dim: xr.Variable(self.member_dim, labels, given.attrs)}

    def order(self, new: tuple[Hashable, ...]) -> list[Hashable]:
        """Return the dimensions of a result in the user's order.

        The dimensions ``new`` take the place of the member dimension.
        """
        every = {*self.dims, self.member_dim}
        whole = [part.dims for part in self.parts.values() if set(part.dims) == every]
        dims = whole[0] if whole else (*self.dims, self.member_dim)
        return [d for dim in dims for d in (new if dim == self.member_dim else (dim,))]

    def broadcast(self) -> Form:
        """Return the form with all arrays over all dimensions, so each case has its own members."""
        if len(self.parts) == 1:
            return self
        whole = xr.broadcast(*self.parts.values())
        # xarray keeps only indexes; a part with more dimensions than loc may have a valid time.
        coords = {name: c for part in self.parts.values() for name, c in part.coords.items()}
        parts = [
            part.assign_coords({name: c for name, c in coords.items() if name not in part.coords})
            for part in whole
        ]
        return self.with_parts(dict(zip(self.parts, parts, strict=True)))

    @cached_property
    def roles(self) -> Roles[xr.DataArray]:
        """Roles of the dimensions of the forecasts, other than the member dimension."""
        return Roles(self.broadcast().loc.isel({self.member_dim: 0}, drop=True))

    def with_parts(self, parts: Mapping[str, xr.DataArray]) -> Form:
        """Return the same forecast with other arrays."""
        lacking = dict.fromkeys(PARTS[1:])
        return replace(self, **{**lacking, **parts})  # type: ignore[arg-type]


def read_forms(
    obj: Labelled, member_dim: Hashable | None = None, *, name: str = "forecast"
) -> dict[Hashable, Form]:
    """Return the forecast variables of ``obj`` by name; a DataArray has one forecast variable.

    Raises
    ------
    TypeError
        If ``obj`` is neither DataArray nor Dataset, or a variable is not of a floating type.
    ValueError
        If there is no forecast, or the dimension of the members is missing or ambiguous.
    """
    if isinstance(obj, xr.DataArray):
        roles = read_labels(obj, name=name)
        if f"{obj.name}_weight" in str(obj.attrs.get("ancillary_variables", "")).split():
            raise ValueError(
                f"{name} holds the members of a weighted ensemble without their weights, "
                f"{obj.name}_weight; use the Dataset that holds both, such as dataset.recal "
                f"instead of dataset[{obj.name!r}].recal"
            )
        form = _read_array(roles, member_dim, name=name)
        if form is None and {*PROBABILITIES} & {*obj.dims}:
            edges = ", edges" if PROBABILITIES[0] in obj.dims else ""
            raise ValueError(
                f"{name} has the dimensions {[*obj.dims]}, so it holds probabilities; make a "
                f"forecast of them: xrecal.probabilities({name}{edges})"
            )
        if form is None:
            raise ValueError(
                Advice(
                    f"{name} has no member dimension; it has {list(obj.dims)}. Members are along "
                    f"one of {', '.join(MEMBER.names)} or {', '.join(LEVEL.names)}; name another "
                    "dimension with ",
                    Typed("member_dim", ...),
                )
            )
        return {obj.name: form}
    if not isinstance(obj, xr.Dataset):
        raise TypeError(f"{name} must be an xarray DataArray or Dataset, got {type(obj).__name__}")
    forms = _read_dataset(read_labels(obj, name=name).obj, member_dim, name=name)
    if not forms:
        raise ValueError(
            Advice(
                f"no variable of {name} is a forecast: {list(obj.data_vars)} have neither a member "
                f"dimension ({', '.join(MEMBER.names + LEVEL.names)}) nor the form NAME_loc, "
                "NAME_scale (for means and standard deviations, use xrecal.gaussian); name the "
                "dimension of the members: ",
                Typed("member_dim", ...),
            )
        )
    return forms


def _read_array(
    roles: Roles[xr.DataArray], member_dim: Hashable | None, *, name: str
) -> Form | None:
    dim = roles.find(MEMBER, member_dim, name=name)
    if member_dim is None:
        level = roles.find(LEVEL, name=name)
        if dim is not None and level is not None:
            raise ValueError(
                Advice(
                    f"{name} has members along {dim!r} and quantiles along {level!r}; name one "
                    "dimension with ",
                    Typed("member_dim", ...),
                )
            )
        dim = level if dim is None else dim
    if dim is None:
        return None
    _require_own_name(roles.obj, name=name)
    array = read_values(roles.obj, name=name)
    if array.sizes[dim] == 0:
        raise ValueError(f"{name} has no members: its dimension {dim!r} has length 0")
    if dim not in LEVEL.names:
        return Form(array.name, "ensemble", dim, array)
    return Form(array.name, "quantile", dim, array, levels=_levels(array, dim, name))


def _require_own_name(array: xr.DataArray, *, name: str) -> None:
    """Raise ValueError if an array has the name of its own coordinate: no Dataset can hold both."""
    if array.name is not None and array.name in (*array.dims, *array.coords):
        raise ValueError(
            f"{name} has the name {array.name!r}, which is one of its dimensions or coordinates; "
            f"give the variable another name: {name}.rename('forecast')"
        )


def _levels(array: xr.DataArray, dim: Hashable, name: str) -> xr.DataArray:
    """Return the levels in [0, 1] of quantiles; raise ValueError for labels that are not levels."""
    top = 100.0 if dim == "percentile" else 1.0
    if dim not in array.coords:
        raise ValueError(f"{name} has no levels along {dim!r}; add them as its coordinate")
    given = array.coords[dim].to_numpy()
    levels = given / top if given.dtype.kind in "iuf" else np.array([np.nan])
    if not ((levels >= 0) & (levels <= 1)).all() or np.unique(levels).size < levels.size:
        percent = top == 1 and ((levels >= 0) & (levels <= 100)).all() and (levels > 1).any()
        raise ValueError(
            f"levels along {dim!r} of {name} must be different numbers from 0 to {top:g}, "
            f"got {given}"
            + (f"; for percent use {name}.rename({dim}='percentile')" if percent else "")
        )
    if dim == "percentile" and given.max() <= 1:
        raise ValueError(
            f"levels along {dim!r} of {name} are numbers from 0 to 100, but the highest is "
            f"{given.max():g}; use {name}.rename(percentile='quantile') for levels from 0 to 1; "
            "if these levels are in percent, divide them by 100 first"
        )
    whole = xr.DataArray(levels, dims=[dim], coords={dim: array.coords[dim]})
    return like(whole, array)


def _read_dataset(
    dataset: xr.Dataset, member_dim: Hashable | None, *, name: str
) -> dict[Hashable, Form]:
    forms: dict[Hashable, Form] = {}
    consumed: set[Hashable] = set()
    for variable in dataset.data_vars:
        base = str(variable).removesuffix("_loc")
        if str(variable).endswith("_loc") and f"{base}_scale" in dataset:
            forms[base] = _read_normal(dataset, base, member_dim, name=name)
            consumed |= {part.name for part in forms[base].parts.values()}
    weights = {
        variable: of_variable
        for variable in dataset.data_vars
        if variable not in consumed
        and (of_variable := _weight_variable(dataset, variable, member_dim)) is not None
    }
    for variable, array in dataset.data_vars.items():
        if variable in consumed or variable in weights.values():
            continue
        explicit = member_dim if member_dim in array.dims else None
        form = _read_array(Roles(array), explicit, name=f"{name}[{variable!r}]")
        if form is not None and variable in weights:
            weight = read_values(dataset[weights[variable]], name=f"{name}[{weights[variable]!r}]")
            known = read_continuous(dataset, variable, weights[variable], form.member_dim)
            form = replace(form, kind="weighted", weights=weight, continuous=known)
        if form is not None:
            forms[variable] = form
    if member_dim is not None and all(form.member_dim != member_dim for form in forms.values()):
        raise ValueError(
            f"no variable of {name} has the dimension {member_dim!r} (member_dim); "
            f"it has {list(dataset.dims)}"
        )
    return forms


def _weight_variable(
    dataset: xr.Dataset, variable: Hashable, member_dim: Hashable | None
) -> Hashable | None:
    """Return the name of the variable with the weights of ``variable``; None without weights.

    An attribute of the variable names the weights. Otherwise they are the variable NAME_weight, if
    it has a member dimension and no units.
    """
    array = dataset[variable]
    for named in str(array.attrs.get("ancillary_variables", "")).split():
        if named in dataset and dataset[named].attrs.get("role") == "member_weight":
            return named
    candidate = f"{variable}_weight"
    if candidate in dataset.data_vars and "units" not in dataset[candidate].attrs:
        explicit = member_dim if member_dim in array.dims else None
        member = Roles(array).find(MEMBER, explicit, name=str(variable))
        if member is not None and member in dataset[candidate].dims:
            return candidate
    return None


def _read_normal(dataset: xr.Dataset, base: str, member_dim: Hashable | None, *, name: str) -> Form:
    parts = {"loc": dataset[f"{base}_loc"], "scale": dataset[f"{base}_scale"]}
    explicit = any(member_dim in array.dims for array in parts.values())
    dim: Hashable = member_dim if explicit and member_dim is not None else "component"
    weights = dataset.get(f"{base}_weight")
    if weights is not None and dim in weights.dims:  # otherwise it is another quantity
        parts["weights"] = weights
    bounds = _read_bounds(dataset, base, dim, name=name)
    for array in [*parts.values(), *bounds.values()]:
        require_readable(array, name=f"{name}[{array.name!r}]")
    size = max(array.sizes.get(dim, 1) for array in parts.values())
    if bounds and (size > 1 or "weights" in parts):
        raise ValueError(
            f"{name} has bounds, {[str(bound.name) for bound in bounds.values()]}, of a mixture of "
            f"normal distributions along {dim!r}; only a single normal distribution can have "
            "bounds: select one component, or leave the bounds out"
        )
    whole = {
        part: array if dim in array.dims else array.expand_dims({dim: size}, axis=-1)
        for part, array in ((part, without_declared(array)) for part, array in parts.items())
    }
    form = Form(base, "censored" if bounds else "normal", dim, whole["loc"])
    return form.with_parts(whole | bounds)


def _read_bounds(
    dataset: xr.Dataset, base: str, dim: Hashable, *, name: str
) -> dict[str, xr.DataArray]:
    """Return the bounds of a censored normal distribution; empty without bounds.

    A variable called NAME_lower or NAME_upper is no bound if it has members.
    """
    bounds = {}
    for end in ("lower", "upper"):
        array = dataset.get(f"{base}_{end}")
        if array is None or dim in array.dims or Roles(array).members:
            continue
        units = [part.attrs.get("units") for part in (dataset[f"{base}_loc"], array)]
        check_units(f"{name}['{base}_loc']", units[0], f"{name}['{base}_{end}']", units[1])
        bounds[end] = array
    return bounds


def numbers_of(
    form: Form, dim: Hashable | None, places: Places | None = None
) -> list[xr.DataArray]:
    """Return arrays of numbers that identify forecasts.

    The first array has the number of each case along ``dim``. There is a further array for each
    location dimension. The number of a location is the sum of its entries in these further arrays.
    The arrays are short, so tasks get few values even for many locations. The numbers count the
    locations along the dimensions, which are sorted by name. If given, ``places`` has the positions
    of the forecasts among all places of the model; the numbers then count all places of the model.
    """
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    cases = xr.DataArray(np.int64(0))
    if dim in form.dims:
        cases = xr.DataArray(np.arange(sizes[dim]), dims=[dim])
    parts, stride = [], 1
    for d in sorted((d for d in form.dims if d != dim), key=str, reverse=True):
        at, size = (places or {}).get(d, (np.arange(sizes[d]), sizes[d]))
        parts.append(xr.DataArray(at * stride, dims=[d]))
        stride *= size
    return [like(number, form.loc) for number in (cases, *parts)]


def require_plain(form: Form, asked: str) -> None:
    """Raise ValueError unless a forecast is a plain ensemble; ``asked`` is the user's argument."""
    if form.kind != "ensemble":
        raise ValueError(
            f"{asked} is for plain ensembles, but {form.name!r} is a forecast of the form "
            f"{form.kind!r}; leave it out"
        )


def require_distances(form: Form, *, name: str) -> None:
    """Raise ValueError for forecasts without a closed formula for energy distances."""
    if form.traits.has_distances:
        return
    bounds = [f"{form.name}_{end}" for end in ("lower", "upper") if end in form.parts]
    given = f" (bounds {', '.join(bounds)})" if bounds else ""
    other = f", or {name}.drop_vars({bounds}) where no bound is finite" if bounds else ""
    raise ValueError(
        f"{name} holds {form.traits.words}{given}, whose distances have no closed form; use "
        f"quantiles of them, {name}.recal.quantile(np.arange(0.0025, 1, 0.005)){other}"
    )


def task_parts(
    form: Form, loops: Sequence[Hashable], core: Mapping[Hashable, Hashable]
) -> dict[str, xr.DataArray]:
    """Return the parts of a forecast for tasks: ``core`` dimensions last, under their new names.

    If a part lacks a dimension of ``loops``, the function does not add the dimension. Otherwise
    levels of quantiles, repeated for every case of a large forecast, would fill the memory. Tasks
    broadcast parts chunk by chunk instead.
    """
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    parts = {}
    for name, part in form.compared.items():
        lacking = {d: sizes[d] for d in core if d not in part.dims}
        whole = part.expand_dims(lacking) if lacking else part
        along = [
            c
            for c, coordinate in whole.coords.items()
            if set(core) & set(coordinate.dims) or c in core.values()
        ]
        whole = whole.drop_vars(along) if along else whole
        ordered = whole.transpose(*[d for d in loops if d in whole.dims], *core)
        parts[name] = ordered.rename(core)
    return parts


def levels_of(form: Form) -> FloatArray:
    """Return the levels in [0, 1] of a forecast of quantiles, in the order of the quantiles."""
    top = 100.0 if form.member_dim == "percentile" else 1.0
    return np.asarray(form.loc.coords[form.member_dim].to_numpy() / top, np.float64)


def with_named_cases(form: Form, dim: Dims) -> Form:
    """Write the name of the case dimension to an attribute, if no rule recognises the dimension."""
    if dim is None or dim is ... or len(form.roles.cases) == 1:
        return form
    named = [d for d in listed(dim) if d in (form.roles.cases or form.dims)]
    if len(named) > 1:
        named = [d for d in named if d not in form.roles.leads]
    if len(named) != 1:
        return form
    mark = {OF_CASES: str(named[0])}
    return form.with_parts({name: part.assign_attrs(mark) for name, part in form.parts.items()})


def of_cases(form: Form, dim: Hashable | None) -> dict[str, str]:
    """Return {}, or for a case dimension that no rule recognises, the attribute that names it."""
    if dim not in form.dims or form.roles.cases == [dim]:
        return {}
    return {OF_CASES: str(dim)}
