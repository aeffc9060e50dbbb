"""Runs that are killed at any moment, and taken up again."""

import os
import shutil
from itertools import count

import dask
import pytest
import xarray as xr

import xrecal
from xrecal.runs import target as blocks
from xrecal.runs.target import REQUEST

from .files import run, run_apart, succeed, write, write_model

pytestmark = pytest.mark.filterwarnings("ignore:took over .* is gone:UserWarning")
CHUNKS = ["--chunks", "lat=1"]
KILL = """
import os, signal, xrecal.runs.target as b
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
"""
MOMENTS = {
    "between blocks": (
        "write = b.write_block; n = []\ndef some(*args):\n"
        "    n.append(1)\n    kill() if len(n) == 3 else write(*args)\nb.write_block = some"
    ),
    "before the move": "b.put_in_place = kill",
    "after the move": (
        "put = b.put_in_place\ndef then(*args): put(*args); kill()\nb.put_in_place = then"
    ),
}
"""``test_kills.py`` kills at other steps too."""


def contents(path):
    """Bytes of all chunks of a store, or of the values of a file; without the request."""
    with xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None) as dataset:
        dataset.load()
    return dataset.assign_attrs({REQUEST: None})


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_a_killed_fit_goes_on(files, suffix):
    target, whole = files.folder / f"m.{suffix}", files.folder / f"whole.{suffix}"
    args = ["fit", files.hindcast, files.truth, target, "--method", "climatology", *CHUNKS]
    killed = run_apart(*args, before=KILL + MOMENTS["between blocks"])
    assert killed.code == -9, killed.err
    partial = files.folder / f"{target.name}.partial"
    assert not target.exists()
    with pytest.raises(FileNotFoundError, match="of an interrupted run; run it again with"):
        xrecal.open_recalibrator(target)
    with pytest.raises(ValueError, match=r"is unfinished: xrecal fit was interrupted"):
        xrecal.open_recalibrator(partial / "store.zarr")
    done = succeed(*args, "--resume", "--json").data
    assert (done["blocks"], done["blocks_skipped"]) == (4, 2)
    args[3] = whole
    succeed(*args)
    xr.testing.assert_identical(contents(target), contents(whole))
    assert not partial.exists()


@pytest.mark.parametrize("moment", ["before the move", "after the move"])
def test_a_killed_run_of_one_block_begins_again(files, moment):
    model, target, whole = (files.folder / f"{name}.nc" for name in ("m", "out", "whole"))
    write_model(model)
    args = ["apply", model, files.new, target, "--members", 3]
    assert run_apart(*args, before=KILL + MOMENTS[moment]).code == -9
    partial = files.folder / "out.nc.partial"
    left = {"xrecal_request.json", "new.nc"} - ({"new.nc"} if moment == "after the move" else set())
    assert {path.name for path in partial.iterdir()} == left
    assert target.exists() == (moment == "after the move")
    done = succeed(*args, "--resume", "--json").data
    assert (done["blocks"], done["blocks_skipped"]) == (1, int(moment == "after the move"))
    assert not partial.exists()
    args[3] = whole
    succeed(*args)
    xr.testing.assert_identical(contents(target), contents(whole))


