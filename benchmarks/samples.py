"""How much the sample of places that choose together matters: python -m benchmarks.samples.

A grid is fitted with its own sample and with twenty others, as if its cells had other labels.
"""

import sys
import warnings

import numpy as np

import xrecal
from examples.real_data import open_data

SAMPLES, LIMIT = 20, 0.3
"""Other samples, and the difference of the CRPS in per cent that they may make."""

SHARE = 0.6
"""Of the years, the first ones, to learn from."""


def main(quick: bool = False) -> None:
    """Print the CRPS with each sample, over that with the own one."""
    given = open_data("cesm_dple_epacific_lagged.nc")[["forecast", "observation"]]
    cells = given.stack(cell=("nlat", "nlon")).reset_index("cell", drop=True)
    known = cells["observation"].notnull().all("time").values
    cells = cells.isel(cell=np.flatnonzero(known)[:: 8 if quick else 2])
    n = int(SHARE * cells.sizes["time"])
    warnings.simplefilter("ignore")
    for method in (xrecal.CKME(), xrecal.LinearPool()):
        scores = []
        for seed in range(3 if quick else SAMPLES + 1):
            labels = np.arange(cells.sizes["cell"])
            if seed:  # other labels, and so another sample
                labels = np.random.default_rng(seed).permutation(10**6)[: labels.size]
            one = cells.assign_coords(cell=labels)
            past, later = one.isel(time=slice(n)), one.isel(time=slice(n, None))
            model = past["forecast"].recal.fit(past["observation"], method, dim="time")
            scores.append(float(model.crps(later["forecast"], later["observation"]).mean()))
        apart = 100 * np.abs(np.array(scores[1:]) / scores[0] - 1)
        verdict = "holds" if apart.max() <= LIMIT else "MISSED"
        print(
            f"{method!r}: {cells.sizes['cell']} cells, {n} years; CRPS {scores[0]:.5g} K, with "
            f"{len(apart)} other samples off by {np.median(apart):.2f} % in the median, at most "
            f"{apart.max():.2f} % (<= {LIMIT} %: {verdict})"
        )
    print("budget 0.3 %")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
