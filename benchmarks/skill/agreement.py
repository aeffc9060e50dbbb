"""Cross-validated skill on the training years against the skill on the years that followed."""

import warnings

import numpy as np

import xrecal
from xrecal.arrays import standard_error

from .sources import single_sets

LARGE = 500  # cases, from which on only the quick methods are cross-validated
LIMIT = 2.0  # standard errors
YEAR = np.timedelta64(360, "D")

METHODS = {
    "EMOS + season": xrecal.EMOS(condition_on="season"),
    "IDR": xrecal.IDR(),
    "CKME": xrecal.CKME(support="observations"),
}
SMALL = {
    "CKME auto": xrecal.CKME(support="auto", condition_on="season"),
    "LinearPool": xrecal.LinearPool(),
}


def skill(scores, reference):
    """1 - mean score over that of the reference, and its standard error.

    Of a ratio of two means, linearised; the errors of both allow for serial dependence.
    """
    known = (scores.notnull() & reference.notnull()).values
    ours, theirs = scores.values[known], reference.values[known]
    ratio = ours.mean() / theirs.mean()
    return 1 - ratio, float(standard_error((ours - ratio * theirs) / theirs.mean()))


def agreements(source):
    """Set, method, both skills with their errors, and how many errors they are apart.

    Skill against climatology, or against the raw forecast where less than a year is known: then
    other seasons than those held out make a poor climatology.
    """
    warnings.filterwarnings("ignore", "season learned from")  # ten months at Toulouse
    found = []
    for one in single_sets(source):
        dim = "time" if "time" in one.hindcast.dims else "init"
        methods = METHODS if one.hindcast.sizes[dim] > LARGE else METHODS | SMALL
        inside = one.hindcast.recal.cross_validate
        whole_years = np.ptp(one.hindcast[dim].values) >= YEAR
        reference = xrecal.Climatology() if whole_years else xrecal.Raw()
        past = inside(one.observations, reference, by="block", output="crps")
        model = one.hindcast.recal.fit(one.observations, reference)
        future = model.crps(one.forecast, one.observations)
        for label, method in methods.items():
            estimate = skill(inside(one.observations, method, by="block", output="crps"), past)
            model = one.hindcast.recal.fit(one.observations, method)
            verified = skill(model.crps(one.forecast, one.observations), future)
            apart = abs(estimate[0] - verified[0]) / np.hypot(estimate[1], verified[1])
            against = "climatology" if whole_years else "raw"
            found.append((one.name, label, against, *estimate, *verified, apart))
    return found


def report(found):
    """Lines of the table, with how many agree."""
    yield (
        f"{'skill':<24}{'method':>15}{'against':>13}{'cross-validated':>20}"
        f"{'years after':>20}{'apart':>8}"
    )
    for name, label, against, estimate, error, verified, test_error, apart in found:
        yield (
            f"{name:<24}{label:>15}{against:>13}{estimate:>12.3f} ± {error:.3f}{verified:>12.3f} ± "
            f"{test_error:.3f}{apart:>8.1f}"
        )
    close = sum(row[-1] <= LIMIT for row in found)
    yield f"{close} of {len(found)} within {LIMIT:g} standard errors"
