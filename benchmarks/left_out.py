"""A choice among candidates, judged by sources that had no say in it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Chosen(NamedTuple):
    """What choosing among candidates gives."""

    within: int
    """The candidate that is best over all sources"""
    left_out: np.ndarray
    """(n,) ratios of the candidate that is best over the other sources"""


def choose(
    ratios: np.ndarray,
    sources: Sequence[str],
    middle: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Chosen:
    """Choose by all sources, and for each source by the others; of equals the first.

    Parameters
    ----------
    ratios : array of float, shape (C, n)
        Scores of each candidate, the smaller the better.
    sources : sequence of str, shape (n,)
        Where each comes from.
    middle : callable
        Of ratios (C, k) and sources (k,), one number (C,) that stands for them.
    """
    names = np.array(sources)
    left_out = np.empty(names.size)
    for source in np.unique(names):
        others = names != source
        best = int(np.argmin(middle(ratios[:, others], names[others]))) if others.any() else 0
        left_out[~others] = ratios[best, ~others]
    return Chosen(int(np.argmin(middle(ratios, names))), left_out)


def of_all(ratios: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Median (C,) of all ratios (C, n)."""
    return np.median(ratios, axis=1)


def of_sources(ratios: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Geometric mean (C,) of those of the sources, each of which counts once."""
    return np.exp(np.log(each_source(ratios, sources)).mean(axis=0))


def each_source(ratios: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Geometric means (S, C) of the ratios (C, n) of each source."""
    names = dict.fromkeys(sources.tolist())
    means = [np.log(ratios[:, sources == name]).mean(axis=1) for name in names]
    return np.exp(np.array(means))
