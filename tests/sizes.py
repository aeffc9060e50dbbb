"""Lines of code of the package by folder, and of the tests, without docstrings and comments.

``python -m tests.sizes``, a part of ``make lint``. ``tests/test_architecture.py`` holds the limits
of files and functions.
"""

import ast
from collections import Counter
from pathlib import Path

import xrecal

PACKAGE = Path(xrecal.__path__[0])
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(text: str) -> int:
    """Lines that are no docstring, no comment and not empty."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = (line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in docstrings)
    return sum(bool(line) and not line.startswith("#") for line in lines)


def main() -> None:
    """Print the number of lines and files of each folder, and their sums."""
    for root in (PACKAGE, Path(__file__).parent):
        lines: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for path in sorted(root.rglob("*.py")):
            folder = path.relative_to(root).parts[0] if root == PACKAGE else ""
            for name in dict.fromkeys(("", folder)):
                lines[name] += lines_of_code(path.read_text())
                files[name] += 1
        for name, number in lines.items():
            where = f"{root.name}/{name}".rstrip("/")
            print(f"{number:6,} lines of code in {files[name]:3} files: {where}")


if __name__ == "__main__":
    main()
