"""The shared fit of the synthetic network, pass by pass, on one thread or several."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from xrecal.arrays.shared.folds import whole_folds
from xrecal.arrays.shared.landmarks import MAX_RANK
from xrecal.arrays.shared.law import RIDGES, SharedLaw, ridge_losses, solve_sums
from xrecal.arrays.shared.network import (
    Basis,
    Cases,
    Network,
    Standards,
    basis_from,
    place_sums_of,
    with_record,
    without_record,
)
from xrecal.arrays.shared.places import Places, without_places
from xrecal.arrays.shared.regression import fit_pooled
from xrecal.arrays.shared.sums import Sums, all_of, sum_parts

from .network import draw_dates

FOLDS = 5
FOLDS_OF_DATES = whole_folds(FOLDS)
SAMPLE = 10_000
TOGETHER = 10_000
"""Cases that a thread takes at a time."""


class Data(NamedTuple):
    """Cases of P places on consecutive dates."""

    members: np.ndarray
    """(D, P, m) in single precision"""
    observations: np.ndarray
    """(D, P)"""

    def chunks(self) -> list[Cases]:
        """All cases, some dates at a time."""
        n_dates, n_places = self.observations.shape
        fold = np.arange(n_dates) * FOLDS // n_dates
        step = max(TOGETHER // n_places, 1)
        return [self.cases(slice(i, i + step), fold[i : i + step]) for i in range(0, n_dates, step)]

    def cases(self, dates: slice, fold: np.ndarray | None = None) -> Cases:
        """Cases of some dates, in one row."""
        members, observed = self.members[dates], self.observations[dates]
        count, n_places = observed.shape
        fold = np.zeros(count, int) if fold is None else fold
        return Cases(
            members.reshape(-1, members.shape[-1]),
            observed.ravel().astype(float),
            np.tile(np.arange(n_places), count),
            np.repeat(fold, n_places),
            np.empty((count * n_places, 0)),
            np.ones(count * n_places),
        )


class Fitted(NamedTuple):
    """A law for places with a record, and one for places without."""

    known: Network
    new: Network
    places: Places


def draw(network, first: int, count: int, m: int, seed: int) -> Data:
    """Cases of some dates."""
    return Data(*draw_dates(network, first, count, m, seed))


def summed(work: Callable, chunks: Sequence[Cases], workers: int, add: Callable):
    """Sum of the work on all chunks. Each worker keeps one sum, whatever the number of chunks."""

    def share(first: int):
        total = None
        for chunk in chunks[first::workers]:
            found = work(chunk)
            total = found if total is None else add(total, found)
        return total

    with ThreadPoolExecutor(workers) as threads:
        parts = [part for part in threads.map(share, range(workers)) if part is not None]
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total


def sample_of(chunks: Sequence[Cases]) -> Cases:
    """Some of the cases, as many from each chunk."""
    rng = np.random.default_rng(0)
    share = SAMPLE / sum(len(chunk.place) for chunk in chunks)
    parts = []
    for chunk in chunks:
        n = len(chunk.place)
        rows = rng.choice(n, min(n, round(share * n)), replace=False)
        parts.append(chunk.take(rows))
    return Cases(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def fit(data: Data, features: np.ndarray, workers: int, max_rank: int = MAX_RANK) -> Fitted:
    """Both laws of a network."""
    chunks = data.chunks()
    sample = sample_of(chunks)
    count = len(features)

    def of_places(pooled):
        return summed(
            lambda chunk: place_sums_of(pooled, chunk, count, FOLDS), chunks, workers, np.add
        )

    parts = (*sample.moments(), sample.observations)
    pooled = fit_pooled(*parts)
    first, _ = with_record(pooled, of_places(pooled), features, FOLDS_OF_DATES)
    pooled = without_places(pooled, first.local, sample.place, parts)
    sums = of_places(pooled)
    places, known = with_record(pooled, sums, features, FOLDS_OF_DATES)
    fold = np.arange(count) % FOLDS
    new = without_record(pooled, sums, features, places, fold)
    with ThreadPoolExecutor(workers) as threads:
        # What is not a sum over cases takes the same for any number of them: both laws at once.
        bases = list(threads.map(lambda one: basis_from(one, sample, max_rank), (known, new)))
        summed_up = [
            _law_sums(basis, standards, chunks, workers)
            for basis, standards in zip(bases, (known, new), strict=True)
        ]
        laws = list(threads.map(law_of, bases, summed_up))
    found = [(basis.coordinates, law) for basis, law in zip(bases, laws, strict=True)]
    return Fitted(
        Network(pooled, places.local, features, *found[0]),
        Network(pooled, places.at(features), features, *found[1]),
        places,
    )


def _law_sums(basis: Basis, standards: Standards, chunks: Sequence[Cases], workers: int):
    return summed(
        lambda chunk: fold_sums(basis, standards, chunk),
        chunks,
        workers,
        lambda one, other: add_folds([one, other]),
    )


def fold_sums(basis: Basis, standards: Standards, cases: Cases) -> list[Sums]:
    """Sums over some cases, fold by fold."""
    placed, errors = basis.placed(standards, cases)
    fold = standards.part_of(cases)
    return sum_parts(basis.landmarks, basis.grid, placed, errors, fold, FOLDS)


def add_folds(parts) -> list[Sums]:
    """Sums of several sets of cases, fold by fold."""
    return [all_of(same) for same in zip(*parts, strict=True)]


def law_of(basis: Basis, folds: list[Sums]) -> SharedLaw:
    """The law of all cases, with the ridge whose law of the other folds scores best on each."""
    best = int(np.argmin(ridge_losses(folds, basis.grid, FOLDS_OF_DATES)))
    return solve_sums(basis.landmarks, basis.grid, all_of(folds), float(RIDGES[best]))
