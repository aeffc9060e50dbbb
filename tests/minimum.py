"""The oldest versions that pyproject.toml states, as constraints of pip.

``python -m tests.minimum`` prints them; ``make test-minimum`` installs them and runs some tests.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
INSTALLED = ["plot", "io", "cli", "tutorial", "predictors", "hubs", "grib", "test"]
"""Extras whose oldest versions are installed: others need a GPU, or make pages and benchmarks."""


def constraints() -> dict[str, str]:
    """The oldest version of each package.

    Raises
    ------
    ValueError
        If a requirement states none, or another than the same package elsewhere.
    """
    extras = PROJECT["optional-dependencies"]
    stated = [*PROJECT["dependencies"], *(one for extra in INSTALLED for one in extras[extra])]
    oldest: dict[str, str] = {}
    for requirement in stated:
        if requirement.startswith("xrecal["):
            continue
        found = re.fullmatch(
            r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:,!=[\d.*]+)*(?:;.*)?", requirement
        )
        if found is None:
            raise ValueError(
                f"pyproject.toml: {requirement!r} is not of the form NAME>=VERSION,!=VERSION,..."
            )
        name, version = found.groups()
        if oldest.setdefault(name, version) != version:
            raise ValueError(f"pyproject.toml: {name} is from {oldest[name]} on, and {version}")
    return oldest


if __name__ == "__main__":
    for name, version in constraints().items():
        print(f"{name}=={version}")
