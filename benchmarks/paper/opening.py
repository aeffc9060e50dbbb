"""The first ten lines of the report: what holds, what does not, and why."""

from collections.abc import Iterable, Mapping

import numpy as np

from .comparison import EQUAL, MARGIN, OPPOSITE, SAME, cells, counts
from .data import ORDER
from .headlines import GAINS, LARGE, NETWORKS, SMALL, SMALL_TESTS, shares_on
from .ridges import FLOOR
from .summary import Key, Ratio, acceptance, by_key, printed, ratios

Rows = list[dict[str, str]]
NOT_RUN = "not run"


def opening(rows: Rows) -> list[str]:
    """Ten lines from the rows of the scores; each says what is missing where nothing was run."""
    found, paper = ratios(rows), printed()
    return [
        _what_was_run(rows, paper),
        _agreement(found, paper),
        _large_tests(rows),
        _small_tests(rows),
        _gains(found),
        _few_cases(found, paper),
        _pit(rows),
        _gp_beta(found, paper),
        _ridges(rows, found),
        _sinus(found, paper),
    ]


def _what_was_run(rows: Rows, paper: Mapping[Key, Ratio]) -> str:
    sets = {row["set"] for row in rows}
    wanted = {name for name, _, _ in paper}
    missing = [name for name in ORDER if name in wanted - sets]
    return (
        f"**Basis.** {len(wanted & sets)} of the paper's {len(wanted)} sets "
        f"({_listed(missing)} not here), {len({row['model'] for row in rows})} base models; "
        "every row tells the commit of its code."
    )


def _agreement(found: Mapping[Key, Ratio], paper: Mapping[Key, Ratio]) -> str:
    told = counts(cells(found, paper)).get("ckme")
    if not told:
        return f"**Printed scores of CKME**: {NOT_RUN}."
    n = sum(told.values())
    return (
        f"**{_verdict(told[EQUAL] + told[SAME] >= 0.9 * n)}: the printed CRPS of CKME** relative "
        f"to the base models is met within its uncertainty in {told[EQUAL]} of {n} entries, on the "
        f"same side of 1 in {told[SAME]} more, on the other side in {told[OPPOSITE]}; the likely "
        "causes stand below, under Agreement."
    )


def _large_tests(rows: Rows) -> str:
    mine, base = shares_on(rows, "ckme", LARGE), shares_on(rows, "none", LARGE)
    if mine is None or base is None:
        return f"**Auto-calibration on large tests**: {NOT_RUN}."
    return (
        f"**{_verdict(mine > base)}: CKME is closer to auto-calibration on sets with large tests"
        f"**: the SKCE test accepts {mine:.0%} of its splits and {base:.0%} of the base models', "
        "since past cases with like forecasts say what such a forecast is worth."
    )


def _small_tests(rows: Rows) -> str:
    mine, auto, base = (shares_on(rows, m, SMALL_TESTS) for m in ("ckme", "auto", "none"))
    if mine is None or auto is None or base is None:
        return f"**Auto-calibration on small tests**: {NOT_RUN}."
    return (
        f"**{_verdict(mine > base)}: the same on sets with small tests**, {_listed(SMALL_TESTS)}: "
        f"{mine:.0%} against {base:.0%}. Few past targets are a coarse support, and so small a "
        f"test accepts most base models; `auto`, which may take errors instead, has {auto:.0%}."
    )


def _gains(found: Mapping[Key, Ratio]) -> str:
    keys = [(name, "GDN", "ckme") for name in GAINS if (name, "GDN", "ckme") in found]
    told = ", ".join(f"{key[0]} {found[key].mean:.3f}" for key in keys)
    holds = len(keys) == len(GAINS) and all(found[key].mean < 1 for key in keys)
    return (
        f"**{_verdict(holds)}: CKME gains in CRPS where one normal is the wrong form**, GDN on "
        f"{_listed(GAINS)} ({told or NOT_RUN}): weights on past targets may take any form."
    )


def _few_cases(found: Mapping[Key, Ratio], paper: Mapping[Key, Ratio]) -> str:
    keys = [(n, m) for n in SMALL for m in NETWORKS]
    keys = [key for key in keys if (*key, "ckme") in found and (*key, "auto") in found]
    if not keys:
        return f"**CKME with few cases**: {NOT_RUN}."
    worse = sum(found[(*k, "ckme")].mean > 1 for k in keys)
    gains = sum(found[(*k, "auto")].mean < 1 for k in keys)
    mine, auto, theirs = (
        np.mean([of[(*k, m)].mean for k in keys])
        for of, m in ((found, "ckme"), (found, "auto"), (paper, "ckme"))
    )
    return (
        f"**{_verdict(worse == 0)}: CKME never costs CRPS**: on {_listed(SMALL)}, with 56 and 91 "
        f"cases to learn from, it loses for {worse} of {len(keys)} networks, mean ratio {mine:.2f} "
        f"({theirs:.2f} in print), as past targets are a coarse support; `auto` has {auto:.2f} and "
        f"gains in {gains}."
    )


