"""What the aggregate of the experts is worth, and which constants would have been chosen."""

from typing import NamedTuple

import numpy as np

from benchmarks.hindsight import best_weights
from xrecal.arrays import quantile_score
from xrecal.arrays.online.aggregation import issue, learn
from xrecal.arrays.online.bernstein import smoothing_cosines
from xrecal.arrays.online.corrections import RATE, RIDGE
from xrecal.arrays.online.state import (
    CONTRAST,
    FADING,
    MEMORY,
    SMOOTHING,
    empty_state,
    settings_of,
)

from .experts import (
    CORRECTED,
    FITTED,
    LABELS,
    LEVELS,
    POOLED,
    SIMPLE,
    bounds_of,
    with_corrected,
)
from .streams import Stream

POOL = LABELS.index("pool")
LATE = 60  # scored cases, of all locations, after which the aggregate is to be no worse than raw


class Choice(NamedTuple):
    """Constants of the aggregation; None stands for those of the package."""

    experts: tuple[str, ...] = LABELS
    forgetting: tuple[float, ...] | None = None
    fading: float | None = None
    smoothing: float | None = None
    memory: float | None = None
    contrast: float | None = None
    alone: bool = True
    """Whether the static pool is a strategy by itself"""
    rate: float | None = None
    """Of recent errors, by which experts are corrected"""
    ridge: float | None = None
    """Of the regressions of errors"""

    def settings(self, bounds):
        """Settings for some locations, with bounds (L, 2)."""
        alone = self.experts.index("pool") if self.alone else -1
        found = settings_of(bounds, len(self.experts), LEVELS.size, alone=alone)
        given = {"fading": self.fading, "memory": self.memory, "contrast": self.contrast}
        if self.forgetting is not None:
            given["forgetting"] = np.array(self.forgetting)
        if self.smoothing is not None:
            given["cosines"] = smoothing_cosines(LEVELS.size, self.smoothing)
        return found._replace(**{k: v for k, v in given.items() if v is not None})


def without(*labels):
    """All experts but some."""
    return Choice(tuple(label for label in LABELS if label not in labels))


def candidates(constant, present, *others):
    """The present value of a constant, by which nothing is changed, and others."""
    return {f"{present:g}": DEFAULT} | {f"{v:g}": Choice(**{constant: v}) for v in others}


DEFAULT = Choice()
CHOICES = {
    "forgetting": {
        "1, 0.998, 0.99": DEFAULT,
        "1": Choice(forgetting=(1.0,)),
        "0.998": Choice(forgetting=(0.998,)),
        "0.99": Choice(forgetting=(0.99,)),
        "1, 0.99": Choice(forgetting=(1.0, 0.99)),
    },
    "fading of the largest step": candidates("fading", FADING, 1.0, 0.998, 0.97),
    "smoothing over levels": candidates("smoothing", SMOOTHING, 0.05, 0.1, 0.3),
    "contrast of strategies": candidates("contrast", CONTRAST, 0.3, 3.0),
    "memory of strategies": candidates("memory", MEMORY, 0.99, 0.98),
    "rate of recent errors": candidates("rate", RATE, 0.1, 0.3),
    "ridge of the regressions of errors": candidates("ridge", RIDGE, 20.0, 100.0),
    "static pool as a strategy": {"yes": DEFAULT, "no": Choice(alone=False)},
    "experts": {
        "all": DEFAULT,
        "no components of the pool": without(*POOLED),
        "no climatology": without("climatology"),
        "no climatology, no IDR": without("climatology", "idr_season"),
        "no CKME of recent errors": without("CKME recent"),
        "none that are corrected": without(*CORRECTED),
        "no EMOS of 30 cases": without("EMOS 30"),
    },
}
"""Candidates of each constant, the first of which is that of the package."""


def crps(quantiles, observations):
    """CRPS (...) of quantiles (..., J)."""
    return 2 * quantile_score(observations, quantiles, LEVELS).mean(-1)


def aggregated(stream: Stream, said, choice: Choice = DEFAULT):
    """Quantiles (L, n, J) from the first day on of experts who said (L, n, K, J)."""
    start = stream.warm_up
    constants = {k: v for k in ("rate", "ridge") if (v := getattr(choice, k)) is not None}
    if constants:
        said = with_corrected(stream, said[:, :, : len(FITTED)], **constants)
    own = choice.settings(np.stack(bounds_of(stream), axis=-1))
    chosen = said[:, start:, [LABELS.index(label) for label in choice.experts]]
    known = np.maximum(stream.known[start:] - start, 0)
    observed, state, learned, issued = stream.cases.observations[:, start:], empty_state(own), 0, []
    for end in np.unique(known):  # cases that are issued by the same state
        state = learn(state, own, chosen[:, learned:end], observed[:, learned:end])
        learned = end
        issued.append(issue(state, own, chosen[:, known == end]))
    return np.concatenate(issued, axis=1)[:, stream.first - start :]


