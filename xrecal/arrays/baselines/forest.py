"""Regression forest: trees put similar cases into one leaf; a forecast uses the errors in its leaf.

The trees learn errors around a centre, in units of a spread; centre and spread are mu and sigma of
EMOS. To measure the error of a case, the fit of the centre leaves out this case. scikit-learn grows
the trees. This module stores the trees as arrays of a fixed shape, so forecasts do not need
scikit-learn.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.centre import (
    SMALLEST_DIVISOR,
    STANDARDISED,
    Sample,
    fill_centres,
    fit_centre,
    inside,
)
from xrecal.arrays.compiled import IndexMatrix, Matrix, OutIndexMatrix, OutMatrix, kernel
from xrecal.typing import FloatArray, IntArray

from .robust import EDGE, cut

LEAF, TRIED = 5, 0.4
"""Least number of cases in a leaf, and share of the predictors in the random subset from which each
split of a tree chooses."""

SHARE, MOST = 0.632, 2500
"""Share of the cases from which a tree grows, as in a bootstrap, and greatest number of cases for a
tree."""

FOLDS, BLOCKS = 5, 10
"""Number of folds in the cross-validation of centres, and number of blocks of successive cases in
each fold. The blocks of a fold lie all over the record, so they cover all seasons."""

NO_SPLIT = -1
"""A node that does not split (a leaf or an unused node) has this number instead of the position of
a predictor."""

LARGEST = 1e38
"""Larger values of predictors count as this value, because trees use single precision."""

INSTALL = "pip install 'xrecal[predictors]'"


class Predictors(NamedTuple):
    """Variables on which forecasts may depend, for n cases or new forecasts at L places."""

    mean: FloatArray
    """(L, n) ensemble mean"""
    variance: FloatArray
    """(L, n) ensemble variance"""
    season: FloatArray
    """(L, n, c) features that both the centre and the trees use"""
    others: FloatArray
    """(L, n, k) features that only the trees use"""

    @property
    def columns(self) -> FloatArray:
        """Return all predictors (L, n, 2 + c + k) of the trees, in single precision."""
        moments = np.stack([self.mean, np.sqrt(self.variance)], axis=-1)
        whole = np.concatenate([moments, self.season, self.others], axis=-1)
        return np.asarray(np.clip(whole, -LARGEST, LARGEST), np.float32)


class FittedForest(NamedTuple):
    """Centres, errors and trees of L places.

    The left child of node i is node i + 1.
    """

    centre: FloatArray
    """(L, 4 + 2 c) coefficients of the centre, as in :mod:`xrecal.arrays.ckme.centre`"""
    lower: FloatArray
    """(L,) lower bound of the variable, minus infinity without a bound"""
    upper: FloatArray
    """(L,) upper bound of the variable, infinity without a bound"""
    error: FloatArray
    """(L, n) error of each case: minus infinity if the observation is on the lower bound, infinity
    on the upper bound, NaN if the fit does not use the case"""
    predictor: IntArray
    """(L, trees, nodes) position of the predictor by which a node splits cases into two groups"""
    threshold: FloatArray
    """(L, trees, nodes) greatest value of this predictor for which a case goes to the left child"""
    right: IntArray
    """(L, trees, nodes) index of the node that is the right child"""


def require_forest() -> None:
    """Raise ImportError if scikit-learn, which grows the trees, is not installed."""
    if find_spec("sklearn") is None:
        raise ImportError(
            "a LinearPool with five covariates and 200 cases has a forest, which needs "
            f"scikit-learn; use {INSTALL}, or LinearPool(forest=False)"
        )


def most_nodes(n: int) -> int:
    """Return the greatest number of nodes that a tree can have, if there are n cases."""
    return 2 * max(_grown_on(n) // LEAF, 1) - 1


def _grown_on(n: int) -> int:
    """Return the number of cases, out of n, from which a tree grows."""
    return max(min(int(SHARE * n), MOST), 1)


def fit_forest(
    cases: Predictors,
    observations: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    step: IntArray,
    *,
    n_trees: int,
    seed: int,
    min_samples: int,
) -> FittedForest:
    """Fit centres and grow trees at each place.

    Parameters
    ----------
    cases : Predictors
        Predictors of n cases.
    observations : array of float, shape (L, n)
        Observations; NaN for cases that the fit must not use.
    bounds : tuple of array, shape (L,)
        Lower and upper bounds of the variable, infinite without a bound.
    step : array of int, shape (n,)
        Index of the date of each case, ascending; cases of one date share an index.
    n_trees, seed : int
        Number of trees at each place, and seed of random numbers. The seed is the same at all
        places.
    min_samples : int
        Least number of cases; places with fewer cases get no forest.

    Returns
    -------
    FittedForest
        Fitted forests. Places without a forest have NaN coefficients and errors.
    """
    n_places, n = observations.shape
    shape = n_places, n_trees, most_nodes(n)
    fitted = FittedForest(
        np.full((n_places, 4 + 2 * cases.season.shape[-1]), np.nan),
        *bounds,
        np.full((n_places, n), np.nan),
        np.full(shape, NO_SPLIT, np.int16),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.int16),
    )
    columns = cases.columns
    complete = np.isfinite(observations) & np.isfinite(columns).all(-1)
    fold = step * (FOLDS * BLOCKS) // (step[-1:].sum() + 1) % FOLDS
    for place in np.flatnonzero(complete.sum(-1) >= min_samples).tolist():
        used = np.flatnonzero(complete[place])
        sample = _sample(cases, observations, bounds, place, used)
        fit_centre(STANDARDISED, sample, fitted.centre[place])
        error = _held_out_errors(sample, fold[used], fitted.centre[place])
        fitted.error[place, used] = _on_bounds(error, sample)
        trees = fitted.predictor[place], fitted.threshold[place], fitted.right[place]
        _grow(columns[place, used], cut(error, far=EDGE), seed, trees)
    return fitted


def errors_of(
    cases: Predictors,
    observations: FloatArray,
    centre: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return errors (L, n) of new cases, measured from the centres of a :class:`FittedForest`."""
    found = np.full(observations.shape, np.nan)
    known = np.isfinite(observations) & np.isfinite(cases.columns).all(-1)
    for place in np.flatnonzero(np.isfinite(centre).all(-1)).tolist():
        used = np.flatnonzero(known[place])
        sample = _sample(cases, observations, bounds, place, used)
        found[place, used] = _on_bounds(_errors(sample, centre[place]), sample)
    return found


