"""How a result comes to its place, and what is never removed."""

import os

import pytest

from xrecal.storage import paths
from xrecal.storage.lock import lock_of
from xrecal.storage.paths import (
    MARK,
    REPLACED,
    STORE,
    UnreadableResultError,
    can_go_on,
    partial_of,
    put_in_place,
    require_free,
    restore,
    sync,
    writing,
    written_aside,
)


def make(path, text):
    """A file or, by its suffix, something like a store."""
    if path.suffix == ".zarr":
        path.mkdir()
        (path / "zarr.json").write_text(text)
    else:
        path.write_text(text)


def text(path):
    return (path / "zarr.json" if path.is_dir() else path).read_text()


def write(path, content):
    with writing(path), written_aside(path, os.stat) as aside:
        make(aside, content)


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_what_is_new_takes_the_place(tmp_path, name):
    path = tmp_path / name
    for content in ("old", "new"):
        write(path, content)
        assert text(path) == content
        assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("old", "new"), [(".nc", ".zarr"), (".zarr", ".nc")])
def test_a_store_and_a_file_replace_each_other(tmp_path, old, new):
    path = tmp_path / f"a{new}"
    make(tmp_path / f"b{old}", "old")
    (tmp_path / f"b{old}").rename(path)
    write(path, "new")
    assert text(path) == "new"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_a_link_stays_one(tmp_path, name):
    (tmp_path / "true").mkdir()
    true, link = tmp_path / "true" / f"of_{name}", tmp_path / name
    link.symlink_to(true)
    for content in ("old", "new"):  # at first it leads nowhere
        write(link, content)
        assert link.is_symlink()
        assert text(true) == content
        assert os.listdir(true.parent) == [true.name]


def test_what_fails_changes_nothing(tmp_path):
    path = tmp_path / "a.zarr"
    write(path, "old")

    def fail():
        with written_aside(path, os.stat) as aside:
            make(aside, "new")
            raise ZeroDivisionError

    with writing(path), pytest.raises(ZeroDivisionError):
        fail()
    assert text(path) == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_crash_between_two_renames_is_undone(tmp_path):
    path = tmp_path / "a.zarr"
    write(path, "old")
    folder = partial_of(path)
    folder.mkdir()
    path.rename(folder / REPLACED)
    restore(path)  # not without the mark
    assert not path.exists()
    (folder / MARK).write_text("{}")
    with writing(path):
        assert text(path) == "old"
    assert os.listdir(folder) == [MARK]
    write(path, "new")
    assert os.listdir(tmp_path) == [path.name]


def test_what_was_taken_away_outlives_the_folder(tmp_path):
    path = tmp_path / "a.zarr"
    write(path, "old")
    with writing(path):
        folder = paths.begin_partial(path, "{}")
        path.rename(folder / REPLACED)
        paths.discard_partial(path)
    assert text(path) == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_nothing_goes_on_with_a_folder_that_is_being_removed(tmp_path, monkeypatch):
    path = tmp_path / "a.zarr"

    def fail(_):
        raise OSError("killed")

    with writing(path):
        folder = paths.begin_partial(path, "{}")
        (folder / STORE).mkdir()
        assert can_go_on(path)
        with monkeypatch.context() as patch:
            patch.setattr(paths, "remove", fail)
            with pytest.raises(OSError, match="killed"):
                paths.discard_partial(path)
        assert not can_go_on(path)
        require_free(path, False, "")  # as it bears the mark
        paths.discard_partial(path)
    assert os.listdir(tmp_path) == []


def test_only_who_holds_the_lock_moves_and_removes(tmp_path):
    path = tmp_path / "a.nc"
    with writing(path):
        new = paths.begin_partial(path, "{}") / "new.nc"
        new.write_text("new")
    for act in (lambda: put_in_place(new, path, os.stat), lambda: paths.discard_partial(path)):
        with pytest.raises(FileExistsError, match="no longer belongs to this run"):
            act()
    assert new.exists()


def test_the_folders_of_others_are_never_removed(tmp_path):
    path = tmp_path / "a.zarr"
    partial_of(path).mkdir()
    require_free(path, False, "")  # an empty one holds nothing
    (partial_of(path) / "thesis.txt").touch()
    told = r"a.zarr.partial is in the way of a.zarr .* not from xrecal, holding thesis.txt; move"
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match=told):
            require_free(path, overwrite, "")
    with writing(path), pytest.raises(OSError, match="not empty"):
        paths.discard_partial(path)
    for name in "bcde":
        (tmp_path / "b.zarr").mkdir(exist_ok=True)
        (tmp_path / "b.zarr" / name).touch()
    told = (
        r"b.zarr is a folder but not a Zarr store, holding b, c, d and more; move it away, or take"
    )
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match=told):
            require_free(tmp_path / "b.zarr", overwrite, "")
    (tmp_path / "c.nc.partial").touch()
    with pytest.raises(
        FileExistsError, match=r"c.nc.partial is in the way .*, but a file; move it"
    ):
        require_free(tmp_path / "c.nc", True, "")


def test_a_missing_folder_is_told_before_there_is_a_lock(tmp_path):
    (tmp_path / "link.nc").symlink_to(tmp_path / "no" / "a.nc")
    for path in (tmp_path / "no" / "a.nc", tmp_path / "link.nc"):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*no to write a.nc to"):
            writing(path).__enter__()
        assert not lock_of(path).exists()


def test_waiting_for_the_disk_reaches_all_folders(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        paths.os, "fsync", lambda number: seen.append(os.readlink(f"/proc/self/fd/{number}"))
    )
    files = [tmp_path / "a" / "b" / "1", tmp_path / "a" / "2"]
    files[0].parent.mkdir(parents=True)
    for file in files:
        file.touch()
    sync(files, tmp_path)
    assert seen[:2] == [str(file) for file in files]
    assert {*seen[2:]} == {str(tmp_path / name) for name in ("", "a", "a/b")}
    assert len(seen) == 5


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_what_cannot_be_read_replaces_nothing(tmp_path, name):
    path = tmp_path / name
    write(path, "old")

    def refuse(new):
        assert new.exists()
        raise KeyError("odd")

    with (
        pytest.raises(
            UnreadableResultError, match=rf"result for .*{name} cannot be opened, so .*odd"
        ),
        writing(path),
        written_aside(path, refuse) as aside,
    ):
        make(aside, "new")
    assert text(path) == "old"
    assert [one.name for one in tmp_path.iterdir()] == [name]
