"""Synthetic forecasts of which the truth is known: records, rain, short records, winters."""

import numpy as np
import xarray as xr
from scipy.stats import betaprime

import xrecal
from benchmarks.speed.tables import Row

from .issuing import METHODS, Found, Limit, beyond

SHAPE = 0.2
"""Tail index of the rain: mass beyond x falls as x ** (-1 / SHAPE)."""
BODY = 0.8
"""Shape of the gamma distribution that small amounts of rain follow."""


def forecasts(values, *dims) -> xr.DataArray:
    """Values with a label for each case, place and member."""
    coords = {d: np.arange(n) for d, n in zip(dims, np.shape(values), strict=True)}
    return xr.DataArray(values, coords, dims, name="forecast")


def unlike_forecasts(seeds: int):
    """Observations 1 + s + N(0, 1), forecasts of s, and new ones far above all of these."""
    rng = np.random.default_rng(1)
    s = rng.uniform(-3, 8, (seeds, 400))
    members = s[..., np.newaxis] + rng.normal(size=(*s.shape, 20))
    observed = forecasts(1 + s + rng.normal(size=s.shape), "seed", "case")
    new = 30 + rng.normal(size=(seeds, 10, 1)) + rng.normal(size=(seeds, 10, 20))
    hindcast, new = (forecasts(part, "seed", "case", "member") for part in (members, new))
    return hindcast, observed, new.assign_coords(case=new["case"] + 400)


def record(quick: bool = False) -> Found:
    """P(Y > 12) of forecasts around 30, where past observations were below about 12.

    The truth is 1. Climatology must not come back as mass far below what is forecast.
    """
    hindcast, observed, new = unlike_forecasts(2 if quick else 5)
    rows = []
    for label, method in METHODS.items():
        model = hindcast.recal.fit(observed, method, dim="case")
        found = model.exceedance(new, 12.0).mean("case").values
        rows.append(Row(label, {f"seed {i}": float(p) for i, p in enumerate(found)}))
    least = min(rows[-1].cells.values())
    limit = Limit("record: P(Y > 12), LinearPool, least", 0.97, least, at_least=True)
    return Found("record: P(Y > 12) where 1 is right, by seed", rows, [limit])


def rain(rng: np.random.Generator, n: int, start: int = 0):
    """Members, observations and scale of rain: dry, or a gamma amount with a Pareto tail.

    The amount is a ratio of gamma variables times the scale that the members know with an error.
    """

    def amounts(log_scale, size):
        ratio = rng.gamma(BODY, size=size) / rng.gamma(1 / SHAPE, size=size)
        wet = rng.uniform(size=size) < chance(log_scale)
        return np.where(wet, np.exp(log_scale) * ratio, 0.0)

    log_scale = rng.normal(2.5, 0.8, n)
    told = log_scale + rng.normal(0, 0.4, n)
    members = forecasts(1.3 * amounts(told[:, np.newaxis], (n, 20)), "case", "member")
    observed = forecasts(amounts(log_scale, n), "case")
    label = np.arange(start, start + n)
    return members.assign_coords(case=label), observed.assign_coords(case=label), log_scale


def chance(log_scale):
    """Probability of rain."""
    return 1 / (1 + np.exp(2.0 - log_scale))


def rain_tails(quick: bool = False) -> Found:
    """Mass that the pool issues beyond the record of heavy-tailed rain, over the true one.

    The true one is the probability that the generator gives to each case, so it has no noise of
    rare events.
    """
    samples, learned, scored = (2, 80, 100) if quick else (30, 600, 1500)
    pools = {"auto": xrecal.LinearPool(), "None": xrecal.LinearPool(tails=None)}
    rows = []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        hindcast, observed, _ = rain(rng, learned)
        new, later, log_scale = rain(rng, scored, learned)
        high = float(observed.max())
        true = chance(log_scale) * betaprime.sf(high / np.exp(log_scale), BODY, 1 / SHAPE)
        cells = {"true": float(true.mean())}
        for tails, method in pools.items():
            issued = hindcast.recal.fit(observed, method, dim="case").apply(new)
            mass = beyond(issued.recal.exceedance, 0.0, high)
            cells[f"mass, {tails}"] = float(mass.mean())
            cells[f"CRPS, {tails}"] = float(issued.recal.crps(later).mean())
        rows.append(cells)
    mean = {name: float(np.mean([cells[name] for cells in rows])) for name in rows[0]}
    ratios = {name: mean[f"mass, {name}"] / mean["true"] for name in pools}
    within = [0.5 <= cells["mass, auto"] / cells["true"] <= 2 for cells in rows]
    told = {f"mass/true, {name}": ratio for name, ratio in ratios.items()}
    row = Row(f"mean of {samples}", mean | told | {"within 2": float(np.mean(within))})
    factor = max(ratios["auto"], 1 / ratios["auto"])
    change = mean["CRPS, auto"] / mean["CRPS, None"]
    limits = [
        Limit("rain_tails: factor between issued and true mass", 2.0, factor),
        Limit("rain_tails: CRPS with tails over without, minus 1", 0.002, abs(change - 1)),
    ]
    return Found("rain_tails: pool with and without tails, means over samples", [row], limits)


