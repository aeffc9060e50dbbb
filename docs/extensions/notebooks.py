"""A notebook and a script of each tutorial to download, made of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.config import Config

FOLDER = "_build/notebooks"
SHELL = "%%bash"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", write_all)
    app.connect("source-read", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_all(app: Sphinx, config: Config) -> None:
    """Write the files of all tutorials, before pages that offer them are read."""
    docs = Path(app.srcdir)
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for page in (docs / "tutorials").glob("*.md"):
        write(page, folder)


def write(page: Path, folder: Path) -> list[Path]:
    """Write the notebook of a page with code, and its script unless a cell is one of the shell."""
    notebook = notebook_of(page.read_text())
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    texts = {".ipynb": nbformat.writes(notebook), ".py": script_of(notebook)}
    if any(source.startswith(SHELL) for source in code):
        del texts[".py"]
    written = [folder / f"{page.stem}{suffix}" for suffix in texts if code]
    for path in written:
        path.write_text(texts[path.suffix])
    return written


def notebook_of(text: str) -> nbformat.NotebookNode:
    """A page as a notebook; names and links that only the built pages resolve become plain text."""
    notebook = read_myst_markdown_notebook(text)
    notebook.metadata.pop("jupytext", None)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"  # the same in each build
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", cell.source)
            cell.source = re.sub(r"\{\w+\}(?=`)", "", cell.source)
    return notebook


def script_of(notebook: nbformat.NotebookNode) -> str:
    """Cells in the percent format, which editors run one by one; at the end figures are shown."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts.append(f"# %%\n{cell.source}\n")
        else:
            lines = (f"# {line}".rstrip() for line in cell.source.splitlines())
            parts.append("\n".join(["# %% [markdown]", *lines, ""]))
    if any("import matplotlib.pyplot as plt" in part for part in parts):
        parts.append("# %%\nplt.show()\n")
    return "\n".join(parts)


def offer(app: Sphinx, page: str, source: list[str]) -> None:
    """Put links to the files of a page below its title."""
    found = Path(app.srcdir) / FOLDER / Path(page).name
    names = {".ipynb": "notebook", ".py": "script"}
    links = [
        f"{{download}}`{name} <../{FOLDER}/{found.name}{suffix}>`"
        for suffix, name in names.items()
        if page.startswith("tutorials/") and found.with_suffix(suffix).exists()
    ]
    if links:
        line = f"Download this page as a {' or a '.join(links)}."
        source[0] = re.sub(r"^(# .+\n)", rf"\1\n{line}\n", source[0], count=1, flags=re.M)
