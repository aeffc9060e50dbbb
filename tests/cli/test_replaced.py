"""Nothing good is replaced by a result that nothing opens."""

import json
from dataclasses import replace
from functools import partial

import pytest

import xrecal
from xrecal.storage import storage

from .files import HINDCAST, TRUTH, refused, run, succeed, write, write_model


def nest(depth):
    deep = 1
    for _ in range(depth):
        deep = [deep]
    return deep


def change_attribute(store, **changes):
    """Give attributes to the variable of a store, as other software may."""
    path = store / "t2m" / "zarr.json"
    content = json.loads(path.read_text())
    content["attributes"] |= changes
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_attributes_that_no_model_can_hold(tmp_path, suffix):
    files = write(tmp_path, "zarr")
    model = tmp_path / f"model.{suffix}"
    fit = ("fit", files.hindcast, files.truth, model, "--method", "emos")
    succeed(*fit)
    change_attribute(tmp_path / "hindcast.zarr", history=nest(59))
    error = refused(*fit, "--overwrite")
    assert "cannot be stored: JSON is nested more than 64 levels deep" in error
    assert xrecal.open_recalibrator(model).method == xrecal.EMOS()
    assert not list(tmp_path.glob("model*.*.*"))


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_numbers_that_no_fit_leaves(tmp_path, suffix):
    path = tmp_path / f"model.{suffix}"
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS())
    model.save(path)
    before = _contents(path)
    ((name, fitted),) = model.variables.items()
    odd = fitted.state.assign(n_cases=fitted.state["n_cases"] * 0 - 7)
    for state in (odd, odd.chunk(lat=1)):
        broken = xrecal.Recalibrator(model.method, {name: replace(fitted, state=state)})
        with pytest.raises(ValueError, match=r"cannot be opened, so .* is left as it was: .*-7"):
            broken.save(path, overwrite=True)
        assert _contents(path) == before


@pytest.mark.each_value
@pytest.mark.parametrize("command", ["fit", "apply", "monitor", "update"])
@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_what_does_not_open_is_not_put_in_place(tmp_path, monkeypatch, command, suffix):
    files = write(tmp_path, "nc")
    model, out = write_model(tmp_path / "model.nc", xrecal.EMOS()), tmp_path / f"out.{suffix}"
    words = {
        "fit": ("fit", files.hindcast, files.truth, out, "--method", "emos"),
        "apply": ("apply", model, files.new, out, "--members", 3),
        "monitor": ("monitor", files.new, files.verified, out, "--restart", "never"),
        "update": ("update", model, files.new, files.verified, out),
    }[command]
    assert run(*words, "--quiet").code in (0, 10)
    before = _contents(out)

    def damaged(read, path, *args):
        if f"out.{suffix}.partial" in str(path):
            raise ValueError("of damage")
        return read(path, *args)

    for name in ("open_data", "_opened"):
        monkeypatch.setattr(storage, name, partial(damaged, getattr(storage, name)))
    done = run(*words, "--overwrite", "--json")
    assert done.code == 5
    assert f"{out} is left as it was: of damage; check labels" in done.data["error"]
    assert _contents(out) == before
    assert not (tmp_path / f"out.{suffix}.partial").exists()


def _contents(path):
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(one): one.read_bytes() for one in files if one.is_file()}


def test_a_page_is_drawn_before_the_old_one_goes(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    files, page = write(tmp_path), tmp_path / "page.pdf"
    page.write_bytes(b"good")

    def fail(*_, **__):
        raise ValueError("no such font")

    monkeypatch.setattr(Figure, "savefig", fail)
    done = run("score", files.new, files.verified, "--report", page, "--json")
    assert done.code == 3
    assert page.read_bytes() == b"good"
    assert [one.name for one in tmp_path.glob("page*")] == ["page.pdf"]
