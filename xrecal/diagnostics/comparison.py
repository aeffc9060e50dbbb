"""Scores of several methods on the same cases, as a Dataset and as a table.

``compare_scores`` joins the scores of all methods into a ``Comparison``. A ``Comparison`` and a
:class:`xrecal.diagnostics.summary.Summary` print as a ``Table``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.chunks.texts import quoted
from xrecal.inputs.metadata import shown_units

from .best_not_calibrated import CLIMATOLOGY, TESTS, remark_on_best
from .evidence import Cluster, clusters_along
from .p_values import NO_P_VALUE, Adjust, adjusted_p_values, note_on_tests, rejections, shown_p
from .pit import BLOCK_TEXT, P_TEXTS
from .rows import each_season, head_of_rows, texts_of_rows
from .sequential import sequential_evidence

RAW = "raw"
REFERENCES = (CLIMATOLOGY, RAW)
_P = "two-sided p-value of equal CRPS, t-test that allows for autocorrelation"
OTHER = "other"
"""Dimension of the second method of each pair."""


class Shown(xr.Dataset):
    """Dataset that prints as a table, unless a selection has removed parts of the table."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the table as text, or the Dataset as text if parts of the table are missing."""
        return self.as_table().text() if self.is_whole() else quoted(super().__repr__(), "\n")

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks."""
        return self.as_table().html() if self.is_whole() else super()._repr_html_()

    def is_whole(self) -> bool:
        """Return True if all values of the table are present."""
        raise NotImplementedError

    def as_table(self) -> Table:
        """Return the table."""
        raise NotImplementedError


class Comparison(Shown):
    """Dataset of scores by method, which prints as a table.

    ``sel(method="CKME")`` selects a method; in other Datasets, the parameter ``method`` of ``sel``
    sets how inexact labels are matched.
    """

    __slots__ = ()

    def sel(
        self,
        indexers: Any = None,
        method: Any = None,
        tolerance: Any = None,
        drop: bool = False,
        **indexers_kwargs: Any,
    ) -> Any:
        """Select like :meth:`xarray.Dataset.sel`, but ``method`` is the label of a method."""
        if method is not None:
            labels = self.indexes["method"]
            unknown = [label for label in np.atleast_1d(method) if label not in labels]
            if unknown:
                raise KeyError(f"no method {unknown[0]!r}; there are {list(labels)}")
            indexers = {**(indexers or {}), "method": method}
        return super().sel(indexers, tolerance=tolerance, drop=drop, **indexers_kwargs)

    def pairs(self, adjust: Adjust | None = "holm") -> xr.DataArray:
        """Return p-values of the difference in CRPS of any two methods, for all locations together.

        Parameters
        ----------
        adjust : {"holm", "bh", "by", None}
            Adjustment for the number of pairs, by :func:`xrecal.diagnostics.adjusted_p_values`;
            None: no adjustment.

        Returns
        -------
        DataArray
            P-values over ``method`` and ``other``, symmetric. P-values are NaN on the diagonal, and
            where a test has too few cases (dependent cases count as fewer).
        """
        p_values = self["p_pair"]
        if adjust is None:
            return p_values
        upper = np.triu(np.ones((p_values.sizes["method"],) * 2, bool), 1)
        once = adjusted_p_values(p_values.where(upper), method=adjust)
        return once.fillna(once.transpose(OTHER, "method").to_numpy())

    def is_whole(self) -> bool:
        """Return True if no selection has removed a variable or a reference of the table."""
        has_scores = {"crps", "n_cases"} <= set(self) and "method" in self.indexes
        return has_scores and set(REFERENCES) <= set(self.indexes["method"])

    def as_table(self) -> Table:
        """Return the table: a row for each method, or for each method and position along ``by``."""
        by, cases = self.attrs.get("by"), self["n_cases"]
        whole = int(cases.sum()) == self.attrs.get("n_scores")
        others = [d for d in self["crps"].dims if d != "method"]
        if by in others:
            parts = [self.isel({by: i}) for i in range(self.sizes[by])]
            found = [part._columns(whole) for part in parts]
            head = [head_of_rows(self[by]), "method", "cases", *(name for name, _ in found[0])]
            rows = [
                [text, label, f"{int(part['n_cases'].sum())}", *cells]
                for text, part, columns in zip(texts_of_rows(self[by]), parts, found, strict=True)
                for label, *cells in zip(self._labels(), *(c for _, c in columns), strict=True)
            ]
        else:
            columns = self._columns(whole)
            if {"fit_seconds", "apply_seconds"} <= set(self):
                seconds = self["fit_seconds"] + self["apply_seconds"].fillna(0)
                columns.append(("seconds", [f"{value:.3g}" for value in seconds.to_numpy()]))
            head = ["", *(name for name, _ in columns)]
            rows = list(map(list, zip(self._labels(), *(c for _, c in columns), strict=True)))
        units = shown_units(self["crps"].attrs)
        foot = f"{int(cases.sum())} cases" + (f", CRPS in {units}" if units else "")
        splits = self.attrs.get("cross_validation")
        foot += f", cross-validated {splits}" if splits else ""
        told = note_on_tests(self, unknown=any(NO_P_VALUE in row for row in rows))
        foot += f"\n{told}" if told else ""
        if {"pit_mean", "pit_variance", *TESTS} <= set(self):
            foot = "\n".join(filter(None, (foot, remark_on_best(self, self._crps()))))
        return Table(head, rows, foot, 2 if by in others else 1)

    def _labels(self) -> list[str]:
        return [str(label) for label in self["method"].to_numpy()]

    def _crps(self) -> np.ndarray:
        """Return the mean CRPS of each method over all cases of all locations."""
        others, cases = [d for d in self["crps"].dims if d != "method"], self["n_cases"]
        return ((self["crps"] * cases).sum(others) / cases.sum()).to_numpy()

    def _columns(self, whole: bool) -> list[tuple[str, list[str]]]:
        """Return the heading and the cells of each column of numbers.

        ``whole`` is True if no selection has removed locations that were tested together.
        """
        others = [d for d in self["crps"].dims if d != "method"]
        crps, labels = self._crps(), self._labels()
        columns = [("CRPS", [f"{value:.4g}" for value in crps])]
        error = self._over_locations("crps_error", others, whole)
        if error is not None:
            columns.append(("±", [f"{value:.2g}" for value in error]))
        for reference in REFERENCES:
            own = labels.index(reference)
            with np.errstate(invalid="ignore", divide="ignore"):  # a CRPS may be 0 or NaN
                skill = 1 - crps / crps[own]
            columns.append((f"skill v {reference}", [f"{value:.1%}" for value in skill]))
            p = self._over_locations(f"p_{reference}", others, whole)
            if p is not None:
                shown = ["" if i == own else shown_p(value) for i, value in enumerate(p)]
                columns.append(("p", shown))
        tests = [name for name in ("pit", "skce") if f"{name}_p_value" in self]
        return columns + [self._tested(name, others) for name in tests]

    def _tested(self, name: str, others: list[Hashable]) -> tuple[str, list[str]]:
        """Return p-values of one location, or numbers of rejections at several locations."""
        values = self[f"{name}_p_value"].transpose("method", ...).to_numpy()
        if not others:
            return f"{name.upper()} p", [shown_p(value) for value in values]
        rows = values.reshape(len(values), -1).astype(np.float64)
        counts = [rejections(row) for row in rows]
        return f"{name.upper()} rejects", [f"{rejected}/{n}" for rejected, n in counts]

    def _over_locations(self, name: str, others: list[Hashable], whole: bool) -> np.ndarray | None:
        """Return a variable for all locations together, or None if it is unknown."""
        if not others:
            return self[name].to_numpy() if name in self else None
        name = f"overall_{name}"
        return self[name].to_numpy() if whole and name in self else None


class Dependence(NamedTuple):
    """Dependence between cases, for the tests; by default, tests estimate it from the data."""

    block_length: int | None = None
    cluster: Cluster | None = None


FROM_DATA = Dependence()


class Known(NamedTuple):
    """Scores, PIT, test of calibration and time of one method, in memory."""

    scores: xr.DataArray
    """CRPS of each case"""
    pit: xr.DataArray
    """PIT of each case"""
    calibration: xr.Dataset
    """SKCE test at each location"""
    fit_seconds: float
    apply_seconds: float = math.nan
    kept: tuple[xr.DataArray, ...] = ()
    """Quantiles of the forecasts; for the raw forecast, also the observations. Empty if the
    comparison is not sequential"""


def compare_scores(
    known_of: Mapping[str, Known],
    dim: Hashable,
    attrs: dict[str, Any],
    lags: xr.DataArray | None = None,
    how: Dependence = FROM_DATA,
    *,
    by: Hashable | None = None,
    season: xr.DataArray | None = None,
) -> Comparison:
    """Join the CRPS of several methods on the same cases into one Dataset.

    Parameters
    ----------
    known_of : mapping from label to Known
        Results of each method over ``dim`` and locations, in memory. The raw forecast and
        climatology must be among the methods.
    dim : hashable
        Dimension of the cases.
    attrs
        Attributes of the result.
    lags : DataArray, optional
        Number of cases between issue and verification, by lead, for a sequential comparison.
    how
        Dependence between cases.
    by, season
        Dimension of the rows of the table, and the season of each case if rows are seasons.
    """
    first, score_attrs = known_of[RAW].scores, known_of[CLIMATOLOGY].scores.attrs
    by_method = _by_method({label: one.scores for label, one in known_of.items()})
    by_method = by_method.assign_coords(
        {name: c for name, c in first.coords.items() if name not in by_method.coords}
    )
    if dim in by_method.indexes:
        by_method = by_method.sortby(dim)
    if season is not None:
        by_method = each_season(by_method, season, lambda scores: scores)
    common = by_method.notnull().all("method")
    scores = by_method.where(common).transpose("method", ..., dim).astype(np.float64)
    crps = scores.mean([dim])
    kept = ("long_name", "estimator", "units")
    units = {k: v for k, v in score_attrs.items() if k == "units"}
    options = {
        "block_length": how.block_length,
        "cluster": clusters_along(scores, dim, how.cluster),
    }
    error = crps.copy(data=arrays.standard_error(scores.to_numpy(), **options))
    variables: dict[str, xr.DataArray] = {
        "crps": crps.astype(by_method.dtype).assign_attrs(
            {k: v for k, v in score_attrs.items() if k in kept}
        ),
        "crps_error": error.astype(by_method.dtype).assign_attrs(
            long_name="standard error of the CRPS, allowing for autocorrelation", **units
        ),
    }
    for reference in REFERENCES:
        ratio = (crps / crps.sel({"method": reference}, drop=True)).astype(by_method.dtype)
        variables[f"skill_{reference}"] = (1 - ratio).assign_attrs(
            long_name=f"skill against {reference}", units="1"
        )
        variables[f"p_{reference}"] = _p_values(scores, reference, options)
    pits = _by_method({label: one.pit for label, one in known_of.items()})
    if dim in pits.indexes:
        pits = pits.sortby(dim)
    variables |= _calibration(pits.where(common), known_of, dim, how.block_length)
    variables["n_cases"] = common.sum([dim]).assign_attrs(long_name="number of cases scored")
    for what in ("fit_seconds", "apply_seconds"):
        variables[what] = xr.DataArray(
            [getattr(one, what) for one in known_of.values()],
            dims="method",
            attrs={"long_name": f"wall clock of {what.removesuffix('_seconds')}", "units": "s"},
        )
    variables |= _overall(scores, dim, units, options, by)
    if lags is not None:
        kept_of = {label: one.kept for label, one in known_of.items()}
        variables |= sequential_evidence(kept_of, REFERENCES, dim, lags)
    attrs = attrs if by is None else {**attrs, "by": by}
    return Comparison(variables, attrs={**attrs, "n_scores": int(common.sum())})


def _by_method(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Stack the arrays of the methods along a new dimension; raise an error if labels differ."""
    bare = [a.drop_vars([c for c in a.coords if c not in a.indexes]) for a in arrays.values()]
    return xr.concat(bare, "method", join="exact").assign_coords(method=list(arrays))


