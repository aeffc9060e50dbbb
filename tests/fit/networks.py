"""Networks of stations with labels."""

import xarray as xr


def labelled(network, members, observed, time):
    """Forecasts (time, station, member) and observations of a network, in double precision."""
    coords = {
        "time": time,
        "station": [f"s{i}" for i in range(observed.shape[1])],
        "lat": ("station", network.lat),
        "lon": ("station", network.lon),
        "height": ("station", network.height),
    }
    dims, attrs = ("time", "station", "member"), {"units": "degC"}
    forecasts = xr.DataArray(members.astype(float), coords, dims, "t2m", attrs)
    return forecasts, xr.DataArray(observed.astype(float), coords, dims[:2], attrs=attrs)
