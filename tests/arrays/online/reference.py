"""Aggregation from the formulas, one number after the other, with nothing but NumPy."""

import numpy as np
from scipy.stats import norm

PARTS = 0.5, 1.0


def smoothing(n_levels, deviation):
    """Matrix (J, J) of a Gaussian average over levels, reflected at both ends of [0, 1]."""
    p = (np.arange(n_levels) + 0.5) / n_levels
    matrix = np.zeros((n_levels, n_levels))
    for image in range(-4, 5):
        for place in (p + 2 * image, 2 * image - p):
            matrix += np.exp(-(((p[:, np.newaxis] - place) / deviation) ** 2) / 2)
    return matrix / (deviation * np.sqrt(2 * np.pi) * n_levels)


def average(quantiles, weights, low, high):
    """Ascending average (J,) of experts (K, J) by weights (K, J), which mixes at bounds."""
    n = quantiles.shape[1]
    used = np.flatnonzero(weights.sum(1) > 0)
    mean = weights.mean(1)
    at_low, at_high = quantiles <= low, (quantiles >= high) & (quantiles > low)
    below = sum(mean[k] * at_low[k].mean() for k in used)
    above = sum(mean[k] * at_high[k].mean() for k in used)
    out = np.empty(n)
    for j, p in enumerate((np.arange(n) + 0.5) / n):
        if p <= below:
            out[j] = low
        elif p >= 1 - above:
            out[j] = high
        else:
            values, masses = [], []
            for k in used:
                inside = quantiles[k][~(at_low[k] | at_high[k])]
                if inside.size and weights[k, j] > 0:
                    levels = (np.arange(inside.size) + 0.5) / inside.size
                    values.append(np.interp((p - below) / (1 - below - above), levels, inside))
                    masses.append(weights[k, j] * inside.size)
            plain = sum(weights[k, j] * quantiles[k, j] for k in used)
            out[j] = np.average(values, weights=masses) if sum(masses) > 0 else plain
    return np.sort(out)


def crps(quantiles, y):
    p = (np.arange(quantiles.size) + 0.5) / quantiles.size
    return np.mean(2 * ((y < quantiles) - p) * (quantiles - y))


class Aggregate:
    """At one location, of K experts at J levels."""

    def __init__(
        self, n_experts, n_levels, alone, *, forgetting, fading, deviation, memory, contrast
    ):
        shape = len(forgetting), n_experts, n_levels
        self.regret, self.square = np.zeros(shape), np.zeros(shape)
        self.largest = np.zeros(shape[:2])
        self.score, self.cases = np.zeros(len(forgetting) * (1 + len(PARTS)) + 1), 0.0
        self.alone, self.forgetting, self.memory = alone, forgetting, memory
        self.contrast, self.fading = contrast, fading
        self.smooth = smoothing(n_levels, deviation)

    def rates(self, s):
        with np.errstate(divide="ignore"):
            largest = 0.5 / self.largest[s][:, np.newaxis]
            rate = np.minimum(largest, np.sqrt(np.log(len(largest) + 1) / self.square[s]))
        return np.where(np.isfinite(rate), rate, 0.0)

    def weights(self, s, present, common=None, part=0.0):
        rate, regret = self.rates(s), self.regret[s]
        if part:
            regret = (1 - part) * regret + part * self.scale() * common[s]
        out = np.zeros(rate.shape)
        for j in range(rate.shape[1]):
            known = present & (rate[:, j] > 0)
            eta = np.where(rate[:, j] > 0, rate[:, j], rate[known, j].mean() if known.any() else 1)
            out[:, j] = np.where(present, eta * np.exp(eta * regret[:, j]), 0)
        return out / out.sum(0)

    def scale(self):
        n = len(self.forgetting)
        return self.score[:n].min() / self.cases if self.cases else 0.0

    def comparable(self):
        """Regrets in units of the mean CRPS, at most as large as the number of cases."""
        return np.clip(self.regret / self.scale(), -self.cases, self.cases)

    def learn(self, quantiles, y, bounds, common=None):
        present = ~np.isnan(quantiles).any(1)
        if np.isnan(y) or not present.any():
            return
        p = (np.arange(quantiles.shape[1]) + 0.5) / quantiles.shape[1]
        scores = np.zeros_like(self.score)
        for s, g in enumerate(self.forgetting):
            weights = self.weights(s, present)
            scores[s] = crps(average(quantiles, weights, *bounds), y)
            for h, part in enumerate(PARTS):
                own = weights if common is None else self.weights(s, present, common, part)
                at = (1 + h) * len(self.forgetting) + s
                scores[at] = crps(average(np.nan_to_num(quantiles), own, *bounds), y)
            q = np.nansum(weights * quantiles, 0)
            r = 2 * ((y < q) - p) * (q - quantiles) @ self.smooth.T
            for k in np.flatnonzero(present):
                self.largest[s, k] = max(self.fading * self.largest[s, k], np.abs(r[k]).max())
                self.square[s, k] = g * self.square[s, k] + r[k] ** 2
                gain = r[k] * (1 - self.rates(s)[k] * r[k]) / 2
                self.regret[s, k] = g * self.regret[s, k] + gain
        if self.alone >= 0 and not present[self.alone]:
            return
        scores[-1] = crps(quantiles[self.alone], y) if self.alone >= 0 else 0
        self.score = self.memory * self.score + scores
        self.cases = self.memory * self.cases + 1

    def issue(self, quantiles, bounds, common=None):
        present = ~np.isnan(quantiles).any(1)
        if not present.any():
            return np.full(quantiles.shape[1], np.nan)
        alone = self.alone >= 0 and present[self.alone]
        parts = (0.0,) if common is None else (0.0, *PARTS)
        ways = [(part, s) for part in parts for s in range(len(self.forgetting))]
        score = np.append(self.score[: len(ways)], self.score[-1:] if alone else [])
        shares = np.ones(score.size)
        if self.cases:
            shares = np.exp(-self.contrast * self.cases * (score - score.min()) / score.min())
        shares /= shares.sum()
        total = sum(
            shares[i] * self.weights(s, present, common, part) for i, (part, s) in enumerate(ways)
        )
        if alone:
            total[self.alone] += shares[-1]
        return average(np.where(present[:, np.newaxis], quantiles, 0), total, *bounds)