def _calibration(
    pits: xr.DataArray,
    known_of: Mapping[str, Known],
    dim: Hashable,
    block_length: int | None,
) -> dict[str, xr.DataArray]:
    """Return results of the PIT test and the SKCE test, and the mean and variance of the PIT."""
    values = pits.transpose("method", ..., dim)
    mean, variance = values.mean([dim]), 12 * ((values - 0.5) ** 2).mean([dim])
    tested = arrays.serial_uniform_test(values.to_numpy(), block_length)
    one = values.isel({dim: 0}, drop=True).drop_attrs(deep=False)
    variables = {
        "pit_p_value": one.copy(data=tested.p_value)
        .astype(pits.dtype)
        .assign_attrs(long_name=P_TEXTS[block_length != 1], units="1"),
        "pit_block_length": one.copy(data=tested.block_length).assign_attrs(long_name=BLOCK_TEXT),
        "pit_mean": mean.assign_attrs(
            long_name="mean PIT: 0.5 if calibrated, smaller if forecasts are too high", units="1"
        ),
        "pit_variance": variance.assign_attrs(
            long_name="mean square of PIT - 0.5, relative to calibrated forecasts; "
            "above 1 if forecasts are too narrow",
            units="1",
        ),
    }
    for name in ("skce", "p_value", "block_length"):
        parts = {label: one.calibration[name] for label, one in known_of.items()}
        attrs = parts[CLIMATOLOGY].attrs
        renamed = name if name == "skce" else f"skce_{name}"
        variables[renamed] = _by_method(parts).assign_attrs(attrs)
    return variables