def _pit(rows: Rows) -> str:
    shares: dict[str, list[float]] = {}
    for (name, _, method), (share, _) in acceptance(rows, "pit_p").items():
        if name in LARGE:
            shares.setdefault(method, []).append(share)
    mean = {m: float(np.mean(s)) for m, s in shares.items() if m in ("pit", "ckme", "auto", "none")}
    if not {"pit", "ckme"} <= set(mean):
        return f"**PIT calibration**: {NOT_RUN}."
    told = ", ".join(f"{method} {share:.0%}" for method, share in mean.items())
    return (
        f"**{_verdict(mean['pit'] >= max(mean.values()))}: PIT recalibration is the best at PIT "
        f"calibration** (large tests: {told}), which is all that it aims at."
    )


def _gp_beta(found: Mapping[Key, Ratio], paper: Mapping[Key, Ratio]) -> str:
    keys = [(n, m) for n, m, method in found if method == "gp_beta" and (n, m, "ckme") in found]
    keys = [key for key in keys if (*key, "gpbeta") in paper]
    if not keys:
        return f"**CKME against GP-Beta**: {NOT_RUN}."
    better = [k for k in keys if found[(*k, "ckme")].mean < found[(*k, "gp_beta")].mean]
    lower, small = len(better), [k for k in keys if k[0] not in LARGE]
    in_print = sum(paper[(*k, "ckme")].mean < paper[(*k, "gpbeta")].mean for k in keys)
    told = counts(c for c in cells(found, paper) if c.method == "gp_beta")["gp_beta"]
    medians = [
        f"{np.median([of[(*k, label)].mean for k in keys]):.3f}"
        for of, label in ((found, "gp_beta"), (paper, "gpbeta"))
    ]
    return (
        f"**{_verdict(lower > len(keys) / 2)}: CKME has a lower CRPS than GP-Beta**, the "
        f"parametric baseline: in {lower} of {len(keys)} pairs of set and model, in {in_print} of "
        f"them in print. Our GP-Beta agrees with the printed one in {told[EQUAL]} (medians "
        f"{medians[0]} and {medians[1]}). On small sets CKME is lower in "
        f"{sum(k in better for k in small)} of {len(small)}: few parameters cost less there."
    )


def _ridges(rows: Rows, found: Mapping[Key, Ratio]) -> str:
    chosen = by_key(rows, "ridge").get(("naval", "GDN", "ckme"), {})
    if not chosen or ("naval", "GDN", "auto") not in found:
        return f"**Ridges on naval**: {NOT_RUN}."
    at_end = sum(ridge <= FLOOR for ridge in chosen.values())
    mine, auto = (found["naval", "GDN", m].mean for m in ("ckme", "auto"))
    return (
        f"**{_verdict(at_end == 0)}: the ridges that the library searches suffice**: on naval, "
        f"whose forecasts are very precise, {at_end} of {len(chosen)} GDN fits of `ckme` reach the "
        f"end of the search at 1e-6; they take down to {min(chosen.values()):.0e}. CRPS ratio "
        f"{mine:.3f}, and {auto:.3f} of `auto`, which keeps to the search."
    )


def _sinus(found: Mapping[Key, Ratio], paper: Mapping[Key, Ratio]) -> str:
    both = [found.get((name, "GDN", "ckme")) for name in ("sinus", "sinus_printed")]
    if both[0] is None or both[1] is None:
        return f"**The synthetic set as printed**: {NOT_RUN}."
    theirs = paper["sinus", "GDN", "ckme"].mean
    return (
        f"**{_verdict(abs(both[1].mean - theirs) < MARGIN)}: the printed law of the synthetic set "
        f"gives the printed scores**: with modes at x ± sin(3x/20) CKME has {both[1].mean:.3f} for "
        f"GDN, with sin(3x) (`sinus` here) {both[0].mean:.3f}, and the paper {theirs:.3f}; the "
        "printed modes are hardly apart."
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"


def _verdict(holds: bool) -> str:
    return "Holds" if holds else "Does not hold"