def forest_forecasts(
    new: Predictors, cases: Predictors, observations: FloatArray, fitted: FittedForest
) -> tuple[FloatArray, FloatArray]:
    """Compute members and weights of new forecasts from a fitted forest.

    Parameters
    ----------
    new, cases : Predictors
        Predictors of T new forecasts and of n past cases.
    observations : array of float, shape (L, n)
        Observations of the past cases.
    fitted : FittedForest
        Fitted forest, with the errors of the past cases.

    Returns
    -------
    members, weights : array of float64, shape (L, T, n)
        A member is the centre of the forecast, plus a past error times the spread of the forecast.
        In each tree, the cases in the same leaf as the forecast get equal weights, which sum to
        one. ``weights`` contains the mean of these weights over the trees; it is NaN for a forecast
        with a missing predictor. Cases without an error have weight 0.
    """
    n_places, n_new = new.mean.shape
    members = np.full((n_places, n_new, observations.shape[1]), np.nan)
    weights = np.zeros(members.shape)
    columns, new_columns = cases.columns.astype(np.float64), new.columns.astype(np.float64)
    missing = ~np.isfinite(new_columns).all(-1) | ~np.isfinite(fitted.centre).all(-1, keepdims=True)
    for place in np.flatnonzero(~missing.all(-1)).tolist():
        used = np.flatnonzero(~np.isnan(fitted.error[place]))
        trees = (
            fitted.predictor[place].astype(np.int64),
            fitted.threshold[place].astype(np.float64),
            fitted.right[place].astype(np.int64),
        )
        leaf, found = (np.empty((len(trees[0]), k), np.int64) for k in (used.size, n_new))
        fill_leaves(*trees, np.ascontiguousarray(columns[place, used]), leaf)
        fill_leaves(*trees, new_columns[place], found)
        shares = np.zeros((n_new, used.size))
        fill_shares(leaf, found, trees[0].shape[1], shares)
        weights[place][:, used] = shares
        members[place][:, used] = _members(new, observations[place, used], fitted, place, used)
    weights[missing] = np.nan
    return members, weights


def _sample(
    cases: Predictors,
    observations: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    place: int,
    used: slice | IntArray,
) -> Sample:
    """Return the cases ``used`` of a place in the form that the fit of a centre needs."""
    mean, variance, season, target = (
        np.array(part[place, used], np.float64, order="C")
        for part in (cases.mean, cases.variance, cases.season, observations)
    )
    low, high = (float(bound[place]) for bound in bounds)
    return Sample(mean, variance, season, target, low, high)


def _centred(of: Sample, centre: FloatArray) -> FloatArray:
    """Return the centre and the spread of each case, as one array (2, n)."""
    centred = np.empty((2, of.mean.size))
    fill_centres(STANDARDISED, centre, of.mean, of.variance, of.features, centred)
    centred[1] = np.maximum(centred[1], SMALLEST_DIVISOR)
    return centred


def _errors(sample: Sample, centre: FloatArray) -> FloatArray:
    """Return errors (n,) of the cases of a sample, in units of the spread."""
    loc, spread = _centred(sample, centre)
    return np.asarray((sample.target - loc) / spread)


