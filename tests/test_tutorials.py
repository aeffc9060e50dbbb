"""Tutorials run for a reader who has only what the page offers: the notebook and the script."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("myst_nb")

import nbformat
from nbclient import NotebookClient

from xrecal.datasets.tutorial import TUTORIALS

ROOT = Path(__file__).parents[1]
PAGES = [
    path for path in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if path.stem != "index"
]
WITH_DATA = [page for page in PAGES if "open_tutorial" in page.read_text()]
"""The others make their data, and are run as pages are built."""
DOWNLOADED = 'open_tutorial("mjo_rmm1")'


@pytest.fixture(scope="module")
def notebooks():
    sys.path.insert(0, str(ROOT / "docs" / "extensions"))
    import notebooks

    yield notebooks
    sys.path.remove(str(ROOT / "docs" / "extensions"))
    del sys.modules["notebooks"]


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """An empty folder, and no data: what needs the internet is a twin, too."""
    monkeypatch.delenv("XRECAL_DATA", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    return tmp_path


def files_of(page, folder, notebooks):
    files = {path.suffix: path for path in notebooks.write(page, folder)}
    for path in files.values():
        twin = DOWNLOADED.replace(")", ", twin=True)")
        text = path.read_text()
        if path.suffix == ".ipynb":
            twin, downloaded = (json.dumps(call)[1:-1] for call in (twin, DOWNLOADED))
            path.write_text(text.replace(downloaded, twin))
        else:
            path.write_text(text.replace(DOWNLOADED, twin))
    return files


def test_every_data_set_has_a_page_that_says_what_stands_in():
    texts = {page.stem: page.read_text() for page in PAGES}
    for name in TUTORIALS:
        (text,) = [one for one in texts.values() if f'open_tutorial("{name}")' in one]
        assert "synthetic twin" in text.partition("```{code-cell}")[0].replace("\n", " ")
        assert '.attrs["title"])' in text
    for text in texts.values():
        assert "real_data" not in text
        assert "sys.path" not in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_of_a_page(page, tmp_path, notebooks):
    files = files_of(page, tmp_path, notebooks)
    notebook = nbformat.read(files[".ipynb"], as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    marked = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    for text in marked:
        assert ":::" not in text
        assert re.search(r"\{\w+\}`", text) is None
        assert "](../" not in text
    if page.stem == "cluster":
        assert ".py" not in files  # cells of the shell
    else:
        compile(files[".py"].read_text(), files[".py"], "exec")
        cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        script = files[".py"].read_text()
        assert [cell for cell in cells if cell not in script] == []


def test_the_script_is_of_cells_and_shows_its_figures(notebooks):
    page = (
        "# Title\n\nSee [there](../a.md#b), [here](https://a.org) and {func}`f`.\n\n"
        "```{code-cell} ipython3\nimport matplotlib.pyplot as plt\n```\n"
    )
    assert notebooks.script_of(notebooks.notebook_of(page)) == (
        "# %% [markdown]\n# # Title\n#\n# See there, [here](https://a.org) and `f`.\n\n"
        "# %%\nimport matplotlib.pyplot as plt\n\n# %%\nplt.show()\n"
    )


def test_links_stand_below_the_title(notebooks, tmp_path):
    app = SimpleNamespace(srcdir=tmp_path)
    (tmp_path / "tutorials").mkdir()
    code = "```{code-cell} ipython3\nx = 1\n```\n"
    (tmp_path / "tutorials" / "a.md").write_text(f"# A\n\nText.\n\n{code}")
    (tmp_path / "tutorials" / "index.md").write_text("# Index\n")
    notebooks.write_all(app, None)
    source = [f"---\nsettings: 1\n---\n\n# A\n\nText.\n\n{code}\n# B\n"]
    notebooks.offer(app, "tutorials/a", source)
    assert source[0].startswith(
        "---\nsettings: 1\n---\n\n# A\n\n"
        "Download this page as a {download}`notebook <../_build/notebooks/a.ipynb>` or a "
        "{download}`script <../_build/notebooks/a.py>`.\n\nText.\n"
    )
    assert source[0].count("Download") == 1
    for page, text in {"tutorials/index": "# Index\n", "a": "# A\n"}.items():
        other = [text]
        notebooks.offer(app, page, other)
        assert other == [text]


@pytest.mark.parametrize("page", WITH_DATA, ids=lambda page: page.stem)
@pytest.mark.slow
def test_the_notebook_runs_without_data(page, reader, notebooks):
    files = files_of(page, reader, notebooks)
    notebook = nbformat.read(files[".ipynb"], as_version=4)
    folder = {"metadata": {"path": str(reader)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder).execute()
    (first,) = notebook.cells[[cell.cell_type for cell in notebook.cells].index("code")].outputs[:1]
    assert first.text.startswith("Synthetic twin of")
