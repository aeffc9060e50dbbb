"""All lead times in one call: the MJO index to 44 days, river discharge to 30 days.

The hindcasts have starts and leads. The observations are a plain series over dates: the observation
at the valid time verifies each forecast. Each lead learns from its own past. To take only two
minutes, the script uses every fourth lead of the index, and every fourth start of the discharge of
three rivers.

    python examples/multi_lead.py
"""

import xarray as xr
from real_data import open_data

import xrecal

METHODS = {
    "EMOS": xrecal.EMOS(),
    "CKME": xrecal.CKME(condition_on="season"),
    "LinearPool": xrecal.LinearPool(),
}


def series_of(observation: xr.DataArray) -> xr.DataArray:
    """Turn observations at starts and leads into one series over dates; check that they agree."""
    stacked = observation.stack(time=("init", "lead"))
    dates = stacked.valid_time.to_numpy()
    stacked = stacked.drop_vars([c for c in stacked.coords if "time" in stacked[c].dims])
    by_date = stacked.assign_coords(time=dates).groupby("time")
    lowest, highest = by_date.min(), by_date.max()
    if bool((lowest != highest).any()):
        raise ValueError("observations of one date differ between starts")
    return lowest


def scores(forecast: xr.DataArray, series: xr.DataArray) -> xr.DataArray:
    """Compute the CRPS of each lead on the last 40 % of the starts, by fits to earlier data."""
    n_past = int(0.6 * forecast.sizes["init"])
    past, new = forecast.isel(init=slice(n_past)), forecast.isel(init=slice(n_past, None))
    known = series.sel(time=slice(None, new.init[0]))
    found = {"raw": new.recal.crps(series, dim="init")}
    for label, method in METHODS.items():
        model = past.recal.fit(known, method).compute()
        found[label] = model.crps(new, series, dim="init")
    print(model, end="\n\n")
    return xr.concat(found.values(), "method").assign_coords(method=list(found))


def show(title: str, table: xr.DataArray) -> None:
    """Print one line for each lead: the mean over stations if there are several."""
    each = table if "station" in table.dims else table.expand_dims("station")
    table = each.mean("station")
    print(f"{title}: CRPS ({each.attrs.get('units', '1')})")
    print(" lead" + "".join(f"{label:>12}" for label in table.method.to_numpy()))
    for lead in table.lead:
        row = table.sel(lead=lead).to_numpy()
        print(f"{int(lead):5d}" + "".join(f"{value:12.3f}" for value in row))
    for label in METHODS:
        worse = table.sel({"method": label}) > table.sel({"method": "raw"})
        print(f"{label} is worse than raw at {told(worse, 'no lead')}")
        if each.sizes["station"] > 1:
            for station, one in each.groupby("station"):
                worse = (one.sel({"method": label}) > one.sel({"method": "raw"})).squeeze()
                print(f"  {station}: at {told(worse, 'no lead')}")
    print()


def told(chosen: xr.DataArray, none: str) -> str:
    """List the chosen leads as text, or return ``none`` if there are none."""
    return ", ".join(map(str, chosen.lead[chosen].to_numpy())) or none


def main(leads: dict[str, list[int]] | None = None) -> dict[str, xr.DataArray]:
    mjo = open_data("gmao_mjo_rmm1.nc")
    glofas = open_data("glofas_discharge.nc").isel(init=slice(None, None, 4))
    leads = leads or {"MJO RMM1": list(range(0, 45, 4))}
    tables = {}
    for title, data in {"MJO RMM1": mjo, "GloFAS discharge": glofas}.items():
        forecast = data.forecast.drop_vars("valid_time")  # start plus lead is the same
        forecast = forecast.sel(lead=leads.get(title, data.lead))
        forecast = forecast.chunk(lead=1)  # one task for each lead, on all cores
        tables[title] = scores(forecast, series_of(data.observation)).compute()
        show(title, tables[title])
    return tables


if __name__ == "__main__":
    main()