def two_models(rng: np.random.Generator, cells: int, n: int, bias, first: int):
    """Seasonal rain of n years, by two models of opposite biases in one ensemble."""
    year = [np.datetime64(f"{1950 + first + i}-06-01", "ns") for i in range(n)]
    signal = rng.normal(size=(cells, n))
    observed = 300 + 22 * (0.4 * signal + np.sqrt(1 - 0.4**2) * rng.normal(size=(cells, n)))
    noise = rng.normal(size=(cells, n, 20))
    side = np.where(np.arange(20) < 10, 1.0, -1.0)
    members = 300 + 22 * (0.4 * signal[..., np.newaxis] + 0.9 * noise) + bias[:, None, None] * side
    hindcast = forecasts(members.clip(0), "cell", "time", "member").assign_coords(time=year)
    return hindcast, forecasts(observed.clip(0), "cell", "time").assign_coords(time=year)


def seasonal_rain(quick: bool = False) -> Found:
    """The pool where 29 years refute the raw forecast, over the best simple method.

    Raw forecasts that are several times worse than climatology deserve no weight.
    """
    rows = []
    for seed in (0,) if quick else (0, 1):
        rng = np.random.default_rng(seed)
        cells = 4 if quick else 120
        bias = rng.uniform(80, 140, cells)
        hindcast, observed = two_models(rng, cells, 29, bias, 0)
        new, later = two_models(rng, cells, 20 if quick else 200, bias, 29)
        found = {"raw": new.recal.crps(later)}
        for label in ("Climatology", "EMOS", "LinearPool"):
            model = hindcast.recal.fit(observed, METHODS[label])
            found[label] = model.crps(new, later)
        mean = {label: float(scores.mean()) for label, scores in found.items()}
        worse = found["raw"].mean("time") / found["Climatology"].mean("time")
        ratio = mean["LinearPool"] / min(mean[label] for label in mean if label != "LinearPool")
        told = {"raw/clim least": float(worse.min()), "raw/clim most": float(worse.max())}
        rows.append(Row(f"seed {seed}", mean | told | {"pool/best": ratio}))
    worst = max(row.cells["pool/best"] for row in rows)
    limit = Limit("seasonal_rain: pool over the best, worst seed", 1.02, worst)
    return Found(
        "seasonal_rain: mean CRPS of later years, and the pool over the best", rows, [limit]
    )


def constant_winters(rng: np.random.Generator, n_winters: int, first: int):
    """Winters that forecasts name without knowing: one constant each, another in what verifies."""
    days = np.arange(18) * np.timedelta64(5, "D")
    starts = [np.datetime64(f"{first + i}-12-01", "ns") for i in range(n_winters)]
    time = (np.array(starts)[:, np.newaxis] + days).ravel()
    name, anomaly = rng.normal(size=(2, n_winters)).repeat(18, axis=1)
    members = name[:, np.newaxis] + 0.3 * rng.normal(size=(time.size, 20))
    observed = anomaly + 0.4 * rng.normal(size=time.size)
    hindcast = forecasts(members, "time", "member").assign_coords(time=time)
    return hindcast, forecasts(observed, "time").assign_coords(time=time)


def promised(label: str, hindcast, observed) -> float:
    """Mean CRPS of held-out years."""
    options = {"by": "year", "output": "crps"}
    return float(hindcast.recal.cross_validate(observed, METHODS[label], **options).mean())


def winters(quick: bool = False) -> Found:
    """Skill that cross-validation by years promises, and that of later winters: none is right.

    A winter that is cut in two at New Year knows its other half by the constant of its forecasts.
    Fourteen winters may look alike by chance, so later skill differs much from seed to seed: it is
    the mean of many, and what is promised, which takes long, that of the first of them.
    """
    labels = ("CKME observations", "CKME errors", "CKME auto", "LinearPool")
    seeds, of_promise, n_winters = (1, 1, 6) if quick else (24, 4, 14)
    rows = []
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        hindcast, observed = constant_winters(rng, n_winters, 1980)
        new, later = constant_winters(rng, n_winters, 2000)
        scores = {
            ("later", label): float(
                hindcast.recal.fit(observed, METHODS[label]).crps(new, later).mean()
            )
            for label in ("Climatology", *labels)
        }
        if seed < of_promise:
            for label in ("Climatology", *labels):
                scores["promised", label] = promised(label, hindcast, observed)
        for label in labels:
            skill = {
                when: 1 - scores[when, label] / scores[when, "Climatology"]
                for when in ("promised", "later")
                if (when, label) in scores
            }
            rows.append(Row(f"seed {seed}, {label}", skill))
            for when, value in skill.items():
                found.setdefault((when, label), []).append(value)
    limits = []
    for label in labels:
        at_most, at_least = (float(np.mean(found[w, label])) for w in ("promised", "later"))
        limits.append(Limit(f"winters: promised skill, {label}", 0.05, at_most))
        limits.append(Limit(f"winters: later skill, {label}", -0.05, at_least, True))
    return Found("winters: skill over climatology, promised and later", rows, limits)
