"""The import direction and the size of files, as tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import xrecal
import xrecal.arrays

PACKAGE = Path(xrecal.__path__[0])
FILES = sorted(PACKAGE.rglob("*.py"))
ARRAYS = sorted((PACKAGE / "arrays").rglob("*.py"))
FORBIDDEN = ("xarray", "dask", "distributed", "matplotlib", "cupy", "scipy.linalg")
# What scipy.linalg computes holds the GIL; called by their addresses, LAPACK's functions do not.
ADDRESSES = "scipy.linalg.cython_lapack"


def imports(path: Path) -> set[str]:
    """Absolute names of everything a file imports, at the top or inside a function."""
    home = path.relative_to(PACKAGE.parent).parent.parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("path", ARRAYS, ids=lambda path: path.stem)
def test_arrays_know_no_labels_tasks_or_figures(path):
    for name in imports(path):
        forbidden = any(within(name, package) for package in FORBIDDEN)
        assert name == ADDRESSES or not forbidden, name
        if within(name, "xrecal"):
            assert within(name, "xrecal.arrays") or within(name, "xrecal.typing"), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 300


def test_importing_the_array_layer_loads_no_compiler():
    code = "import sys, xrecal.arrays; print('numba' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"


def test_array_layer_offers_what_it_names():
    assert dir(xrecal.arrays) == xrecal.arrays.__all__
    for name in xrecal.arrays.__all__:
        assert callable(getattr(xrecal.arrays, name))
    with pytest.raises(AttributeError, match=r"module 'xrecal.arrays' has no attribute 'nothing'"):
        _ = xrecal.arrays.nothing
