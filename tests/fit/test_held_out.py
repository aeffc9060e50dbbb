"""Splits that leave too few cases to learn from say what would give more."""

import re

import pytest

import xrecal
from tests.strategies import ensemble_and_truth

HINDCAST, TRUTH = ensemble_and_truth(n=72)
MANY = 70
BOTH = "pool=('lat', 'lon') to learn from the cases of all positions together, or a smaller"
FEW_CASES = {
    "block": ({"by": "block"}, BOTH),
    "gap": ({"by": "block", "gap": 3}, f"a smaller gap, {BOTH}"),
    "rolling": ({"by": "rolling", "window": 10, "every": 5}, f"a longer window, {BOTH}"),
    "all of the past": ({"by": "rolling", "every": 12}, BOTH),
    "pooled": ({"by": "block", "pool": ("lat", "lon"), "min_samples": 4 * MANY}, "a smaller"),
}


@pytest.mark.parametrize("case", FEW_CASES)
def test_what_would_give_more_cases(case):
    options, told = FEW_CASES[case]
    told = f"{told} min_samples to fit with so few"
    with pytest.raises(ValueError, match=rf"learn from, \d+ at most; give {re.escape(told)}$"):
        HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **({"min_samples": MANY} | options))


def test_one_location_has_none_to_pool():
    with pytest.raises(ValueError, match="at most; give a smaller min_samples to fit with so few"):
        HINDCAST[..., 0, 0].recal.cross_validate(TRUTH[..., 0, 0], by="block", min_samples=MANY)


def test_comparisons_refuse_few_cases_before_any_score(monkeypatch):
    monkeypatch.setattr("xrecal.diagnostics.compare_evidence._computed", None)
    with pytest.raises(ValueError, match=f"every split leaves fewer than min_samples={MANY}"):
        xrecal.compare(HINDCAST, TRUTH, min_samples=MANY)
