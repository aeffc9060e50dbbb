"""Fields of sea surface temperature: compare ways to make members with realistic shapes.

Decadal hindcasts (CESM-DPLE) of the eastern tropical Pacific, 37 x 26 cells, 10 members. The
script holds out each of five blocks of years, and the model learns from the other blocks. The
script scores the members of the held-out block as whole fields, by the energy score and the
variogram score. The variogram score uses only differences between cells. Without coherence, the
members have the right values at each cell, but not the shape of a field.

    python examples/fields.py --output demo
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from real_data import open_data

import xrecal

N_MEMBERS = 10
WAYS = {"no coherence": None, "ecc": "ecc", "schaake": "schaake", "dates": "dates"}


def main(output: Path) -> pd.DataFrame:
    output.mkdir(parents=True, exist_ok=True)
    data = open_data("cesm_dple_epacific_lagged.nc")
    forecast, observations = data.forecast, data.observation

    fields = {"raw": forecast, **held_out_members(forecast, observations)}
    table = scores(fields, observations)
    print(table.round(3).to_string(), end="\n\n")

    warmest = int(observations.mean(["nlat", "nlon"]).argmax("time"))
    figure = plot(fields, observations, table, warmest)
    figure.savefig(output / "fields.png", dpi=120)
    print(f"wrote {output / 'fields.png'}")
    return table


def held_out_members(
    forecast: xr.DataArray, observations: xr.DataArray, blocks: int = 5, seed: int = 0
) -> dict[str, xr.DataArray]:
    """Make members of each kind for all cases, by models that do not know the block of the case."""
    parts: dict[str, list[xr.DataArray]] = {name: [] for name in WAYS}
    for test in np.array_split(np.arange(forecast.sizes["time"]), blocks):
        train = np.setdiff1d(np.arange(forecast.sizes["time"]), test)
        model = forecast.isel(time=train).recal.fit(
            observations, xrecal.CKME(support="observations")
        )
        for name, coherence in WAYS.items():
            members = model.members(
                forecast.isel(time=test), N_MEMBERS, coherence=coherence, seed=seed
            )
            parts[name].append(members)
    return {name: xr.concat(made, "time") for name, made in parts.items()}


def scores(fields: dict[str, xr.DataArray], observations: xr.DataArray) -> pd.DataFrame:
    """Compute mean scores of the held-out cases: CRPS of cells, other scores of whole fields."""
    table = {}
    for name, members in fields.items():
        table[name] = {
            "CRPS": members.recal.crps(observations).mean().item(),
            "energy score": members.recal.energy_score(observations, dim="time").item(),
            "variogram score": members.recal.variogram_score(observations, dim="time").item(),
        }
    return pd.DataFrame(table).T


def plot(
    fields: dict[str, xr.DataArray], observations: xr.DataArray, table: pd.DataFrame, case: int
) -> plt.Figure:
    """Plot one member of each kind and the observation, for one held-out case."""
    maps = {"observed": observations.isel(time=case)}
    maps |= {name: members.isel(time=case, member=0) for name, members in fields.items()}
    figure, axes = plt.subplots(
        2, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained"
    )
    relative = table["variogram score"] / table["variogram score"]["raw"]
    end = max(float(np.abs(field).max()) for field in maps.values())
    east = observations["TLONG"] - 360
    for ax, (name, field) in zip(axes.flat, maps.items(), strict=True):
        image = ax.pcolormesh(
            east, observations["TLAT"], field, vmin=-end, vmax=end, cmap="RdBu_r", shading="nearest"
        )
        told = f": variogram score {relative[name]:.2f} of raw" if name in relative[1:] else ""
        ax.set_title(f"{name}{told}", fontsize="medium")
        ax.set_facecolor("0.8")
        ax.set_aspect("equal")
    for ax in axes[:, 0]:
        ax.set_ylabel("latitude")
    for ax in axes[-1]:
        ax.set_xlabel("longitude")
    figure.colorbar(image, ax=axes, label="anomaly (K)")
    year = int(observations["time"][case])
    figure.suptitle(
        f"Sea surface temperature, tropical Pacific {year}: one held-out member of each kind"
    )
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the results")
    main(parser.parse_args().output)
