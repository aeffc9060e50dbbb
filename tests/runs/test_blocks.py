"""Blocks of a Dataset, and the place that they are written to; tests/cli/test_resume.py kills."""

import json

import dask
import numpy as np
import pytest
import xarray as xr
import zarr

from xrecal.runs.blocks import blocks_of, write_block
from xrecal.runs.target import REQUEST, RunError, Target, write_in_blocks
from xrecal.storage.lock import lock_of


def compute(tasks):
    return dask.compute(*tasks)


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
    run_ = Target(tmp_path / "a.nc", {"command": "test"})

    def fail(_):
        raise OSError("disk full")

    with run_.alone():
        assert not run_.is_complete(overwrite=False, resume=False)
        with pytest.raises(RunError, match=r"OSError: disk full \(0 of 3 blocks are finished"):
            write_in_blocks(dataset, run_, fail)
        assert not run_.is_complete(overwrite=False, resume=True)
        run_.make_way(overwrite=False)
        assert write_in_blocks(dataset, run_, compute)[:2] == (3, 0)
        assert run_.is_complete(overwrite=False, resume=True)
    with xr.open_dataset(tmp_path / "a.nc") as found:
        xr.testing.assert_equal(found, dataset.compute())
        assert json.loads(found.attrs[REQUEST]) == {"command": "test"}


def test_way_is_made_only_where_nothing_can_go_on(tmp_path):
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))}).chunk(x=2)
    run_ = Target(tmp_path / "a.zarr", {"command": "test"})
    with run_.alone():
        run_.begin(dataset)
        for overwrite in (False, True):
            assert run_.store.exists()
            run_.is_complete(overwrite=overwrite, resume=not overwrite)
            run_.make_way(overwrite=overwrite)
    assert not run_.folder.exists()


# markers ------------------------------------------------------------------------------------------


def spoil(file, how):
    """Change a chunk as a disk or a hand may do it."""
    data = file.read_bytes()
    file.unlink()
    if how != "missing":
        file.write_bytes(data[: len(data) // 2] if how == "cut off" else data[:-1] + b"!")


@pytest.fixture(params=[2, 3])
def half_done(request, tmp_path):
    """A run of 2 x 2 + 2 + 2 blocks that was about to end, in both formats of Zarr."""
    dataset = xr.Dataset(
        {
            "a": (("x", "y"), np.arange(20.0).reshape(4, 5)),
            "b": ("y", np.arange(5.0)),
            "empty": ("x", np.full(4, np.nan)),
        },
        {"x": [3, 4, 5, 6]},
    ).chunk(x=2, y=3)
    run_ = Target(tmp_path / "a.zarr", {"command": "test"})

    def stop(tasks):
        compute(tasks)
        raise OSError("killed")

    in_format = zarr.config.set(default_zarr_format=request.param)
    with run_.alone(), in_format, pytest.raises(RunError, match=r"killed \(8 of 8 blocks"):
        write_in_blocks(dataset, run_, stop)
    return dataset, run_


def go_on(dataset, run_):
    """Blocks that were skipped on the way to the right result."""
    with run_.alone():
        assert not run_.is_complete(overwrite=False, resume=True)
        n_skipped = write_in_blocks(dataset, run_, compute).n_skipped
    with xr.open_dataset(run_.path, engine="zarr", mask_and_scale=False) as found:
        xr.testing.assert_equal(found, dataset.compute())
    return n_skipped


def of_blocks(run_):
    """Files of chunks that blocks have written."""
    files = [file for name in "ab" for file in (run_.store / name).rglob("*") if file.is_file()]
    return sorted(file for file in files if file.name != "zarr.json" and file.name[:2] != ".z")


@pytest.mark.each_value
@pytest.mark.parametrize("how", ["missing", "cut off", "changed"])
def test_spoilt_chunks_are_computed_again(half_done, how):
    files = of_blocks(half_done[1])
    assert len(files) == 2 * 2 + 2
    for file in files:
        data = file.read_bytes()
        spoil(file, how)
        done = half_done[1].marker
        before = [done(n).read_text() for n in range(8)]
        assert len(half_done[1].unmark(8)) == 1
        file.write_bytes(data)
        for n, text in enumerate(before):
            done(n).write_text(text)
    spoil(files[0], how)
    spoil(files[-1], how)
    assert go_on(*half_done) == 6


def test_a_chunk_where_all_was_missing_is_noticed(half_done):
    _, run_ = half_done
    zarr.open_group(run_.store, mode="r+")["empty"][:2] = 1.0
    assert go_on(*half_done) == 7


def test_a_marker_that_was_cut_off_proves_nothing(half_done):
    marker = half_done[1].marker(1)
    marker.write_text(marker.read_text()[:30])
    assert go_on(*half_done) == 7


def test_blocks_of_another_request_prove_nothing(half_done):
    dataset, run_ = half_done
    block = blocks_of(dataset)[0]
    values = {name: np.zeros([2, 3][: len(at)]) for name, at in block.chunks.items()}
    write_block(values, block, str(run_.store), str(run_.marker(0)), "former request")
    assert go_on(*half_done) == 7


def test_labels_that_were_spoilt_are_laid_out_again(half_done):
    _, run_ = half_done
    (file,) = [f for f in (run_.store / "x").rglob("*") if f.name == "0"]
    spoil(file, "missing")
    told = "differs from the layout of the interrupted run; all blocks"
    with pytest.warns(UserWarning, match=told):
        assert go_on(*half_done) == 0


def test_names_that_a_kill_left_are_removed(half_done):
    _, run_ = half_done
    left = [run_.store / "zarr.1f.partial", run_.store / "a" / "0.1f.partial"]
    for file in left:
        file.write_text("half")
    assert go_on(*half_done) == 8
    assert list(run_.path.rglob("*.partial")) == []


def test_blocks_are_proven_before_the_result_is_put_in_place(tmp_path):
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))}).chunk(x=2)
    run_ = Target(tmp_path / "a.nc", {"command": "test"})

    def spoiling(tasks):
        compute(tasks)
        spoil(of_blocks(run_)[1], "changed")

    with run_.alone():
        told = (
            r"1 blocks in .*a.nc.partial changed after being written \(2 of 3 blocks are finished"
        )
        with pytest.raises(RunError, match=told):
            write_in_blocks(dataset, run_, spoiling)
        assert not run_.path.exists()
        assert write_in_blocks(dataset, run_, compute)[:2] == (3, 2)


def test_who_has_lost_the_lock_puts_nothing_in_place(tmp_path):
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))}).chunk(x=2)
    run_ = Target(tmp_path / "a.nc", {"command": "test"})

    def losing(tasks):
        compute(tasks)
        lock_of(run_.path).unlink()

    with run_.alone(), pytest.raises(RunError, match="no longer belongs to this run"):
        write_in_blocks(dataset, run_, losing)
    assert not run_.path.exists()
    assert run_.count_finished(3) == 3
