"""Sphinx settings. Nothing is fetched, neither when pages are built nor when they are read."""

import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import sphinx_autosummary_accessors
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "extensions"), str(DOCS.parent / "examples")]

project = "xrecal"
author = "The xrecal developers"
copyright = author
release = installed("xrecal")
version = release.split("+")[0]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "execution",
    "mathml",
    "myst_nb",
    "notebooks",
    "numpydoc",
    "sphinx_autosummary_accessors",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# References: every name that is meant as a link must be one.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpy|scipy)\..*")]  # their inventories are not fetched
autodoc_typehints = "none"  # shapes and units stand in the docstrings
numpydoc_show_class_members = False
templates_path = ["templates", sphinx_autosummary_accessors.templates_path]

# Pages with code are run as they are built; results are kept until the page or the package changes.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 180  # seconds a cell
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables of benchmarks
nb_output_stderr = "warn"
nb_render_image_options = {"alt": "Figure drawn by the code above"}

html_theme = "furo"
html_title = "xrecal"
html_static_path = ["static"]
html_css_files = ["xrecal.css"]
html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", fold_navigation, priority=400)  # before the theme's


def fold_navigation(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Open the reader's branch alone: all names beside all pages took most of the writing."""
    if "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**options | {"collapse": True})
