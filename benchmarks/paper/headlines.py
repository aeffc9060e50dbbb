"""What the paper claims, and whether our results bear it out."""

from collections.abc import Iterable, Mapping

import numpy as np

from .comparison import EQUAL, cells
from .summary import LEVEL, Key, Ratio, acceptance, by_key, means, printed, ratios

LARGE = ("kin8nm", "naval", "bike", "sinus", "protein")
SMALL = ("yacht", "housing")
SMALL_TESTS = (*SMALL, "energy")
FORMS = {
    "ckme": "CKME as printed",
    "auto": "CKME with support='auto'",
    "ckme_laplace": "CKME with exp(-D/s), where it was run",
}
GAINS = ("naval", "sinus", "protein")
NETWORKS = ("GDN", "MDN", "BNN")


def headlines(rows: list[dict[str, str]]) -> list[str]:
    """One line for each claim, with its figures."""
    found = ratios(rows)
    return [
        *_acceptance(rows, "skce_p"),
        _gains(found),
        *_small_samples(found),
        *_pit(rows),
        *_gp_beta(found),
        *_both_parts(found),
        *_conformal(rows),
        *_acceptance(rows, "skce_p", SMALL_TESTS, "small"),
    ]


def _acceptance(
    rows: list[dict[str, str]], column: str, sets: tuple[str, ...] = LARGE, kind: str = "large"
) -> Iterable[str]:
    p_values = by_key(rows, column)
    for method, label in FORMS.items():
        both = []
        for name, model, other in p_values:
            mine, base = (p_values.get((name, model, m), {}) for m in (method, "none"))
            splits = set(mine) & set(base)  # the same for both
            if other == method and name in sets and splits:
                both.append([np.mean([p[s] >= LEVEL for s in splits]) for p in (mine, base)])
        if not both:
            continue
        above, below = sum(a > b for a, b in both), sum(a < b for a, b in both)
        same = len(both) - above - below
        share, reference = np.mean(both, axis=0)
        yield (
            f"**SKCE acceptance above the base model's on sets with {kind} tests**, {label}: "
            f"{_verdict(share > reference and above > below)}. Higher in {above}, equal in "
            f"{same} and lower in {below} of {len(both)} pairs of set and model; "
            f"on average {share:.0%} against {reference:.0%} of the splits."
        )


def shares_on(rows: list[dict[str, str]], method: str, sets: tuple[str, ...]) -> float | None:
    """Share of splits that the SKCE test accepts, mean over pairs of set and model, or None."""
    found = acceptance(rows, "skce_p")
    shares = [share for (name, _, m), (share, _) in found.items() if m == method and name in sets]
    return float(np.mean(shares)) if shares else None


def _gains(found: Mapping[Key, Ratio]) -> str:
    parts = {n: found[n, "GDN", "ckme"] for n in GAINS if (n, "GDN", "ckme") in found}
    told = ", ".join(f"{n} {r.mean:.3f}" for n, r in parts.items())
    holds = bool(parts) and len(parts) == len(GAINS) and all(r.mean < 1 for r in parts.values())
    return (
        f"**CRPS ratio below 1 for GDN on naval, sinus and protein**: {_verdict(holds)} ({told})."
    )


def _small_samples(found: Mapping[Key, Ratio]) -> Iterable[str]:
    keys = [(n, m) for n in SMALL for m in NETWORKS if (n, m, "ckme") in found]
    if not keys:
        return
    plain = {key: found[(*key, "ckme")].mean for key in keys}
    told = ", ".join(f"{m} {n} {value:.2f}" for (n, m), value in plain.items())
    yield (
        "**CKME loses on yacht and housing for networks, where cases are few**: "
        f"{_verdict(all(value > 1 for value in plain.values()))} ({told})."
    )
    for method in ("auto", "pool"):
        better = {k: found[(*k, method)].mean for k in keys if (*k, method) in found}
        if not better:
            continue
        told = ", ".join(f"{m} {n} {value:.2f}" for (n, m), value in better.items())
        yield (
            f"There `{method}` turns the loss into a gain: "
            f"{_verdict(all(value < 1 for value in better.values()))}; below CKME in "
            f"{sum(value < plain[k] for k, value in better.items())} of {len(better)} ({told})."
        )


