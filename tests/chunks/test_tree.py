"""Results of chunks joined in a tree."""

import operator

import dask
import numpy as np
import pytest
import xarray as xr

from tests.marks import forbid_compute
from xrecal.chunks.blockwise import TaskError
from xrecal.chunks.tree import joined_chunks

VALUES = xr.DataArray(np.arange(60.0).reshape(6, 5, 2), dims=("time", "place", "member"))
WEIGHTS = xr.DataArray([1.0, 2.0, 0.5, 3.0, 1.0], dims=["place"])


def weighted(factor=1.0, *, cases):
    return float((cases["values"].mean(-1) * cases["weights"]).sum() * factor)


def total(values, weights=WEIGHTS, given=(), function=weighted, **options):
    cases = {"values": (values, ("member",)), "weights": (weights, ())}
    return joined_chunks(function, operator.add, {"cases": cases}, given, **options)


EXPECTED = float((VALUES.mean("member") * WEIGHTS).sum())


@pytest.mark.parametrize("step", [1, 4, 100])
def test_in_memory_in_pieces(step):
    assert total(VALUES, step=step) == pytest.approx(EXPECTED)
    assert total(VALUES, given=[2.0], step=step) == pytest.approx(2 * EXPECTED)


@pytest.mark.parametrize("chunks", [{"time": 1, "place": 1}, {"time": 4}, {"place": 2}], ids=str)
def test_lazily_in_any_chunks(chunks):
    with forbid_compute():
        lazy = total(VALUES.chunk(chunks), WEIGHTS.chunk(place=3))
        twice = total(VALUES.chunk(chunks), given=[lazy])
    found = dask.compute(lazy, twice, scheduler="sync")
    assert found == pytest.approx((EXPECTED, EXPECTED**2))


@pytest.mark.parametrize("count", [1, 4, 5, 16, 23, 65])
def test_those_in_memory_are_joined_in_the_same_order(count):
    values = xr.DataArray(np.arange(count), dims=["time"])

    def joined(cases):
        given = {"cases": {"values": (cases, ())}}
        return joined_chunks(lambda cases: int(cases["values"].sum()), lambda *both: both, given)

    lazy = joined(values.chunk(time=1)).compute(scheduler="sync")
    assert repr(joined(values)) == repr(lazy)


def read(counted):
    def noted(block):
        counted.append(block.shape)
        return block

    lazy = VALUES.chunk(time=2)
    meta = np.empty((0, 0, 0))
    return lazy.copy(data=lazy.data.map_blocks(noted, dtype=float, meta=meta))


def test_chunks_are_read_anew_once_what_is_given_is_known():
    counted = []
    data = read(counted)
    first = total(data)
    second = total(data, given=[first])
    counted.clear()
    assert dask.compute(second)[0] == pytest.approx(EXPECTED**2)
    assert len(counted) == 2 * 3


def test_what_was_taken_by_positions_is_read_once():
    counted = []
    data = read(counted).isel(time=[5, 0, 3, 3, 1, 2])
    again = VALUES.isel(time=[5, 0, 3, 3, 1, 2])
    first = total(data)
    second = total(data, given=[first])
    expected = float((again.mean("member") * WEIGHTS).sum())
    assert dask.compute(second)[0] == pytest.approx(expected**2)


def test_equal_calls_have_equal_names():
    data = VALUES.chunk(time=2)
    assert total(data).key == total(data).key


def fails(**_):
    raise ValueError("too wet")


def test_errors_say_where():
    with pytest.raises(ValueError, match="too wet"):
        total(VALUES, function=fails)
    lazy = total(VALUES.chunk(place=2), function=fails, what="the sum")
    with pytest.raises(TaskError, match=r"the sum failed at .*place .*ValueError: too wet"):
        lazy.compute(scheduler="sync")
