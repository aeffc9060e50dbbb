"""Recalibrate daily rain at one station: fitted on 2008-2011, tested on 2012-2013.

The forecasts have fifty members of the ECMWF ensemble at Frankfurt airport. More than half of the
observations are exactly zero, but only 5 % of the members. Recalibrated forecasts keep zeros exact,
because their members are past observations.

    python examples/station_rain.py
"""

import xarray as xr
from real_data import open_data

import xrecal


def main() -> xr.Dataset:
    station = open_data("frankfurt_rain.nc")
    methods = {
        "EMOS": xrecal.EMOS(),
        "CKME, Laplace loss": xrecal.CKME(support="observations", loss="laplace", folds="block"),
        "CKME, CRPS loss": xrecal.CKME(support="observations", folds="block"),
    }
    table = xrecal.compare(
        station.forecast.sel(time=slice("2008", "2011")),
        station.observation,
        methods,
        forecast=station.forecast.sel(time=slice("2012", "2013")),
    )
    print(table)
    return table


if __name__ == "__main__":
    main()
