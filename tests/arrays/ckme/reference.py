"""The embedding as its formulas say, one case at a time: a slow reference for the array layer."""

from typing import NamedTuple

import numpy as np

from xrecal.arrays import fit_emos

from .test_simplex import isotonic_projection, sorted_projection

GRID = 10.0 ** np.arange(-6, 0.1, 0.5)
SUPPORTS = ("observations", "mean", "regression", "standardised", "ratio")
PLAIN = ("regression_plain", "standardised_plain")


def laplace_loss(weights, support, y, theta):
    """``l(y,y) - 2 sum w l(y_i,y) + w'Lw`` with the dense matrix L."""
    L = np.exp(-np.abs(np.subtract.outer(support, support)) / theta)
    return 1 - 2 * weights @ np.exp(-np.abs(support - y) / theta) + weights @ L @ weights


def crps_loss(weights, support, y):
    """``sum w |y_i - y| - sum w w |y_i - y_j| / 2``."""
    spread = np.abs(np.subtract.outer(support, support))
    return weights @ np.abs(support - y) - weights @ spread @ weights / 2


def positive_median(values):
    """Median of the entries above the diagonal that are not zero."""
    pairs = values[np.triu_indices(len(values), 1)]
    return np.median(pairs[pairs > 1e-12 * values.max()])


def cut_mean(sizes):
    """Mean of the sizes above zero, the largest hundredth set to the next one below."""
    ascending = np.sort(sizes[sizes > 0])
    edge = int(0.99 * (ascending.size - 1))
    return np.concatenate(
        [ascending[:edge], np.full(ascending.size - edge, ascending[edge])]
    ).mean()


def weights_of_features(r, circular):
    """½ for sines and cosines, else one over the median squared difference, 0 for a constant."""
    apart = [np.subtract.outer(column, column) ** 2 for column in r.T]
    return np.array(
        [
            0.5 if c else 1 / positive_median(a) if a.any() else 0.0
            for a, c in zip(apart, circular, strict=True)
        ]
    )


def joint_weights_of_features(r, circular):
    """Weights of those on the real line over the median distance of pairs of cases that differ."""
    weights = weights_of_features(r, circular)
    some = ~circular
    joint = np.array([[sum(weights[some] * (a - b)[some] ** 2) for b in r] for a in r])
    weights[some] /= positive_median(joint) if joint.any() else 1.0
    return weights


def train_on(fold, step, held, gap, forward=False):
    """Cases to learn from when those of a fold are held out."""
    distance = np.abs(step[:, np.newaxis] - step[held]).min(1)
    train = (fold != fold[held[0]]) & (distance > gap)
    if forward:
        train &= np.arange(fold.size) < held.min()
    return np.flatnonzero(train)


class Choice(NamedTuple):
    """What cross-validation chooses."""

    ridge: float
    support: str = "observations"
    widening: float = 1.0
    strength: float = 0.0


