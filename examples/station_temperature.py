"""Recalibrate minimum temperature at one station: fitted before 2010, tested from 2010.

The forecasts have eleven members of the GEFS reforecast at Innsbruck airport. The airport lies in a
valley far below the model's orography. So the bias is 9 K, and nearly every observation lies
outside the ensemble.

    python examples/station_temperature.py
"""

import xarray as xr
from real_data import open_data

import xrecal


def main() -> xr.Dataset:
    station = open_data("innsbruck_gefs.nc")
    observations = station.tmin_observation
    hindcast = station.tmin_forecast.sel(time=slice(None, "2009"))
    forecast = station.tmin_forecast.sel(time=slice("2010", None))

    ckme = xrecal.CKME(support="observations", loss="laplace", folds="block")
    model = hindcast.recal.fit(observations, ckme)
    print(model, end="\n\n")
    print(model.quantile(forecast, [0.1, 0.5, 0.9])[:3].to_pandas().round(1), end="\n\n")

    table = xrecal.compare(hindcast, observations, [xrecal.EMOS(), ckme], forecast=forecast)
    print(table)
    return table


if __name__ == "__main__":
    main()
