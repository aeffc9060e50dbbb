"""What a run must not touch: inputs, what others write, folders of others, results half made."""

import os
import shutil

import dask
import pytest
import xarray as xr

import xrecal
from xrecal.runs import target as blocks
from xrecal.storage.lock import locked

from .files import NEW, refused, run, succeed, write, write_model

CHUNKS = ["--chunks", "lat=1"]
CLIMATOLOGY = ["--method", "climatology"]


@pytest.fixture
def fit(files):
    """Arguments of a fit, without those of the output."""
    return ["fit", files.hindcast, files.truth]


def test_a_second_run_is_refused(files, fit):
    target = files.folder / "m.nc"
    with locked(target):
        told = refused(*fit, target, *CLIMATOLOGY)
    assert f"process {os.getpid()} on this machine has been writing {target} since" in told
    assert "wait for it or, if it has ended, remove its lock: rm" in told
    assert not target.exists()
    succeed(*fit, target, *CLIMATOLOGY)
    assert not list(files.folder.glob("*.lock"))


@pytest.mark.parametrize(
    "extra",
    [
        ["--overwrite"],
        ["--resume"],
        pytest.param([], marks=pytest.mark.slow),
        pytest.param(["--overwrite", "--dry-run"], marks=pytest.mark.slow),
    ],
)
def test_an_output_is_no_input(tmp_path, extra):
    files = write(tmp_path, "zarr")
    (tmp_path / "link.zarr").symlink_to(files.truth)
    model = tmp_path / "m.zarr"
    succeed("fit", files.hindcast, files.truth, model, *CLIMATOLOGY)
    apply = ["apply", model, files.new]
    for args, name in [
        (["fit", files.hindcast, files.truth, files.hindcast], "hindcast"),
        (["fit", files.hindcast, files.truth, f"{tmp_path}/../{tmp_path.name}/truth.zarr"], "obs"),
        (["fit", files.hindcast, tmp_path / "link.zarr", files.truth], "observations"),
        (["fit", files.hindcast, files.truth, tmp_path / "link.zarr"], "observations"),
        (["fit", files.hindcast, files.truth, f"{files.hindcast}/m.zarr"], "hindcast"),
        ([*apply, model, "--members", 2], "model"),
        ([*apply, files.new, "--members", 2], "forecast"),
    ]:
        told = refused(*args, *extra)
        assert told.startswith(f"the output {args[3]} is the {name}")
        assert told.endswith("or one contains the other; take another path")
    assert not list(tmp_path.rglob("*.lock"))
    for path in (files.hindcast, files.truth, files.new):
        xr.open_dataset(path, engine="zarr", consolidated=False).load().close()
    xrecal.open_recalibrator(model).compute()


@pytest.mark.each_value
@pytest.mark.parametrize("extra", [[], ["--overwrite"], ["--resume"], ["--overwrite", "--dry-run"]])
@pytest.mark.parametrize(
    ("stands", "told"),
    [
        ("m.zarr.partial", "is in the way of m.zarr and is not from xrecal, holding"),
        ("m.zarr", "is a folder but not a Zarr store, holding thesis.txt; move it away, or take"),
    ],
)
def test_folders_of_others_are_left(files, fit, stands, told, extra):
    folder = files.folder / stands
    folder.mkdir()
    (folder / "thesis.txt").write_text("years")
    assert told in refused(*fit, files.folder / "m.zarr", *CLIMATOLOGY, *extra)
    assert (folder / "thesis.txt").read_text() == "years"
    if stands == "m.zarr":
        model = xrecal.open_recalibrator(_model(files))
        with pytest.raises(FileExistsError, match=told):
            model.save(folder, overwrite=True)


def _model(files):
    return write_model(files.folder / "model.nc")


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_an_output_that_is_a_link_stays_one(files, fit, kind):
    store = files.folder / "store"
    store.mkdir()
    true, link = store / f"of_today.{kind}", files.folder / f"m.{kind}"
    link.symlink_to(true)
    succeed(*fit, link, *CLIMATOLOGY)
    succeed(*fit, link, "--method", "raw", "--overwrite", *CHUNKS)
    xrecal.open_recalibrator(link).save(link, overwrite=True)
    assert link.is_symlink()
    assert [path.name for path in store.iterdir()] == [true.name]
    assert xrecal.open_recalibrator(true).method == xrecal.Raw()


