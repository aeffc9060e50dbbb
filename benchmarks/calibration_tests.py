"""Size and power of the tests of calibration: python -m benchmarks.calibration_tests.

Forecasts are distributions of 50 points; of calibrated ones the observation is one of the points,
drawn at random, so that they are calibrated exactly. Repetitions stand along a dimension of their
own, as locations of a map do.
"""

import csv
import time
from functools import partial
from pathlib import Path

import dask
import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri

import xrecal  # noqa: F401  registers .recal

RESULTS = Path(__file__).parent / "results" / "calibration_tests.csv"
REPETITIONS, POINTS, RESAMPLES, LEVEL = 1000, 50, 500, 0.05
SIZES = (20, 50, 100, 200, 500)
BLOCK = 20  # successive cases that share a sign, or make a block
TESTS = {
    "PIT": None,
    "bootstrap": {"test": "bootstrap"},
    "wild": {"test": "wild"},
    f"wild, blocks of {BLOCK}": {"test": "wild", "block_length": BLOCK},
    "montecarlo": {"test": "montecarlo"},
    "block": {"test": "block"},
}
CALIBRATED, CANCELLING = "calibrated, independent cases", "errors that cancel, flat PIT"
SERIAL = {f"calibrated, autocorrelation {phi}": phi for phi in (0.5, 0.8)}
INDEPENDENT = [name for name in TESTS if "blocks" not in name]
DEPENDENT = [name for name in TESTS if name != "montecarlo"]


def autoregressive(rng, shape, phi):
    """Standard normal series along the last axis, each value correlated with the one before."""
    series = rng.normal(size=shape)
    for i in range(1, shape[-1]):
        series[..., i] = phi * series[..., i - 1] + np.sqrt(1 - phi**2) * series[..., i]
    return series


def forecasts(rng, repetitions, n, phi=0.0):
    """Centres and spreads (r, n) that vary from case to case, and the points of the forecasts."""
    centre = autoregressive(rng, (repetitions, n), phi)
    spread = np.exp(0.5 * autoregressive(rng, (repetitions, n), phi))
    points = ndtri((np.arange(POINTS) + 0.5) / POINTS)
    return centre, spread, centre[..., np.newaxis] + spread[..., np.newaxis] * points


def draws(rng, repetitions, n, phi=0.0):
    """Levels (r, n) of observations within their forecasts."""
    return ndtr(autoregressive(rng, (repetitions, n), phi))


def calibrated(rng, repetitions, n, phi=0.0):
    """Observations that are one of the points of their forecast."""
    _, _, members = forecasts(rng, repetitions, n, phi)
    return members, at_levels(members, draws(rng, repetitions, n, phi))


def at_levels(members, levels):
    """The points of the forecasts that observations at these levels are."""
    index = np.minimum((levels * POINTS).astype(int), POINTS - 1)
    return np.take_along_axis(members, index[..., np.newaxis], axis=-1)[..., 0]


def wrong_spread(factor):
    """Observations that are spread more widely than forecast, by a factor."""

    def design(rng, repetitions, n):
        centre, _, members = forecasts(rng, repetitions, n)
        y = at_levels(members, draws(rng, repetitions, n))
        return members, centre + factor * (y - centre)

    return design


def biased(rng, repetitions, n):
    """Observations that are too high by 0.3 standard deviations."""
    _, spread, members = forecasts(rng, repetitions, n)
    return members, at_levels(members, draws(rng, repetitions, n)) + 0.3 * spread


def cancelling(rng, repetitions, n):
    """Wide forecasts are too wide, narrow ones too narrow, and the PIT of all is flat.

    Levels u have the density 1 + cos(2 pi u) where forecasts are narrow, which piles them up at
    the ends, and 1 - cos(2 pi u) where they are wide: drawn by rejection from flat ones.
    """
    _, spread, members = forecasts(rng, repetitions, n)
    sign = np.where(spread < 1, 1.0, -1.0)
    levels = np.full(spread.shape, np.nan)
    while np.isnan(levels).any():
        u, height = rng.random((2, *spread.shape))
        taken = np.isnan(levels) & (2 * height < 1 + sign * np.cos(2 * np.pi * u))
        levels[taken] = u[taken]
    return members, at_levels(members, levels)


def left_out_climatology(rng, repetitions, n):
    """Observations forecast by those of all other years."""
    y = rng.normal(size=(repetitions, n))
    others = np.array([np.delete(np.arange(n), i) for i in range(n)])
    return y[:, others], y


def earlier_climatology(rng, repetitions, n):
    """Observations of the last four fifths forecast by those of all fifths before theirs."""
    y = rng.normal(size=(repetitions, n))
    part = np.arange(n) * 5 // n
    earlier = part < part[part > 0, np.newaxis]
    return np.where(earlier, y[:, np.newaxis], np.nan), y[:, part > 0]


