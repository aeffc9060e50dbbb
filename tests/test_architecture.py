"""The shape of the package: which file imports which, and how large files and functions are.

Which folder may import which is a contract in ``pyproject.toml``, held by ``make lint``.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import xrecal
import xrecal.arrays
from tests.sizes import PACKAGE, lines_of_code

FILES = sorted(PACKAGE.rglob("*.py"))
ARRAYS = sorted((PACKAGE / "arrays").rglob("*.py"))
FORBIDDEN = ("xarray", "dask", "distributed", "matplotlib", "cupy", "scipy.linalg")
# What scipy.linalg computes holds the GIL; called by their addresses, LAPACK's functions do not.
ADDRESSES = "scipy.linalg.cython_lapack"
parsed = cache(ast.parse)


def module_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, package: Path = PACKAGE) -> set[tuple[str, str]]:
    """Modules and names in them that a file imports: at the top, for typing, inside a function."""
    home = path.relative_to(package.parent).parent.parts
    pairs = set()
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            pairs |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            pairs |= {(module, alias.name) for alias in node.names}
    return pairs


def circle(package: Path) -> list[str]:
    """Files of a package that import each other in a circle, or none."""
    files = {module_of(path, package): path for path in package.rglob("*.py")}
    graph = {}
    for module, path in files.items():
        pairs = imports(path, package)
        names = {
            f"{owner}.{name}" if f"{owner}.{name}" in files else owner for owner, name in pairs
        }
        graph[module] = names & set(files)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    yield from (n for n in ast.walk(parsed(path.read_text())) if isinstance(n, ast.FunctionDef))


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_no_files_import_each_other_in_a_circle():
    assert circle(PACKAGE) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from .b import g",
        "def f():\n    from package.b import g",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import b",
        "from package import name",
    ],
)
def test_a_circle_is_found_however_it_is_imported(tmp_path, planted):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from . import a\nname = 1\n")
    (package / "a.py").write_text(planted)
    (package / "b.py").write_text("from .a import f")
    assert "package.a" in circle(package)
    (package / "a.py").write_text("f = 1")
    assert circle(package) == []


def may_be_in_arrays(name: str) -> bool:
    """Whether the array layer may import a name."""
    if within(name, "xrecal"):
        return within(name, "xrecal.arrays") or within(name, "xrecal.typing")
    return name == ADDRESSES or not any(within(name, package) for package in FORBIDDEN)


def test_arrays_know_no_labels_tasks_or_figures():
    assert ARRAYS
    assert [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in ARRAYS
        for name in sorted({".".join(pair).rstrip(".") for pair in imports(path)})
        if not may_be_in_arrays(name)
    ] == []


def lines_of_body(function: ast.FunctionDef) -> int:
    """From the first statement after the docstring to the last."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_files_and_functions_are_short():
    lines = {str(path.relative_to(PACKAGE)): lines_of_code(path.read_text()) for path in FILES}
    assert {name: n for name, n in lines.items() if n > 400} == {}
    assert [
        f"{path.relative_to(PACKAGE)}: {function.name}"
        for path in FILES
        for function in functions(path)
        if lines_of_body(function) > 50
    ] == []


LIGHT = """
import sys, xrecal
heavy = "numba matplotlib distributed scipy.optimize pooch click zarr netCDF4".split()
print({*heavy} & {*sys.modules})
import xrecal.arrays, xrecal.cli.commands
xrecal.datasets.sinus(10)
print({"numba"} & {*sys.modules})
"""


def test_importing_loads_only_what_is_needed():
    command = [sys.executable, "-c", LIGHT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "set()"]


def test_the_array_layer_has_no_other_names():
    with pytest.raises(AttributeError, match=r"module 'xrecal.arrays' has no attribute 'nothing'"):
        _ = xrecal.arrays.nothing
