"""Size and power of the tests of calibration and of scores: python -m benchmarks.calibration_tests.

Forecasts are distributions of 50 points; of calibrated ones the observation is one of the points,
drawn at random, so that they are calibrated exactly. Repetitions stand along a dimension of their
own, as locations of a map do. Tests that allow for dependence do not always tell: what they reject
counts among all repetitions, and rows of the kind "told" say in which share of them there is a
p-value.
"""

import time
from functools import partial

import dask
import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri

from benchmarks.record import FOLDER, store
from xrecal import arrays

RESULTS = FOLDER / "calibration_tests.csv"
REPETITIONS, FEWER, POINTS, RESAMPLES, LEVEL = 500, 200, 50, 500, 0.05
SIZES = (20, 30, 50, 100, 200, 500)
LARGE = 500  # cases of which fewer repetitions are made
TESTS = {
    "PIT": None,
    "bootstrap": {"test": "bootstrap"},
    "wild": {"test": "wild"},
    "montecarlo": {"test": "montecarlo"},
    "block": {"test": "block"},
    "PIT, serial": {"block_length": None},
    "SKCE, serial": {"test": "serial"},
    "SKCE, undated": {"test": "serial"},
}
SCORES = ("paired scores", "skill interval")
COLUMNS = (*TESTS, *SCORES)
CALIBRATED, CANCELLING = "calibrated, independent cases", "errors that cancel, flat PIT"
SERIAL = {f"calibrated, autocorrelation {phi}": phi for phi in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)}
INDEPENDENT = ["PIT", "bootstrap", "wild", "montecarlo", "block", "PIT, serial", "SKCE, serial"]
DEPENDENT = ["PIT", "bootstrap", "PIT, serial", "SKCE, serial"]
ALLOWING = ("PIT, serial", "SKCE, serial", *SCORES)
SEASONAL = ["PIT, serial", "SKCE, serial", "SKCE, undated"]
LIMITS = {0.6: (100, 0.08), 0.9: (200, 0.12)}
"""Rejections at 5 % that tests which allow for dependence stay below, from so many cases on, by
autocorrelation."""


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


def serial_but_wrong(phi, factor=1.0, shift=0.0):
    """Observations that are too widely spread, or too high, of cases that depend on each other."""

    def design(rng, repetitions, n):
        centre, spread, members = forecasts(rng, repetitions, n, phi)
        y = at_levels(members, draws(rng, repetitions, n, phi))
        return members, centre + factor * (y - centre) + shift * spread

    return design


def dated(cycle, factor=1.0, shift=0.0, damping=0.0):
    """Forecasts every nine days, with an annual cycle and anomalies that the observations damp."""

    def design(rng, repetitions, n):
        season = 2 * np.pi * np.arange(n) * 9 / 365.25
        anomaly, spread = (
            rng.normal(size=(repetitions, n)),
            np.exp(rng.normal(0, 0.3, (repetitions, n))),
        )
        points = ndtri((np.arange(POINTS) + 0.5) / POINTS)
        centre = cycle * np.cos(season) + anomaly
        members = centre[..., np.newaxis] + spread[..., np.newaxis] * points
        y = at_levels(members, draws(rng, repetitions, n))
        return members, centre + factor * (y - centre) + shift * spread - damping * anomaly

    return design


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

SERIAL_POWER = {
    "spread of the truth x 1.5, autocorrelation 0.6": serial_but_wrong(0.6, factor=1.5),
    "bias of 0.3 deviations, autocorrelation 0.6": serial_but_wrong(0.6, shift=0.3),
}
NARROW = "annual cycle, 90 % intervals that hold half"
ERRORS = {
    "calibrated": {},
    "90 % intervals that hold half": {"factor": 2.4},
    "spread of the truth x 1.5": {"factor": 1.5},
    "bias of 0.3 deviations": {"shift": 0.3},
    "anomalies half as large as forecast": {"damping": 0.5},
}
SEASON = {
    f"{name}, {error}": dated(cycle, **options)
    for name, cycle in (("no cycle", 0.0), ("annual cycle", 10.0))
    for error, options in ERRORS.items()
}


