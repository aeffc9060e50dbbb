"""Every file of the package, what it is about and what it defines, for the design page."""

import ast
from collections.abc import Iterator
from pathlib import Path

from IPython.display import Markdown

PACKAGE = Path(__file__).parents[1] / "xrecal"


def files() -> Markdown:
    """List the files of each folder with the first line of their docstring."""
    return Markdown("\n".join(_listed(_first_line)))


def definitions() -> Markdown:
    """List the files of each folder with the names that they define."""
    return Markdown("\n".join(_listed(lambda tree: ", ".join(f"`{one}`" for one in _names(tree)))))


def _listed(of):
    """Yield lines of a list of all files, with what a function makes of each."""
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        yield f"\n**`{'xrecal' if folder == PACKAGE else folder.relative_to(PACKAGE)}/`**\n"
        for path in sorted(folder.glob("*.py")):
            if text := of(ast.parse(path.read_text())):
                yield f"- `{path.stem}`: {text}"


def _first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("``", "`")


def _names(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield functions, classes with fields and methods, and constants, in order."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            own = ", ".join(_names(node))
            yield f"{node.name}({own})" if own else node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (t.id for t in targets if isinstance(t, ast.Name) and t.id != "__all__")
