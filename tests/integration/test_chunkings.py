"""Law: results do not depend on how Dask cuts the work, nor on who does it."""

from contextlib import contextmanager
from itertools import pairwise

import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import xrecal
from tests.strategies import METHODS, ensemble_and_truth, new_cases

from .test_clusters import distributed, products

HINDCAST, TRUTH = ensemble_and_truth(n=26, m=4, n_lat=2, n_lon=4)
NEW, VERIFIED = new_cases(n=4, m=4, n_lat=2, n_lon=4)
LOCATIONS = {"lat": 2, "lon": 4}
EXPECTED = {}

threads_draw = pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)
"""Threads of a cluster in this process draw random numbers while Hypothesis looks at its own."""


def expected(method):
    """The same without Dask."""
    if method not in EXPECTED:
        model = HINDCAST.recal.fit(TRUTH, METHODS[method])
        EXPECTED[method] = model.state, products(model, NEW, VERIFIED)
    return EXPECTED[method]


@st.composite
def pieces(draw, sizes):
    """Chunks of any sizes along any of the dimensions."""
    found = {}
    for dim, n in sizes.items():
        cuts = draw(st.sets(st.integers(1, n - 1)))
        edges = [0, *sorted(cuts), n]
        found[dim] = tuple(b - a for a, b in pairwise(edges))
    return found


@contextmanager
def on(scheduler):
    """Context in which a scheduler computes."""
    if not scheduler.startswith("cluster"):
        with dask.config.set(scheduler=scheduler):
            yield
        return
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    options["processes"] = scheduler == "cluster of processes"
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
    ):
        yield


def check(method, cut, along, dims, persisted):
    """Fit and apply with these chunks and orders of dimensions, and compare."""
    of_hindcast, of_observations, of_forecast = cut
    state, wanted = expected(method)
    hindcast = HINDCAST.transpose(*dims).chunk({**of_hindcast, "time": -1, "member": -1})
    model = hindcast.recal.fit(TRUTH.chunk({**of_observations, "time": -1}), METHODS[method])
    model = model.persist() if persisted else model
    fitted = model.state.compute()
    for name, values in state.items():
        np.testing.assert_array_equal(fitted[name].transpose(*values.dims), values, err_msg=name)
    forecast = NEW.transpose(*dims).chunk({**of_forecast, **along, "member": -1})
    found = products(model, forecast, VERIFIED.chunk(of_observations)).compute()
    for name, values in wanted.items():
        ours = found[name].transpose(*values.dims)
        if along:
            np.testing.assert_allclose(ours, values, rtol=1e-12, atol=1e-13, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, values, err_msg=name)
        assert ours.dtype == values.dtype


LOCATION_CHUNKS = st.tuples(*[pieces(LOCATIONS)] * 3)
ALONG = st.one_of(st.just({}), pieces({"time": 4}))
DIMS = st.permutations(HINDCAST.dims)


@threads_draw
@pytest.mark.parametrize(
    ("scheduler", "method"),
    [("synchronous", "ckme"), ("threads", "ckme"), ("cluster", "emos")],
)
def test_any_cut_gives_the_same(scheduler, method):
    with on(scheduler):

        @settings(max_examples=3, phases=[Phase.generate])
        @given(LOCATION_CHUNKS, ALONG, DIMS, st.booleans())
        def law(cut, along, dims, persisted):
            check(method, cut, along, dims, persisted)

        law()


@pytest.mark.slow
@threads_draw
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheduler", ["synchronous", "cluster of processes"])
def test_any_cut_gives_the_same_for_every_method(scheduler, method):
    with on(scheduler):

        @settings(max_examples=10, phases=[Phase.generate])
        @given(LOCATION_CHUNKS, ALONG, DIMS, st.booleans())
        def law(cut, along, dims, persisted):
            check(method, cut, along, dims, persisted)

        law()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ckme", "emos", "pool"])
def test_a_pool_of_processes_gives_the_same(method):
    with on("processes"):
        for along in ({}, {"time": 2}):
            check(
                method, [{"lat": 1}, {"lon": 3}, {"lat": 1, "lon": 2}], along, HINDCAST.dims, True
            )


def test_forecast_systems_of_single_precision_too():
    hindcast, new = HINDCAST.astype("f4"), NEW.astype("f4")
    truth, verified = TRUTH.astype("f4"), VERIFIED.astype("f4")
    wanted = products(hindcast.recal.fit(truth, xrecal.CKME()), new, verified)
    model = hindcast.chunk(lat=1, lon=3).recal.fit(truth.chunk(lon=1), xrecal.CKME())
    xr.testing.assert_identical(products(model, new.chunk(lat=2), verified).compute(), wanted)
