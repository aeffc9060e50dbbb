"""Figures in the manner of the paper's: shares of splits, relative scores, run times."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from xrecal.plot.style import PALETTE

from .summary import Key, Ratio, pairs

LABELS = {
    "none": "none (T)",
    "none_tc": "none (T+C)",
    "ckme": "CKME",
    "ckme_laplace": "CKME, exp(-D/s)",
    "pit": "PIT",
    "auto": "CKME auto",
    "conformal": "conformal",
    "gp_beta": "GP-Beta",
}
DPI = 80
Bars = list[list[float]]


def bars(
    values: Mapping[Key, float],
    methods: tuple[str, ...],
    label: str,
    path: Path,
    sizes: Mapping[str, int],
    spread: Mapping[Key, float] | None = None,
    line: float | None = None,
) -> None:
    """One panel for each base model, one group of bars for each set."""
    found = pairs(values)
    models = list(dict.fromkeys(model for model, _ in found))
    figure, axes = plt.subplots(len(models), 1, figsize=(8, 1.9 * len(models)), squeeze=False)
    for ax, model in zip(axes[:, 0], models, strict=True):
        sets = [name for other, name in found if other == model]
        heights = [[values.get((n, model, m), np.nan) for n in sets] for m in methods]
        errors = [[(spread or {}).get((n, model, m), 0.0) for n in sets] for m in methods]
        _panel(ax, heights, errors, methods)
        ax.set_xticks(range(len(sets)), [f"{n} ({sizes[n]})" for n in sets], fontsize="x-small")
        ax.set_ylabel(f"{model}\n{label}", fontsize="small")
        ax.tick_params(labelsize="x-small")
        if line is not None:
            ax.axhline(line, color="0.4", lw=0.8)
    axes[0, 0].legend(
        ncols=len(methods), fontsize="x-small", loc="lower left", bbox_to_anchor=(0, 1)
    )
    figure.tight_layout()
    _save(figure, path)


def _panel(ax: Axes, heights: Bars, errors: Bars, methods: tuple[str, ...]) -> None:
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        at = np.arange(len(heights[i])) + (i - (len(methods) - 1) / 2) * width
        ax.bar(
            at, heights[i], width, yerr=errors[i] if any(errors[i]) else None,
            color=PALETTE[i % len(PALETTE)], label=LABELS.get(method, method),
            error_kw={"lw": 0.6},
        )  # fmt: skip
    top = np.nanmax([h for row in heights for h in row]) if heights else 1.0
    ax.set_ylim(0, min(top * 1.15, 2.2))


def lines(
    points: Mapping[str, tuple[list[float], list[float]]], x: str, y: str, path: Path
) -> None:
    """Seconds against a size, both on logarithmic axes."""
    figure, ax = plt.subplots(figsize=(4.5, 3.2))
    for i, (label, (at, value)) in enumerate(points.items()):
        ax.loglog(at, value, "o-" if len(points) <= 2 else "o", ms=4, color=PALETTE[i], label=label)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.legend(fontsize="small")
    figure.tight_layout()
    _save(figure, path)


def split_ratio(found: Mapping[Key, Ratio]) -> tuple[dict[Key, float], dict[Key, float]]:
    """Means and standard deviations."""
    return {k: r.mean for k, r in found.items()}, {k: r.sd for k, r in found.items()}


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    plt.close(figure)
