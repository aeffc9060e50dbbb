"""Several methods on the same cases, in one table."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from . import diagnostics
from .attributes import shown_units
from .forms import Labelled, read_forms
from .methods import CKME, EMOS, Climatology, Method
from .recalibrate import fit

RAW, CLIMATOLOGY = "raw", "climatology"


class Comparison(xr.Dataset):
    """Dataset of scores by method, which prints as a table.

    ``sel`` has an argument named ``method``, so one is picked by ``sel({"method": "CKME"})``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Table of scores over all locations, each weighted by its number of cases."""
        return self._table() if self._is_whole() else super().__repr__()

    def _repr_html_(self) -> str:
        """The same table in a notebook."""
        return f"<pre>{escape(self._table())}</pre>" if self._is_whole() else super()._repr_html_()

    def _is_whole(self) -> bool:
        """Whether it holds what the table needs, which a selection may have taken away."""
        known = {"crps", "n_cases"} <= set(self) and "method" in self.indexes
        return known and {CLIMATOLOGY, RAW} <= set(self.indexes["method"])

    def _table(self) -> str:
        units = shown_units(self["crps"].attrs)
        others = [d for d in self["crps"].dims if d != "method"]
        cases = self["n_cases"]
        crps = (self["crps"] * cases).sum(others) / cases.sum()
        labels = [str(label) for label in self["method"].to_numpy()]
        width = max(map(len, labels))
        by_label = dict(zip(labels, crps.to_numpy(), strict=True))
        with np.errstate(invalid="ignore", divide="ignore"):  # a reference without error, or cases
            skill = {label: 1 - crps.to_numpy() / by_label[label] for label in (CLIMATOLOGY, RAW)}
        head = f"{'':<{width}}  {'CRPS':>9}  {'skill v climatology':>19}  {'skill v raw':>11}"
        rows = [
            f"{label:<{width}}  {value:9.4g}  {skill[CLIMATOLOGY][i]:19.1%}  {skill[RAW][i]:11.1%}"
            for i, (label, value) in enumerate(by_label.items())
        ]
        foot = f"{int(cases.sum())} cases" + (f", CRPS in {units}" if units else "")
        return "\n".join([head, *rows, foot])


def compare(
    hindcast: Labelled,
    observations: xr.DataArray,
    methods: Sequence[Method] | Mapping[str, Method] | None = None,
    *,
    forecast: Labelled,
    verification: xr.DataArray | None = None,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    min_samples: int = 20,
) -> Comparison:
    """Score methods, fitted on a hindcast, on forecasts they have not seen.

    Parameters
    ----------
    hindcast, observations
        To fit on, as for ``hindcast.recal.fit``; one variable.
    methods : sequence or mapping from label to Method, optional
        EMOS and CKME if not given. The raw forecast and climatology are always scored too.
    forecast : DataArray or Dataset
        Forecasts to score, in the form of the hindcast.
    verification : DataArray, optional
        What verified them; ``observations`` if not given, which must then reach over both.
    dim, member_dim, min_samples
        As for ``hindcast.recal.fit``.

    Returns
    -------
    Dataset
        Over ``method`` and locations: ``crps`` in the unit of the variable, ``skill_climatology``
        and ``skill_raw`` (1 - CRPS / CRPS of the reference; 1 is perfect, 0 no gain), and
        ``n_cases``. All methods are scored on the cases that all of them predict. Computed, also
        from Dask. Prints as a table over all locations. Pick a method by
        ``sel({"method": label})``, as ``sel`` has another argument of that name.

    Raises
    ------
    ValueError
        If there is more than one variable, no dimension of cases in ``forecast``, or inputs do
        not fit.
    """
    forms = read_forms(hindcast, member_dim, name="hindcast")
    if len(forms) != 1:
        raise ValueError(f"compare takes one variable, but hindcast has {list(forms)}; select one")
    forms = read_forms(forecast, member_dim, name="forecast")
    if len(forms) != 1:
        raise ValueError(f"compare takes one variable, but forecast has {list(forms)}; select one")
    observations = _only_variable(observations, "observations")
    verification = None if verification is None else _only_variable(verification, "verification")
    verification = observations if verification is None else verification
    labelled = _label(methods)
    models = {
        label: fit(
            hindcast, observations, method, dim=dim, member_dim=member_dim, min_samples=min_samples
        )
        for label, method in labelled.items()
    }
    fitted = next(iter(models[CLIMATOLOGY].variables.values()))
    raw = diagnostics.crps(forecast, verification, member_dim=member_dim)
    if fitted.dim not in raw.dims:
        raise ValueError(
            f"forecast lacks the dimension {fitted.dim!r} of the cases to score; it has "
            f"{list(raw.dims)}"
        )
    known = models[CLIMATOLOGY].state.coords.get(f"calibration_{fitted.dim}")
    if known is not None and fitted.dim in raw.indexes:
        seen = int(raw.indexes[fitted.dim].isin(known.to_index()).sum())
        if seen:
            warnings.warn(
                f"{seen} of {raw.sizes[fitted.dim]} forecasts to score are among those the methods "
                "were fitted on, which flatters them; pass forecasts they have not seen",
                stacklevel=2,
            )
    scores: dict[str, Any] = {RAW: raw}
    scores |= {label: model.crps(forecast, verification) for label, model in models.items()}
    by_method = xr.concat(list(scores.values()), "method").compute()
    by_method = by_method.assign_coords(method=list(scores))
    common = by_method.notnull().all("method")
    crps = by_method.where(common).mean(fitted.dim, dtype=np.float64).astype(by_method.dtype)
    skill = {
        f"skill_{reference}": (1 - crps / crps.sel({"method": reference}, drop=True)).assign_attrs(
            long_name=f"skill against {reference}", units="1"
        )
        for reference in (CLIMATOLOGY, RAW)
    }
    n_cases = common.sum(fitted.dim).assign_attrs(long_name="number of cases scored")
    attrs = {"methods": "; ".join(f"{label}: {method!r}" for label, method in labelled.items())}
    crps = crps.assign_attrs(scores[RAW].attrs)
    return Comparison({"crps": crps, **skill, "n_cases": n_cases}, attrs=attrs)


def _only_variable(observations: Labelled, name: str) -> xr.DataArray:
    """Observations of a Dataset with one variable, or as they are."""
    if isinstance(observations, xr.DataArray):
        return observations
    if not isinstance(observations, xr.Dataset) or len(observations.data_vars) != 1:
        raise ValueError(f"compare takes one variable; pass {name} as a DataArray")
    return next(iter(observations.data_vars.values()))


def _label(methods: Sequence[Method] | Mapping[str, Method] | None) -> dict[str, Method]:
    """Methods by label, climatology among them; raises ValueError for a label used twice."""
    if methods is None:
        methods = {"EMOS": EMOS(), "CKME": CKME()}
    if hasattr(methods, "fit_locations"):
        raise TypeError(f"methods must be a list or a dict of methods; write [{methods!r}]")
    if not isinstance(methods, Mapping):
        names = [type(method).__name__ for method in methods]
        labels = [
            CLIMATOLOGY
            if repr(method) == repr(Climatology())
            else repr(method)
            if names.count(name) > 1
            else name
            for name, method in zip(names, methods, strict=True)
        ]
        if len(set(labels)) < len(labels):
            raise ValueError(f"methods must differ, got {labels}; leave one out or label them")
        methods = dict(zip(labels, methods, strict=True))
    if not isinstance(methods.get(CLIMATOLOGY, Climatology()), Climatology):
        raise ValueError(
            f"the label {CLIMATOLOGY!r} is that of the reference; choose another for "
            f"{methods[CLIMATOLOGY]!r}"
        )
    if RAW in methods:
        raise ValueError(f"the label {RAW!r} is that of the raw forecast; choose another")
    return {CLIMATOLOGY: Climatology(), **methods}