def left_out_regression(correlation):
    """Normal observations forecast by a regression on a predictor, learned from all other years."""

    def design(rng, repetitions, n):
        x, noise = rng.normal(size=(2, repetitions, n))
        y = correlation * x + np.sqrt(1 - correlation**2) * noise
        x, y = (values - values.mean(-1, keepdims=True) for values in (x, y))
        squares = (x**2).sum(-1, keepdims=True)
        error = y - (x * y).sum(-1, keepdims=True) / squares * x
        own = 1 - 1 / n - x**2 / squares  # what is left of a year's own weight in its fit
        variance = ((error**2).sum(-1, keepdims=True) - error**2 / own) / (n - 3)
        points = ndtri((np.arange(POINTS) + 0.5) / POINTS)
        centre = y - error / own
        return centre[..., np.newaxis] + np.sqrt(variance)[..., np.newaxis] * points, y

    return design


HELD_OUT = {
    "climatology of the other years": left_out_climatology,
    "climatology of earlier years": earlier_climatology,
    **{
        f"regression on the other years, correlation {r}": left_out_regression(r)
        for r in (0, 0.5, 0.8)
    },
}
POWER = {
    "spread of the truth x 0.7": wrong_spread(0.7),
    "spread of the truth x 1.25": wrong_spread(1.25),
    "spread of the truth x 1.5": wrong_spread(1.5),
    "bias of 0.3 deviations": biased,
    CANCELLING: cancelling,
}


def rejections(members, observations, names):
    """Share of repetitions that each test rejects at 5 %."""
    forecast = xr.DataArray(members, dims=["repetition", "time", "member"])
    observed = xr.DataArray(observations, dims=["repetition", "time"])
    lazy = [array.chunk(repetition=max(1, len(members) // 16)) for array in (forecast, observed)]
    found = {}
    for name in names:
        options = TESTS[name]
        if options is None:
            result = lazy[0].recal.pit_test(lazy[1])
        else:
            n_resamples = {} if name == "block" else {"n_resamples": RESAMPLES}
            result = lazy[0].recal.skce_test(lazy[1], **options, **n_resamples)
        found[name] = (result["p_value"] < LEVEL).mean()
    return {name: float(share) for name, share in dask.compute(found)[0].items()}


def studies(repetitions, sizes):
    """Every study: its kind, design, number of cases, forecasts and tests."""
    for n in sizes:
        yield "size", CALIBRATED, n, calibrated, INDEPENDENT
    for design, make in POWER.items():
        for n in (n for n in sizes if n in (50, 200)):
            yield "power", design, n, make, INDEPENDENT
    for design, phi in SERIAL.items():
        for n in (n for n in sizes if n >= 100):
            yield "size", design, n, partial(calibrated, phi=phi), DEPENDENT
    for design, make in HELD_OUT.items():
        for n in (n for n in sizes if n in (20, 50, 100)):
            yield "left out", design, n, make, INDEPENDENT[:2]


def verdict(rows, repetitions):
    """Whether tests keep their level, and see what the PIT does not."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / repetitions)
    most = LEVEL + 3 * error
    sizes = [row[t] for row in rows if row["design"] == CALIBRATED for t in INDEPENDENT]
    blind = [row for row in rows if row["design"] == CANCELLING][-1]
    serial = [row[t] for row in rows if row["design"] in SERIAL for t in DEPENDENT if "blocks" in t]
    holds = (
        max(sizes) <= most
        and max(serial, default=0) <= 2 * LEVEL
        and blind["bootstrap"] > 0.5
        and blind["PIT"] <= most
    )
    return (
        f"budget {'holds' if holds else 'MISSED'}: independent calibrated cases rejected in "
        f"{max(sizes):.1%} at most (<= {most:.1%}, three standard errors above {LEVEL:.0%}), "
        f"errors that cancel by the SKCE in {blind['bootstrap']:.0%} (> 50%), by the PIT in "
        f"{blind['PIT']:.1%}; dependent cases by blocks of signs in {max(serial, default=0):.1%} "
        f"at most (<= {2 * LEVEL:.0%})"
    )


def main(quick=False):
    """Print the table, and store it."""
    repetitions, sizes = (6, (20, 50)) if quick else (REPETITIONS, SIZES)
    width = max(map(len, (CALIBRATED, *POWER, *SERIAL, *HELD_OUT)))
    print(f"rejected at {LEVEL:.0%}, {repetitions} repetitions, {RESAMPLES} resamples")
    print(f"{'':<9}{'':<{width}}{'cases':>6}" + "".join(f"{name:>20}" for name in TESTS))
    rows, start = [], time.perf_counter()
    rng = np.random.default_rng(0)
    with dask.config.set(scheduler="threads", num_workers=2):
        for kind, design, n, make, names in studies(repetitions, sizes):
            found = rejections(*make(rng, repetitions, n), names)
            rows.append({"kind": kind, "design": design, "cases": n, **found})
            cells = "".join(f"{found[t]:>20.3f}" if t in found else f"{'':>20}" for t in TESTS)
            print(f"{kind:<9}{design:<{width}}{n:>6}{cells}", flush=True)
    if not quick:
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["kind", "design", "cases", *TESTS])
            writer.writeheader()
            writer.writerows(rows)
    print(f"{time.perf_counter() - start:.0f} s")
    print(verdict(rows, repetitions))


if __name__ == "__main__":
    main()
