"""Every file of the package with the first line of its docstring, for the design page."""

import ast
from pathlib import Path

from IPython.display import Markdown

PACKAGE = Path(__file__).parents[1] / "xrecal"


def files() -> Markdown:
    """List the files of each folder, as the page is built."""
    lines = []
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}):
        lines.append(f"\n**`{folder.relative_to(PACKAGE)}/`**\n")
        for path in sorted(folder.glob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            if path.name != "__init__.py":
                lines.append(f"- `{path.stem}`: {text.splitlines()[0].replace('``', '`')}")
    return Markdown("\n".join(lines))