class Judged(NamedTuple):
    """Scores of one stream."""

    stream: Stream
    said: np.ndarray
    issued: np.ndarray
    """(L, n, J) quantiles of ``xrecal.OnlinePool`` from the first day on"""
    experts: np.ndarray
    """(L, n, K) CRPS of the experts from the first day on"""
    scored: np.ndarray
    """(L, n) whether all that are compared have a score"""

    def mean(self, label):
        """Mean CRPS of an expert."""
        return self.experts[self.scored, LABELS.index(label)].mean()

    @property
    def best(self):
        """Name of the best of the simple experts, which only hindsight knows."""
        return min(SIMPLE, key=self.mean)

    def ratio(self, choice: Choice = DEFAULT):
        """CRPS of the aggregate over that of the best simple expert."""
        return self.scores(choice)[self.scored].mean() / self.mean(self.best)

    def scores(self, choice: Choice = DEFAULT):
        """CRPS (L, n) of the aggregate."""
        issued = aggregated(self.stream, self.said, choice)
        return crps(issued, self.stream.cases.observations[:, self.stream.first :])


def judged(stream: Stream, said, issued) -> Judged:
    """Scores of the experts of a stream, and of what the pool issued."""
    later, observed = said[:, stream.first :], stream.cases.observations[:, stream.first :]
    experts = np.stack([crps(later[:, :, k], observed) for k in range(len(LABELS))], axis=-1)
    compared = [*map(LABELS.index, SIMPLE), POOL]
    scored = np.isfinite(experts[..., compared]).all(-1)
    return Judged(stream, said, issued, experts, scored)


def row_of(one: Judged):
    """A row of the table."""
    scored, first = one.scored, one.stream.first
    scores = crps(one.issued, one.stream.cases.observations[:, first:])
    earlier = np.cumsum(scored.sum(0)) - scored.sum(0)
    late = scored & (earlier >= LATE)
    raw = one.experts[..., LABELS.index("raw")]
    mean = scores[scored].mean()
    return {
        "stream": one.stream.name,
        "source": one.stream.source,
        "hindcast": first,
        "scored": int(scored.sum()),
        **{label: one.mean(label) for label in SIMPLE},
        "static pool": one.mean("pool"),
        "aggregate": one.scores()[scored].mean(),
        "OnlinePool": mean,
        "best": one.best,
        "over best": mean / one.mean(one.best),
        "pool over best": one.mean("pool") / one.mean(one.best),
        "over pool": mean / one.mean("pool"),
        "uncorrected over best": one.ratio(without(*CORRECTED)),
        "best weights over best": hindsight(one),
        "over raw, late": scores[late].mean() / raw[late].mean() if late.any() else np.nan,
        "WIS over best": interval_score_ratio(one),
    }


def hindsight(one: Judged):
    """CRPS of the experts with the best constant weights, over that of the best simple expert.

    Both are known afterwards only; over the cases that all experts forecast.
    """
    later = slice(one.stream.first, None)
    known = one.scored & np.isfinite(one.experts).all(-1)
    observed = one.stream.cases.observations[:, later][known]
    _, averaged = best_weights(one.said[:, later][known], observed)
    return averaged / one.experts[known, LABELS.index(one.best)].mean()


def interval_score_ratio(one: Judged):
    """WIS of the pool over that of the best simple expert; NaN where none were issued."""
    levels = one.stream.levels
    if levels is None:
        return np.nan
    first = one.stream.first
    observed = one.stream.cases.observations[:, first:]

    def score(quantiles):
        at = np.apply_along_axis(lambda row: np.interp(levels, LEVELS, row), -1, quantiles)
        return quantile_score(observed, at, np.array(levels)).mean(-1)[one.scored].mean()

    issued = one.stream.cases.forecasts.loc[:, first:]
    raw = quantile_score(observed, issued, np.array(levels)).mean(-1)[one.scored].mean()
    simple = [score(one.said[:, first:, LABELS.index(label)]) for label in SIMPLE[1:]]
    return score(one.issued) / min(raw, *simple)


def comparison(found: list[Judged]):
    """Ratios of each candidate of each constant: by constant and candidate, (streams,)."""
    known: dict[Choice, np.ndarray] = {}
    for candidates in CHOICES.values():
        for choice in candidates.values():
            if choice not in known:
                known[choice] = np.array([one.ratio(choice) for one in found])
    return {
        constant: {name: known[choice] for name, choice in candidates.items()}
        for constant, candidates in CHOICES.items()
    }