def _p_values(scores: xr.DataArray, reference: str, options: dict[str, Any]) -> xr.DataArray:
    """Return p-values of equal mean scores (method, ..., case) of each method and a reference."""
    differences = scores - scores.sel({"method": reference}, drop=True)
    p = arrays.diebold_mariano(differences.to_numpy(), **options)[1]
    return (
        scores.isel({scores.dims[-1]: 0}, drop=True)
        .copy(data=p)
        .assign_attrs(long_name=f"{_P}, against {reference}", units="1")
    )


def _pairs(series: xr.DataArray, options: dict[str, Any]) -> xr.DataArray:
    """Return p-values of equal mean scores (method, case) of any two methods; diagonal NaN."""
    values, labels = series.to_numpy(), series["method"].to_numpy()
    p_values = arrays.diebold_mariano(values[:, np.newaxis] - values, **options)[1]
    np.fill_diagonal(p_values, np.nan)
    coords = {"method": labels, OTHER: labels}
    attrs = {"long_name": f"{_P}, for all locations together", "units": "1"}
    return xr.DataArray(p_values, coords, ["method", OTHER], attrs=attrs)


def _overall(
    scores: xr.DataArray,
    dim: Hashable,
    units: dict[str, Any],
    options: dict[str, Any],
    by: Hashable | None,
) -> dict[str, xr.DataArray]:
    """Return standard errors and p-values for all locations together.

    Neighbouring locations often have the same errors, so they do not count as independent samples.
    Tests use one number for each case: the mean over locations. Each position along ``by`` has its
    own results, but ``p_pair`` is for all positions together.
    """
    locations = [d for d in scores.dims if d not in ("method", dim)]
    variables = {"p_pair": _pairs(scores.mean(locations), options)}
    if not locations:
        return variables
    series = scores.mean([d for d in locations if d != by])
    error = series.isel({dim: 0}, drop=True).copy(
        data=arrays.standard_error(series.to_numpy(), **options)
    )
    variables |= {
        "overall_crps_error": error.assign_attrs(
            long_name="standard error of the mean CRPS over all locations", **units
        )
    }
    for reference in REFERENCES:
        variables[f"overall_p_{reference}"] = _p_values(series, reference, options)
    return variables


class Table(NamedTuple):
    """A table of text: an optional head, rows, and lines of text below."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    foot: str
    n_labels: int = 1
    """Number of columns, from the left, that contain labels."""

    def text(self) -> str:
        """Return the table as text, with labels aligned left and numbers aligned right."""
        given = [self.head, *self.rows] if self.head else self.rows
        every = [[quoted(cell) for cell in row] for row in given]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if i < self.n_labels else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in every
        ]
        return "\n".join([*lines, quoted(self.foot, "\n")])

    def html(self) -> str:
        """Return the table as HTML for notebooks."""

        def line(row: Sequence[str], tag: str) -> str:
            sides = ["left" if i < self.n_labels else "right" for i in range(len(row))]
            cells = (
                f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
                for side, cell in zip(sides, row, strict=True)
            )
            return f"<tr>{''.join(cells)}</tr>"

        head = f"<thead>{line(self.head, 'th')}</thead>" if self.head else ""
        body = "".join(line(row, "td") for row in self.rows)
        foot = escape(self.foot).replace("\n", "<br>")
        return f"<table>{head}<tbody>{body}</tbody></table><p>{foot}</p>"
