"""The benchmark of large grids: what does not need a cluster."""

import numpy as np
import pytest

from benchmarks import scale


def test_cells_that_are_drawn_in_chunks_are_like_those_in_memory():
    hindcast, observed = scale.make_cells(200, 30, 50)
    values = scale.values_of_chunk(200, 30, 50, block_id=(0, 0, 1))
    assert values.shape == (200, 31, 50)
    other = scale.values_of_chunk(200, 30, 50, block_id=(0, 0, 2))
    assert not np.array_equal(values, other)
    assert values[:, :30].mean() == pytest.approx(hindcast.mean().item(), abs=0.5)
    assert values[:, 30].std() == pytest.approx(observed.std().item(), rel=0.1)


def test_the_verdict_names_grids_that_came_out_differently():
    same = scale.grid.Outcome("", {}, [0], False, [])
    other = same._replace(differences=["values"])
    assert "holds: 2 of 2 grids" in scale.verdict([same, same])
    assert "MISSED: holds for 1 of 2 grids" in scale.verdict([other, same])
