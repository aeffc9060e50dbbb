"""Time, memory and skill of one fit for all places of the synthetic network.

``python -m benchmarks.shared [PLACES DATES]``; without numbers, the million cases of the budget.
"""

import time
from functools import partial

import dask
import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from benchmarks.record import FOLDER
from benchmarks.speed.processes import PeakMemory
from benchmarks.speed.tables import Line, Report, Row, seconds
from benchmarks.speed.timing import time_of
from xrecal.arrays import crps, fit_emos, normal_crps, predict_emos
from xrecal.arrays.shared.network import Network as Law

from .fitting import TOGETHER, Data, Fitted, draw, fit
from .network import Network, draw_network, truth

RESULTS = FOLDER / "shared.csv"
SEED = 25
MEMBERS = 20
WHOLE = 2000, 500
"""Places and dates of the budget."""
QUICK = 30, 50
HELD_OUT = 0.1
"""Of as many places more, which have no record."""
TEST_DATES = 100
GIB = 2**30


def main(quick: bool = False, size: tuple[int, int] | None = None) -> None:
    """Print the tables; only a run of the whole size is stored and judged."""
    whole = not quick and size is None
    n_places, n_dates = QUICK if quick else size or WHOLE
    rank = 30 if quick else 1000
    report = Report(judged=whole)
    network = draw_network(round(n_places * (1 + HELD_OUT)), SEED)
    with threadpool_limits(1):
        fitted = timed(report, network.take(slice(n_places)), n_dates, rank)
        if not quick:  # which is of too few cases to share a fit
            labelled(report, network.take(slice(n_places)), n_dates)
        skill(report, fitted, network, n_places, n_dates)
    if whole:
        report.store(RESULTS)
    print(f"budget {report.verdict}")


def timed(report: Report, network: Network, n_dates: int, rank: int) -> Fitted:
    """The fit of all cases on two threads, and of half of them on one and on two."""
    data = draw(network, 0, n_dates, MEMBERS, SEED)
    report.start("time and memory")
    n = data.observations.size
    half = Data(*(part[: n_dates // 2] for part in data))
    fit(Data(*(part[:10] for part in data)), network.features, 2, 20)  # compiles
    one, two = (time_of(partial(fit, half, network.features, k, rank)) for k in (1, 2))
    start, used = time.perf_counter(), time.process_time()
    with PeakMemory() as peak:
        fitted = fit(data, network.features, 2, rank)
    whole, used = time.perf_counter() - start, time.process_time() - used
    held = peak.bytes + sum(part.nbytes for part in data)
    rank = fitted.known.law.landmarks.rank
    absolute = f"{n} cases, {rank} landmarks, two threads; {seconds(used)} of processors"
    report.add(Line("fit", whole, "s", absolute, 180))
    report.add(Line("fit: peak memory with the cases", held / GIB, "GiB", "", 2))
    told = f"{seconds(whole)} v {seconds(two)}"
    report.add(Line("twice the dates / once", whole / two, "x", told, 2.1))
    told = f"{seconds(one)} v {seconds(two)}, half of the dates"
    report.add(Line("one thread / two", one / two, "x", told, 1.8, at_least=True))
    return fitted


def labelled(report: Report, network: Network, n_dates: int) -> None:
    """The same through names, labels and chunks of Dask, on two threads."""
    data = draw(network, 0, n_dates, MEMBERS, SEED)
    n_places = len(network.lat)
    coords = {
        "time": np.datetime64("2001-01-01", "ns") + np.arange(n_dates) * np.timedelta64(1, "D"),
        "station": np.arange(n_places),
        "lat": ("station", network.lat),
        "lon": ("station", network.lon),
        "height": ("station", network.height),
    }
    dims = ("time", "station", "member")
    hindcast = xr.DataArray(data.members, coords, dims, "t2m")
    observed = xr.DataArray(data.observations, coords, dims[:2])
    hindcast = hindcast.chunk(time=max(2 * TOGETHER // n_places, 1))
    start, used = time.perf_counter(), time.process_time()
    with PeakMemory() as peak, dask.config.set(scheduler="threads", num_workers=2):
        model = hindcast.recal.fit(observed, pool="station")
        graph = time.perf_counter() - start
        model.compute()
    whole, used = time.perf_counter() - start, time.process_time() - used
    told = f"of which the graph {seconds(graph)}; {seconds(used)} of processors"
    report.add(Line("labelled fit, with Dask", whole, "s", told))
    report.add(Line("labelled fit: peak memory", peak.bytes / GIB, "GiB", ""))


def skill(report: Report, fitted: Fitted, network: Network, n_places: int, n_dates: int) -> None:
    """CRPS over that of the truth on later dates, at the places of the fit and at others."""
    test = draw(network, n_dates, TEST_DATES, MEMBERS, SEED)
    here, elsewhere = slice(n_places), slice(n_places, None)
    features = network.features[elsewhere]
    new = fitted.new._replace(corrections=fitted.places.at(features), features=features)
    report.start("CRPS over that of the truth")
    for name, places, law, known, most in (
        ("places of the fit", here, fitted.known, True, 1.01),
        ("places without a record", elsewhere, new, False, 1.03),
    ):
        some = Data(*(part[:, places] for part in test))
        best = truth_crps(network.take(places), some, known)
        found = law_crps(law, some)
        told = f"{found.mean():.4f} v {best.mean():.4f}; ridge {law.law.ridge:.1g}"
        report.add(Line(name, found.mean() / best.mean(), "x", told, most))
        report.add(Row(f"  {name}: normal, same centre", normal_row(law, some, best.mean())))
        raw = crps(some.observations, some.members)
        report.add(Row(f"  {name}: raw", {"ratio": raw.mean() / best.mean()}))
        if known:
            data = draw(network.take(here), 0, n_dates, MEMBERS, SEED)
            report.add(Row("  EMOS at each place", {"ratio": emos_crps(data, some) / best.mean()}))


def truth_crps(network: Network, data: Data, known: bool) -> np.ndarray:
    """CRPS (D, P) of the truth, one date at a time."""
    scores = []
    for members, observed in zip(*data, strict=True):
        law = truth(network, members, known=known)
        scores.append(normal_crps(observed, law.loc, law.scale, law.weights))
    return np.stack(scores)


def law_crps(law: Law, data: Data) -> np.ndarray:
    """CRPS (D, P) of a law, one date at a time."""
    scores = []
    for date in range(len(data.observations)):
        cases = data.cases(slice(date, date + 1))
        centre, scale, weights = law.predict(cases)
        members = centre[:, np.newaxis] + scale[:, np.newaxis] * law.law.grid
        scores.append(crps(cases.observations, members, weights))
    return np.stack(scores)


def normal_row(law: Law, data: Data, best: float) -> dict[str, float]:
    """CRPS of normal forecasts with the centres and scales of a law, over the truth's."""
    cases = data.cases(slice(None))
    centre, scale = law.corrections.apply(law.pooled, cases.place, *cases.moments())
    return {"ratio": normal_crps(cases.observations, centre, scale).mean() / best}


def emos_crps(data: Data, test: Data) -> float:
    """Mean CRPS of EMOS, fitted at each place alone."""
    mean, variance, observed = by_place(data)
    coefficients, _, _ = fit_emos(mean, variance, observed)
    mean, variance, observed = by_place(test)
    return float(normal_crps(observed, *predict_emos(coefficients, mean, variance)).mean())


def by_place(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and observations (P, D)."""
    members = np.swapaxes(data.members, 0, 1)
    return members.mean(-1, dtype=float), members.var(-1, dtype=float), data.observations.T
