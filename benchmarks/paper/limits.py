"""What differs from the paper's experiments, and what was left out."""

from collections import Counter
from collections.abc import Iterable

from .experiments import scores
from .models import MODELS
from .recalibration import (
    CORE,
    EXACT_LAPLACE_UP_TO,
    EXACT_UP_TO,
    EXTENSIONS,
    GP_BETA,
    LAPLACE,
    PIT_LEVELS,
    SEARCHED_UP_TO,
)


def limits(
    rows: list[dict[str, str]], missing: Iterable[str], splits: tuple[int, int, int]
) -> list[str]:
    """One line for each difference; what the rows lack is read from them."""
    small, many, few = splits
    return [
        f"Sets of the paper that are not here: {', '.join(missing)}; their `.npz` files in the "
        "same layout would be taken up.",
        f"Sets of more than {small} rows: {few} splits where the paper has {many} (protein: 5).",
        *_lacking(rows, many, few),
        "GP-Beta is written from its formulas (`gp_beta.py`): netcal, the maintained library that "
        "has it, installs PyTorch with its CUDA packages. It takes 32 forecasts to induce from, "
        "quadrature where the authors draw, and 500 steps of Adam; "
        f"{PIT_LEVELS} quantiles stand for a forecast. `gp_beta` has the moments of the base model "
        "alone, as in the paper, also where these lose two modes; `gp_beta_whole` has all of it.",
        "The sinus set has its modes at x ± sin(3x). With sin(3x/20), as the appendix prints it, "
        "the two modes are hardly apart: the true law then has 0.998 of the CRPS of the normal "
        "with its moments, so that no recalibration could reach the paper's 0.900 for GDN. With "
        "sin(3x) it has 0.890. `sinus_printed` is the printed form.",
        "Networks: two hidden layers of 50, Adam at 0.001, batches of about the root of the number "
        "of rows, stopped after 50 epochs without gain on a held-out fifth. MDN has 5 components. "
        "BNN has one normal for each of 10 draws of its weights (5 draws and a patience of 30 "
        "epochs on sets of more than 2000 rows), with a tenth of the divergence from the prior.",
        "DRF stands for a forest of scikit-learn trees in the manner of honest forests: split by "
        "variance, not by a kernel distance of distributions; 500 trees (200 on sets of more than "
        "2000 rows); targets merged to at most 500 points.",
        f"`ckme` is solved exactly up to {EXACT_UP_TO} calibration cases, `ckme_laplace` up to "
        f"{EXACT_LAPLACE_UP_TO}, and through landmarks beyond. Where `ckme` ends at the smallest "
        f"ridge that the library searches, ridges down to 1e-12 are tried too, exactly, up to "
        f"{SEARCHED_UP_TO} calibration cases; other labels keep the search of the library.",
        "β is regressed around the climatological mean (its sum is 1), and the ridge is searched "
        "on a logarithmic grid; the paper says neither.",
        f"PIT recalibration has {PIT_LEVELS} quantiles as members where there are more calibration "
        "cases. PIT values are randomised where an observation equals members.",
        f"The SKCE test and dCor take at most {scores.CASES_TESTED} test cases (bike, sinus and "
        "protein have more): less power than the paper's, the same for all methods.",
        "Run times are those of a processor core, not of an A100; those of projections and in "
        "scores.csv with other work on the machine.",
    ]


def _lacking(rows: list[dict[str, str]], many: int, few: int) -> Iterable[str]:
    """Sets with few splits, and methods that have fewer splits than the base models."""
    splits = Counter((row["set"], row["model"], row["method"]) for row in rows)
    sets = list(dict.fromkeys(row["set"] for row in rows))
    models = {name: [m for m in MODELS if splits[name, m, "none"]] for name in sets}
    short = [
        f"{m} {name} ({splits[name, m, 'none']})"
        for name in sets
        for m in models[name]
        if splits[name, m, "none"] < few
    ]
    if short:
        yield f"Fewer than {few} splits: {', '.join(short)}."
    for method in (*CORE, *LAPLACE, *GP_BETA, *EXTENSIONS):
        places = []
        for name in sets:
            wanted = sum(splits[name, m, "none"] for m in models[name])
            have = sum(splits[name, m, method] for m in models[name])
            if have < wanted:
                places.append(f"{name} ({have} of {wanted})")
        if places:
            yield f"`{method}` has not all splits of all models: {', '.join(places)}."
