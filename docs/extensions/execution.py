"""How pages with code are run: what is kept, what kernels find, what is done without the data."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from real_data import FOLDER
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

import xrecal

LOG = logging.getLogger(__name__)

READS_DATA = "from real_data import"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def prepare(app: Sphinx, config: Config) -> None:
    docs = Path(app.srcdir)
    build = docs / "_build"
    config.nb_execution_cache_path = str(build / "executed" / hash_of_sources(docs))
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["MATPLOTLIBRC"] = str(docs / "matplotlibrc")
    os.environ["IPYTHONDIR"] = str(settings_of_kernels(build))
    if not FOLDER.is_dir():
        pages = [path for path in docs.rglob("*.md") if READS_DATA in path.read_text()]
        config.nb_execution_excludepatterns = [str(path.relative_to(docs)) for path in pages]
        app.tags.add("without_data")
        LOG.info(f"no {FOLDER}: pages without results are {config.nb_execution_excludepatterns}")


def settings_of_kernels(build: Path) -> Path:
    """A folder of settings in place of the user's: figures have twice as many pixels."""
    profile = build / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = "c = get_config()\nc.InlineBackend.figure_formats = {'retina'}\n"
    (profile / "ipython_kernel_config.py").write_text(settings)
    return profile.parent


def hash_of_sources(docs: Path) -> str:
    """What results depend on beside the page: the package, what examples share, benchmarks."""
    found = hashlib.sha256()
    package, examples = Path(xrecal.__path__[0]), docs.parent / "examples"
    measured = docs.parent / "benchmarks" / "results"
    sources = [*package.rglob("*.py"), *examples.glob("*.py"), *measured.glob("*.csv")]
    for path in sorted([*sources, docs / "matplotlibrc"]):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]
