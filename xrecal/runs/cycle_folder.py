"""The folder of a daily cycle: models and forecasts by date, scores, monitor and status.

A run writes each file under a temporary name, and then renames it. So a killed run leaves only
complete files, and the next run writes the missing ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.storage.lock import lock_of, locked
from xrecal.storage.paths import (
    discard_partial,
    remove,
    require_folder,
    sync,
    writing,
    written_aside,
)
from xrecal.storage.storage import open_data, require_opens

from .files import Source
from .outcome import stem_of

MARK = "cycle.json"
"""File that marks the folder of a cycle, with the hash of the fit that the last run has used."""

STATUS, SCORES, MONITOR = "status.json", "scores.nc", "monitor.nc"
MAIL = "status.txt"
"""File with the status as text."""

MISSING = "xrecal_missing"
"""Attribute of a forecast's file: text that lists leads without values, and missing members."""

STEM = "[0-9]*T[0-9]*[0-9]"
"""Pattern of the names of starts in file names; the cycle ignores files with other names."""


@dataclass(frozen=True)
class Folder:
    """The folder of a cycle, and its files."""

    path: Path
    suffix: str
    """Suffix of models: .nc or .zarr."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder, and remove half-written files of a killed run.

        Raises
        ------
        FileExistsError
            If another process writes to the folder, or the folder does not belong to a cycle.
        """
        require_folder(self.path)
        with locked(self.path):
            if self.path.exists() and not (self.path / MARK).exists():
                self._require_own()
            for folder in (self.path, self.path / "models", self.path / "forecasts"):
                folder.mkdir(exist_ok=True)
            sync([], self.path.parent)
            for folder in (self.path, self.path / "models", self.path / "forecasts"):
                _clean(folder)
            yield

    def _require_own(self) -> None:
        """Raise FileExistsError if the folder has files that a first run does not make."""
        if not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file; give an existing or a new folder")
        own = {"models", "forecasts", f"{MARK}.lock", f"{MARK}.partial"}
        others = sorted(one.name for one in self.path.iterdir() if one.name not in own)
        if others:
            raise FileExistsError(
                f"{self.path} is a folder, but not of a cycle: it holds {', '.join(others[:3])}; "
                "take another path; the folder need not exist"
            )

    def write(
        self,
        path: Path,
        make: Callable[[Path], Any],
        check: Callable[[Path], object] = require_opens,
    ) -> None:
        """Write a file: ``make`` writes to a temporary path, and ``check`` must read the result."""
        with writing(path), written_aside(path, check) as aside:
            make(aside)

    def write_json(self, name: str, content: Mapping[str, Any]) -> bool:
        """Write a JSON file if its content changes; return whether the file was written."""
        if self.read_json(name) == content:
            return False
        self.write_text(name, json.dumps(content, indent=1, allow_nan=False))
        return True

    def write_text(self, name: str, text: str) -> None:
        """Write a file of text."""
        check = require_opens if name.endswith(".json") else Path.read_text
        self.write(self.path / name, lambda aside: aside.write_text(f"{text}\n"), check)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file, or an empty dict if there is no such file."""
        path = self.path / name
        if not path.exists():
            return {}
        content: Any = None
        with suppress(ValueError):
            content = json.loads(path.read_text())
        if not isinstance(content, dict):
            remedy: tuple[str | Typed, ...] = (f"remove it: rm {quote(str(path))}",)
            if name == MARK:
                remedy = ("take another ", Typed("folder"))
            raise ValueError(Advice(f"{path} is damaged: it is not JSON of a cycle; ", *remedy))
        return content

    def write_data(self, name: str, dataset: xr.Dataset) -> None:
        """Write a netCDF file."""
        self.write(self.path / name, lambda aside: dataset.to_netcdf(aside, engine="netcdf4"))

    def read_data(self, name: str) -> xr.Dataset | None:
        """Read a netCDF file into memory; return None if there is no such file."""
        path = self.path / name
        if not path.exists():
            return None
        with open_data(path, str(path)) as opened:
            return opened.load()

    def forecast(self, start: np.datetime64) -> Path:
        """Return the path of the forecast of a start."""
        return self.path / "forecasts" / f"{stem_of(start)}.nc"

    def model(self, stem: str) -> Path:
        """Return the path of the model of a start; ``stem`` is the name of the start."""
        return self.path / "models" / f"{stem}{self.suffix}"

    def models(self) -> list[str]:
        """Return the names of the starts with stored models, in order."""
        found = (self.path / "models").glob(f"{STEM}{self.suffix}")
        return sorted(path.name.removesuffix(self.suffix) for path in found)

    def issued(self) -> list[str]:
        """Return the names of the starts with a forecast, in order."""
        return sorted(path.stem for path in (self.path / "forecasts").glob(f"{STEM}.nc"))

    def missing_in(self, stem: str) -> str:
        """Return the text on missing values and members that is stored in a forecast's file."""
        import netCDF4

        try:
            with netCDF4.Dataset(self.path / "forecasts" / f"{stem}.nc") as file:
                return str(getattr(file, MISSING, ""))
        except OSError as error:
            return f"the file cannot be read ({error.strerror}); remove it to issue the start again"

    def drop_models(self, stems: list[str]) -> None:
        """Remove the models of some starts, one after the other."""
        for stem in stems:
            remove(self.model(stem))


def _clean(folder: Path) -> None:
    """Remove temporary files of a killed run.

    Only the process that has locked the cycle writes to the folders of the cycle. So all lock files
    in these folders come from killed runs, and this function removes them, too.
    """
    for lock in sorted(folder.glob("*.lock")):
        lock.unlink()
    for partial in sorted(folder.glob("*.partial")):
        path = partial.with_name(partial.name.removesuffix(".partial"))
        with writing(path):
            discard_partial(path)
    assert not lock_of(folder / MARK).exists()


def digest_of_file(one: Source) -> str:
    """Hash the content of a model's file, or the number, size and date of a store's files."""
    if one.path.is_dir():
        numbers = {k: v for k, v in one.fingerprint().items() if k != "path"}
        return blake2b(repr(numbers).encode(), digest_size=16).hexdigest()
    with one.path.open("rb") as stream:
        return file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()
