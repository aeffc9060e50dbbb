"""What the documentation promises: every public name has a page, and dead links are found."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
import xrecal.arrays
import xrecal.plot
from xrecal.accessor.recal import DataArrayRecal

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
LISTED = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))


def listed(prefix=""):
    """Names in the tables of the reference."""
    found = re.findall(rf"^   {re.escape(prefix)}([\w.]+)$", LISTED, flags=re.MULTILINE)
    assert found
    return set(found)


def methods(of):
    return {name for name in dir(of) if not name.startswith("_")}


def test_reference_lists_every_public_name():
    modules = {"datasets", "diagnostics", "hubs"}  # listed name by name
    assert set(xrecal.__all__) - modules <= listed()
    assert set(xrecal.arrays.__all__) <= listed()
    assert set(xrecal.diagnostics.__all__) - {"skill"} <= listed("diagnostics.")
    assert set(xrecal.plot.__all__) <= listed("plot.")
    assert set(xrecal.hubs.__all__) == listed("hubs.")


def test_reference_lists_every_call_of_forecasts_and_models():
    assert methods(DataArrayRecal) - {"plot"} == listed("DataArray.recal.")
    assert methods(DataArrayRecal) == methods(xr.Dataset.recal)
    assert methods(xrecal.Recalibrator) <= listed("Recalibrator.")
    assert "xrecal.accessor.plot.Plots" in LISTED


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/design.md"])
def test_files_and_folders_that_pages_name_are_there(page):
    package, text = Path(xrecal.__path__[0]), (DOCS.parent / page).read_text()
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+\.py)`", text)
    assert len(named) > 3
    for name in named:
        assert (package / name).exists() or (package.parent / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_line_of_a_sentence_begins_with_the_sign_of_a_comment(page):
    """Sphinx leaves such lines out: "below 1" at the end of a line, "%" on the next."""
    prose = re.sub(r"(?ms)^(```+).*?^\1$", "", page.read_text())
    assert not re.findall(r"(?m)^%.*", prose)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_lines_run_on_files(page, tmp_path, monkeypatch, capsys):
    toy = xrecal.datasets.lorenz96(lead_days=[3], n_locations=9).isel(lead=0)
    cells = pd.MultiIndex.from_product([[50, 51, 52], [8, 9, 10]], names=["lat", "lon"])
    toy = toy.assign_coords(xr.Coordinates.from_pandas_multiindex(cells, "location"))
    toy = toy.unstack("location")
    toy.forecast[:120].to_netcdf(tmp_path / "hindcast.nc")
    toy.forecast[120:130].to_netcdf(tmp_path / "forecast.nc")
    toy.observation.to_netcdf(tmp_path / "observations.nc")
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS.parent / page).read_text(), re.M | re.S)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(block, names)
    assert "LinearPool" in capsys.readouterr().out
    quantiles = xr.load_dataarray("quantiles.nc")
    assert quantiles.notnull().all()
    assert quantiles.sizes["init"] == 10
    if page == "README.md":
        assert xrecal.open_recalibrator("model.nc").method == xrecal.LinearPool(gap="7D")
        assert Path("report.pdf").read_bytes().startswith(b"%PDF")
        assert names["model"].variables["forecast"].pool is not None
        np.testing.assert_allclose(names["terciles"].sum("category"), 1)


@pytest.fixture(scope="module")
def faults():
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.faults


def test_links_that_lead_somewhere_pass(faults, tmp_path):
    (tmp_path / "in it").mkdir()
    (tmp_path / "a.png").touch()
    (tmp_path / "style.css").write_text("p { background: url(a.png) url('data:,x') }")
    (tmp_path / "in it" / "b.html").write_text('<p id="there"></p><a href="../a.html"></a>')
    (tmp_path / "a.html").write_text(
        '<a href="in%20it/b.html#there"></a><a href="https://example.org/gone"></a>'
        '<img src="a.png">'
        '<a href="#"></a><a href="mailto:a@b.c"></a><link href="style.css">'
        '<a name="x" href="#x"></a>'
    )
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ('<a href="b.html"></a>', "a.html refers to b.html, which is not there"),
        ('<a href="#b"></a>', "a.html refers to #b, which has no such anchor"),
        ('<a href="a.html#b"></a>', "a.html refers to a.html#b, which has no such anchor"),
        ('<img src="b.png">', "a.html refers to b.png, which is not there"),
        ('<img src="//a.org/b.png">', "a.html fetches //a.org/b.png"),
        ('<script src="https://a.org/b.js"></script>', "a.html fetches https://a.org/b.js"),
    ],
)
def test_what_is_wrong_is_told(faults, tmp_path, html, message):
    (tmp_path / "a.html").write_text(html)
    assert faults(tmp_path) == [message]


def test_styles_that_fetch_are_told(faults, tmp_path):
    (tmp_path / "a.html").touch()
    (tmp_path / "a.css").write_text('a { src: url("https://a.org/font") }')
    assert faults(tmp_path) == ['a.css fetches url("https://a.org/font")']


def test_no_pages_are_a_fault(faults, tmp_path):
    assert faults(tmp_path) == [f"no pages in {tmp_path}; build them first: make docs"]
