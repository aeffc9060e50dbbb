"""One page with scores and tests of the calibration of a forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from xrecal import diagnostics
from xrecal.arrays.whole_files import write_whole
from xrecal.chunks.progress import reporting
from xrecal.diagnostics.comparison import Table
from xrecal.diagnostics.evidence import Evidence, read_evidence
from xrecal.diagnostics.skce import Test
from xrecal.diagnostics.summary import Summary
from xrecal.inputs.dims import Dims, at_scalars
from xrecal.inputs.forms import Labelled, of_cases
from xrecal.inputs.metadata import shown_units
from xrecal.inputs.pairing import Observations
from xrecal.inputs.roles import is_lead
from xrecal.inputs.thresholds import Threshold

from . import annual
from .coverage import coverage
from .histograms import outline, pit, rank_histogram
from .labels import (
    as_typed,
    name_of,
    pretty_units,
    range_of_leads,
    shown_labels,
    single_labels,
    wrapped,
)
from .reliability import quantile_reliability, quantiles_beside, reliability
from .spread import spread_skill
from .style import BAND, Style, ink

SIZE = (11.69, 8.27)
"""Width and height of A4 landscape, in inches."""

TABLE_WIDTH, TABLE_SHARE = 0.75, 0.5
"""Widths of a column that has only the table. The first is for one location, relative to the width
of a panel. The second is for many locations, relative to the width of all columns of panels."""

SUFFIXES = (".pdf", ".png")
DPI = 200

FOOT = (
    "Calibrated forecasts have flat histograms and curves on the diagonals; too narrow forecasts "
    "have U-shaped histograms, too few observations in intervals, and errors above the diagonal.\n"
    "Small p-values reject calibration, on average (PIT) or given the forecast (SKCE). Grey bands "
    f"contain {BAND:.0%} of calibrated forecasts with the same number of cases, all independent; "
    "forecasts of dependent cases vary more."
)

RAW, RECALIBRATED = "raw", "recalibrated"
"""Labels of the two forecasts on a page. The names of the data of the raw forecast begin with
``RAW``."""


class Panel(NamedTuple):
    """A panel of the page."""

    name: str
    """Name under which the page keeps the data that the panel shows."""
    title: str
    function: Callable[..., Axes]
    beside: Literal["curve", "curves", "outline"]
    """Form in which the panel shows the raw forecast: one curve, several curves or an outline."""

    def draw(self, ax: Axes, data: xr.Dataset, raw: xr.Dataset | None) -> None:
        """Draw the forecast, and the raw forecast if there is one."""
        if raw is not None and self.beside == "curve":
            self.function(data, ax=ax, label=RECALIBRATED)
            self.function(raw, ax=ax, label=RAW)
            return
        self.function(data, ax=ax)
        if raw is not None:
            draw_beside = outline if self.beside == "outline" else quantiles_beside
            draw_beside(ax, raw, RAW)


PANELS = (
    Panel("pit", "Probability integral transform", pit, "outline"),
    Panel("ranks", "Ranks", rank_histogram, "outline"),
    Panel("coverage", "Central intervals", coverage, "curve"),
    Panel("spread", "Spread and error", spread_skill, "curve"),
    Panel("quantiles", "Quantiles", quantile_reliability, "curves"),
    Panel("events", "Probabilities", reliability, "curve"),
)


@reporting("xrecal report")
def report(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    path: str | PathLike[str] | None = None,
    *,
    raw: Labelled | None = None,
    threshold: Threshold | None = None,
    test: Test = "serial",
    n_resamples: int = 1000,
    block_length: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
    progress: bool = True,
) -> Figure:
    """Draw one page with the main scores and tests of a forecast, and perhaps write it to a file.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of one variable, in any form (ensemble, weighted ensemble, quantiles or normal
        distributions).
    observations : DataArray, Dataset or dict
        Observations in the same units, matched by label along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default the calibration dimension (time, init, ...).
    path : str or path-like, optional
        File of the page, with a name that ends in .pdf or .png.
    raw : DataArray or Dataset, optional
        Forecast before recalibration, in any form. It must have all cases of ``forecast``, and may
        have more. All panels and the table show this forecast, too; the rank histogram shows it
        only if it is a plain ensemble.
    threshold : float, sequence of float or DataArray, optional
        Threshold of an event. The page then has a reliability diagram of the probability of
        exceeding the threshold.
    test, n_resamples, block_length, augmented, seed
        As for :func:`xrecal.diagnostics.summary`.
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).
    progress : bool
        As for ``hindcast.recal.fit``.

    Returns
    -------
    Figure
        A4, landscape: histogram of the probability integral transform, rank histogram (of plain
        ensembles), coverage, spread and skill, reliability of quantiles, reliability of
        probabilities (with a threshold), and the table of the summary. pyplot does not know the
        figure, so you need not close it; a notebook shows it.

    Raises
    ------
    ValueError
        If ``path`` does not end in .pdf or .png, or if a diagnostic raises this error.

    Notes
    -----
    For many locations, each panel shows the range over locations, except the reliability diagrams:
    they pool the cases of all locations. Unlike other figures, the report computes its scores and
    tests itself. It computes all Dask arrays in one run.

    Examples
    --------
    >>> figure = xrecal.plot.report(hindcast, observations, "init", n_resamples=100)
    >>> len(figure.axes)
    6
    """
    check_page(path)
    evidence = read_evidence(forecast, observations, dim, member_dim)
    mark = of_cases(evidence.form, evidence.pairs.dim)  # for panels over all dimensions
    forecast, raw = _marked(forecast, mark), None if raw is None else _marked(raw, mark)
    tests: dict[str, Any] = {
        "test": test, "n_resamples": n_resamples, "block_length": block_length,
        "augmented": augmented, "seed": seed,
    }  # fmt: skip
    given = {"member_dim": member_dim}
    datasets = _evidence_of(evidence, (forecast, observations), dim, threshold, tests | given)
    if raw is not None:
        same = _of_same_cases(raw, forecast, evidence)
        given = {"member_dim": member_dim if member_dim in same.dims else None}
        of_raw = read_evidence(same, observations, dim, given["member_dim"])
        pair = same, observations
        beside = _evidence_of(of_raw, pair, dim, threshold, tests | given, beside=evidence)
        datasets |= {f"{RAW} {name}": data for name, data in beside.items()}
    figure = _draw(_computed(datasets), _title(evidence), _subtitle(evidence, raw is not None))
    if path is not None:
        write_page(figure, path)
    return figure


def check_page(path: str | PathLike[str] | None) -> None:
    """Raise ValueError if there is a path that does not end in .pdf or .png."""
    if path is not None and Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"path must end in {' or '.join(SUFFIXES)}, got {str(path)!r}; for other formats use "
            "figure.savefig"
        )


def write_page(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a page to a file, in the format that the ending of the path names."""
    kind, page = Path(path).suffix.lower().removeprefix("."), BytesIO()
    metadata = {"CreationDate": None} if kind == "pdf" else None  # equal pages give equal files
    figure.savefig(page, format=kind, dpi=DPI, metadata=metadata)
    write_whole(Path(path), page.getvalue())