def rejections(members, observations, names):
    """Share of repetitions that each test rejects at 5 %, and share in which it tells."""
    forecast = xr.DataArray(members, dims=["repetition", "time", "member"])
    observed = xr.DataArray(observations, dims=["repetition", "time"])
    lazy = [array.chunk(repetition=max(1, len(members) // 16)) for array in (forecast, observed)]
    date = xr.date_range("2001-01-01", periods=forecast.sizes["time"], freq="9D")
    found, told = {}, {}
    for name in names:
        options = TESTS[name]
        undated = name == "SKCE, undated" or "SKCE, undated" not in names
        x, y = lazy if undated else [array.assign_coords(time=date) for array in lazy]
        if name.startswith("PIT"):
            p_value = x.recal.pit_test(y, **(options or {}))["p_value"]
        else:
            n_resamples = {} if name == "block" else {"n_resamples": RESAMPLES}
            p_value = x.recal.skce_test(y, **options, **n_resamples)["p_value"]
        found[name], told[name] = (p_value < LEVEL).mean(), p_value.notnull().mean()
    results = dask.compute(found, told)
    return [{name: float(share) for name, share in one.items()} for one in results]


def score_rejections(rng, repetitions, n, phi):
    """The same for paired scores that are equal on average, and intervals that miss the skill."""
    weather, one, other = (autoregressive(rng, (repetitions, n), phi) for _ in range(3))
    p_value = arrays.diebold_mariano(weather)[1]
    skill = arrays.skill_score(3 + 0.5 * weather + 0.3 * one, 4 + 0.5 * weather + 0.3 * other)
    missed = (skill.low > 0.25) | (skill.high < 0.25)
    found = {SCORES[0]: (p_value < LEVEL).mean(), SCORES[1]: missed.mean()}
    told = {SCORES[0]: np.isfinite(p_value).mean(), SCORES[1]: np.isfinite(skill.low).mean()}
    return [{name: float(share) for name, share in one.items()} for one in (found, told)]


def studies(repetitions, sizes):
    """Every study: its kind, design, number of cases, forecasts and tests."""
    for n in sizes:
        if n != 30:
            yield "size", CALIBRATED, n, calibrated, INDEPENDENT
    for design, make in POWER.items():
        for n in (n for n in sizes if n in (50, 200)):
            yield "power", design, n, make, INDEPENDENT
    for design, phi in SERIAL.items():
        for n in (n for n in sizes if n >= 30):
            yield "size", design, n, partial(calibrated, phi=phi), DEPENDENT
    for design, make in SERIAL_POWER.items():
        for n in (n for n in sizes if n in (50, 200)):
            yield "power", design, n, make, DEPENDENT[2:]
    for design, make in SEASON.items():
        for n in (n for n in sizes if n in (50, 200)):
            yield "season", design, n, make, SEASONAL
    for design, make in HELD_OUT.items():
        for n in (n for n in sizes if n in (20, 50, 100)):
            yield "left out", design, n, make, INDEPENDENT[:2]


def verdict(rows, repetitions):
    """Whether tests keep their level, and see what the PIT, or a test beside a cycle, does not."""
    most = LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions)
    told = [row for row in rows if row["kind"] != "told"]
    sizes = [row[t] for row in told if row["design"] == CALIBRATED for t in INDEPENDENT]
    blind = [row for row in told if row["design"] == CANCELLING][-1]
    narrow = [row for row in told if row["design"] == NARROW][-1]
    holds = max(sizes) <= most and blind["bootstrap"] > 0.5 and blind["PIT"] <= most
    holds = holds and narrow["SKCE, serial"] > 0.95
    text = (
        f"independent calibrated cases rejected in {max(sizes):.1%} at most (<= {most:.1%}, three "
        f"standard errors above {LEVEL:.0%}), errors that cancel by the SKCE in "
        f"{blind['bootstrap']:.0%} (> 50%), by the PIT in {blind['PIT']:.1%}; 90 % intervals "
        f"that hold half beside a cycle by the SKCE in {narrow['SKCE, serial']:.0%} (> 95%)"
    )
    for phi, (fewest, limit) in LIMITS.items():
        design = f"calibrated, autocorrelation {phi}"
        found = [
            row[t]
            for row in told
            if row["design"] == design and row["cases"] >= fewest
            for t in ALLOWING
        ]
        chance = 2 * np.sqrt(limit * (1 - limit) / min(repetitions, FEWER))
        holds = holds and max(found, default=0) <= limit + chance
        text += (
            f"; autocorrelation {phi}, {fewest} cases or more, by tests that allow for it in "
            f"{max(found, default=0):.1%} at most (<= {limit:.0%}, two standard errors of "
            f"{chance / 2:.1%} apart)"
        )
    return f"budget {'holds' if holds else 'MISSED'}: {text}"


def main(quick=False):
    """Print the table, and store it."""
    repetitions, sizes = (2, (20, 50)) if quick else (REPETITIONS, SIZES)
    width = max(map(len, (CALIBRATED, *POWER, *SERIAL, *SERIAL_POWER, *SEASON, *HELD_OUT)))
    print(f"rejected at {LEVEL:.0%}, {repetitions} repetitions, {RESAMPLES} resamples")
    print(f"{'':<9}{'':<{width}}{'cases':>6}" + "".join(f"{name:>20}" for name in COLUMNS))
    rows, start = [], time.perf_counter()
    rng = np.random.default_rng(0)
    with dask.config.set(scheduler="threads", num_workers=2):
        for kind, design, n, make, names in studies(repetitions, sizes):
            size = min(repetitions, FEWER) if n >= LARGE else repetitions
            results = rejections(*make(rng, size, n), names)
            if design in SERIAL:
                scores = score_rejections(rng, 10 * repetitions, n, SERIAL[design])
                results = [one | more for one, more in zip(results, scores, strict=True)]
            for which, found in zip((kind, "told"), results, strict=True):
                if which == "told" and min(found.values()) == 1:
                    continue
                rows.append({"kind": which, "design": design, "cases": n, **found})
                cells = "".join(
                    f"{found[t]:>20.3f}" if t in found else f"{'':>20}" for t in COLUMNS
                )
                print(f"{which:<9}{design:<{width}}{n:>6}{cells}", flush=True)
    if not quick:
        columns = ["kind", "design", "cases", *COLUMNS]
        store(RESULTS, columns, ([row.get(name, "") for name in columns] for row in rows))
    print(f"{time.perf_counter() - start:.0f} s")
    print(verdict(rows, repetitions))


if __name__ == "__main__":
    main()