def expected_corrections(errors, earlier, predictors, new, rate=0.2, ridge=50.0):
    """Shift and stretch (T, 2) of new forecasts, by means and regressions written out."""
    errors, new = np.asarray(errors), np.asarray(new)

    def mean_of_recent(values, count):
        mean = 0.0
        for value in values[:count]:
            mean = mean + rate * (value - mean)
        return mean

    sizes = np.abs(errors) / np.sqrt(2 / np.pi) - 1
    every = np.concatenate([np.reshape(predictors, (errors.size, new.shape[1])), new])
    own = np.column_stack([within_reach(column, errors.size) for column in every.T[:3]])
    whole = np.column_stack([own, np.nan_to_num(every[:, 3:])])
    counts = [*earlier, *[errors.size] * len(new)]
    columns = []
    for target, table, largest in ((errors, whole, 1.0), (sizes, np.abs(own), 0.7)):
        recent = [mean_of_recent(target, count) for count in counts]
        table = np.column_stack([recent, table])
        centre = table[: errors.size].mean(0)
        centre[[0, *range(4, table.shape[1])]] = 0
        scale = np.sqrt(((table[: errors.size] - centre) ** 2).mean(0))
        table = np.where(scale > 0, (table - centre) / np.where(scale > 0, scale, 1), 0)
        table = table.clip(-3, 3)
        penalty = np.r_[[ridge] * 4, [10.0] * (table.shape[1] - 4)]
        found, evidence = zip(
            *(regressed(table[:, :k], target, penalty[:k]) for k in {4, table.shape[1]}),
            strict=True,
        )
        weights = np.exp(np.array(evidence) - max(evidence))
        expected = np.average(found, axis=0, weights=weights)
        columns.append(expected.clip(-largest, largest))
    return np.stack(columns, axis=-1)


def regressed(table, target, penalty):
    """Expected values of later rows by a ridge regression on the first, and its log evidence."""
    past, square = table[: target.size], np.mean(target**2)
    matrix, moment = past.T @ past + np.diag(penalty), past.T @ target
    slopes = np.linalg.solve(matrix, moment)
    evidence = moment @ slopes / square + np.log(penalty).sum() - np.linalg.slogdet(matrix)[1]
    return table[target.size :] @ slopes, evidence / 2


def within_reach(column, n):
    """Cut at 8 mean sizes of what is not at the median of the first n, the largest 5 % cut."""
    middle = np.median(column[:n])
    size = np.sort([abs(value - middle) for value in column[:n] if value != middle])
    if not size.size:
        return column
    largest = size[int(0.95 * (size.size - 1))]
    far = 8 * np.mean([min(s, largest) for s in size])
    return column.clip(middle - far, middle + far)


def quantiles_corrected(quantiles, shift, stretch):
    """Quantiles (J,) read off at levels that are moved, on straight lines beyond the outermost."""
    n_levels = quantiles.size
    scores = norm.ppf((np.arange(n_levels) + 0.5) / n_levels)
    wanted = shift + np.exp(stretch) * scores
    inner = np.interp(wanted, scores, quantiles)
    k = max(round(0.07 * n_levels), 1)
    below = np.poly1d(np.polyfit(scores[[0, k]], quantiles[[0, k]], 1))(wanted)
    above = np.poly1d(np.polyfit(scores[[-1, -1 - k]], quantiles[[-1, -1 - k]], 1))(wanted)
    return np.where(wanted < scores[0], below, np.where(wanted > scores[-1], above, inner))
