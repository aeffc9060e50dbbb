import numpy as np
import pytest
import xarray as xr

from tests.strategies import FORMS, METHODS, ensemble_and_truth, model_of, new_cases
from xrecal.arrays import rows as cases
from xrecal.products.scores import crps_of
from xrecal.products.source import StatisticTask, together
from xrecal.products.statistics import mean_of, quantiles_of, std_of

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


@pytest.mark.parametrize("method", METHODS)
def test_size_of_the_workspace_does_not_matter(method, monkeypatch):
    model = model_of(method)
    expected = model.crps(NEW, VERIFIED), model.apply(NEW), model.quantile(NEW, [0.2, 0.9])
    for workspace in (1, 2 * 8 * 7 * 48, 3 * 8 * 7 * 48):
        monkeypatch.setattr(cases, "WORKSPACE", workspace)
        found = model.crps(NEW, VERIFIED), model.apply(NEW), model.quantile(NEW, [0.2, 0.9])
        for a, b in zip(found, expected, strict=True):
            if workspace > 1 and method != "pool":  # locations are cut, each is computed as before
                xr.testing.assert_identical(a, b)
            else:  # forecasts too, for a pool whose members are many
                xr.testing.assert_allclose(a, b, rtol=1e-12)


def test_dates_reach_every_block(monkeypatch):
    model = model_of("window")
    expected = model.apply(NEW).t2m_weight
    assert (expected.isel(time=0) != expected.isel(time=3)).any()
    monkeypatch.setattr(cases, "WORKSPACE", 1)
    assert model.apply(NEW.chunk(time=2)).t2m_weight.compute().identical(expected)


def test_together():
    a, b = np.zeros((3, 1, 5)), np.ones((4, 5))
    (whole_a, whole_b), lead = together([a, b])
    assert lead == (3, 4)
    assert whole_a.shape == whole_b.shape == (3, 4, 5)


@pytest.mark.parametrize("reduction", [mean_of, std_of, lambda d: quantiles_of(d, [0.2, 0.5])])
def test_shared_members_are_reduced_as_own_ones(reduction, rng):
    members, weights = rng.normal(size=(3, 1, 5)), rng.random((3, 4, 5))
    shared = StatisticTask(reduction, ("weights", "loc"), 1)(weights, members)
    own = StatisticTask(reduction, ("weights", "loc"), 0)(weights, members)
    assert shared.shape == own.shape
    np.testing.assert_allclose(shared, own, rtol=1e-12)


def test_observations_are_broadcast(rng):
    members, y = rng.normal(size=(3, 4, 5)), rng.normal(size=4)
    task = StatisticTask(crps_of, ("loc",), 0)
    np.testing.assert_array_equal(task(members, y), task(members, np.tile(y, (3, 1))))


@pytest.mark.parametrize("form", FORMS)
def test_results_have_the_type_of_the_values(form):
    forecast = FORMS[form](NEW.astype("float32")).astype("float32")
    if form in ("weighted", "shared"):
        forecast["t2m_weight"] = forecast.t2m_weight.astype("float64")
    assert forecast.recal.crps(VERIFIED).dtype == np.float32
