"""Two variables at once: night temperature and rain at Innsbruck, recalibrated jointly.

The forecasts have eleven GEFS members. The model learns from 1881 cases of 2000-2010; the script
scores 868 cases of 2011-2016. Marginal recalibration gives each variable a distribution of its own.
The raw members (ecc) or past dates (schaake) may then decide which temperature and rain belong to
one member. Joint recalibration gives each past day one weight for both variables, so its members
are observed days. The energy score judges temperature and rain together, each in units of its
standard deviation.

    python examples/joint_variables.py
"""

import pandas as pd
import xarray as xr
from real_data import open_data

import xrecal

VARIABLES = "temperature", "rain"
N_MEMBERS = 100


def main() -> pd.DataFrame:
    data = open_data("innsbruck_gefs.nc")
    names = {"tmin": "temperature", "rain": "rain"}
    forecast = xr.Dataset({new: data[f"{old}_forecast"] for old, new in names.items()})
    observed = xr.Dataset({new: data[f"{old}_observation"] for old, new in names.items()})
    hindcast, new = forecast.sel(time=slice("2010")), forecast.sel(time=slice("2011", None))
    spread = observed.sel(time=hindcast.time).std("time")

    season = xrecal.CKME(support="observations", condition_on="season")
    marginal = hindcast.recal.fit(observed, season)
    best = hindcast.recal.fit(observed, xrecal.CKME(condition_on="season"))
    joint = hindcast.recal.fit(observed, season, jointly=VARIABLES)
    print(joint, end="\n\n")

    issued = {
        "raw": new,
        "marginal": marginal.members(new, N_MEMBERS),
        "marginal, ecc": marginal.members(new, coherence="ecc"),
        "marginal, schaake": marginal.members(new, N_MEMBERS, coherence="schaake"),
        "marginal of errors, ecc": best.members(new, coherence="ecc"),
        "joint": joint.members(new, N_MEMBERS),
        "joint, all weights": joint.apply(new),
    }
    table = pd.DataFrame({name: scores(of, observed, spread) for name, of in issued.items()}).T
    print(table.round(3).to_string())
    return table


def scores(forecast: xr.Dataset, observed: xr.Dataset, spread: xr.Dataset) -> dict[str, float]:
    """Compute mean scores over all cases, of each variable and of both variables together."""
    crps = forecast.recal.crps(observed, dim="time")
    energy = forecast.recal.energy_score(observed, dim="time", jointly=VARIABLES, scale=spread)
    return {
        "members": float(forecast.sizes["member"]),
        "CRPS temperature (K)": crps["temperature"].item(),
        "CRPS rain (mm)": crps["rain"].item(),
        "energy score": energy.item(),
    }


if __name__ == "__main__":
    main()
