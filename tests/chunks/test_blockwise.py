import threading

import numpy as np
import pytest
import threadpoolctl
import xarray as xr

from tests.marks import forbid_compute
from xrecal.chunks.blockwise import (
    one_blas_thread,
    require_one_chunk,
    run_blockwise,
)


def add_row(a, b):
    assert set(blas_threads()) == {1}
    return (a + b)[..., :2], (a * b).sum(-1)


@pytest.mark.parametrize("chunks", [None, {"x": 1}])
def test_blockwise(chunks):
    a = xr.DataArray(np.arange(12.0).reshape(3, 4), dims=["x", "m"], coords={"x": [1, 2, 3]})
    b = xr.DataArray(np.arange(4.0), dims=["m"])
    given = a if chunks is None else a.chunk(chunks)
    with forbid_compute():
        first, second = run_blockwise(
            add_row,
            given,
            b,
            core=[("m",), ("m",)],
            out=[("k",), ()],
            dtypes=[float, float],
            sizes={"k": 2, "unused": 9},
        )
    assert (first.chunks is None) == (chunks is None)
    np.testing.assert_array_equal(first, (a + b)[:, :2])
    np.testing.assert_array_equal(second, (a * b).sum("m"))
    np.testing.assert_array_equal(first.x, a.x)


def test_labels_are_not_joined():
    a, b = (xr.DataArray(np.zeros(3), dims="x", coords={"x": np.arange(3) + i}) for i in range(2))
    with pytest.raises(ValueError, match=r"not equal along these coordinates|cannot align"):
        run_blockwise(add_row, a, b, core=[(), ()], out=[(), ()], dtypes=[float] * 2, sizes={})


def test_one_chunk():
    array = xr.DataArray(np.zeros((4, 4)), dims=["x", "y"])
    for whole in (array, array.chunk(), array.chunk(y=2)):
        require_one_chunk(whole, ("x", "elsewhere"), name="forecast")
    message = r"forecast has 'x' in 2 chunks and 'y' in 4 .*forecast.chunk\(\{'x': -1, 'y': -1\}\)"
    with pytest.raises(ValueError, match=message):
        require_one_chunk(array.chunk(x=2, y=1), ("x", "y"), name="forecast")
    with pytest.raises(ValueError, match="observations have 'x'"):
        require_one_chunk(array.chunk(x=2), ("x",), name="observations")


@pytest.mark.parametrize("chunked", [False, True])
def test_labels_keep_their_attributes(chunked):
    plain = xr.DataArray(np.arange(3.0), {"x": [1, 2, 3]}, ["x"])
    described = plain.assign_coords(x=("x", [1, 2, 3], {"units": "days"}))
    if chunked:
        plain, described = plain.chunk(), described.chunk()
    options = {"core": [(), ()], "out": [()], "dtypes": [float], "sizes": {}}
    for args in ((plain, described), (described, plain)):
        (found,) = run_blockwise(np.add, *args, **options)
        assert found.x.attrs == {"units": "days"}
        assert plain.x.attrs == {}
    (found,) = run_blockwise(np.add, plain, plain, **options)
    assert found.x.attrs == {}


def blas_threads():
    import scipy.linalg.cython_lapack  # noqa: F401  loads the library that is asked about

    return [
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    ]


def in_a_thread(task):
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()


@pytest.fixture
def two_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield blas_threads()


@pytest.mark.parametrize("run", [lambda task: task(), in_a_thread])
def test_any_thread_can_limit_after_another(two_threads, run):
    """threadpoolctl leaves the limits to the first thread that sets one."""
    with one_blas_thread():
        pass

    def task():
        with one_blas_thread():
            found.extend(blas_threads())

    found = []
    run(task)
    assert set(found) == {1}
    assert blas_threads() == two_threads


def test_one_thread_inside_and_as_before_after_it(two_threads):
    assert 2 in two_threads
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == two_threads


def test_the_last_of_overlapping_tasks_restores(two_threads):
    """The first to start ends first: a plain context manager would restore under the second."""
    started, go_on, found = threading.Barrier(2), threading.Event(), []

    def first():
        with one_blas_thread():
            started.wait()
        go_on.set()

    def second():
        with one_blas_thread():
            started.wait()
            go_on.wait()
            found.extend(blas_threads())

    threads = [threading.Thread(target=task) for task in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {1}
    assert blas_threads() == two_threads


def test_an_error_restores_too(two_threads):
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == two_threads
