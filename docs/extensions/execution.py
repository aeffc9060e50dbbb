"""Execution of pages with code: cached results, and the environment of their kernels."""

from __future__ import annotations

import hashlib
import os
import sys
from logging import WARNING, getLogger
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor
from real_data import FOLDER
from sphinx.application import Sphinx
from sphinx.config import Config

import xrecal

HAS_CODE = "{code-cell}"
READER = {"type": "plugin", "name": "myst_nb_md"}


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
    os.environ["XRECAL_DATA"] = str(FOLDER if FOLDER.is_dir() else twins_in(build / "data"))
    run([path for path in docs.rglob("*.md") if HAS_CODE in path.read_text()], config)


def twins_in(folder: Path) -> Path:
    """A folder with a twin of the data that `open_tutorial` would download: nothing is fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    twin = xrecal.datasets.open_tutorial("mjo_rmm1", twin=True)
    twin.to_netcdf(folder / "gmao_mjo_rmm1.nc")
    return folder


def run(pages: list[Path], config: Config) -> None:
    """Run pages on all cores, the tutorials first as they take longest, into what Sphinx reads.

    It runs those that fail here once more, and tells the error.
    """
    cache = get_cache(config.nb_execution_cache_path)
    for page in sorted(pages, reverse=True):
        cache.add_nb_to_project(str(page), read_data=READER)
    logger = getLogger("jupyter_cache")
    logger.setLevel(WARNING)
    executor = load_executor("local-parallel", cache, logger)
    executor.run_and_cache(timeout=config.nb_execution_timeout)


def settings_of_kernels(build: Path) -> Path:
    """A folder of settings in place of the user's: sharper figures, and no progress."""
    profile = build / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    silent = "import xrecal; _silent = xrecal.progress(shown=False); _silent.__enter__()"
    settings = (
        "c = get_config()\nc.InlineBackend.figure_formats = {'retina'}\n"
        f"c.InteractiveShellApp.exec_lines = [{silent!r}]\n"
    )
    (profile / "ipython_kernel_config.py").write_text(settings)
    return profile.parent


def hash_of_sources(docs: Path) -> str:
    """What results depend on beside the page: real data or twins, the package, benchmarks."""
    found = hashlib.sha256(str(FOLDER.is_dir()).encode())
    package, measured = Path(xrecal.__path__[0]), docs.parent / "benchmarks" / "results"
    sources = [*package.rglob("*.py"), *measured.glob("*.csv")]
    for path in sorted([*sources, docs / "measured.py", docs / "house.py", docs / "matplotlibrc"]):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]
