"""Constants of the linear pool, judged without the cases that make skill scores.

The first 60 % of the training cases of each set, and of further sets, are fitted, the others
scored; and so are 300 cases of each large one, and the 150 that follow, at three places:
python -m benchmarks.pool_constants.
"""

import warnings
from typing import NamedTuple
from unittest import mock

import numpy as np
import xarray as xr

import xrecal
from benchmarks.skill.sets import SHARE, Set, by_share
from benchmarks.skill.sources import SOURCES
from examples.real_data import open_data
from xrecal import arrays
from xrecal.arrays.distributions.pool import BELIEF, BLOCKS, DOUBT, PASSES, STEPS, belief_left

BASELINES = ("raw", "climatology", "emos", "emos_season", "idr")
LEVELS = (np.arange(100) + 0.5) / 100
WHOLE_YEAR = np.timedelta64(350, "D")


class Variant(NamedTuple):
    """How a pool is weighed."""

    steps: int = STEPS
    blocks: int = BLOCKS
    belief: float = BELIEF
    doubt: float = DOUBT
    passes: tuple[float, float] = PASSES
    wide: str = "conditioned"
    """Whether wider kernels are tried: always, never, or beside covariates"""
    drop: str = "none"
    """Component that is left out"""


class Fitted(NamedTuple):
    """What a pool learned from one set, and what its components forecast later."""

    source: str
    conditioned: bool
    labels: list[str]
    held_out: np.ndarray
    """(L, P, C, n, Q)"""
    observed: np.ndarray
    """(L, n)"""
    raw: np.ndarray
    """(L, n, Q)"""
    later: np.ndarray
    """(L, C, T, Q)"""
    verified: np.ndarray
    """(L, T)"""


def training_cases():
    """Source and set, of the training cases of the sets that make skill scores."""
    for source in ("innsbruck", "frankfurt", "toulouse", "glofas", "mjo", "decadal", "iberia"):
        for one in SOURCES[source]():
            dim = "time" if "time" in one.hindcast.dims else "init"
            observed = one.observations.sel({dim: one.hindcast[dim]})
            name = one.name if source in ("innsbruck", "glofas") else source
            name = name[:12] if source == "glofas" else name
            yield name, by_share(one.name, one.hindcast, observed, dim, season=one.season)


def windows():
    """Source and set of 300 cases to fit on and 150 to score, at three places of training cases."""
    n, n_later = 300, 150
    for source in ("innsbruck", "frankfurt", "glofas"):
        for one in SOURCES[source]():
            dim = "time" if "time" in one.hindcast.dims else "init"
            observed = one.observations.sel({dim: one.hindcast[dim]})
            known = (observed.notnull() & one.hindcast.notnull().any("member")).values
            forecast, observed = one.hindcast[{dim: known}], observed[{dim: known}]
            name = f"{one.name[:12] if source == 'glofas' else one.name}, {n} cases"
            for start in np.linspace(0, forecast.sizes[dim] - n - n_later, 3).astype(int):
                parts = (slice(start, start + n), slice(start + n, start + n + n_later))
                early, late = (forecast.isel({dim: part}) for part in parts)
                yield name, Set(name, early, late, observed, one.season)


def further_cases(quick):
    """Source and set, of leads and variables that make skill leaves alone."""
    summer = open_data("europe_jja_cfsv2.nc")
    ocean = open_data("cesm_le_global_sst.nc")
    for name, one in (("Europe JJA", summer), ("CESM LE", ocean)):
        yield name, by_share(name, one["forecast"], one["observation"], "time", season=False)
    if quick:
        return
    flow, index = open_data("glofas_discharge.nc"), open_data("gmao_mjo_rmm1.nc")
    for data, leads in ((flow, (72, 240, 720)), (index, (5, 20, 40))):
        early = data.isel(init=slice(int(SHARE * data.sizes["init"])))
        for lead in leads:
            one = early.sel(lead=lead, method="pad")
            for station in one["station"].values if "station" in one.dims else [None]:
                part = one if station is None else one.sel(station=station)
                name = "mjo" if station is None else f"GloFAS {station}"
                pair = part["forecast"], part["observation"]
                yield name, by_share(name, *pair, "init", season=True)
    catchment = open_data("hefs_lgnn5.nc")
    pair = catchment["discharge_forecast"], catchment["discharge_observation"]
    yield "HEFS flow", by_share("HEFS flow", *pair, "init", season=False)
    decadal = open_data("cesm_dple_global_ocean.nc")
    salt = decadal["salinity_forecast"], decadal["salinity_observation"]
    groups = {
        "HEFS rain": (catchment["forecast"], catchment["observation"], range(8)),
        "FOSI": (decadal["forecast"], decadal["observation_fosi"], (0, 2, 4, 6, 9)),
        "salinity": (*salt, (0, 2, 4, 6, 9)),
    }
    for name, (forecast, observed, leads) in groups.items():
        for lead in leads:
            pair = forecast.isel(lead=lead), observed.isel(lead=lead)
            yield name, by_share(name, *pair, "init", season=False)
    pacific = open_data("cesm_dple_epacific_lagged.nc").isel(
        nlat=slice(None, None, 6), nlon=slice(None, None, 6)
    )
    pair = pacific["forecast"], pacific["observation"]
    yield "East Pacific", by_share("East Pacific", *pair, "time", season=False)


