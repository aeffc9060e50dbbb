"""Budget: bytes of a stored model against those of the hindcast."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import xrecal

from .data import make_hindcast
from .tables import Line, Missing, megabytes


def bytes_of(path: Path) -> int:
    """Bytes of a file or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def budgets(quick: bool) -> Iterator[Line | Missing]:
    n, m, n_locations = (60, 5, 2) if quick else (1000, 50, 8)
    # The ridge is given: how large a model is does not depend on how it was found.
    cases = {
        f"n={n} m={m}": (n, m, xrecal.CKME(ridge=0.01, support="observations", solver="exact")),
        f"n={n} m={m} low rank": (
            n,
            m,
            xrecal.CKME(ridge=0.01, support="observations", solver="lowrank"),
        ),
    }
    if not quick:
        cases["n=3000 m=10 low rank"] = (3000, 10, xrecal.CKME(ridge=0.01, support="observations"))
    for label, (size, members, method) in cases.items():
        hindcast, observations = make_hindcast(size, members, n_locations)
        model = hindcast.recal.fit(observations, method)
        with TemporaryDirectory() as folder:
            paths = [Path(folder) / "model.zarr", Path(folder) / "model.nc"]
            for path in paths:
                model.save(path)
            zarr, netcdf = map(bytes_of, paths)
        memory = model.state.nbytes
        absolute = (
            f"Zarr {megabytes(zarr)}, netCDF {megabytes(netcdf)}, in memory {megabytes(memory)} "
            f"v {megabytes(hindcast.nbytes)}"
        )
        largest = max(zarr, netcdf, memory) / hindcast.nbytes
        yield Line(f"stored model / hindcast, {label}", largest, "x", absolute, 3)
