import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.beyond_sample import beyond_sample
from xrecal.fit.together import ChooseTask


def test_the_search_is_timed_apart(monkeypatch):
    """A search takes 10 seconds, and a place 2 seconds more."""
    seconds, search = [0.0], ChooseTask.of

    def slow_search(task, cases, sample):
        seconds[0] += 10.0
        return search(task, cases, sample)

    def fit(hindcast, observed):
        seconds[0] += 2.0 * hindcast.sizes["cell"]
        return hindcast.recal.fit(observed, xrecal.CKME())

    monkeypatch.setattr(ChooseTask, "of", slow_search)
    before = ChooseTask.__call__
    dims = ("time", "member", "cell")
    hindcast = xr.DataArray(np.random.default_rng(0).normal(size=(30, 5, 20)), dims=dims)
    found = beyond_sample(fit, hindcast, hindcast.isel(member=0), "cell", lambda: seconds[0])
    assert (found.each, found.choices) == pytest.approx((2.0, 10.0))
    assert found.model.to_dataset().sizes["cell"] == 20
    assert ChooseTask.__call__ is before
