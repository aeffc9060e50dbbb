"""Recalibrate minimum temperature at one station: trained before 2010, tested from 2010.

Eleven members of the GEFS reforecast at Innsbruck airport, which lies in a valley far below the
model's orography: a bias of 9 K, and nearly every observation outside the ensemble.

    python examples/station_temperature.py
"""

import os
from pathlib import Path

import xarray as xr

import xrecal

DATA = Path(os.environ.get("XRECAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> xr.Dataset:
    path = DATA / "innsbruck_gefs.nc"
    if not path.exists():
        raise SystemExit(f"no {path}; set XRECAL_DATA to the folder that holds {path.name}")
    with xr.open_dataset(path) as data:
        station = data.load()
    hindcast = station.tmin_forecast.sel(time=slice(None, "2009"))
    forecast = station.tmin_forecast.sel(time=slice("2010", None))
    observations = station.tmin_observation

    ckme = xrecal.CKME(loss="laplace", folds="block")
    model = hindcast.recal.fit(observations.sel(time=slice(None, "2009")), ckme)
    print(model, end="\n\n")
    print(model.quantile(forecast, [0.1, 0.5, 0.9])[:3].to_pandas().round(1), end="\n\n")

    table = xrecal.compare(
        hindcast,
        observations.sel(time=slice(None, "2009")),
        [xrecal.EMOS(), ckme],
        forecast=forecast,
        verification=observations.sel(time=slice("2010", None)),
    )
    print(table)
    return table


if __name__ == "__main__":
    main()
