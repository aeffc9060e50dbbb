"""Novelty: which methods know it, and what gives way to it in a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from xrecal.typing import FloatArray

from .base import Cases, FitArrays, NewCases

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution

    from .components import Component


class Comparing(Protocol):
    """Protocol of methods that may compare forecasts with past ones."""

    @property
    def compares(self) -> bool:
        """Whether they do: a pool does if one that it mixes does."""

    def novelty_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> FloatArray:
        """Novelty (L, T) of forecasts, 0 to 1."""

    def predict_with_novelty(
        self, new: NewCases, cases: Cases, fitted: FitArrays
    ) -> tuple[Distribution, FloatArray]:
        """Recalibrated forecasts (L, T), and their novelty, by one comparison with past ones."""


def beside_observations(
    components: Sequence[Component], weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights (L, C) with which to mix, and the sum (L,) of those of past observations.

    Where these would have all the weight, one that has errors as members is mixed too, so that
    there is something for them to give way to.
    """
    observed = np.array([c.on_observations for c in components])
    of_observations = weight[:, observed].sum(-1)
    errors = [i for i, c in enumerate(components) if c.on_cases and not c.on_observations]
    mixed = weight.copy()
    if errors:
        alone = (of_observations > 0) & ~(weight[:, ~observed] > 0).any(-1)
        mixed[alone, errors[0]] = 1.0
    return mixed, of_observations


def give_way(
    members: FloatArray,
    weights: FloatArray,
    observed: slice,
    of_observations: FloatArray,
    novelty: FloatArray,
) -> None:
    """Let past observations count less in forecasts (L, T, n) that go beyond them, in place.

    They keep the smaller of one minus the ``novelty`` (L, T), where it is known, and of the mass
    that the other members have between the smallest and largest of them: these get the rest of
    their weight ``of_observations`` (L,). Novelty alone is late: it is small for a forecast at the
    record of the forecasts, while half of what may happen lies beyond the observations.
    """
    past = members[:, 0, observed]
    known = np.isfinite(past)
    low = np.where(known, past, np.inf).min(-1)[:, np.newaxis, np.newaxis]
    high = np.where(known, past, -np.inf).max(-1)[:, np.newaxis, np.newaxis]
    others = np.ones(members.shape[-1], np.bool_)
    others[observed] = False
    beside, mass = members[..., others], weights[..., others]
    total = mass.sum(-1)
    there = total > 0
    total = np.where(there, total, 1)
    inside = np.where((beside >= low) & (beside <= high), mass, 0).sum(-1)
    familiar = np.where(np.isnan(novelty), 1, 1 - novelty)
    keeps = np.where(there, np.minimum(familiar, inside / total), 1)
    gets = np.where(there, (1 - of_observations[:, np.newaxis] * keeps) / total, 1)
    weights[..., observed] *= keeps[..., np.newaxis]
    weights[..., others] *= gets[..., np.newaxis]
