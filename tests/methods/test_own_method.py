"""A method that declares what it needs and inherits the rest works with all else."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.arrays.distributions.forms import Empirical
from xrecal.methods.base import Parameter, count_cases
from xrecal.methods.settings import Settings

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


@dataclass(frozen=True, repr=False)
class Shifted(Settings):
    """Members moved by the mean error of the past."""

    keeps_cases: ClassVar[bool] = True
    relearns: ClassVar[bool] = True

    def slots(self, n):
        return np.full(HINDCAST.sizes["member"], -1), None

    def parameters(self, n_features):
        return {"shift": Parameter("mean error", in_units_of_variable=True)}

    def fit_locations(self, cases, min_samples, choices=None):
        means = cases.forecasts.loc.mean(-1)
        errors = np.where(np.isfinite(cases.observations), cases.observations - means, np.nan)
        return {**count_cases(cases, min_samples), "shift": np.nanmean(errors, axis=-1)}

    def predict_locations(self, new, cases, fitted):
        return Empirical(new.forecasts.loc + fitted["shift"][:, np.newaxis, np.newaxis])


def shifted(hindcast, observed, new):
    return new + (observed - hindcast.mean("member")).mean("time")


def test_it_fits_predicts_and_scores():
    model = HINDCAST.recal.fit(TRUTH, Shifted())
    expected = shifted(HINDCAST, TRUTH, NEW)
    xr.testing.assert_allclose(model.mean(NEW), expected.mean("member"))
    found = model.crps(NEW, VERIFIED).transpose(*VERIFIED.dims)
    np.testing.assert_allclose(found, expected.recal.crps(VERIFIED).transpose(*VERIFIED.dims))
    with pytest.raises(TypeError, match="does not compare forecasts with past ones"):
        model.novelty(NEW)


def test_it_learns_again_from_all_cases_of_an_update():
    model = HINDCAST[:30].recal.fit(TRUTH, Shifted()).update(HINDCAST[30:], TRUTH)
    xr.testing.assert_allclose(
        model.state["shift"], HINDCAST.recal.fit(TRUTH, Shifted()).state["shift"]
    )


def test_it_is_tried_in_a_pool_and_on_cases_held_out():
    pool = xrecal.LinearPool((Shifted(), xrecal.Climatology()), condition_on=())
    weights = HINDCAST.recal.fit(TRUTH, pool).state["pool_weight"]
    np.testing.assert_allclose(weights.sum("component"), 1.0)
    held_out = HINDCAST.recal.cross_validate(TRUTH, Shifted(), by="block", blocks=2, output="mean")
    half = HINDCAST.sizes["time"] // 2
    expected = shifted(HINDCAST[half:], TRUTH[half:], HINDCAST[:half]).mean("member")
    np.testing.assert_allclose(held_out[:half].transpose(*expected.dims), expected, rtol=1e-10)
