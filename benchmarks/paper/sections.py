"""Tables of the report."""

from collections.abc import Iterable, Mapping

import numpy as np

from .recalibration import CORE, EXTENSIONS, GP_BETA, LAPLACE, MEANINGS
from .summary import (
    LEVEL,
    Key,
    Ratio,
    acceptance,
    markdown,
    means,
    pairs,
    ratios,
    test_sizes,
)

Rows = list[dict[str, str]]
PRINTED_AS = {"gp_beta": "gpbeta"}
COLUMNS = ("none_tc", "ckme", "ckme_laplace", "pit", "auto", *GP_BETA)


def methods_told() -> str:
    lines = ((f"`{m}`", MEANINGS[m]) for m in (*CORE, *LAPLACE, *GP_BETA, *EXTENSIONS))
    return markdown(("label", "method"), lines, numbers=False)


def crps_table(rows: Rows, paper: Mapping[Key, Ratio]) -> str:
    """Relative CRPS, ours with the paper's below."""
    found, sizes = ratios(rows), test_sizes(rows)
    header = [
        "model",
        "set (test cases)",
        "splits",
        *COLUMNS,
        "paper: none_tc",
        "CKME",
        "PIT",
        "GP-Beta",
    ]
    lines = []
    for model, name in pairs(found):
        splits = found[name, model, "none"].splits if (name, model, "none") in found else 0
        mine = [_ratio(found.get((name, model, method))) for method in COLUMNS]
        theirs = [
            _ratio(paper.get((name, model, method)))
            for method in ("none_tc", "ckme", "pit", "gpbeta")
        ]
        lines.append([model, f"{name} ({sizes[name]})", str(splits), *mine, *theirs])
    return markdown(header, lines)


def sinus_table(rows: Rows, paper: Mapping[Key, Ratio]) -> str:
    """Relative CRPS of the synthetic set with either law, and what the paper prints."""
    found = ratios(rows)
    lines = []
    for model, _ in pairs(k for k in found if k[0] == "sinus_printed"):
        for method in COLUMNS:
            mine = [found.get((name, model, method)) for name in ("sinus", "sinus_printed")]
            if any(mine):
                theirs = paper.get(("sinus", model, PRINTED_AS.get(method, method)))
                lines.append([model, f"`{method}`", *map(_ratio, (*mine, theirs))])
    return markdown(
        ("model", "method", "`sinus`: x ± sin(3x)", "`sinus_printed`: x ± sin(3x/20)", "paper"),
        lines,
    )


def acceptance_table(rows: Rows, column: str) -> str:
    """Share of splits where the hypothesis of calibration is accepted at 5 %."""
    methods = ("none", *COLUMNS)
    found, sizes = acceptance(rows, column), test_sizes(rows)
    lines = []
    for model, name in pairs(found):
        shares = [found.get((name, model, method)) for method in methods]
        told = ["-" if s is None else f"{s[0]:.2f}" for s in shares]
        lines.append([model, f"{name} ({sizes[name]})", str(max(s[1] for s in shares if s)), *told])
    return markdown(("model", "set (test cases)", "splits", *methods), lines)


def conformal_table(rows: Rows) -> str:
    """Coverage, relative width and distance correlation of intervals at 95 %."""
    coverage, dcor = (means(rows, column) for column in ("coverage", "dcor"))
    width = ratios(rows, "width", "conformal")
    header = ["model", "set", "coverage: conformal", "ckme", "auto", "width: ckme", "auto"]
    lines = []
    for model, name in pairs(k for k in coverage if k[2] == "conformal"):
        cover = [_number(coverage.get((name, model, m)), 3) for m in ("conformal", "ckme", "auto")]
        wide = [_ratio(width.get((name, model, m)), sd=False) for m in ("ckme", "auto")]
        depend = [_number(dcor.get((name, model, m)), 3) for m in ("conformal", "ckme", "auto")]
        lines.append([model, name, *cover, *wide, *depend])
    return markdown([*header, "dCor: conformal", "ckme", "auto"], lines)


