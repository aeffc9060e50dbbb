"""Sphinx settings. Nothing is fetched at build time."""

from importlib.metadata import version as installed

project = "xrecal"
author = "The xrecal developers"
release = installed("xrecal")
version = release.split("+")[0]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "none"  # shapes and units stand in the docstrings
numpydoc_show_class_members = False
html_theme = "furo"
html_title = "xrecal"
exclude_patterns = ["_build"]
nitpicky = False
