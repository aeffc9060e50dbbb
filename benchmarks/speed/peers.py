"""What a user would pick instead, beside it: seconds, and the CRPS of new forecasts."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr

import xrecal
from xrecal.arrays import crps, squared_energy_distance
from xrecal.methods import Method

from .data import Data, make_data, make_ensembles, make_hindcast
from .distance import loop, scipy_distance, some_pairs
from .fit import fit, weights_of
from .forecasts import LEVELS
from .tables import Missing, Row
from .timing import in_turn, shortest

INSTALL = "; pip install 'xrecal[bench]'"

Peer = Callable[[bool], Iterator[Row]]


def compare(quick: bool) -> Iterator[Row | Missing]:
    """All peers; those that are not installed say so."""
    peers: dict[str, Peer] = {
        "distance loop: SciPy": scipy_loop,
        "distance loop: dcor": dcor_loop,
        "the method with SciPy and scikit-learn": kernel_ridge_regression,
        "quantile mapping: xsdba": quantile_mapping,
        "EMOS: SciPy": emos,
    }
    for name, peer in peers.items():
        try:
            yield from peer(quick)
        except ImportError as error:
            yield Missing(name, f"{error}{INSTALL}")


def beside(
    name: str, ours: float, theirs: float, score: float | str = "", their_score: float | str = ""
) -> Row:
    cells = {"ours": ours, "theirs": theirs, "theirs / ours": theirs / ours}
    return Row(name, {**cells, "CRPS, ours": score, "CRPS, theirs": their_score})


def scipy_loop(quick: bool) -> Iterator[Row]:
    yield distance_loop("scipy.stats.energy_distance loop", scipy_distance, quick)


def dcor_loop(quick: bool) -> Iterator[Row]:
    import dcor

    # Its energy distance is the squared one.
    yield distance_loop("dcor.energy_distance loop", dcor.energy_distance, quick)


def distance_loop(name: str, distance: Callable[..., float], quick: bool) -> Row:
    n, m, sampled = (20, 5, 5) if quick else (1000, 50, 1000)
    x, pairs = make_ensembles(n, m), some_pairs(n, sampled)
    i, j = np.array(pairs).T
    np.testing.assert_allclose(
        loop(distance, x, pairs), squared_energy_distance(x)[i, j], atol=1e-10
    )
    ours, theirs = in_turn(
        {
            "ours": lambda: squared_energy_distance(x),
            "theirs": lambda: loop(distance, x, pairs),
        },
        1 if quick else 3,
    )
    theirs *= n * (n - 1) / 2 / len(pairs)
    return beside(f"{name}, n={n} m={m}, from {len(pairs)} pairs", ours, theirs)


def kernel_ridge_regression(quick: bool) -> Iterator[Row]:
    """Fit, ridge by cross-validation, and weights of new forecasts."""
    from . import kernel_ridge

    n, m = (30, 5) if quick else (300, 20)
    data = make_data(n, m)
    data = data._replace(x_new=data.x_new[: n // 3], y_new=data.y_new[: n // 3])
    found: dict[str, np.ndarray] = {}

    def ours(data: Data) -> None:
        found["ours"] = weights_of(data, fit(data), data.x_new)

    def theirs() -> None:
        found["theirs"] = kernel_ridge.forecast(data)

    taken = shortest(lambda: ours(data), 3), shortest(theirs, 1, warm=False)
    scores = [
        float(crps(data.y_new, data.y, weights).mean())
        for weights in (found["ours"], found["theirs"])
    ]
    name = f"CKME by SciPy and scikit-learn, n={n} m={m}, {n // 3} new"
    yield beside(name, *taken, *scores)


def grid(quick: bool) -> tuple[xr.DataArray, ...]:
    """Hindcast, observations, forecast and what verifies it, on a few cells."""
    n, m, cells = (60, 5, 2) if quick else (500, 20, 16)
    return *make_hindcast(n, m, cells), *make_hindcast(n, m, cells, new=True)


def on_grid(hindcast: xr.DataArray) -> str:
    """The sizes, for the table."""
    n, cells, m = hindcast.shape
    return f"{cells} cells, n={n} m={m}"


def fit_and_quantiles(method: Method, parts: tuple[xr.DataArray, ...]) -> list[Any]:
    """Shortest time of fit and quantiles, and the CRPS of the recalibrated forecasts."""
    hindcast, observations, forecast, verified = parts

    def work() -> xrecal.Recalibrator:
        model = hindcast.recal.fit(observations, method)
        model.quantile(forecast, LEVELS)
        return model

    return [shortest(work, 1), float(work().crps(forecast, verified).mean())]


def quantile_mapping(quick: bool) -> Iterator[Row]:
    """Members mapped to the climatology, which is all that quantile mapping does."""
    import xsdba  # noqa: F401  absent: said before anything is timed

    from .grids import quantile_mapping as mapped

    parts = grid(quick)
    theirs = shortest(lambda: mapped(*parts[:3]), 1)
    their_score = float(mapped(*parts[:3]).recal.crps(parts[3]).mean())
    for method in (xrecal.CKME(support="observations"), xrecal.EMOS()):
        ours, score = fit_and_quantiles(method, parts)
        name = f"xsdba quantile mapping v {type(method).__name__}, {on_grid(parts[0])}"
        yield beside(name, ours, theirs, score, their_score)


def emos(quick: bool) -> Iterator[Row]:
    """Gaussian regression by minimum CRPS."""
    from .grids import emos as by_scipy

    parts = grid(quick)
    theirs = shortest(lambda: by_scipy(*parts[:3]), 1)
    their_score = float(xrecal.gaussian(*by_scipy(*parts[:3])).recal.crps(parts[3]).mean())
    ours, score = fit_and_quantiles(xrecal.EMOS(), parts)
    yield beside(f"EMOS by SciPy, {on_grid(parts[0])}", ours, theirs, score, their_score)
