"""What a user does first with an installed xrecal: ``make dist`` runs this with the wheel alone.

``python -I tests/smoke.py VERSION [EXTRA]`` imports no other file of the tests. It does what the
packages of the extra serve; where a package is missing, the message must name the extra.
"""

import re
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from functools import partial, reduce
from importlib import import_module
from importlib.metadata import requires, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr
from packaging.requirements import Requirement

import xrecal

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
FORMATS = {".nc": ("netcdf4", "netCDF4"), ".zarr": ("zarr", "zarr")}
"""The package that each format of files needs, and its module."""


def required(extra: str = "") -> Iterator[Requirement]:
    """Packages that xrecal requires with an extra, those of the extras within it too."""
    for one in map(Requirement, requires("xrecal") or []):
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        if one.name != "xrecal":
            yield one
            continue
        for inner in one.extras:
            yield from required(inner)


def installed(extra: str) -> set[str]:
    """Names of the packages that xrecal requires, each installed in a version that it allows."""
    packages = list(required(extra))
    for one in packages:
        assert one.specifier.contains(version(one.name), prereleases=True), one
    return {one.name for one in packages}


def names_in_reference() -> list[str]:
    """Names that the pages of the reference list, with their modules."""
    names = []
    for page in sorted(REFERENCE.glob("*.md")):
        module = ""
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif module and re.fullmatch(r"   [A-Za-z]\w*(\.\w+)*", line):
                names.append(f"{module}.{line.strip()}")
    return names


def find(name: str) -> object:
    """Import the longest part of a name that is a module, and look up the rest in it."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[n:], module)
    raise ModuleNotFoundError(name)


def message_of(call: Callable[[], object]) -> str:
    """Message of the ImportError that a call raises."""
    try:
        call()
    except ImportError as error:
        return str(error)
    raise AssertionError("it needs no package")


def check_python(packages: set[str], folder: Path) -> None:
    """Fit, apply, score, save, open and draw."""
    data = xrecal.datasets.lorenz96(n_inits=260, n_members=8, n_locations=4, lead_days=[5])
    data = data.isel(lead=0, drop=True)
    hindcast, forecast, observed = data.forecast[:250], data.forecast[250:], data.observation
    model = hindcast.recal.fit(observed)
    assert model.method == xrecal.CKME()
    issued = forecast.recal.apply(model)
    assert issued.recal.crps(observed).mean() < forecast.recal.crps(observed).mean()
    median = model.quantile(forecast, 0.5)
    for suffix, (package, module) in FORMATS.items():
        path = folder / f"model{suffix}"
        if package in packages:
            model.save(path)
            opened = xrecal.open_recalibrator(path)
            xr.testing.assert_equal(opened.quantile(forecast, 0.5), median)
        elif find_spec(module) is None:
            assert "'xrecal[io]'" in message_of(lambda path=path: model.save(path))
    if "matplotlib" in packages:
        hindcast.recal.report(observed, path=folder / "report.pdf")
        assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
    elif find_spec("matplotlib") is None:
        assert "'xrecal[plot]'" in message_of(lambda: xrecal.plot)
    rows = folder / "rows.parquet"
    lead = xr.Variable((), 5, {"units": "days"})
    issue = partial(xrecal.hubs.write, forecast.assign_coords(lead=lead), rows, levels=[0.1, 0.9])
    if "pyarrow" in packages:
        assert len(issue()) == xrecal.hubs.read(rows).size
    elif find_spec("pyarrow") is None:
        assert "'xrecal[hubs]'" in message_of(issue)
    grib = folder / "new.grib"
    grib.touch()
    if "cfgrib" in packages:
        eccodes = import_module("eccodes")
        message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
        eccodes.codes_set(message, "productDefinitionTemplateNumber", 1)
        with grib.open("wb") as file:
            for number in (1, 2):
                eccodes.codes_set(message, "perturbationNumber", number)
                eccodes.codes_write(message, file)
        assert xrecal.Run().open(grib).sizes["number"] == 2
    elif find_spec("cfgrib") is None:
        assert "'xrecal[grib]'" in message_of(lambda: xrecal.Run().open(grib))
    sun = np.sin(observed.init.dt.dayofyear * 0.0172)
    pool, known = xrecal.LinearPool(forest=True), {"sun": sun}
    if "scikit-learn" in packages:
        components = hindcast.recal.fit(observed, pool, covariates=known).state["component"]
        assert any(name.startswith("forest") for name in components.to_numpy()), components
    elif find_spec("sklearn") is None:
        message = message_of(lambda: hindcast.recal.fit(observed, pool, covariates=known))
        assert "'xrecal[predictors]'" in message


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command that was installed beside this Python."""
    program = Path(sysconfig.get_path("scripts")) / "xrecal"
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)


def check_command(packages: set[str], folder: Path) -> None:
    """Ask the command for help; fit and apply files."""
    helped = command("--help")
    if "click" not in packages:
        if find_spec("click") is None:
            assert "'xrecal[cli,io]'" in helped.stderr, helped
        return
    assert helped.returncode == 0, helped
    assert {"fit", "apply", "cycle"} <= set(helped.stdout.split())
    if "netcdf4" in packages:
        data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
        data = data.isel(lead=0, drop=True)
        data.observation.to_netcdf(folder / "observed.nc")
        data.forecast[:50].to_netcdf(folder / "past.nc")
        data.forecast[50:].to_netcdf(folder / "new.nc")
        past, observed, new = (folder / f"{name}.nc" for name in ("past", "observed", "new"))
        fitted = command("fit", past, observed, folder / "fit.nc", "--method", "emos")
        assert fitted.returncode == 0, fitted
        applied = command(
            "apply", folder / "fit.nc", new, folder / "issued.nc", "--quantiles", "0.1,0.9"
        )
        assert applied.returncode == 0, applied
        assert xr.load_dataset(folder / "issued.nc")["forecast"].notnull().all()


def main(expected: str, extra: str = "") -> None:
    """Check the version, the packages, the names, the calls and the command."""
    warnings.simplefilter("ignore")
    assert Path(xrecal.__path__[0]).is_relative_to(sys.prefix), xrecal.__path__
    assert xrecal.__version__ == version("xrecal") == expected, xrecal.__version__
    packages = installed(extra)
    names = names_in_reference()
    assert len(names) > 300, len(names)
    for name in names:
        if "matplotlib" in packages or not name.startswith("xrecal.plot."):
            find(name)
    with TemporaryDirectory() as folder:
        check_python(packages, Path(folder))
        check_command(packages, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