def extensions_table(rows: Rows) -> str:
    """Extensions relative to the paper's own configuration, on the same splits."""
    methods = ("ckme_laplace", *(m for m in (*EXTENSIONS, "auto")))
    found = ratios(rows, "crps", "ckme")
    lines = []
    for model, name in pairs(k for k in found if k[2] == "ckme"):
        told = [_ratio(found.get((name, model, m)), sd=False) for m in methods]
        if any(t != "-" for t in told):
            lines.append([model, name, *told])
    for label, pick in (("median", np.median), ("wins", _wins)):
        values = [[r.mean for k, r in found.items() if k[2] == m] for m in methods]
        lines.append([f"**{label}**", "", *(_told(pick, v) for v in values)])
    return markdown(("model", "set", *(f"`{m}`" for m in methods)), lines)


def worse(rows: Rows, method: str = "auto", limit: float = 1.02) -> str:
    """Where an extension is clearly worse than the paper's configuration."""
    found = ratios(rows, "crps", "ckme")
    places = [
        f"{model} {name} {found[name, model, method].mean:.2f}"
        for model, name in pairs(k for k in found if k[2] == method)
        if found[name, model, method].mean > limit
    ]
    if not places:
        return f"`{method}` is nowhere worse than `ckme` by more than {limit - 1:.0%}."
    return f"`{method}` is worse than `ckme` by more than {limit - 1:.0%} in {', '.join(places)}."


def _wins(values: list[float]) -> str:
    return f"{sum(v < 1 for v in values)}/{len(values)}"


def _told(pick, values: list[float]) -> str:  # type: ignore[no-untyped-def]
    if not values:
        return "-"
    found = pick(values)
    return found if isinstance(found, str) else f"{found:.3f}"


def grouped(
    rows: Rows, group: Iterable[str], values: Iterable[str]
) -> dict[tuple[str, ...], dict[str, float]]:
    """Means of some columns over rows of one group."""
    group, values = list(group), list(values)
    collected: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        into = collected.setdefault(tuple(row[g] for g in group), {v: [] for v in values})
        for v in values:
            if row[v]:
                into[v].append(float(row[v]))
    return {
        key: {v: float(np.mean(x)) if x else np.nan for v, x in found.items()}
        for key, found in collected.items()
    }


def preimage_table(rows: Rows) -> str:
    """CRPS of each projection relative to the Euclidean one, mean over splits."""
    keys = ("set", "model", "projection")
    found = grouped(rows, keys, ("crps", "skce_p", "effective", "seconds", "n_calibration"))
    lines = []
    for (name, model, projection), values in found.items():
        base = found[name, model, "euclidean"]["crps"]
        told = (
            f"{values['n_calibration']:.0f}",
            f"{values['crps'] / base:.4f}",
            f"{values['effective']:.1f}",
            f"{1e3 * values['seconds']:.3g}",
        )
        lines.append([name, model, projection, *told])
    header = ("set", "model", "projection", "cases", "CRPS / euclidean", "1/Σw²", "ms")
    return markdown(header, lines)


def bandwidth_table(rows: Rows) -> str:
    """CRPS with multiples of the median bandwidth, relative to the median."""
    found = grouped(rows, ("set", "model", "factor"), ("crps",))
    factors = sorted({key[2] for key in found}, key=float)
    lines = []
    for name, model in dict.fromkeys(key[:2] for key in found):
        base = found[name, model, "1"]["crps"]
        told = [f"{found[name, model, f]['crps'] / base:.3f}" for f in factors]
        lines.append([name, model, *told])
    return markdown(("set", "model", *(f"× {f}" for f in factors)), lines)


