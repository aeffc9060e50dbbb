"""Experts to one forecast, by weights that go on learning: learn from cases, and issue.

Experts say quantiles at the levels (j - ½) / J. At each location there are strategies, each with
weights of the experts (:mod:`xrecal.arrays.online.bernstein`), and perhaps one expert by itself;
strategies are weighed in turn by their discounted CRPS. What is given is left as it was.

An expert that is NaN at a level is missing in that case: the others share its weight, and it learns
nothing. A case without observation teaches nothing; one without any expert is NaN. Where the expert
that stands alone is missing, the others go on learning, and strategies keep their scores.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Floats4, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.typing import FloatArray

from .averages import average_by_level, present_experts, quantile_crps
from .bernstein import expert_weights, fill_steps, learn_steps, regrets_of
from .state import Settings, State, empty_state

Record = TypeVar("Record", Settings, State)


def learn(
    state: State, settings: Settings, quantiles: npt.ArrayLike, observations: npt.ArrayLike
) -> State:
    """The state after verified cases, one after the other.

    Parameters
    ----------
    state : State
        What has been learned so far: from :func:`xrecal.arrays.online.state.empty_state` on.
    settings : Settings
        Of L locations, K experts and J levels.
    quantiles : array_like of float, shape (L, n, K, J)
        What each expert said of n cases when they were issued, ascending.
    observations : array_like of float, shape (L, n)
        What verified, in the same unit; NaN where nothing did.

    Returns
    -------
    State
        The same, bit for bit, if the cases come in several calls.

    Raises
    ------
    ValueError
        If shapes do not fit the settings.

    Notes
    -----
    O(S K J) a case and location, for S strategies.
    """
    said, observed = _checked(state, settings, quantiles, observations)
    learned = _own(state)
    _learn_cases(said, observed, _own(settings), learned)
    return learned


def issue(state: State, settings: Settings, quantiles: npt.ArrayLike) -> FloatArray:
    """Quantiles (L, n, J) of the aggregate of experts who say quantiles (L, n, K, J).

    Ascending; NaN without any expert. At a bound probabilities are mixed, quantiles averaged
    between bounds. ValueError if shapes do not fit the settings.
    """
    said, _ = _checked(state, settings, quantiles, None)
    issued = np.empty((*said.shape[:2], said.shape[3]))
    _issue_cases(said, _own(settings), _own(state), issued)
    return issued


def mean_weights(state: State, settings: Settings) -> FloatArray:
    """Weights (L, K) of the experts, all of them present, on average over the levels."""
    shape = settings.bounds.shape[0], settings.prior.size
    weights = np.empty(shape)
    _fill_mean_weights(_own(settings), _own(state), weights)
    return weights


def _own(record: Record) -> Record:
    """A copy whose arrays compiled code takes: contiguous, and to be written to."""
    own: dict[str, Any] = {
        name: np.array(part, order="C")
        for name, part in record._asdict().items()
        if isinstance(part, np.ndarray)
    }
    return record._replace(**own)


def _checked(
    state: State,
    settings: Settings,
    quantiles: npt.ArrayLike,
    observations: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray]:
    """Contiguous quantiles (L, n, K, J) and observations (L, n); ValueError if they do not fit."""
    held, needed = ([part.shape for part in each] for each in (state, empty_state(settings)))
    if held != needed:
        raise ValueError(
            f"the state has arrays of shape {held}, but the settings need {needed}; begin with "
            "empty_state(settings)"
        )
    said = np.ascontiguousarray(quantiles, np.float64)
    shape = settings.bounds.shape[0], settings.prior.size, settings.cosines.shape[1]
    if said.ndim != 4 or (said.shape[0], *said.shape[2:]) != shape:
        raise ValueError(
            f"quantiles must have shape ({shape[0]}, cases, {shape[1]}, {shape[2]}): locations, "
            f"cases, experts and levels of the settings, found {said.shape}"
        )
    given = np.empty(said.shape[:2]) if observations is None else observations
    observed = np.ascontiguousarray(given, np.float64)
    if observed.shape != said.shape[:2]:
        raise ValueError(
            f"observations must have shape {said.shape[:2]}, as the cases of the quantiles, found "
            f"{observed.shape}"
        )
    return said, observed


@kernel
def _learn_cases(
    quantiles: Floats4, observations: Matrix, settings: Settings, state: State
) -> None:
    n_cells, n_cases, n_experts, n_levels = quantiles.shape
    n_strategies, alone = settings.forgetting.size, settings.alone
    weights, steps = np.empty((n_experts, n_levels)), np.empty((n_experts, n_levels))
    issued, scores = np.empty(n_levels), np.zeros(n_strategies + 1)
    for cell in range(n_cells):
        low, high = settings.bounds[cell]
        for i in range(n_cases):
            said, y = quantiles[cell, i], observations[cell, i]
            present, n_present = present_experts(said)
            if np.isnan(y) or n_present == 0:
                continue
            for s in range(n_strategies):
                regrets = regrets_of(state, cell, s)
                expert_weights(regrets, settings.prior, present, weights)
                average_by_level(said, weights, low, high, issued)
                scores[s] = quantile_crps(issued, y)
                fill_steps(said, weights, y, steps)
                forgetting, fading = settings.forgetting[s], settings.fading
                learn_steps(regrets, steps, present, forgetting, fading, settings.cosines)
            if alone >= 0:
                if not present[alone]:
                    continue
                scores[n_strategies] = quantile_crps(said[alone], y)
            state.cases[cell] = settings.memory * state.cases[cell] + 1.0
            for s in range(n_strategies + 1):
                state.score[cell, s] = settings.memory * state.score[cell, s] + scores[s]


@kernel
def _issue_cases(quantiles: Floats4, settings: Settings, state: State, out: OutCube) -> None:
    n_cells, n_cases, n_experts, n_levels = quantiles.shape
    total = np.empty((n_experts, n_levels))
    for cell in range(n_cells):
        low, high = settings.bounds[cell]
        for i in range(n_cases):
            out[cell, i].fill(np.nan)
            present, n_present = present_experts(quantiles[cell, i])
            if n_present > 0:
                _total_weights(cell, present, settings, state, total)
                average_by_level(quantiles[cell, i], total, low, high, out[cell, i])


@kernel
def _fill_mean_weights(settings: Settings, state: State, out: OutMatrix) -> None:
    n_experts, n_levels = settings.prior.size, settings.cosines.shape[1]
    total = np.empty((n_experts, n_levels))
    for cell in range(out.shape[0]):
        _total_weights(cell, np.ones(n_experts, np.bool_), settings, state, total)
        for k in range(n_experts):
            out[cell, k] = 0.0
            for j in range(n_levels):
                out[cell, k] += total[k, j] / n_levels


@inner
def _total_weights(cell: int, present: Any, settings: Any, state: Any, out: Any) -> None:
    """Weights (K, J) at a location of the experts that are present (K,), by all strategies."""
    n_experts, n_levels = out.shape
    n_strategies, alone = settings.forgetting.size, settings.alone
    shares, weights = np.empty(n_strategies + 1), np.empty((n_experts, n_levels))
    with_alone = alone >= 0 and present[alone]
    _strategy_weights(state.score[cell], state.cases[cell], settings.contrast, with_alone, shares)
    out.fill(0.0)
    for s in range(n_strategies):
        expert_weights(regrets_of(state, cell, s), settings.prior, present, weights)
        for k in range(n_experts):
            for j in range(n_levels):
                out[k, j] += shares[s] * weights[k, j]
    if with_alone:
        for j in range(n_levels):
            out[alone, j] += shares[n_strategies]


@inner
def _strategy_weights(score: Any, cases: float, contrast: float, with_last: bool, out: Any) -> None:
    """Weights (S + 1,) that sum to one: exp(-contrast score / mean CRPS of the best one)."""
    n = score.size if with_last else score.size - 1
    best, total = np.inf, 0.0
    for s in range(n):
        best = min(best, score[s])
    for s in range(n):
        out[s] = 1.0
        if score[s] > best:
            out[s] = math.exp(-contrast * cases * (score[s] - best) / best) if best > 0.0 else 0.0
        total += out[s]
    for s in range(score.size):
        out[s] = out[s] / total if s < n else 0.0