class Embedding(NamedTuple):
    """Cases of one location in the order of time, and how they are compared."""

    d: np.ndarray
    """(n, n) squared energy distances"""
    y: np.ndarray
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    r: np.ndarray = np.zeros((0, 0))
    """(n, k) features"""
    precision: np.ndarray = np.zeros(0)
    omega: np.ndarray | None = None
    """(n,) case weights"""
    low: float = -np.inf
    high: float = np.inf
    kernel: str = "gaussian"
    bandwidth: float = 1.0
    loss: str = "crps"
    projection: str = "euclidean"
    predictors: np.ndarray = np.zeros(0, np.int64)
    """Columns of the features that regressions shrink"""
    inverse_size: float = 0.0
    """Mean of one over the number of members of the cases"""

    def similarity(self, squared, new_r, r, choice):
        """``exp(-D²/(w s) - strength sum p (v - v')²)``, D for the Laplace kernel."""
        d = np.sqrt(squared) if self.kernel == "laplace" else squared
        exponent = d / (choice.widening * self.bandwidth)
        if choice.strength:
            apart = (new_r[:, np.newaxis] - r) ** 2 @ self.precision
            exponent = exponent + choice.strength * apart
        return np.exp(-exponent)

    def centre(self, train, choice):
        """Function from mean, variance and features to centre and spread, fitted to cases."""
        if choice.support in PLAIN:
            others = np.setdiff1d(np.arange(self.r.shape[1]), self.predictors)
            plain = self._replace(r=self.r[:, others], predictors=self.predictors[:0])
            of = plain.centre(train, choice._replace(support=choice.support.removesuffix("_plain")))
            return lambda x, v, r: of(x, v, r[others])
        x, v, y = self.mean[train], self.variance[train], self.y[train]
        r = self.r[train] if choice.strength else np.zeros((train.size, 0))
        k = r.shape[1]
        if choice.support == "observations":
            return lambda x, v, r: (0.0, 1.0)
        if choice.support == "mean":
            return lambda x, v, r: (x, 1.0)
        if choice.support == "ratio":
            smallest = 0.01 * cut_mean(np.abs(x))
            return lambda x, v, r: (0.0, np.hypot(smallest, x))
        lower = self.low if (y <= self.low).any() else -np.inf
        upper = self.high if (y >= self.high).any() else np.inf
        bounds = {"lower": lower, "upper": upper, "min_samples": 1}
        bounds["predictors"] = self.predictors if choice.strength else self.predictors[:0]
        if choice.support == "regression":
            line = fit_emos([x], [0 * v], [y], r[np.newaxis], **bounds, in_spread=False)[0][0]
            assert line[1] > 0
            return lambda x, v, r: (line[0] + line[1] * x + r[:k] @ line[4 : 4 + k], 1.0)
        fitted = fit_emos([x], [v], [y], r[np.newaxis], **bounds)[0][0]
        a, b, c, d = fitted[:4]
        g, h = fitted[4 : 4 + k], fitted[4 + k :]
        c = max(c, 0.05 * np.sqrt(c**2 + d**2 * cut_mean(v)))
        return lambda x, v, r: (
            a + b * x + r[:k] @ g,
            np.sqrt(c**2 + d**2 * v) * np.exp(r[:k] @ h),
        )

    def forecast(self, train, squared, x, v, r, choice, members=None):
        """Points and weights of one new forecast, at ``squared`` distances of the cases.

        With ``members`` their number may differ from that of the cases.
        """
        excess = 0.0
        if members is not None:
            members = members[np.isfinite(members)]
            excess = (self.inverse_size - 1 / members.size) / max(1 - 1 / members.size, 1e-9)
            apart = np.abs(np.subtract.outer(members, members)).mean()
            squared = np.maximum(squared + excess * apart, 0)
        omega = np.ones(self.y.size) if self.omega is None else self.omega
        omega = omega[train] / omega[train].max()
        K = self.similarity(self.d[np.ix_(train, train)], self.r[train], self.r[train], choice)
        k = self.similarity(squared[np.newaxis, train], r[np.newaxis], self.r[train], choice)[0]
        beta = np.linalg.solve(K + choice.ridge * train.size * np.diag(1 / omega), k)
        beta += omega * (1 - beta.sum()) / omega.sum()
        points = self.y[train]
        if choice.support != "observations":
            place = self.centre(train, choice)
            cases = zip(self.mean[train], self.variance[train], self.r[train], strict=True)
            centres, spreads = np.array([place(*case) for case in cases]).T
            v = v if v is None else self.on_footing(v, members, excess)
            centre, spread = place(x, v, r)
            if excess:
                errors = ((points - centres) / spreads)[(points > self.low) & (points < self.high)]
                noise = self.slope(train, choice) ** 2 * excess / (1 - excess) * v
                size = np.pi / 2 * (cut_mean(np.abs(errors)) * spread) ** 2
                spread = spread * np.sqrt(max(1 - noise / size, 0.25))
            points = self.members(points, centre + spread * (points - centres) / spreads)
        if self.projection == "energy":
            return points, isotonic_projection(beta, points)
        return points, sorted_projection(beta)

    def on_footing(self, v, members, excess):
        """Variance of members as of so many as the cases have; of fewer, shrunk to the mean."""
        v = v * (1 - excess)
        if excess >= 0:
            return v
        k, usual = members.size, 1 / self.inverse_size
        square = np.mean(self.variance**2) / (1 + 2 / (usual - 1))  # of true variances
        chance = 2 * square * (1 / (k - 1) - 1 / (usual - 1))
        differ = np.var(self.variance)
        return np.mean(self.variance) + differ / (differ + chance) * (v - np.mean(self.variance))

    def slope(self, train, choice):
        """How the centre changes with the ensemble mean."""
        if choice.support == "ratio":
            return 0.0
        place, r = self.centre(train, choice), self.r[train[0]]
        return place(1.0, 1.0, r)[0] - place(0.0, 1.0, r)[0]

    def members(self, verified, moved):
        """Observations moved by the forecast: on a bound if they were, else between the others.

        A bound that no observation reaches limits them itself.
        """
        within = verified[(verified > self.low) & (verified < self.high)]
        first = within.min() if within.size and (verified <= self.low).any() else self.low
        last = within.max() if within.size and (verified >= self.high).any() else self.high
        on_bound = (verified <= self.low) | (verified >= self.high)
        return np.where(on_bound, verified, np.clip(moved, first, last))

    def held_out(self, fold, step, gap, choice, forward=False):
        """Case, points and weights of each case that can be forecast without its fold."""
        n = self.y.size
        for f in np.unique(fold):
            held = np.flatnonzero(fold == f)
            train = train_on(fold, step, held, gap, forward)
            if train.size < 2:
                continue
            for i in held:
                x, v = (None, None) if self.mean is None else (self.mean[i], self.variance[i])
                r = self.r[i] if self.r.size else np.zeros(0)
                yield i, *self.forecast(train, self.d[i], x, v, r, choice)
        assert n == fold.size

    def mean_loss(self, fold, step, gap, choice, forward=False, only=None):
        """Mean held-out loss, of all folds or only of one."""
        apart = np.abs(np.subtract.outer(self.y, self.y))
        theta = np.median(apart[apart > 0]) if apart.any() else 1.0
        losses = [
            laplace_loss(weights, points, self.y[i], theta)
            if self.loss == "laplace"
            else crps_loss(weights, points, self.y[i])
            for i, points, weights in self.held_out(fold, step, gap, choice, forward)
            if only in (None, fold[i])
        ]
        return np.mean(losses) if losses else np.inf


def blocks_in_time(n, parts=5):
    """Folds of n cases, each a step of its own."""
    return np.arange(n) * parts // n