def fit(source: str, one: Set) -> Fitted:
    """Learn from the first cases, with both kinds of kernels, and forecast the others."""
    dim = "time" if "time" in one.hindcast.dims else "init"
    season = "season" if one.season and np.ptp(one.hindcast[dim].values) > WHOLE_YEAR else None
    default = xrecal.LinearPool(condition_on=season or ()).mixed[1:]
    kernels = [
        xrecal.CKME(support="auto", bandwidth=width, condition_on=season)
        for width in ("cv", "median")
    ]
    pool = xrecal.LinearPool(methods=(*kernels, *default), condition_on=())
    weighed, true = [], arrays.pool_weights

    def weigh(*arguments, **options):
        weighed.append(arguments)
        return true(*arguments, **options)

    with mock.patch.object(arrays, "pool_weights", weigh):
        model = one.hindcast.recal.fit(one.observations, pool, min_samples=10)
    weight = model.state["pool_weight"]
    later = []
    for label in weight["component"].values:
        alone = (weight["component"] == label).where(weight.notnull()).transpose(*weight.dims)
        single = model._with_states((model.state.assign(pool_weight=alone),))
        later.append(single.quantile(one.forecast, LEVELS))
    cells = [d for d in weight.dims if d != "component"]
    later = xr.concat(later, "component").transpose(*cells, "component", dim, "quantile").values
    verified = one.observations.sel({dim: one.forecast[dim]}).transpose(*cells, dim).values
    shape = (-1, *later.shape[-3:])
    return Fitted(
        source,
        season is not None,
        [str(label) for label in weight["component"].values],
        *(np.concatenate([each[k] for each in weighed]) for k in range(3)),
        later.reshape(shape),
        verified.reshape(-1, verified.shape[-1]),
    )


def members(fitted: Fitted, variant: Variant):
    """Which components (C,) the variant mixes."""
    wide = variant.wide == "always" or (variant.wide == "conditioned" and fitted.conditioned)
    kernels = [
        label
        for label in fitted.labels
        if label.startswith("ckme") and not label.startswith("ckme_shapes")
    ]
    first = len(kernels) // 2  # those with wider kernels come first
    unwanted = kernels[first:] if wide else kernels[:first]
    return np.array(
        [label not in unwanted and not label.startswith(variant.drop) for label in fitted.labels]
    )


def score(fitted: Fitted, variant: Variant) -> float:
    """Mean CRPS over later cases."""
    mixed = members(fitted, variant)
    weights = arrays.pool_weights(
        fitted.held_out[:, :, mixed],
        fitted.observed,
        fitted.raw,
        steps=variant.steps,
        blocks=variant.blocks,
        belief=variant.belief * belief_left(fitted.raw, fitted.observed),
        doubt=variant.doubt,
        passes=variant.passes,
    )
    return mixture_score(fitted, mixed, weights)


def mixture_score(fitted: Fitted, mixed, weights) -> float:
    """Mean CRPS of mixtures with weights (L, C) of the components ``mixed``."""
    later = fitted.later[:, mixed].transpose(0, 2, 1, 3)
    points = later.reshape(*later.shape[:2], -1)
    mass = np.repeat(weights / LEVELS.size, LEVELS.size, axis=-1)[:, np.newaxis]
    mass = np.broadcast_to(mass, points.shape)
    return float(np.nanmean(arrays.crps(fitted.verified, np.where(mass > 0, points, np.nan), mass)))


def best_baseline(fitted: Fitted) -> float:
    """Smallest mean CRPS of the methods that others use."""
    found = []
    for label in fitted.labels:
        if label in BASELINES:
            mixed = np.array([each == label for each in fitted.labels])
            found.append(mixture_score(fitted, mixed, np.ones((len(fitted.later), 1))))
    return min(found)


VARIANTS = {
    "as it is": Variant(),
    **{f"steps {k}": Variant(steps=k) for k in (5, 10, 30, 50)},
    **{f"blocks {k}": Variant(blocks=k) for k in (20, 30, 60)},
    **{f"belief {k}": Variant(belief=k) for k in (0, 40, 80, 240, 320)},
    **{f"doubt {k}": Variant(doubt=k) for k in (1.0, 1.5, 2.5, 3.0)},
    **{f"belief {k}, no doubt": Variant(belief=k, doubt=1e6) for k in (20, 40, 80)},
    **{f"earlier cases {k}": Variant(passes=(1.0, k)) for k in (0.0, 0.1, 0.5, 1.0)},
    **{f"wider kernels {k}": Variant(wide=k) for k in ("always", "never")},
    **{
        f"without {k}": Variant(drop=k)
        for k in ("raw", "climatology", "emos", "idr", "ckme_shapes")
    },
}


def main(quick=False):
    """Print the table."""
    warnings.filterwarnings("ignore")  # cases held out that leave few, short seasons
    sets = list(further_cases(quick)) + ([] if quick else [*training_cases(), *windows()])
    fits = [fit(source, one) for source, one in sets]
    baseline = np.array([best_baseline(one) for one in fits])
    sources = np.array([one.source for one in fits])
    each = {label: np.array([score(one, v) for one in fits]) for label, v in VARIANTS.items()}
    print(
        f"{len(fits)} sets from {len(set(sources))} sources\n{'pool':<24}{'CRPS, change in %':>18}"
        f"{'±':>9}{'to the best baseline, median':>31}"
    )
    change = {}
    for label, scores in each.items():
        logs = 100 * np.log(scores / each["as it is"])
        by_source = [logs[sources == name].mean() for name in dict.fromkeys(sources)]
        change[label] = np.mean(by_source), np.std(by_source, ddof=1) / len(by_source) ** 0.5
        print(
            f"{label:<24}{change[label][0]:>18.2f}{change[label][1]:>9.2f}"
            f"{np.median(scores / baseline):>31.4f}"
        )
    better = [label for label, (mean, error) in change.items() if mean < -2 * error]
    print(
        f"budget {'MISSED' if better else 'holds'}: better than the pool as it is by more than two "
        f"standard errors: {', '.join(better) or 'none'}"
    )


if __name__ == "__main__":
    main()