def _held_out_errors(sample: Sample, fold: IntArray, centre: FloatArray) -> FloatArray:
    """Return the error (n,) of each case around a centre fitted without the fold of the case.

    If this fit has too few cases, the function takes the error around ``centre``.
    """
    errors = _errors(sample, centre)
    for f in range(FOLDS):
        held, train = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        if held.size and train.size > 2 * centre.size:
            without = np.empty_like(centre)
            fit_centre(STANDARDISED, sample.take(train), without)
            errors[held] = _errors(sample.take(held), without)
    return errors


def _on_bounds(errors: FloatArray, sample: Sample) -> FloatArray:
    """Return errors (n,), with infinity where the observation is on a bound."""
    at_low, at_high = sample.target <= sample.low, sample.target >= sample.high
    return np.where(at_low, -np.inf, np.where(at_high, np.inf, errors))


def _members(
    new: Predictors,
    observations: FloatArray,
    fitted: FittedForest,
    place: int,
    used: IntArray,
) -> FloatArray:
    """Return members (T, k) of the new forecasts of a place, from the errors of k past cases."""
    sample = _sample(new, new.mean, (fitted.lower, fitted.upper), place, slice(None))
    low, high, error = sample.low, sample.high, fitted.error[place, used]
    loc, spread = _centred(sample, fitted.centre[place])[..., np.newaxis]
    points = loc + spread * np.where(np.isfinite(error), error, 0.0)
    known = np.ascontiguousarray(observations, np.float64)
    points = np.clip(points, *inside(known, low, high))
    return np.asarray(np.where(np.isfinite(error), points, np.where(error < 0, low, high)))


def _grow(
    columns: npt.NDArray[np.float32],
    errors: FloatArray,
    seed: int,
    trees: tuple[IntArray, FloatArray, IntArray],
) -> None:
    """Grow trees for the errors (n,) of cases with predictors (n, k), and store them in arrays."""
    require_forest()
    from sklearn.tree import DecisionTreeRegressor

    varies = np.flatnonzero((columns != columns[:1]).any(0))
    if varies.size == 0:
        return
    rng, n = np.random.default_rng(seed), errors.size
    for predictor, threshold, right in zip(*trees, strict=True):
        some = np.sort(rng.permutation(n)[: _grown_on(n)])
        tree = DecisionTreeRegressor(
            min_samples_leaf=LEAF, max_features=TRIED, random_state=int(rng.integers(2**31))
        )
        of = np.ascontiguousarray(columns[np.ix_(some, varies)])
        grown = tree.fit(of, errors[some], check_input=False).tree_
        splits = np.flatnonzero(grown.children_left >= 0)
        predictor[splits] = varies[grown.feature[splits]]
        right[splits] = grown.children_right[splits]
        # A threshold lies between two values; rounding up could reach the greater one.
        exact = grown.threshold[splits]
        rounded = exact.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
        threshold[splits] = np.where(rounded > exact, lower, rounded)


@kernel
def fill_leaves(
    predictor: IndexMatrix,
    threshold: Matrix,
    right: IndexMatrix,
    columns: Matrix,
    leaf: OutIndexMatrix,
) -> None:
    """Find the leaf of each case in each tree, and write its index to ``leaf`` (trees, n).

    Cases have predictors (n, k); trees are arrays (trees, nodes).
    """
    for tree in range(leaf.shape[0]):
        for i in range(leaf.shape[1]):
            node, column = 0, predictor[tree, 0]
            while 0 <= column < columns.shape[1]:
                left = columns[i, column] <= threshold[tree, node]
                child = node + 1 if left else right[tree, node]
                if not node < child < predictor.shape[1]:  # an array that no fit made
                    break
                node, column = child, predictor[tree, child]
            leaf[tree, i] = node


@kernel
def fill_shares(leaf: IndexMatrix, new: IndexMatrix, n_nodes: int, shares: OutMatrix) -> None:
    """Compute weights (T, n) of n cases for T new forecasts, as means over trees.

    ``leaf`` (trees, n) contains the leaves of cases, and ``new`` (trees, T) the leaves of
    forecasts. ``shares`` must contain zeros before the call. If the leaf of a forecast contains no
    case, the mean leaves out this tree.
    """
    n_trees, n = leaf.shape
    start, case = np.empty(n_nodes + 1, np.int64), np.empty(n, np.int64)
    trees = np.zeros(shares.shape[0])
    for tree in range(n_trees):
        for node in range(n_nodes + 1):
            start[node] = 0
        for i in range(n):
            start[leaf[tree, i]] += 1
        for node in range(1, n_nodes + 1):
            start[node] += start[node - 1]
        for i in range(n - 1, -1, -1):  # in the end, each node starts at its first case
            node = leaf[tree, i]
            start[node] -= 1
            case[start[node]] = i
        for t in range(shares.shape[0]):
            first, last = start[new[tree, t]], start[new[tree, t] + 1]
            for k in range(first, last):
                shares[t, case[k]] += 1.0 / (last - first)
            trees[t] += last > first
    for t in range(shares.shape[0]):
        for i in range(n):
            shares[t, i] /= max(trees[t], 1.0)
