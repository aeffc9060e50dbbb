"""A GRIB file that earthkit-data opens is fitted and applied.

``make dist`` runs this in an environment with the wheel and earthkit-data, as the extra ``grib``
leaves out the library that earthkit-data needs.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

import xrecal

STARTS, STEPS, MEMBERS, SHAPE = 40, (24, 48), 5, (2, 3)


def write(path: Path) -> None:
    """Write temperatures of all starts, steps and members."""
    import eccodes

    rng = np.random.default_rng(0)
    keys = {
        "productDefinitionTemplateNumber": 1,
        "shortName": "2t",
        "Nj": SHAPE[0],
        "Ni": SHAPE[1],
        "latitudeOfFirstGridPointInDegrees": 50.0,
        "latitudeOfLastGridPointInDegrees": 49.0,
        "longitudeOfFirstGridPointInDegrees": 1.0,
        "longitudeOfLastGridPointInDegrees": 3.0,
    }
    starts = np.datetime64("2001-01-01") + np.arange(STARTS) * np.timedelta64(1, "D")
    with path.open("wb") as file:
        for start in starts.tolist():
            for step in STEPS:
                for number in range(MEMBERS):
                    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
                    of = {"dataDate": int(f"{start:%Y%m%d}"), "dataTime": 0, "endStep": step}
                    for key, value in (keys | of | {"perturbationNumber": number}).items():
                        eccodes.codes_set(message, key, value)
                    eccodes.codes_set_values(message, 280 + rng.normal(size=np.prod(SHAPE)))
                    eccodes.codes_write(message, file)
                    eccodes.codes_release(message)


def main() -> None:
    """Fit the file, apply the fit, and score."""
    import earthkit.data

    assert Path(xrecal.__path__[0]).is_relative_to(sys.prefix), xrecal.__path__
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ensemble.grib2"
        write(path)
        hindcast = earthkit.data.from_source("file", str(path)).to_xarray()["2t"].load()
    days = np.datetime64("2001-01-01", "ns") + np.arange(STARTS + 2) * np.timedelta64(1, "D")
    observed = xr.DataArray(
        280 + np.random.default_rng(1).normal(size=(days.size, *SHAPE)),
        {"time": days, **{d: hindcast[d].to_numpy() for d in ("latitude", "longitude")}},
        ("time", "latitude", "longitude"),
        attrs={"units": "K"},
    )
    model = hindcast.recal.fit(observed, xrecal.EMOS())
    assert model.state["status"].sizes == {"step": 2, "latitude": SHAPE[0], "longitude": SHAPE[1]}
    issued = hindcast.recal.apply(model)
    assert issued.recal.crps(observed).mean() < hindcast.recal.crps(observed).mean()


if __name__ == "__main__":
    main()