def test_a_killed_apply_goes_on(files):
    model, out, whole = (files.folder / f"{name}.zarr" for name in ("m", "out", "whole"))
    succeed("fit", files.hindcast, files.truth, model, "--method", "climatology", *CHUNKS)
    args = ["apply", model, files.new, out, "--members", 3]
    assert run_apart(*args, before=KILL + MOMENTS["between blocks"]).code == -9
    done = run("score", out, files.verified)
    assert (done.code, "only" in done.err) == (3, True)
    done = run("score", files.folder / "out.zarr.partial" / "store.zarr", files.verified)
    assert done.code == 3
    assert "is unfinished: xrecal apply was interrupted; run it again with --resume" in done.err
    assert succeed(*args, "--resume", "--json").data["blocks_skipped"] == 2
    args[3] = whole
    succeed(*args)
    xr.testing.assert_identical(contents(out), contents(whole))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Arguments of a fit that was killed after two of four blocks, which no test goes on with."""
    files = write(tmp_path_factory.mktemp("killed"))
    args = ["fit", files.hindcast, files.truth, files.folder / "m.zarr", "--method", "climatology"]
    assert run_apart(*args, *CHUNKS, before=KILL + MOMENTS["between blocks"]).code == -9
    return args


def test_an_interrupted_run_is_not_begun_anew_by_accident(killed, tmp_path):
    done = run(*killed, *CHUNKS)
    assert done.code == 3
    assert "an interrupted run left" in done.err
    assert "repeat the same command with --resume, or start again with --overwrite" in done.err
    partial = "m.zarr.partial"
    shutil.copytree(killed[3].with_name(partial), tmp_path / partial)
    copied = [*killed[:3], tmp_path / "m.zarr", *killed[4:]]
    assert run(*copied, *CHUNKS).code == 3
    done = succeed(*copied, *CHUNKS, "--overwrite", "--json")
    assert done.data["blocks_skipped"] == 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--chunks", "lat=2"], "chunks was {'lat': 1}, now it is {'lat': 2}"),
        ([*CHUNKS, "--option", "window=30"], "method was "),
        ([*CHUNKS, "--min-samples", 30], "min_samples was 20, now it is 30"),
        ([*CHUNKS, "--dim", "time"], "dim was None, now it is 'time'"),
    ],
)
def test_another_request_does_not_go_on(killed, more, told):
    for extra in ([], ["--dry-run"]):
        done = run(*killed, *more, "--resume", *extra)
        assert done.code == 3
        assert f"the interrupted run belongs to another request: {told}" in done.err


def test_changed_inputs_do_not_go_on(killed):
    before = os.stat(killed[1])
    os.utime(killed[1])
    done = run(*killed, *CHUNKS, "--resume")
    os.utime(killed[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (done.code, "request: hindcast was {'changed': " in done.err) == (3, True)


def test_a_request_that_cannot_be_read_is_told(killed, tmp_path):
    partial = tmp_path / "m.zarr.partial"
    shutil.copytree(killed[3].with_name(partial.name), partial)
    (partial / "xrecal_request.json").write_text("{")
    done = run(*killed[:3], tmp_path / "m.zarr", *killed[4:], *CHUNKS, "--resume")
    assert (done.code, "the interrupted run was not made by this command" in done.err) == (3, True)


def test_a_dry_run_tells_what_is_finished(killed):
    assert (
        "m.zarr: 4 blocks, 2 of them finished" in run(*killed, *CHUNKS, "--resume", "--dry-run").out
    )


def test_complete_results_are_not_made_again(files):
    args = ["fit", files.hindcast, files.truth, files.folder / "m.nc", "--method", "climatology"]
    succeed(*args, "--resume")  # begins where there is nothing to take up
    changed = os.stat(args[3]).st_mtime_ns
    done = succeed(*args, "--resume")
    assert "m.nc is complete already" in done.out
    assert os.stat(args[3]).st_mtime_ns == changed
    done = run(*args, "--min-samples", 30, "--resume")
    assert done.code == 3
    assert "m.nc belongs to another request: min_samples was 20" in done.err
    done = run(*args)
    assert (done.code, "m.nc exists; use --overwrite" in done.err) == (3, True)
    xrecal.open_recalibrator(args[3]).save(files.folder / "own.nc")
    args[3] = files.folder / "own.nc"
    done = run(*args, "--resume")
    assert "own.nc was not made by this command" in done.err


def test_what_is_replaced_stays_until_the_new_is_complete(files):
    target = files.folder / "m.zarr"
    args = ["fit", files.hindcast, files.truth, target, *CHUNKS, "--method"]
    succeed(*args, "climatology")
    killed = run_apart(*args, "raw", "--overwrite", before=KILL + MOMENTS["between blocks"])
    assert killed.code == -9
    assert xrecal.open_recalibrator(target).method == xrecal.Climatology()
    succeed(*args, "raw", "--resume")
    assert xrecal.open_recalibrator(target).method == xrecal.Raw()
    assert not list(files.folder.glob(".*"))


def test_a_failure_keeps_what_is_finished(files, monkeypatch):
    write, numbers = blocks.write_block, count()

    def some(*args):
        write(*args) if next(numbers) < 2 else 1 / 0

    args = ["fit", files.hindcast, files.truth, files.folder / "m.zarr", *CHUNKS, "--quiet"]
    args += ["--method", "climatology"]
    with dask.config.set(scheduler="synchronous"), monkeypatch.context() as patch:
        patch.setattr(blocks, "write_block", some)
        done = run(*args, "--json")
    assert done.code == 5
    assert done.data["status"] == "failed"
    assert (
        "ZeroDivisionError: division by zero (2 of 4 blocks are finished and kept; repeat"
        in (done.data["error"])
    )
    assert succeed(*args, "--resume", "--json").data["blocks_skipped"] == 2


def test_a_failure_at_the_end_keeps_all(files, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    args = ["fit", files.hindcast, files.truth, files.folder / "m.nc", *CHUNKS, "--quiet"]
    args += ["--method", "climatology"]
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "to_netcdf", full)
        done = run(*args)
    assert done.code == 5
    assert "OSError: no space left (4 of 4 blocks are finished and kept; repeat the" in done.err
    assert not args[3].exists()
    assert succeed(*args, "--resume", "--json").data["blocks_skipped"] == 4
