"""Blocks of a Dataset, and a run that writes them; killed ones are in tests/cli/test_resume.py."""

import json

import dask
import numpy as np
import pytest
import xarray as xr

from xrecal.cli.blocks import REQUEST, Run, RunError, blocks_of, write_in_blocks


def test_every_value_is_in_one_block():
    dataset = xr.Dataset(
        {
            "a": (("x", "c", "y"), np.arange(30.0).reshape(3, 2, 5)),
            "b": (("y", "x"), np.arange(15.0).reshape(5, 3)),
            "only": ("y", np.arange(5.0)),
            "whole": ("c", np.arange(2.0)),
        }
    ).chunk(x=2, y=2)
    dataset["eager"] = ("x", [1.0, 2.0, 3.0])
    blocks = blocks_of(dataset)
    assert len(blocks) == 1 + 2 * 3 + 3
    for name, array in dataset.data_vars.items():
        seen = np.zeros(array.shape, int)
        for block in blocks:
            if name in block.regions:
                seen[block.regions[name]] += 1
        assert (seen == (name != "eager")).all()


def test_a_run_as_a_function(tmp_path):
    dataset = xr.Dataset({"a": ("x", np.arange(5.0)), "b": 2.0}).chunk(x=2)
    run_ = Run(tmp_path / "a.nc", {"command": "test"})

    def fail(_):
        raise OSError("disk full")

    assert not run_.is_complete(overwrite=False, resume=False)
    with pytest.raises(RunError, match=r"OSError: disk full \(0 of 3 blocks are finished"):
        write_in_blocks(dataset, run_, fail)
    assert not run_.is_complete(overwrite=False, resume=True)
    run_.make_way(overwrite=False)
    assert write_in_blocks(dataset, run_, lambda tasks: dask.compute(*tasks)) == (3, 0)
    assert run_.is_complete(overwrite=False, resume=True)
    with xr.open_dataset(tmp_path / "a.nc") as found:
        xr.testing.assert_equal(found, dataset.compute())
        assert json.loads(found.attrs[REQUEST]) == {"command": "test"}


def test_way_is_made_only_where_nothing_can_go_on(tmp_path):
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))}).chunk(x=2)
    run_ = Run(tmp_path / "a.zarr", {"command": "test"})
    run_.begin(dataset)
    for overwrite in (False, True):
        assert run_.store.exists()
        run_.is_complete(overwrite=overwrite, resume=not overwrite)
        run_.make_way(overwrite=overwrite)
    assert not run_.folder.exists()
