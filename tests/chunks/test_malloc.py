import multiprocessing
import sys

import dask
import numpy as np
import pytest

from xrecal.chunks.blockwise import one_blas_thread
from xrecal.chunks.malloc import TRIMMED_BY_DASK


def faults_of_matrices(answer):
    """Pages that are new to this process while a task makes a matrix of 1 MB a hundred times.

    Larger ones may be of huge pages, which are few.
    """
    import resource

    with one_blas_thread():
        np.ones((350, 350))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(100):
            np.ones((350, 350))
        answer.put(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


@pytest.mark.skipif(sys.platform != "linux", reason="malloc of the GNU C library is asked")
@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"TRIM": TRIMMED_BY_DASK}, True),
        ({"TRIM": "100000"}, False),
        ({"TRIM": TRIMMED_BY_DASK, "MMAP": "100000"}, False),
    ],
)
def test_workers_keep_freed_memory_unless_told_otherwise(monkeypatch, limits, kept):
    """Each matrix is 240 pages, which are new every time where freed memory is given back."""
    for name, limit in limits.items():
        monkeypatch.setenv(f"MALLOC_{name}_THRESHOLD_", limit)
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    worker = context.Process(target=faults_of_matrices, args=(answer,))
    worker.start()
    faults = answer.get(timeout=60)
    worker.join()
    assert faults < 1000 if kept else faults > 20_000


def test_the_limit_is_that_of_dask():
    pytest.importorskip("distributed.config")
    limit = dask.config.get("distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_")
    assert str(limit) == TRIMMED_BY_DASK
