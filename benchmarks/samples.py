"""How much the sample of places that choose together matters: python -m benchmarks.samples.

Grids are cross-validated with their own sample and with twenty others, as if cells had other
labels.
"""

import sys
import warnings
from functools import partial

import numpy as np

import xrecal
from benchmarks.record import one_process_a_core
from examples.real_data import open_data

SAMPLES, LIMIT = 20, 0.3
"""Other samples, and the difference of the CRPS in per cent that they may make."""

BLOCKS = 6
"""Of years, each forecast from the others."""


def pacific():
    """Sea surface temperature of every second cell."""
    given = open_data("cesm_dple_epacific_lagged.nc")[["forecast", "observation"]]
    cells = given.stack(cell=("nlat", "nlon")).reset_index("cell", drop=True)
    known = cells["observation"].notnull().all("time").values
    return cells.isel(cell=np.flatnonzero(known)[::2])


def iberian_winters():
    """Rain of whole winters at all cells on land."""
    given = open_data("cfs_iberia_precip.nc")[["forecast", "observation", "winter"]]
    cells = given.stack(cell=("lat", "lon")).reset_index("cell", drop=True)
    land = cells["observation"].notnull().mean("time") > 0.9
    winters = cells.isel(cell=np.flatnonzero(land)).groupby("winter").mean()
    return winters.rename(winter="time")


def main(quick: bool = False) -> None:
    """Print the CRPS with each sample, over that with the own one."""
    with one_process_a_core() as workers:
        for grid in (pacific,) if quick else (pacific, iberian_winters):
            sizes = grid().sizes
            for method in (xrecal.CKME(),) if quick else (xrecal.CKME(), xrecal.LinearPool()):
                seeds = range(2 if quick else SAMPLES + 1)
                scores = [*workers.map(partial(crps, grid, method), seeds)]
                apart = 100 * np.abs(np.array(scores[1:]) / scores[0] - 1)
                verdict = "holds" if apart.max() <= LIMIT else "MISSED"
                print(
                    f"{grid.__name__}, {method!r}: {sizes['cell']} cells, {sizes['time']} years; "
                    f"CRPS {scores[0]:.5g}, with {len(apart)} other samples off by "
                    f"{np.median(apart):.2f} % in the median, at most {apart.max():.2f} % "
                    f"(<= {LIMIT} %: {verdict})",
                    flush=True,
                )
    print("budget 0.3 %")


def crps(grid, method, seed: int) -> float:
    """Cross-validated CRPS of cells whose labels, and so their sample, come from a seed."""
    warnings.simplefilter("ignore")
    cells = grid()
    labels = np.arange(cells.sizes["cell"])
    if seed:
        labels = np.random.default_rng(seed).permutation(10**6)[: labels.size]
    one = cells.assign_coords(cell=labels)
    scores = one["forecast"].recal.cross_validate(
        one["observation"],
        method,
        dim="time",
        by="block",
        blocks=BLOCKS,
        output="crps",
        min_samples=10,
    )
    return float(scores.mean())


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
