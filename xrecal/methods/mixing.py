"""Mixture of a pool's components and average of their quantiles, in one weighted ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import N_QUANTILES, equal_mass_levels
from xrecal.typing import FloatArray

from .base import missing_forecasts
from .components import OBSERVATIONS, Forecasting, keep_within

AVERAGE = "average"
"""Name of the block of members that are averages of the components' quantiles. A block is a group
of successive members of a pool's forecast."""

AVERAGED = 0.5
"""Share of the mass that the averaged quantiles get; the mixture gets the rest."""


class Mixture(NamedTuple):
    """Mixture of a pool's components, and their quantiles, for T forecasts at L locations."""

    members: FloatArray
    """(L, T, k) members in blocks, one for each component and one for averages of quantiles. All
    components whose members are past observations share one block, which comes first"""
    weights: FloatArray
    """(L, T, k) weights of the members"""
    quantiles: Mapping[int, FloatArray]
    """Quantiles (L, T, 200) of each component with a weight above 0, by the position of the
    component; empty if the pool has no average"""
    missing: npt.NDArray[np.bool_]
    """(L, T) true for missing forecasts"""

    def average(self, shares: FloatArray, bounds: FloatArray) -> None:
        """Fill the last block of members with averages of quantiles, and give it half of the mass.

        ``shares`` (L, T, C), or (L, 1, C), are the weights of all C components in this average.
        ``bounds`` (L, 2) are the bounds of the variable.
        """
        from xrecal.arrays.distributions.pool import average_quantiles

        if not self.quantiles:
            return
        stacked = np.stack(list(self.quantiles.values()), axis=2)
        shares = np.broadcast_to(shares[..., list(self.quantiles)], stacked.shape[:3])
        averages = average_quantiles(
            stacked.reshape(-1, *stacked.shape[2:]),
            shares.reshape(-1, shares.shape[-1]),
            np.repeat(bounds.astype(self.members.dtype), stacked.shape[1], axis=0),
        ).reshape(*stacked.shape[:2], N_QUANTILES)
        self.members[..., -N_QUANTILES:] = np.where(self.missing[..., np.newaxis], np.nan, averages)
        self.weights[...] *= 1 - AVERAGED
        self.weights[..., -N_QUANTILES:] = AVERAGED / N_QUANTILES


def mixture_of(
    forecasting: Forecasting, weight: FloatArray, blocks: Mapping[str, int], bounds: FloatArray
) -> Mixture:
    """Mix the components of a pool by their weights (L, C).

    ``blocks`` has the number of members in each block of the result. Some raw forecasts have
    members beyond the bounds (L, 2); the function moves these members to the bounds.
    """
    components, new = forecasting.components, forecasting.new
    shape, dtype = new.forecasts.loc.shape[:2], new.forecasts.loc.dtype
    at, start = {}, 0
    for block, size in blocks.items():
        at[block], start = slice(start, start + size), start + size
    members, weights = np.full((*shape, start), np.nan, dtype), np.zeros((*shape, start), dtype)
    missing = missing_forecasts(new.forecasts) | np.isnan(forecasting.fitted["pool_weight"][:, :1])
    quantiles = {}
    for c, (component, share) in enumerate(zip(components, weight.T, strict=True)):
        if not (share > 0).any():
            continue
        own = forecasting.members(component, share)
        mass = own.weights
        assert mass is not None
        counts = (share > 0)[:, np.newaxis]
        missing |= counts & np.isnan(mass).any(-1)
        counted, slots = counts[..., np.newaxis], at[component.block]
        weights[..., slots] += np.where(counted, share[:, np.newaxis, np.newaxis] * mass, 0)
        if not component.on_observations:
            members[..., slots] = np.where(counted, own.members, np.nan)
        if AVERAGE in blocks:
            quantiles[c] = own.quantile(equal_mass_levels(N_QUANTILES))
    if OBSERVATIONS in at:
        members[..., at[OBSERVATIONS]] = forecasting.cases.observations[:, np.newaxis]
    for values in (members, *quantiles.values()):
        keep_within(values, bounds)
    return Mixture(members, weights, quantiles, missing)
