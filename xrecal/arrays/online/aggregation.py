"""Aggregate: the weighted average of experts; each verified case updates the weights.

Experts issue quantiles at the levels (j - ½) / J, j = 1..J. Each location has several strategies,
which are ways to weight the experts. Some strategies use the regrets of the location
(:mod:`xrecal.arrays.online.bernstein`). If common regrets are known, further strategies mix the
regrets of the location with common regrets (:mod:`xrecal.arrays.online.common`). A last, optional
strategy gives all weight to a single expert. The aggregate weights the strategies by their CRPS, to
which old cases contribute less. Functions do not change their input.

If a quantile of an expert is NaN, the expert is missing in this case: the other experts share its
weight, and its regrets stay the same. A case without an observation changes nothing. If all experts
are missing in a case, the forecast is NaN. If the single expert of the optional strategy is
missing, the case changes the regrets, but not the scores of the strategies.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, Floats4, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.typing import FloatArray

from .averages import average_by_level, present_experts, quantile_crps
from .bernstein import expert_weights, fill_shared, fill_steps, learn_steps, regrets_of
from .common import Common, none_common
from .state import Settings, State, empty_state

Record = TypeVar("Record", Settings, State, Common)


def learn(
    state: State,
    settings: Settings,
    quantiles: npt.ArrayLike,
    observations: npt.ArrayLike,
    common: Common | None = None,
) -> State:
    """Return the state after learning verified cases, one after the other.

    Parameters
    ----------
    state : State
        State before the cases; at first :func:`xrecal.arrays.online.state.empty_state`.
    settings : Settings
        Settings for L locations, K experts and J levels.
    quantiles : array_like of float, shape (L, n, K, J)
        Ascending quantiles that each expert issued for n cases.
    observations : array_like of float, shape (L, n)
        Observations, in the unit of the quantiles; NaN if missing.
    common : Common, optional
        Common regrets that are known before each case; by default none are known.

    Returns
    -------
    State
        State after the cases. If several calls each learn some of the cases, the final state is
        exactly the state after one call with all cases.

    Raises
    ------
    ValueError
        If shapes do not match the settings.

    Notes
    -----
    The time is O(S H K J) per case and location, where S and H are the lengths of ``forgetting``
    and ``parts`` in the settings.
    """
    said, observed = _checked(state, settings, quantiles, observations)
    learned = _own(state)
    known = Common(none_common(state), np.zeros(observed.shape, int)) if common is None else common
    _learn_cases(said, observed, _own(known), _own(settings), learned)
    return learned


def issue(
    state: State,
    settings: Settings,
    quantiles: npt.ArrayLike,
    common: FloatArray | None = None,
) -> FloatArray:
    """Compute quantiles (L, n, J) of the aggregate, from quantiles (L, n, K, J) of the experts.

    The quantiles ascend; they are NaN if all experts are missing. The function averages the
    probabilities of a bound, and the quantiles between bounds. ``common`` (S, K, J) holds the
    latest common regrets of S strategies. The function raises ValueError if shapes do not match the
    settings.
    """
    said, _ = _checked(state, settings, quantiles, None)
    issued = np.empty((*said.shape[:2], said.shape[3]))
    known = none_common(state)[0] if common is None else np.array(common, order="C")
    _issue_cases(said, known, _own(settings), _own(state), issued)
    return issued


def mean_weights(state: State, settings: Settings, common: FloatArray | None = None) -> FloatArray:
    """Return weights (L, K) of experts, averaged over levels, as if no expert were missing."""
    shape = settings.bounds.shape[0], settings.prior.size
    weights = np.empty(shape)
    known = none_common(state)[0] if common is None else np.array(common, order="C")
    _fill_mean_weights(known, _own(settings), _own(state), weights)
    return weights


def _own(record: Record) -> Record:
    """Return a copy of a named tuple with contiguous and writable arrays, for compiled code."""
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
    """Check shapes; return contiguous quantiles (L, n, K, J) and observations (L, n)."""
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
            f"observations must have shape {said.shape[:2]}, one per case of the quantiles, found "
            f"{observed.shape}"
        )
    return said, observed


@kernel
def _learn_cases(
    quantiles: Floats4, observations: Matrix, common: Common, settings: Settings, state: State
) -> None:
    alone = settings.alone
    scores = np.zeros(state.score.shape[1])
    for cell in range(observations.shape[0]):
        for i in range(observations.shape[1]):
            said, y = quantiles[cell, i], observations[cell, i]
            present, n_present = present_experts(said)
            if np.isnan(y) or n_present == 0:
                continue
            known = common.regrets[common.at[cell, i]]
            _learn_case(said, y, cell, present, known, settings, state, scores)
            if alone >= 0:
                if not present[alone]:
                    continue
                scores[-1] = quantile_crps(said[alone], y)
            state.cases[cell] = settings.memory * state.cases[cell] + 1.0
            for s in range(scores.size):
                state.score[cell, s] = settings.memory * state.score[cell, s] + scores[s]


@inner
def _learn_case(
    said: Any,
    y: float,
    cell: int,
    present: Any,
    common: Any,
    settings: Any,
    state: Any,
    scores: Any,
) -> None:
    """Add a case to the regrets of a location.

    Before that, the function scores the forecast of each strategy for this case, with weights from
    earlier cases. Until common regrets are known, a strategy that mixes regrets gets the score of
    another strategy: the strategy that forgets at the same rate, but uses only the regrets of the
    location.
    """
    n_experts, n_levels = said.shape
    n_strategies = settings.forgetting.size
    low, high = settings.bounds[cell]
    weights, steps = np.empty((n_experts, n_levels)), np.empty((n_experts, n_levels))
    issued, scale, shares = np.empty(n_levels), _scale(state, cell), not np.isnan(common[0, 0, 0])
    for s in range(n_strategies):
        regrets = regrets_of(state, cell, s)
        for h in range(settings.parts.size if shares else 0):
            mixed = fill_shared(regrets, common[s], scale, settings.parts[h], steps)
            expert_weights(mixed, settings.prior, present, weights)
            average_by_level(said, weights, low, high, issued)
            scores[(1 + h) * n_strategies + s] = quantile_crps(issued, y)
        expert_weights(regrets, settings.prior, present, weights)
        average_by_level(said, weights, low, high, issued)
        scores[s] = quantile_crps(issued, y)
        for h in range(0 if shares else settings.parts.size):
            scores[(1 + h) * n_strategies + s] = scores[s]
        fill_steps(said, weights, y, steps)
        forgetting, fading = settings.forgetting[s], settings.fading
        learn_steps(regrets, steps, present, forgetting, fading, settings.cosines)


@kernel
def _issue_cases(
    quantiles: Floats4, common: Cube, settings: Settings, state: State, out: OutCube
) -> None:
    n_cells, n_cases, n_experts, n_levels = quantiles.shape
    total = np.empty((n_experts, n_levels))
    for cell in range(n_cells):
        low, high = settings.bounds[cell]
        for i in range(n_cases):
            out[cell, i].fill(np.nan)
            present, n_present = present_experts(quantiles[cell, i])
            if n_present > 0:
                _total_weights(cell, present, common, settings, state, total)
                average_by_level(quantiles[cell, i], total, low, high, out[cell, i])


@kernel
def _fill_mean_weights(common: Cube, settings: Settings, state: State, out: OutMatrix) -> None:
    n_experts, n_levels = settings.prior.size, settings.cosines.shape[1]
    total = np.empty((n_experts, n_levels))
    for cell in range(out.shape[0]):
        _total_weights(cell, np.ones(n_experts, np.bool_), common, settings, state, total)
        for k in range(n_experts):
            out[cell, k] = 0.0
            for j in range(n_levels):
                out[cell, k] += total[k, j] / n_levels


@inner
def _scale(state: Any, cell: int) -> float:
    """Return the mean CRPS of the best strategy that uses only the regrets of the location.

    It is 0 before the first case.
    """
    least = np.inf
    for s in range(state.regret.shape[1]):
        least = min(least, state.score[cell, s])
    return least / state.cases[cell] if state.cases[cell] > 0.0 else 0.0


@inner
def _total_weights(
    cell: int, present: Any, common: Any, settings: Any, state: Any, out: Any
) -> None:
    """Compute weights (K, J) of experts, averaged over strategies; 0 for missing experts."""
    n_experts, n_levels = out.shape
    n_strategies, alone = settings.forgetting.size, settings.alone
    n_ways = 0 if np.isnan(common[0, 0, 0]) else settings.parts.size
    counted = np.zeros(state.score.shape[1], np.bool_)
    counted[: n_strategies * (1 + n_ways)] = True
    counted[-1] = alone >= 0 and present[alone]
    shares, weights = np.empty(counted.size), np.empty((n_experts, n_levels))
    _strategy_weights(state.score[cell], state.cases[cell], settings.contrast, counted, shares)
    mixed, scale = np.empty((n_experts, n_levels)), _scale(state, cell)
    out.fill(0.0)
    for s in range(n_strategies):
        regrets = regrets_of(state, cell, s)
        for h in range(1 + n_ways):
            one = regrets
            if h > 0:
                one = fill_shared(regrets, common[s], scale, settings.parts[h - 1], mixed)
            expert_weights(one, settings.prior, present, weights)
            for k in range(n_experts):
                for j in range(n_levels):
                    out[k, j] += shares[h * n_strategies + s] * weights[k, j]
    if counted[-1]:
        for j in range(n_levels):
            out[alone, j] += shares[-1]


@inner
def _strategy_weights(score: Any, cases: float, contrast: float, counted: Any, out: Any) -> None:
    """Compute weights (S,) of strategies, with sum one.

    The weights are proportional to exp(-contrast score / mean CRPS of the best strategy). A
    strategy gets the weight 0 unless ``counted`` (S,) marks it.
    """
    best, total = np.inf, 0.0
    for s in range(score.size):
        if counted[s]:
            best = min(best, score[s])
    for s in range(score.size):
        out[s] = 1.0 if counted[s] else 0.0
        if counted[s] and score[s] > best:
            out[s] = math.exp(-contrast * cases * (score[s] - best) / best) if best > 0.0 else 0.0
        total += out[s]
    for s in range(score.size):
        out[s] /= total
