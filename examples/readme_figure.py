"""The figure of the README: forecasts of a toy atmosphere before and after recalibration.

python examples/readme_figure.py docs/static/readme.png
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt

import xrecal

LOCATION, LEAD, SHOWN = 3, 3, 40
LEVELS = 0.05, 0.25, 0.5, 0.75, 0.95


def main(path: Path) -> plt.Figure:
    data = xrecal.datasets.lorenz96().sel(lead=LEAD)
    past, new = data.isel(init=slice(300)), data.isel(init=slice(300, None))
    model = past.forecast.recal.fit(past.observation, xrecal.LinearPool())
    calibrated = model.apply(new.forecast)

    figure, axes = plt.subplots(
        2, 2, figsize=(10, 5.2), width_ratios=(2.6, 1), layout="constrained", sharex="col"
    )
    shown = {"location": LOCATION, "init": slice(SHOWN)}
    observed = new.observation.isel(shown)
    for row, (title, forecast) in zip(
        axes, {"raw ensemble": new[["forecast"]], "recalibrated": calibrated}.items(), strict=True
    ):
        crps = forecast.recal.crps(new.observation).mean().item()
        quantiles = forecast.isel(shown).recal.quantile(LEVELS)["forecast"]
        xrecal.plot.fan(quantiles, observations=observed, ax=row[0])
        histogram = forecast.recal.pit_histogram(new.observation, dim=("init", "location"))
        xrecal.plot.pit(histogram, ax=row[1])
        row[0].set_title(f"{title}: CRPS {crps:.3f}", loc="left", fontweight="bold")
    axes[1, 0].get_legend().remove()
    axes[1, 1].get_legend().remove()
    axes[1, 1].set_ylim(axes[0, 1].get_ylim())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", default=Path("docs/static/readme.png"))
    main(parser.parse_args().path)
