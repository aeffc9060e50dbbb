"""What no device can do, and mixtures of host and device, say what to copy, at once."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

from .moved import to_device

HOST = r"no implementation for CuPy arrays; copy to the host first: data\.as_numpy\(\)"


@pytest.fixture(scope="module")
def data():
    """Hindcast, forecast and observations."""
    whole = xrecal.datasets.lorenz96(n_inits=60, n_members=5, n_locations=4, lead_days=[5])
    whole = whole.isel(lead=0, location=slice(2), drop=True)
    return whole.forecast[:50], whole.forecast[50:], whole.observation


@pytest.fixture(params=[None, {"location": 1, "init": -1}], ids=["plain", "dask"])
def here(request, cupy, data):
    """The same on the device; what fails must do so before anything is computed."""
    moved = tuple(to_device(cupy, part, request.param) for part in data)
    if request.param is None:
        yield moved
        return
    with forbid_compute():
        yield moved


@pytest.mark.parametrize(
    "method",
    [xrecal.EMOS(), xrecal.IDR(), xrecal.LinearPool(), xrecal.Climatology()],
    ids=lambda method: type(method).__name__,
)
def test_methods_of_the_host(here, method):
    with pytest.raises(
        TypeError, match=f"the fit of 'forecast' by {type(method).__name__} has {HOST}"
    ):
        here[0].recal.fit(here[2], method)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("quantiles", lambda model, new, _: model.quantile(new, [0.1, 0.9])),
        ("mean", lambda model, new, _: model.mean(new)),
        ("std", lambda model, new, _: model.std(new)),
        ("exceedance", lambda model, new, _: model.exceedance(new, 4.0)),
        ("cdf", lambda model, new, _: model.cdf(new, 4.0)),
        ("crps", lambda model, new, seen: model.crps(new, seen)),
        ("pit", lambda model, new, seen: model.pit(new, seen)),
        ("members", lambda model, new, _: model.members(new, 5)),
        ("members like", lambda model, new, _: model.members(new, 5, coherence="ecc")),
        ("total weights", lambda model, new, _: model.members(new, 5, coherence="dates")),
    ],
)
def test_products_of_the_host(here, name, call):
    model = here[0].recal.fit(here[2], xrecal.CKME(support="observations"))
    with pytest.raises(TypeError, match=f"'forecast', {name} after CKME, has {HOST}.*model.as_n"):
        call(model, here[1], here[2])


@pytest.mark.parametrize(
    "method",
    [
        xrecal.CKME(support="observations", projection="energy"),
        xrecal.CKME(support="observations", loss="laplace"),
        xrecal.CKME(solver="lowrank"),
    ],
    ids=str,
)
def test_settings_of_the_host(here, method):
    with pytest.raises(TypeError, match=f"the fit of 'forecast' by CKME has {HOST}"):
        here[0].recal.fit(here[2], method)


@pytest.mark.parametrize(
    "call",
    [
        lambda new, _: new.recal.mean(),
        lambda new, _: new.recal.quantile(0.5),
        lambda new, _: new.recal.exceedance(4.0),
        lambda new, _: new.recal.categories([3, 5]),
        lambda new, _: new.recal.members(4),
        lambda new, seen: new.recal.crps(seen),
        lambda new, seen: new.recal.pit(seen),
        lambda new, seen: new.recal.crps(seen, fair=True),
        lambda new, seen: new.recal.crps(seen, lower=1.0),
        lambda new, seen: new.recal.skce(seen),
        lambda new, seen: new.recal.rank_histogram(seen),
        lambda new, seen: new.recal.pit_test(seen),
        lambda new, seen: new.recal.log_score(seen),
        lambda new, seen: new.recal.brier_score(seen, 1.0),
        lambda new, seen: new.recal.summary(seen),
        lambda new, seen: new.recal.reliability(seen, 1.0),
    ],
)
def test_diagnostics_of_the_host(here, call):
    with pytest.raises(TypeError, match=HOST):
        call(*here[1:])


def test_other_work_of_the_host(here):
    hindcast, _, observations = here
    model = hindcast.recal.fit(observations)
    with pytest.raises(TypeError, match=f"the climatology of 'forecast' has {HOST}"):
        model.categories(hindcast)
    with pytest.raises(TypeError, match=f"the cross-validation of 'forecast' has {HOST}"):
        hindcast.recal.cross_validate(observations, by="block")
    method = xrecal.EMOS()
    whole, seen = hindcast, observations
    if hindcast.chunks is not None:
        whole, seen = (a.copy(data=a.variable.chunk(location=-1).data) for a in here[::2])
    with pytest.raises(TypeError, match=f"the fit of 'forecast' by EMOS has {HOST}"):
        whole.recal.fit(seen, method, pool="location")


def test_normal_distributions(cupy, data):
    normal = xrecal.gaussian(data[0].mean("member").rename("t"), data[0].std("member"))
    moved = normal.map(lambda part: to_device(cupy, part))
    with pytest.raises(TypeError, match=f"by CKME to normal distributions has {HOST}"):
        moved.recal.fit(to_device(cupy, data[2]))
    with pytest.raises(TypeError, match=HOST):
        moved.recal.quantile(0.5)


def test_mixtures_name_what_is_on_the_host(here, data):
    hindcast, forecast, observations = data
    told = r"got CuPy arrays and NumPy arrays \({}\); .*as_numpy\(\).*cupy\.asarray"
    with pytest.raises(TypeError, match="the fit of 'forecast' " + told.format("'observation'")):
        here[0].recal.fit(observations)
    with pytest.raises(TypeError, match=told.format("'forecast'")):
        hindcast.recal.fit(here[2])
    with pytest.raises(TypeError, match=told.format("'forecast'")):
        here[0].recal.fit(here[2]).apply(forecast)
    with pytest.raises(TypeError, match=told.format("'loc', 'observations', 'n_cases'")):
        hindcast.recal.fit(observations).apply(here[1])


def test_covariates_come_from_labels_or_from_the_device(cupy, data):
    hindcast, _, observations = data
    index = xr.DataArray(np.sin(np.arange(50.0)), {"init": hindcast.init}, ["init"])
    here, seen = to_device(cupy, hindcast), to_device(cupy, observations)
    method = xrecal.CKME(support="observations", condition_on="index", ridge=0.1)
    labelled = here.assign_coords(index=index).recal.fit(seen, method)
    given = here.recal.fit(seen, method, covariates={"index": to_device(cupy, index)})
    expected = hindcast.recal.fit(observations, method, covariates={"index": index})
    for model in (labelled, given):
        strength = cupy.asnumpy(model.state["strength"].data)
        np.testing.assert_array_equal(strength, expected.state["strength"])
    with pytest.raises(TypeError, match=r"NumPy arrays \(one over \['calibration'\]\)"):
        here.recal.fit(seen, method, covariates={"index": index})