def ridge_table(rows: Rows, scores: Rows) -> str:
    """CRPS relative to the base model, and shares that tests accept, with ridges that are given."""
    base = {
        (r["set"], r["model"], r["split"]): float(r["crps"])
        for r in scores
        if r["method"] == "none"
    }
    found: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for r in rows:
        reference = base.get((r["set"], r["model"], r["split"]), np.nan)
        accepted = (float(r[column]) >= LEVEL for column in ("skce_p", "pit_p"))
        key = (r["set"], r["model"], r["kernel"], r["ridge"])
        found.setdefault(key, []).append((float(r["crps"]) / reference, *accepted))
    lines = []
    for key, each in found.items():
        ratio, skce, pit = np.mean(each, axis=0)
        lines.append([*key, str(len(each)), f"{ratio:.3f}", f"{skce:.2f}", f"{pit:.2f}"])
    tests = ("SKCE accepted", "PIT accepted")
    return markdown(("set", "model", "kernel", "ridge", "splits", "CRPS ratio", *tests), lines)


def features_table(rows: Rows, scores: Rows) -> str:
    """The kernel on features against base models that were recalibrated, CRPS relative to it."""
    alone = {(r["set"], r["split"]): r for r in rows}
    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        mine = [r for r in rows if r["set"] == name]
        told = []
        for model in ("GDN", "MDN", "BNN", "DRF"):
            for method in ("ckme", "auto"):
                each = [
                    float(r["crps"]) / float(alone[name, r["split"]]["crps"])
                    for r in scores
                    if (r["set"], r["model"], r["method"]) == (name, model, method)
                    and (name, r["split"]) in alone
                ]
                told.append(f"{np.mean(each):.3f}" if each else "-")
        shares = [
            f"{np.mean([float(r[c]) >= LEVEL for r in mine]):.2f}" for c in ("skce_p", "pit_p")
        ]
        lines.append([name, str(len(mine)), mine[0]["n_used"], *told, *shares])
    labels = [
        f"{model} {method}" for model in ("GDN", "MDN", "BNN", "DRF") for method in ("ckme", "auto")
    ]
    return markdown(("set", "splits", "rows", *labels, "SKCE accepted", "PIT accepted"), lines)


def edk_table(rows: Rows) -> str:
    found = {(r["kernel"], int(r["m"])): float(r["seconds"]) for r in rows}
    sizes = sorted({m for _, m in found})
    kernels = list(dict.fromkeys(kernel for kernel, _ in found))
    lines = [[str(m), *(_number(found.get((k, m)), 3, "g") for k in kernels)] for m in sizes]
    both = [m for m in sizes if all((k, m) in found for k in kernels)]
    factor = found[kernels[-1], both[-1]] / found[kernels[0], both[-1]]
    told = f"At {both[-1]} members the energy distance takes 1/{factor:.0f} of the time."
    return markdown(("members", *(f"{k}, s" for k in kernels)), lines) + "\n\n" + told


def clock_table(rows: Rows) -> str:
    methods = list(dict.fromkeys(r["method"] for r in rows))
    found = {(r["set"], r["model"], r["method"]): r for r in rows}
    lines, faster = [], []
    for model, name in pairs(found):
        mine = {m: found[name, model, m] for m in methods if (name, model, m) in found}
        seconds = {m: (float(r["seconds_fit"]), float(r["seconds_apply"])) for m, r in mine.items()}
        told = [f"{seconds[m][0]:.3g} + {seconds[m][1]:.3g}" if m in mine else "-" for m in methods]
        some = next(iter(mine.values()))
        lines.append([model, name, some["n_calibration"], some["n_test"], *told])
        if {"default", "pit"} <= set(mine):
            faster.append(sum(seconds["default"]) < sum(seconds["pit"]))
    labels = (f"`{m}`: fit + apply, s" for m in methods)
    table = markdown(("model", "set", "calibration", "test", *labels), lines)
    return (
        f"{table}\n\n`default` takes less time than PIT recalibration in {sum(faster)} of "
        f"{len(faster)}: most of the latter goes into quantiles of mixtures."
    )


def _ratio(ratio: Ratio | None, *, sd: bool = True) -> str:
    if ratio is None:
        return "-"
    return f"{ratio.mean:.3f} ± {ratio.sd:.3f}" if sd and ratio.splits > 1 else f"{ratio.mean:.3f}"


def _number(value: float | None, digits: int, kind: str = "f") -> str:
    return "-" if value is None else f"{value:.{digits}{kind}}"
