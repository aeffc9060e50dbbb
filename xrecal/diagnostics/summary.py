"""Compute the main diagnostics of a forecast, as a Dataset that prints as a table."""

from __future__ import annotations

from collections.abc import Hashable
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import shown_units
from xrecal.inputs.pairing import Observations
from xrecal.inputs.roles import is_lead
from xrecal.methods.call_errors import explained
from xrecal.products.scores import crps

from .comparison import Shown, Table
from .evidence import read_evidence
from .intervals import LEVEL, UNKNOWN, coverage
from .p_values import NO_P_VALUE, SIGNIFICANT, note_on_tests, rejections, shown_p
from .pit import pit_test
from .skce import Test, skce_test
from .spread import spread_skill

LEVELS = (0.5, 0.9)
VARIABLES = (
    *("crps", "bias", "spread_error_ratio", "coverage", "pit_p_value"),
    *("skce", "skce_p_value", "n_cases", "status"),
)
LAZY = "<xrecal summary, not computed: .compute() shows the table>"


class Summary(Shown):
    """Dataset of diagnostics over locations, which prints as a table once it is computed."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the table as text, or a note if the summary is not computed."""
        return LAZY if self._is_lazy() else super().__repr__()

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks, or a note if the summary is not computed."""
        return f"<p>{escape(LAZY)}</p>" if self._is_lazy() else super()._repr_html_()

    def _is_lazy(self) -> bool:
        """Return True if the summary must be computed before it prints as a table."""
        return set(VARIABLES) <= set(self) and bool(self.chunks)

    def is_whole(self) -> bool:
        """Return True if all values of the table are present and in memory."""
        if not set(VARIABLES) <= set(self) or LEVEL not in self.indexes or self.chunks:
            return False
        return self["n_cases"].dtype.kind == "i"  # a mean over locations is not a summary

    def as_table(self) -> Table:
        """Return the table: values of one location, or median and range over several locations."""
        units = shown_units(self["crps"].attrs)
        rows = [
            self._row("CRPS", self["crps"], units),
            self._row("bias", self["bias"], units),
            self._row("spread / error", self["spread_error_ratio"]),
        ]
        has_unknown = self["coverage"].attrs.get("comment", "").startswith(UNKNOWN)
        for level in self[LEVEL].to_numpy():
            share = self["coverage"].sel({LEVEL: level})
            row = self._row(f"coverage of {level:.0%}", share, percent=True)
            unknown = has_unknown and bool(share.isnull().all())
            rows.append([row[0], "not known", *[""] * (len(row) - 2)] if unknown else row)
        rows.append(self._row("SKCE", self["skce"]))
        rows += [self._p_row("PIT p", "pit_p_value"), self._p_row("SKCE p", "skce_p_value")]
        n = self["n_cases"].to_numpy()
        some = n[n > 0]  # places without cases, such as the sea
        low, high = (some.min(), some.max()) if some.size else (0, 0)
        cases = f"{low}" if low == high else f"{low} to {high}"
        beyond = "; not known: beyond the levels of these quantiles" if has_unknown else ""
        unknown = any(NO_P_VALUE in row for row in rows)
        beyond += f"; {told}" if (told := note_on_tests(self, unknown=unknown)) else ""
        if n.size == 1:
            return Table((), [row[:2] for row in rows], f"{cases} cases{beyond}")
        head = ["", "median", "lowest", "highest", f"p < {SIGNIFICANT}"]
        noun = self._noun()
        foot = f"{some.size} {noun}{'s' * (some.size != 1)}, {cases} cases each; "
        if some.size < n.size:
            foot += f"{n.size - some.size} of {n.size} {noun}s without cases; "
        foot += f"p < {SIGNIFICANT} after control of false discoveries{beyond}"
        return Table(head, rows, foot)

    def _noun(self) -> str:
        """Return "lead" if all dimensions of the values are leads, otherwise "location"."""
        dims = self["n_cases"].dims
        return "lead" if all(is_lead(d, self.coords.get(d)) for d in dims) else "location"

    def _row(
        self, label: str, values: xr.DataArray, units: str = "", percent: bool = False
    ) -> list[str]:
        three = _median_and_ends(values.to_numpy())
        shown = [f"{x:.1%}" if percent else f"{x:.4g} {units}".rstrip() for x in three]
        return [label, *shown, ""]

    def _p_row(self, label: str, name: str) -> list[str]:
        p_values = self[name].to_numpy().astype(np.float64)
        rejected, n = rejections(p_values)
        shown = map(shown_p, _median_and_ends(p_values))
        return [label, *shown, f"{rejected} of {n}" if n else ""]


def _median_and_ends(values: np.ndarray) -> tuple[float, float, float]:
    """Return median, minimum and maximum of the values that are not NaN; NaN if all are NaN."""
    values = values[~np.isnan(values)]
    if not values.size:
        return np.nan, np.nan, np.nan
    return np.median(values), values.min(), values.max()


@explained("xrecal.diagnostics.summary")
def summary(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    test: Test = "serial",
    n_resamples: int = 1000,
    block_length: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> Summary:
    """Compute score, bias, spread, coverage, and tests of calibration of forecasts.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    test, n_resamples, block_length, seed
        See :func:`skce_test`. By default, tests allow for dependence of successive cases, which
        they estimate from the data. ``block_length`` applies to the PIT test, too. If you choose an
        SKCE test that assumes independent cases, the PIT test also assumes independence.
    augmented : bool
        True adds each observation to the ensemble of its case in the tests of calibration. The
        tests are then exact if members and observation are exchangeable. This is only for plain
        ensembles.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Summary
        A Dataset over locations: ``crps`` and ``bias``, in the unit of the variable;
        ``spread_error_ratio``, 1 if forecasts are calibrated; ``coverage`` of the central 50 and 90
        % intervals, over ``level`` (NaN if forecasts are quantiles whose levels do not reach the
        ends of the interval); ``pit_p_value``; ``skce`` and ``skce_p_value``; ``pit_block_length``
        and ``skce_block_length``, the number of successive cases that a test for dependent cases
        counts as one; ``n_cases`` and ``status`` of the SKCE test. If there are too few cases, a
        p-value is NaN, and the table shows a question mark. For this limit, dependent cases count
        as a smaller number of independent cases. The result is lazy if an input is lazy; a computed
        result prints as a table.

    Raises
    ------
    ValueError
        If there is more than one variable, or if dimensions, labels or units of the inputs do not
        match.

    Notes
    -----
    See :func:`crps`, :func:`spread_skill`, :func:`coverage`, :func:`pit_test` and
    :func:`skce_test`. The tests treat members as the only possible values. So the tests reject
    small ensembles even if members and observation are exchangeable; ``augmented=True`` avoids
    this. For small ensembles, the share of the observations inside an interval is also smaller than
    the level of the interval.

    Examples
    --------
    >>> hindcast.recal.summary(observations, "init", n_resamples=200)
                         median     lowest    highest  p < 0.05
     CRPS                0.25...
     ...
     coverage of 50%      16.0%      12.0%      18.0%
     ...
     4 locations, 50 cases each; p < 0.05 after control of false discoveries; ...
    """
    evidence = read_evidence(forecast, observations, dim, member_dim)
    dims = list(evidence.dims)
    options: dict[str, Any] = {"member_dim": member_dim}
    score = crps(forecast, observations, dims, **options)
    spread = spread_skill(forecast, observations, dims, bins=1, **options)
    inside = coverage(forecast, observations, dims, level=LEVELS, seed=seed, **options)
    options |= {"seed": seed, "augmented": augmented}
    calibrated = skce_test(
        forecast,
        observations,
        dims,
        test=test,
        n_resamples=n_resamples,
        block_length=block_length,
        **options,
    )
    length = block_length if test == "serial" or (test == "wild" and block_length) else 1
    uniform = pit_test(forecast, observations, dims, block_length=length, **options)
    if isinstance(score, xr.Dataset):
        (score,) = score.data_vars.values()
    score.attrs.pop("history", None)  # the history of the summary has more details
    variables = {
        "crps": score.assign_attrs(long_name=f"mean {score.attrs['long_name']}"),
        "bias": spread["bias"],
        "spread_error_ratio": spread["ratio"],
        "coverage": inside["coverage"],
        "pit_p_value": uniform["p_value"],
        "skce": calibrated["skce"],
        "skce_p_value": calibrated["p_value"],
        "n_cases": calibrated["n_cases"],
        "status": calibrated["status"],
    }
    for name, tested in {"pit": uniform, "skce": calibrated}.items():
        if "block_length" in tested:
            variables[f"{name}_block_length"] = tested["block_length"]
    dataset = evidence.result(variables, "summary of the evidence")
    return Summary(dataset.data_vars, dataset.coords, dataset.attrs)
