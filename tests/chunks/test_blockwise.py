import threading

import numpy as np
import pytest
import threadpoolctl
import xarray as xr

from xrecal.chunks.blockwise import one_blas_thread, require_one_chunk


def test_one_chunk():
    array = xr.DataArray(np.zeros((4, 4)), dims=["x", "y"])
    for whole in (array, array.chunk(), array.chunk(y=2)):
        require_one_chunk(whole, ("x", "elsewhere"), name="forecast")
    message = r"forecast has 'x' in 2 chunks and 'y' in 4 .*forecast.chunk\(\{'x': -1, 'y': -1\}\)"
    with pytest.raises(ValueError, match=message):
        require_one_chunk(array.chunk(x=2, y=1), ("x", "y"), name="forecast")
    with pytest.raises(ValueError, match="observations have 'x'"):
        require_one_chunk(array.chunk(x=2), ("x",), name="observations")


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
