import numpy as np
import pytest
import xarray as xr

from tests.strategies import FORMS, METHODS, ensemble_and_truth, model_of, new_cases
from xrecal.arrays import rows as cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


@pytest.mark.parametrize("method", METHODS)
def test_size_of_the_workspace_does_not_matter(method, monkeypatch):
    model, new = model_of(method), NEW[:4]
    expected = model.crps(new, VERIFIED), model.apply(new), model.quantile(new, [0.2, 0.9])
    for workspace in (1, 3 * 8 * 4 * 48):
        monkeypatch.setattr(cases, "WORKSPACE", workspace)
        found = model.crps(new, VERIFIED), model.apply(new), model.quantile(new, [0.2, 0.9])
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


def test_shared_members_are_reduced_as_own_ones():
    shared = FORMS["shared"](NEW)
    own = shared.assign(t2m=shared.t2m.broadcast_like(shared.t2m_weight).transpose(*NEW.dims))
    own["t2m"].attrs = shared.t2m.attrs
    for reduce in (
        lambda x: x.recal.mean(),
        lambda x: x.recal.std(),
        lambda x: x.recal.quantile([0.2, 0.5]),
        lambda x: x.recal.crps(VERIFIED),
    ):
        found, expected = (reduce(x).transpose("time", "lat", "lon", ...) for x in (shared, own))
        xr.testing.assert_allclose(found, expected)


def test_observations_are_broadcast():
    of_dates = VERIFIED.isel(lat=0, lon=0, drop=True)
    everywhere = of_dates.broadcast_like(VERIFIED)
    xr.testing.assert_equal(NEW.recal.crps(of_dates), NEW.recal.crps(everywhere))


@pytest.mark.parametrize("form", FORMS)
def test_results_have_the_type_of_the_values(form):
    forecast = FORMS[form](NEW.astype("float32")).astype("float32")
    if form in ("weighted", "shared"):
        forecast["t2m_weight"] = forecast.t2m_weight.astype("float64")
    assert forecast.recal.crps(VERIFIED).dtype == np.float32
