"""Splits that leave too few cases to learn from say what would give more."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth

DAY = np.timedelta64(1, "D")

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


WEEKS = 60
STARTS = xr.DataArray(
    pd.date_range("2021-01-02", periods=WEEKS, freq="7D"), dims="time", name="time"
)


def weekly_pair(seed=0):
    """Weekly starts with leads of 0 to 3 weeks, and the observation of each start and lead."""
    rng = np.random.default_rng(seed)
    lead = xr.Variable("lead", np.arange(4), {"units": "weeks"})
    truth = xr.DataArray(rng.normal(size=(WEEKS, 4)), {"time": STARTS, "lead": lead})
    members = truth + xr.DataArray(rng.normal(size=(WEEKS, 4, 8)), dims=("time", "lead", "member"))
    return members.rename("cases"), truth


@pytest.mark.parametrize("gap", ["5D", "13D", 1])
@pytest.mark.parametrize("by", ["retrospective", "rolling"])
def test_gaps_shorter_than_the_lead_are_told(by, gap):
    hindcast, truth = weekly_pair()
    options = {"by": by, "gap": gap, "min_samples": 5}
    options |= {"every": "7D"} if by == "rolling" else {}
    with pytest.warns(UserWarning, match=r"of 60 .* longest lead has 21 days.*use gap='21D'"):
        hindcast.recal.cross_validate(truth, xrecal.Climatology(), **options)


def test_the_gap_that_is_named_lets_nothing_unknown_in():
    hindcast, truth = weekly_pair()
    splits = {"by": "rolling", "every": "7D", "gap": "21D", "min_samples": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        issued = hindcast.recal.cross_validate(truth, xrecal.EMOS(), **splits)
        later = truth.where(truth.time + 21 * DAY < STARTS[40], truth + 5.0)
        again = hindcast.recal.cross_validate(later, xrecal.EMOS(), **splits)
    xr.testing.assert_identical(issued.isel(time=slice(41)), again.isel(time=slice(41)))


def test_the_named_gap_of_neighbours_covers_the_longest_lead():
    hindcast, truth = weekly_pair()
    with pytest.warns(UserWarning, match="neighbour within a week.*such as gap='21D'"):
        hindcast.recal.cross_validate(
            truth, xrecal.Climatology(), by="rolling", every="7D", min_samples=5
        )