def _pit(rows: list[dict[str, str]]) -> Iterable[str]:
    shares: dict[str, list[float]] = {"pit": [], "ckme": [], "auto": [], "none": []}
    for (name, _, method), (share, _) in acceptance(rows, "pit_p").items():
        if name in LARGE and method in shares:
            shares[method].append(share)
    if not all(shares.values()):
        return
    mean = {method: float(np.mean(values)) for method, values in shares.items()}
    told = ", ".join(f"{method} {share:.0%}" for method, share in mean.items())
    yield (
        "**PIT recalibration is the best at PIT calibration** (sets with large tests): "
        f"{_verdict(mean['pit'] >= max(mean['ckme'], mean['none']))}; **CKME is about as good as "
        f"the base models**: {_verdict(mean['ckme'] >= mean['none'] - 0.05)} ({told})."
    )


def _gp_beta(found: Mapping[Key, Ratio]) -> Iterable[str]:
    """How our GP-Beta compares with the printed one, and CKME with either."""
    paper = printed()
    mine = [cell for cell in cells(found, paper) if cell.method == "gp_beta"]
    if not mine:
        return
    equal = sum(cell.verdict == EQUAL for cell in mine)
    lower = sum(cell.verdict != EQUAL and cell.ours.mean < cell.paper.mean for cell in mine)
    ours, theirs = np.median([(cell.ours.mean, cell.paper.mean) for cell in mine], axis=0)
    yield (
        f"**Our GP-Beta has the printed scores**: {_verdict(equal > len(mine) / 2)}. Equal in "
        f"{equal}, lower in {lower} and higher in {len(mine) - equal - lower} of {len(mine)} pairs "
        f"of set and model, medians {ours:.3f} and {theirs:.3f} of the base model's CRPS."
    )
    for method in ("ckme", "auto", "gp_beta_whole"):
        both = [
            (found[c.set_name, c.model, method].mean, c.ours.mean)
            for c in mine
            if (c.set_name, c.model, method) in found
        ]
        if both:
            told, beside = np.median(both, axis=0)
            yield (
                f"`{method}` has a lower CRPS than our GP-Beta in {sum(a < b for a, b in both)} of "
                f"{len(both)} pairs, medians {told:.3f} and {beside:.3f}."
            )


def _both_parts(found: Mapping[Key, Ratio]) -> Iterable[str]:
    both = [
        (found[n, m, "ckme"].mean, found[n, m, "none_tc"].mean)
        for n, m, method in found
        if method == "ckme" and (n, m, "none_tc") in found and n != "sinus_printed"
    ]
    if not both:
        return
    mine, theirs = np.median(both, axis=0)
    yield (
        "**Training on the calibration cases too gives scores comparable with CKME's**: CKME is "
        f"lower in {sum(a < b for a, b in both)} of {len(both)} pairs of set and model, medians "
        f"{mine:.3f} and {theirs:.3f}."
    )


def _conformal(rows: list[dict[str, str]]) -> Iterable[str]:
    coverage, dcor, width = (means(rows, c) for c in ("coverage", "dcor", "width"))
    keys = [(n, m) for n, m, method in coverage if method == "conformal" and (n, m, "ckme") in dcor]
    large = [key for key in keys if key[0] in LARGE]
    if not keys:
        return
    covered = {
        method: np.mean([coverage[(*k, method)] for k in keys]) for method in ("conformal", "ckme")
    }
    relative = np.median([width[(*k, "ckme")] / width[(*k, "conformal")] for k in keys])
    yield (
        "**Coverage and width of CKME's intervals are comparable with conformal ones**: nominal "
        f"95 %, CKME {covered['ckme']:.1%}, conformal {covered['conformal']:.1%}; median of the "
        f"relative width {relative:.2f}."
    )
    lower = sum(dcor[(*k, "ckme")] < dcor[(*k, "conformal")] for k in large)
    yield (
        "**Intervals and PIT depend on each other less after CKME, on large sets**: "
        f"{_verdict(lower > len(large) / 2)}, dCor lower in {lower} of {len(large)}."
    )


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"