# inputs that change -------------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nc", "zarr"])
@pytest.mark.parametrize("how", ["changed", "gone"])
def test_inputs_that_change_between_blocks_are_noticed(files, fit, monkeypatch, kind, how):
    target = files.folder / f"m.{kind}"
    succeed(*fit, target, "--method", "raw")
    write_block, n = blocks.write_block, []

    def changing(*args):
        write_block(*args)
        n.append(1)
        if len(n) == 2:
            os.utime(files.truth) if how == "changed" else os.remove(files.truth)

    with dask.config.set(scheduler="synchronous"), monkeypatch.context() as patch:
        patch.setattr(blocks, "write_block", changing)
        done = run(*fit, target, *CLIMATOLOGY, *CHUNKS, "--overwrite", "--quiet", "--json")
    assert (done.code, done.data["status"]) == (5, "failed")
    told = done.data["error"]
    assert f"observations {files.truth} changed while it was read: it was {{'path'" in told
    assert ("there is no" in told) == (how == "gone")
    assert "the result and its blocks are discarded; repeat the command" in told
    assert xrecal.open_recalibrator(target).method == xrecal.Raw()
    assert not list(files.folder.glob("m.*.*"))


def test_an_input_that_changes_during_a_single_block_is_noticed(files, monkeypatch):
    model, out = _model(files), files.folder / "out.nc"
    write_whole = blocks.write_in_blocks

    def changing(dataset, run_, compute):
        def then(tasks):
            done = compute(tasks)
            os.utime(model)
            return done

        return write_whole(dataset, run_, then)

    monkeypatch.setattr("xrecal.runs.run.write_in_blocks", changing)
    done = run("apply", model, files.new, out, "--members", 2, "--quiet")
    assert (done.code, out.exists()) == (5, False)
    assert f"apply: model {model} changed while it was read" in done.err
    monkeypatch.undo()
    succeed("apply", model, files.new, out, "--members", 2)


# chunks that are missing --------------------------------------------------------------------------


@pytest.fixture
def forecast(files):
    """A result in two chunks, and what is typed to make it."""
    out = files.folder / "out.zarr"
    args = ["apply", _model(files), files.new, out, "--members", 3, "--chunks", "lat=2"]
    succeed(*args)
    return out, args


def lose(store, name):
    chunks = [f for f in (store / name).rglob("*") if f.is_file() and f.name[0] in "0123456789"]
    assert len(chunks) == 2
    chunks[0].unlink()


def test_missing_chunks_of_results_are_noticed(files, forecast):
    out, args = forecast
    succeed("score", out, files.verified)
    lose(out, "t2m")
    told = "is damaged: 1 of 2 chunks of 't2m' are missing; restore it, or make it again"
    assert f"forecast {out} {told}" in refused("score", out, files.verified)
    assert f"observations {out} {told}" in refused("score", files.new, out)
    assert f"hindcast {out} {told}" in refused("fit", out, files.verified, files.folder / "n.nc")
    more = files.folder / "more.nc"
    assert f"forecast {out} {told}" in refused("apply", args[1], out, more, "--members", 2)
    assert f"{out} {told}" in refused(*args, "--resume")
    succeed(*args, "--overwrite")
    succeed("score", out, files.verified)
    shutil.rmtree(out / "t2m")
    assert "2 of 2 chunks of 't2m' are missing" in refused("score", out, files.verified)


def test_what_others_make_of_results_is_theirs(files, forecast):
    out, _ = forecast
    with xr.open_dataset(out, engine="zarr", chunks={}) as opened:
        own = files.folder / "own.zarr"
        opened.where(opened.lat < 47).drop_encoding().to_zarr(own, consolidated=False)
    succeed("score", own, files.verified)
    with xr.open_dataset(own, engine="zarr", consolidated=False) as masked:
        assert int(masked.t2m.isnull().any(["time", "member", "lon"]).sum()) == 2
        assert masked.sizes["time"] == NEW.sizes["time"]
