"""Synthetic forecasts with a known truth: records, rain, winters, hubs, changes."""

import numpy as np
import xarray as xr
from scipy.signal import lfilter
from scipy.stats import betaprime, norm

import xrecal
from benchmarks.speed.tables import Row

from .issuing import METHODS, Found, Limit, beyond

SHAPE = 0.2
"""Tail index of the rain: mass beyond x falls as x ** (-1 / SHAPE)."""
BODY = 0.8
"""Shape of the gamma distribution that small amounts of rain follow."""
FITTED_ONCE = {
    "raw": xrecal.Raw(),
    "EMOS": xrecal.EMOS(),
    "CKME": xrecal.CKME(),
    "LinearPool": xrecal.LinearPool(),
}
"""Methods beside an OnlinePool, which goes on learning."""


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


HUB_LEVELS = (0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99)
"""Levels of the quantiles that hubs collect."""
WAVE = 42
"""Weeks of a wave."""


def waves(rng: np.random.Generator, n_places: int):
    """Two waves of weekly counts, and the quantiles of their law given the week before.

    Places differ in size, in the height and the time of each wave, and in how well they can be
    foreseen. What nobody foresees is half common to all places.
    """
    week = np.arange(2 * WAVE)
    log_mean = rng.normal(5.0, 1.5, (n_places, 1))
    for start in (0, WAVE):
        peak = start + WAVE / 2 + rng.normal(0, 3, (n_places, 1))
        height = np.log(rng.uniform(5, 40, (n_places, 1)))
        log_mean = log_mean + height * np.exp(-(((week - peak) / 6) ** 2) / 2)
    deviation = rng.uniform(0.1, 0.3, (n_places, 1)) * (1 + 0.3 * rng.random(log_mean.shape))
    noise = rng.normal(size=log_mean.shape), rng.normal(size=week.size)
    observed = np.exp(log_mean + deviation * (noise[0] + noise[1]) / np.sqrt(2))
    scores = deviation[..., np.newaxis] * norm.ppf(HUB_LEVELS)
    quantiles = forecasts(np.exp(log_mean[..., np.newaxis] + scores), "place", "time", "quantile")
    dates = np.datetime64("2021-01-02", "ns") + 7 * week * np.timedelta64(1, "D")
    hub = quantiles.assign_coords(time=dates, quantile=list(HUB_LEVELS))
    return hub, forecasts(observed, "place", "time").assign_coords(time=dates)


def later_scores(hindcast, observed, first: int, online: xrecal.OnlinePool):
    """CRPS of cases from the first one on: of fits to those before, and of a pool that goes on."""
    past, new = hindcast.isel(time=slice(first)), hindcast.isel(time=slice(first, None))
    found = {}
    for label, method in FITTED_ONCE.items():
        found[label] = past.recal.fit(observed, method).crps(new, observed)
    replayed = hindcast.recal.cross_validate(
        observed, online, by="rolling", every=1, window=first, output="crps"
    )
    found["OnlinePool"] = replayed.isel(time=slice(first, None))
    return found


def hub(quick: bool = False) -> Found:
    """Calibrated forecasts of a hub, where nothing is to be gained: one wave learned, one issued.

    A place alone sees 42 cases, in which recalibration may look worth its while by chance.
    """
    rows, methods = [], (*FITTED_ONCE, "OnlinePool")
    for seed in range(1 if quick else 3):
        weekly, observed = waves(np.random.default_rng(seed), 3 if quick else 50)
        scores = later_scores(weekly, observed, WAVE, xrecal.OnlinePool(refit="90D"))
        mean = {label: float(found.mean()) for label, found in scores.items()}
        rows.append(Row(f"seed {seed}", {label: mean[label] / mean["raw"] for label in methods}))
    limits = [
        Limit(f"hub: {label} over raw, worst seed", 1.02, max(row.cells[label] for row in rows))
        for label in ("LinearPool", "OnlinePool")
    ]
    return Found("hub: CRPS of the second wave over the raw forecast's", rows, limits)


LEARNED, ISSUED = 300, 150
"""Days of a series that change, before and after the first day of issue."""


def spikes(rng: np.random.Generator, n: int):
    """Every fiftieth observation or so is far off, as prices are."""
    there = rng.random(n) < 0.02
    return {"observed": there * rng.choice([-1, 1], n) * rng.uniform(20, 60, n)}


def levels_beyond(rng: np.random.Generator, n: int):
    """Forecasts and observations rise together beyond all that the record has."""
    rise = np.maximum(np.arange(n) - LEARNED, 0) / (n - LEARNED)
    return {"signal": rng.uniform(10, 30) * rise}


def jumps(rng: np.random.Generator, n: int):
    """The bias of the forecast jumps in the record, and again while it is issued."""
    day, at = np.arange(n), rng.integers([100, LEARNED], [200, n - 50])
    return {"bias": (day[:, np.newaxis] >= at) @ rng.normal(0, 3, 2)}


def improvement(rng: np.random.Generator, n: int):
    """The error of the forecast falls to a third towards the end of the record."""
    return {"error": np.where(np.arange(n) < rng.integers(200, LEARNED), 3.0, 1.0)}


CHANGES = {
    "spikes": spikes,
    "levels beyond the record": levels_beyond,
    "jumps": jumps,
    "a system that gets better": improvement,
}


def changing(change, rng: np.random.Generator, n: int):
    """Daily forecasts with a bias and too little spread, in which something changes."""
    zeros = {"observed": 0.0, "signal": 0.0, "bias": 0.0, "error": 1.0}
    what = zeros | change(rng, n)
    signal = lfilter([1.0], [1.0, -0.8], rng.normal(0, 2, n)) + what["signal"]
    centre = signal + 0.5 + what["bias"] + what["error"] * rng.normal(size=n)
    members = centre[:, np.newaxis] + 0.7 * rng.normal(size=(n, 20))
    observed = signal + 0.5 * rng.normal(size=n) + what["observed"]
    dates = np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    daily = forecasts(members, "time", "member").assign_coords(time=dates)
    return daily, forecasts(observed, "time").assign_coords(time=dates)


def drift(quick: bool = False) -> Found:
    """Series with spikes, levels beyond the record, jumps, and a better system: each over EMOS."""
    samples, first, n = (1, 60, 80) if quick else (20, LEARNED, LEARNED + ISSUED)
    rows, limits = [], []
    for name, change in CHANGES.items():
        ratios: dict[str, list[float]] = {}
        for seed in range(samples):
            daily, observed = changing(change, np.random.default_rng(seed), LEARNED + ISSUED)
            some = {"time": slice(LEARNED - first, LEARNED - first + n)}
            scores = later_scores(daily.isel(some), observed.isel(some), first, xrecal.OnlinePool())
            for label, found in scores.items():
                ratio = float(found.mean()) / float(scores["EMOS"].mean())
                ratios.setdefault(label, []).append(ratio)
        rows.append(Row(name, {label: float(np.mean(ratio)) for label, ratio in ratios.items()}))
        limits += [
            Limit(f"drift: {name}, {label}", 1.03, rows[-1].cells[label])
            for label in ("LinearPool", "OnlinePool")
        ]
    return Found(f"drift: CRPS over that of EMOS, mean of {samples}", rows, limits)
