"""Open real forecasts for the examples, from a folder beside the checkout or XRECAL_DATA."""

import os
from pathlib import Path

import xarray as xr

FOLDER = Path(
    os.environ.get("XRECAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def open_data(name: str) -> xr.Dataset:
    path = FOLDER / name
    if not path.exists():
        raise SystemExit(f"no {path}; set XRECAL_DATA to the folder that holds {name}")
    return xr.load_dataset(path)