def _evidence_of(
    evidence: Evidence,
    pair: tuple[Labelled, Observations],
    dim: Dims,
    threshold: Threshold | None,
    options: dict[str, Any],
    beside: Evidence | None = None,
) -> dict[str, xr.Dataset]:
    """Data for the panels of a forecast, by the names of the panels.

    If the forecast is the raw forecast, ``beside`` is the main forecast of the page.
    """
    given = {k: v for k, v in options.items() if k == "member_dim"}
    drawn = given | {"seed": options["seed"]}
    datasets: dict[str, xr.Dataset] = {
        "summary": diagnostics.summary(*pair, dim, **options),
        "pit": diagnostics.pit_histogram(*pair, dim, augmented=options["augmented"], **drawn),
        "coverage": diagnostics.coverage(*pair, dim, **drawn),
        "spread": diagnostics.spread_skill(*pair, dim, **given),
        "quantiles": annual.quantile_reliability(*pair, dim=..., beside=beside, **given),
    }
    if evidence.form.kind == "ensemble":
        datasets["ranks"] = diagnostics.rank_histogram(*pair, dim, **drawn)
    if threshold is not None:
        datasets["events"] = diagnostics.reliability(*pair, threshold, dim=..., **given)
    return datasets


def _marked(forecast: Labelled, mark: dict[str, str]) -> Labelled:
    """A forecast with attributes added to each of its variables."""
    if isinstance(forecast, xr.DataArray):
        return forecast.assign_attrs(mark)
    return forecast.assign({name: array.assign_attrs(mark) for name, array in forecast.items()})


