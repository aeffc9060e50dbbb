from pathlib import Path

import pytest

from xrecal.arrays.whole_files import write_whole


def test_a_link_stays_one(tmp_path):
    (tmp_path / "b").write_bytes(b"old")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["full", "damaged"])
def test_what_was_there_stays(tmp_path, monkeypatch, failing):
    write = Path.write_bytes

    def fail(self, content):
        write(self, content[:2])
        if failing == "full":
            raise OSError(28, "No space left on device")

    path = tmp_path / "page.pdf"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "write_bytes", fail)
    reason = (
        "No space left " if failing == "full" else "contents read back differ from those written: "
    )
    match = rf"{reason}.*page.pdf'"
    with pytest.raises(OSError, match=match):
        write_whole(path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("page.pdf", b"old")]
