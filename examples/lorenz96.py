"""Recalibrate a Lorenz 96 hindcast: learn from 300 starts, and score 100 later starts.

The two-scale system is the truth. The forecast model knows only the slow variables of this system,
and has a fitted parameterisation of its fast variables. The 20 members of the forecast start from
perturbed initial conditions. The spread of these conditions is half of their error.

    python examples/lorenz96.py --output demo
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import xrecal

N_TRAINING = 300
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def main(output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    data = xrecal.datasets.lorenz96()
    training, test = slice(None, N_TRAINING), slice(N_TRAINING, None)
    hindcast, observations = data.forecast.isel(init=training), data.observation.isel(init=training)
    forecast, verification = data.forecast.isel(init=test), data.observation.isel(init=test)

    model = hindcast.recal.fit(observations)
    print(model, end="\n\n")

    calibrated = forecast.recal.apply(model)
    calibrated.to_netcdf(output / "calibrated.nc")

    methods = [xrecal.EMOS(), xrecal.CKME(), xrecal.LinearPool(condition_on=())]  # no seasons here
    scores = xrecal.compare(
        hindcast, observations, methods, forecast=forecast, verification=verification
    )
    print(scores, end="\n\n")
    print("CRPS by lead time (days)")
    print(scores.crps.mean("location").to_pandas().round(3).to_string(), end="\n\n")

    figure = plot(forecast, calibrated, verification, scores)
    figure.savefig(output / "lorenz96.png", dpi=120)
    print(f"wrote {output / 'calibrated.nc'} and {output / 'lorenz96.png'}")


def plot(
    forecast: xr.DataArray, calibrated: xr.Dataset, verification: xr.DataArray, scores: xr.Dataset
) -> plt.Figure:
    """Plot fans of raw and calibrated forecasts at one location and lead, and CRPS by lead."""
    lead, location = 5, 0
    figure, axes = plt.subplot_mosaic(
        [["raw", "score"], ["calibrated", "score"]],
        figsize=(11, 5),
        width_ratios=[2, 1],
        layout="constrained",
    )
    cases = slice(None, 40)
    point = {"lead": lead, "location": location}
    observed = verification.sel(point)[cases]
    fans = {
        "raw": forecast.recal.quantile(LEVELS),
        "calibrated": calibrated.recal.quantile(LEVELS).forecast,
    }
    date = observed["init"]
    for name, quantiles in fans.items():
        low, lower, median, upper, high = quantiles.sel(point)[cases].transpose("quantile", "init")
        axes[name].fill_between(date, low, high, color="C0", alpha=0.2, label="90 %", lw=0)
        axes[name].fill_between(date, lower, upper, color="C0", alpha=0.4, label="50 %", lw=0)
        axes[name].plot(date, median, color="C0", label="median")
        axes[name].plot(date, observed, "k.", label="observed")
        axes[name].set(title=f"{name} forecast, lead {lead} days", ylabel="X")
    axes["raw"].sharex(axes["calibrated"])
    axes["raw"].tick_params(labelbottom=False)
    axes["raw"].sharey(axes["calibrated"])
    axes["calibrated"].set(xlabel="start of the forecast")
    axes["raw"].legend(ncols=4, fontsize="small", loc="upper right", frameon=False)
    low, high = axes["raw"].get_ylim()
    axes["raw"].set_ylim(low, high + 0.15 * (high - low))

    crps = scores.crps.mean("location")
    for label in crps["method"].to_numpy():
        of_method = crps.sel({"method": label})
        axes["score"].plot(of_method["lead"], of_method, "o-", label=label)
    axes["score"].set(title="CRPS of the test cases", xlabel="lead time (days)", ylabel="CRPS")
    axes["score"].set_ylim(bottom=0)
    axes["score"].legend(frameon=False)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the results")
    main(parser.parse_args().output)
