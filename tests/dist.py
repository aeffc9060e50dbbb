"""Build the wheel and the sdist, check them, and try the wheel alone with every extra.

``make dist`` runs it in an environment of its own, with the group ``dist`` of ``pyproject.toml``.
It leaves ``dist/`` and ``build/recipe.yaml``, the recipe for conda-forge with version and checksum.
"""

import ctypes.util
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
RECIPE = ROOT / ".github" / "conda" / "recipe.yaml"
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
ON_DEVICES = {"gpu"}
"""Extras that are installed where there is a CUDA device, and elsewhere only resolved."""


def run(*words: object, **environment: str) -> None:
    """Run a program outside the source tree's imports; its failure ends this one."""
    line = [str(word) for word in words]
    print("$", *line, flush=True)
    subprocess.run(line, cwd=ROOT, env=os.environ | environment, check=True)


def tool(name: str) -> str | None:
    """Path of a program of this environment, or None."""
    return shutil.which(name, path=str(Path(sys.executable).parent))


def check_files() -> None:
    """Check CITATION.cff and the workflows by their schemas, and workflows by actionlint."""
    checked = "check-jsonschema"
    run(tool(checked), "--builtin-schema", "vendor.citation-file-format", ROOT / "CITATION.cff")
    run(tool(checked), "--builtin-schema", "vendor.github-workflows", *WORKFLOWS.values())
    if tool("actionlint"):
        run(tool("actionlint"), *WORKFLOWS.values())
    else:
        print("actionlint is not installed: workflows are checked by their schema alone")


def build() -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist; check both, and return them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(tool("twine"), "check", "--strict", sdist, wheel)
    run(tool("check-wheel-contents"), wheel)
    return sdist, wheel


def write_recipe(sdist: Path, version: str, path: Path) -> None:
    """Write the recipe with the version and the checksum of the sdist."""
    text = RECIPE.read_text()
    for name, value in {
        "version": version,
        "sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
    }.items():
        text, n = re.subn(rf'^(  {name}: )".*"$', rf'\g<1>"{value}"', text, flags=re.MULTILINE)
        assert n == 1, name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def try_wheel(wheel: Path, version: str, extra: str, folder: Path) -> str:
    """Install the wheel with an extra into a fresh environment, and run tests/smoke.py there."""
    wanted = f"xrecal[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    if extra in ON_DEVICES and ctypes.util.find_library("cuda") is None:
        run(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run",
            "--ignore-installed", "--prefer-binary", wanted)  # fmt: skip
        return "resolved alone, as there is no CUDA device"
    more = [extra] if extra else []
    return run_with([wanted], [ROOT / "tests" / "smoke.py", version, *more], folder)


def run_with(wanted: list[str], script: list[object], folder: Path) -> str:
    """Run a script in a fresh environment with what is wanted."""
    fresh = folder / "fresh"
    venv.create(fresh, with_pip=False, symlinks=True)
    python = fresh / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--prefer-binary",
        *wanted)  # fmt: skip
    run(python, "-I", *script, XRECAL_CACHE_DIR=str(folder / "compiled"))
    shutil.rmtree(fresh)
    return "passed"


def main() -> None:
    """Do all of it, and print what each extra gave in how many seconds."""
    check_files()
    sdist, wheel = build()
    version = wheel.name.split("-")[1]
    write_recipe(sdist, version, ROOT / "build" / "recipe.yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        trials = {
            f"xrecal[{extra}]" if extra else "xrecal": partial(
                try_wheel, wheel, version, extra, folder
            )
            for extra in ("", *project["optional-dependencies"])
        }
        door = ROOT / "tests" / "earthkit_door.py"
        trials["with earthkit-data"] = partial(
            run_with, [str(wheel), "earthkit-data"], [door], folder
        )
        for trial, attempt in trials.items():
            began = time.perf_counter()
            found[trial] = f"{attempt()}, {time.perf_counter() - began:.0f} s"
    print(f"\nxrecal {version}: {sdist.name}, {wheel.name}")
    for trial, result in found.items():
        print(f"{trial:20} {result}")


if __name__ == "__main__":
    main()
