"""Named arrays of chunks of places in, named arrays out."""

import numpy as np
import pytest
import xarray as xr

from tests.chunks.test_blockwise import blas_threads
from tests.marks import forbid_compute
from xrecal.chunks.blockwise import TaskError
from xrecal.chunks.run import EACH, run, total

A = xr.DataArray(np.arange(24.0).reshape(2, 3, 4), {"x": [10, 20]}, ["x", "y", "m"], name="a")
B = xr.DataArray(np.arange(5.0), dims=["t"])
C = xr.DataArray(np.arange(15.0).reshape(3, 5), dims=["y", "t"])
GIVEN = {"state": {"a": (A, ["m"])}, "new": {"b": (B, [EACH]), "c": (C, [EACH])}}
OUT = {"sum": ({EACH: 0, "m": 4}, np.float32), "first": ({EACH: 0}, np.int64)}
OPTIONS = {"what": "the sum", "each": ["t"]}


def sums(state, new):
    """State (L, m) and new cases (L, T): their sums (L, T, m)."""
    assert state["a"].shape[1:] == (4,)
    assert new["b"].shape == new["c"].shape
    assert len(state["a"]) == len(new["b"])
    return {
        "first": state["a"][:, :1] + 0 * new["b"],
        "sum": state["a"][:, np.newaxis] + (new["b"] + new["c"])[..., np.newaxis],
    }


@pytest.mark.parametrize("chunks", [{}, {"x": 1}, {"x": 1, "y": 2, "t": 3}])
def test_a_task_gets_all_places_of_its_chunk_and_all_cases(chunks):
    def cut(array):
        return (
            array.chunk({d: n for d, n in chunks.items() if d in array.dims}) if chunks else array
        )

    given = {g: {n: (cut(a), core) for n, (a, core) in of.items()} for g, of in GIVEN.items()}
    with forbid_compute():
        found = run(sums, given, OUT, **OPTIONS)
    assert (found["sum"].chunks is None) == (not chunks)
    assert found["sum"].dtype == np.float32
    np.testing.assert_array_equal(found["sum"], (A + B + C).transpose(*found["sum"].dims))
    np.testing.assert_array_equal(found["first"].isel(t=0), A.isel(m=0))
    np.testing.assert_array_equal(found["first"].x, A.x)


@pytest.mark.parametrize("chunks", [{}, {"x": 1, "y": 2}])
def test_totals_over_places(chunks):
    def add(state, new):
        return {None: sums(state, new)["sum"].sum(0, keepdims=True).astype(np.int64)}

    given = {**GIVEN, "state": {"a": (A.chunk(chunks) if chunks else A, ["m"])}}
    found = total(add, given, {"m": 4}, over=["x", "y"], **OPTIONS)
    np.testing.assert_array_equal(found.transpose("t", "m"), (A + B + C).sum(["x", "y"]).T)


def test_a_task_that_fails_says_where():
    def fail(**_):
        raise ArithmeticError("not today")

    given = {"state": {"a": (A.chunk(x=1), ["m"])}}
    found = run(fail, given, {"first": ({}, float)}, what="the sum of 'a'")
    with pytest.raises(TaskError, match=r"the sum of 'a' failed at x [12]0, y 0 to 2: Arithmetic"):
        found["first"].compute()


def test_labels_are_not_joined():
    a, b = (xr.DataArray(np.zeros(3), {"x": np.arange(3) + i}, ["x"]) for i in range(2))
    with pytest.raises(ValueError, match=r"not equal along these coordinates|cannot align"):
        run(sums, {"state": {"a": (a, []), "b": (b, [])}}, {"sum": ({}, float)}, what="the sum")


@pytest.mark.parametrize("chunked", [False, True])
def test_labels_keep_their_attributes(chunked):
    plain = xr.DataArray(np.arange(3.0), {"x": [1, 2, 3]}, ["x"])
    described = plain.assign_coords(x=("x", [1, 2, 3], {"units": "days"}))
    if chunked:
        plain, described = plain.chunk(), described.chunk()
    for units, args in (
        ({"units": "days"}, (plain, described)),
        ({"units": "days"}, (described, plain)),
        ({}, (plain, plain)),
    ):
        given = {"both": {i: (array, []) for i, array in enumerate(args)}}
        found = run(lambda both: {0: both[0] + both[1]}, given, {0: ({}, float)}, what="the sum")
        assert found[0].x.attrs == units
        assert plain.x.attrs == {}


@pytest.mark.parametrize("chunks", [{}, {"x": 1, "y": 2}])
def test_tasks_run_with_one_blas_thread(chunks):
    def threads(state):
        found = set(blas_threads())
        return {0: np.full(len(state["a"]), found.pop() if len(found) == 1 else 0)}

    given = {"state": {"a": (A.chunk(chunks) if chunks else A, ["m"])}}
    assert (run(threads, given, {0: ({}, int)}, what="the count")[0] == 1).all()


@pytest.mark.parametrize("lazy", [False, True])
def test_a_task_is_not_run_where_nothing_is(lazy):
    def fail(**_):
        raise ArithmeticError

    nowhere = A.isel(x=slice(0))
    given = {**GIVEN, "state": {"a": (nowhere.chunk() if lazy else nowhere, ["m"])}}
    found = run(fail, given, OUT, **OPTIONS)
    assert found["sum"].sizes == {"x": 0, "y": 3, "t": 5, "m": 4}
    assert found["sum"].compute().dtype == np.float32