def _of_same_cases(raw: Labelled, forecast: Labelled, evidence: Evidence) -> Labelled:
    """Select the place and cases of the main forecast; raise ValueError if ``raw`` lacks cases."""
    same = at_scalars(raw, forecast, names=("forecast", "raw"))
    for d in evidence.dims:
        wanted = evidence.observations.indexes.get(d)
        if wanted is None or d not in same.indexes:
            continue
        lacking = wanted[~wanted.isin(same.indexes[d])]
        if lacking.size:
            raise ValueError(
                f"raw lacks {lacking.size} of {wanted.size} cases along {d!r}, such as "
                f"{lacking[0]}; give the raw forecasts of all cases"
            )
        same = same.sel({d: wanted})
    return same


def _computed(datasets: dict[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Compute all data in one run of Dask, which reads the forecasts once."""
    from dask.base import compute

    lazy = {
        name: {v: a.data for v, a in data.data_vars.items() if a.chunks is not None}
        for name, data in datasets.items()
    }
    # As arrays: Dask may lose a task of a Dataset whose variables depend on each other.
    (arrays,) = compute(lazy)
    return {
        name: data.assign({v: data[v].copy(data=a) for v, a in arrays[name].items()}).compute()
        for name, data in datasets.items()
    }


def _title(evidence: Evidence) -> str:
    """Title: the variable with units, and the place or lead if there is only one."""
    loc = evidence.form.loc
    name = "forecast" if evidence.form.name is None else evidence.form.name
    units = pretty_units(loc.attrs)
    title = f"Calibration of {name_of(loc, name)}"
    place = ", ".join(single_labels(loc))
    return wrapped(f"{title} at {place}" if place else title, 90) + (f" ({units})" if units else "")


def _subtitle(evidence: Evidence, has_raw: bool) -> str:
    """Subtitle: form of the forecast, cases with first and last label, leads, locations."""
    form = evidence.form
    cases = as_typed(" and ".join(map(str, evidence.dims)))
    text = (
        f"{form.traits.words}{' beside the raw forecast' if has_raw else ''}; cases along {cases}"
    )
    index = evidence.observations.indexes.get(evidence.time)
    if index is not None and index.size:
        first, last = shown_labels(index.to_numpy()[[0, -1]])
        text += f", {first} to {last}"
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    locations = {d: sizes[d] for d in form.dims if d not in evidence.dims}
    if math.prod(locations.values()) > 1:
        counts = " × ".join(f"{n} {d}" for d, n in locations.items())
        text += f"; locations: {as_typed(counts)}"
    for d in locations:
        if d in form.loc.indexes and is_lead(d, form.loc[d]) and sizes[d] > 1:
            text += f"; {range_of_leads(form.loc[d])}"
    return text


def _draw(datasets: dict[str, xr.Dataset], title: str, subtitle: str) -> Figure:
    """Draw the page: a table of the summary, and a panel for each of the other Datasets."""
    panels = [panel for panel in PANELS if panel.name in datasets]
    raw = {n.removeprefix(f"{RAW} "): d for n, d in datasets.items() if n.startswith(f"{RAW} ")}
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, rect=(0.01, 0.05, 0.98, 0.86))
    figure = Figure(figsize=SIZE, layout=layout)
    n_columns = math.ceil(len(panels) / 2)
    alone = len(panels) % 2 == 0  # otherwise the table fills the free panel
    summary = datasets["summary"]
    assert isinstance(summary, Summary)
    width = TABLE_SHARE * n_columns if summary["n_cases"].size > 1 else TABLE_WIDTH
    grid = figure.add_gridspec(2, n_columns + alone, width_ratios=[1] * n_columns + [width] * alone)
    for i, panel in enumerate(panels):
        ax = figure.add_subplot(grid[i // n_columns, i % n_columns])
        panel.draw(ax, datasets[panel.name], raw.get(panel.name))
        ax.set_aspect("auto")
        ax.set_title(panel.title, fontsize="medium", loc="left", weight="bold", pad=8)
    place = figure.add_subplot(grid[:, -1] if alone else grid[1, -1])
    of_raw = raw.get("summary")
    assert of_raw is None or isinstance(of_raw, Summary)
    _draw_table(place, summary, of_raw, 1 + alone)
    figure.text(0.02, 0.975, title, fontsize="x-large", weight="bold", va="top")
    figure.text(0.02, 0.93, subtitle, va="top", alpha=0.75)
    figure.text(0.02, 0.015, FOOT, fontsize="x-small", va="bottom", alpha=0.75)
    return figure


def _draw_table(ax: Axes, summary: Summary, raw: Summary | None, n_rows: int) -> None:
    """Write the summary as text in columns, on Axes as high as ``n_rows`` panels."""
    table = summary.as_table()
    several = bool(table.head)
    if raw is not None:
        table = _with_raw(table, raw.as_table())
    units = shown_units(summary["crps"].attrs)
    rows = [_with_units_once(row, units) for row in table.rows]
    lines = [list(table.head), *rows] if table.head else rows
    widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    ends = np.cumsum(widths) / sum(widths)
    size = "xx-small" if several else "small"
    ax.axis("off")
    ax.set(xlim=(0, 1), ylim=(n_rows * (len(lines) + 2.4), -0.8))
    for y, row in enumerate(lines):
        is_head = bool(table.head) and y == 0
        text: Style = {"fontsize": size, "va": "center"}
        text |= {"color": ink(ax), "weight": "bold" if is_head else "normal"}
        label = row[0].replace(f"({units})", f"({pretty_units({'units': units})})")
        ax.text(0, y, label, **text)
        for x, cell in zip(ends[1:], row[1:], strict=True):
            ax.text(x, y, as_typed(cell), ha="right", **text)
        ax.axhline(y + 0.5, color=ink(ax), lw=0.6, alpha=0.7 if is_head else 0.15)
    foot = wrapped(table.foot.replace("p < ", "p\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}"), 50)
    ax.text(0, len(lines) - 0.1, foot, fontsize="x-small", color=ink(ax), va="top", alpha=0.75)
    ax.set_title("Summary", fontsize="medium", loc="left", weight="bold", pad=8)


def _with_raw(table: Table, raw: Table) -> Table:
    """Put the first column of numbers of the table ``raw`` before the numbers of ``table``."""
    rows = [[row[0], before[1], *row[1:]] for row, before in zip(table.rows, raw.rows, strict=True)]
    head = ["", f"{RAW} median", *table.head[1:]] if table.head else ["", RAW, RECALIBRATED]
    return Table(head, rows, table.foot)


def _with_units_once(row: Sequence[str], units: str) -> list[str]:
    """Move the units of a row from its values to its label."""
    if not units or not any(cell.endswith(f" {units}") for cell in row[1:]):
        return list(row)
    return [f"{row[0]} ({units})", *(cell.removesuffix(f" {units}") for cell in row[1:])]
