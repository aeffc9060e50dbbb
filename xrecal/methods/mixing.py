"""Mixture of the components of a pool, and average of their quantiles, as one weighted ensemble."""

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
"""Name of the block of members from averaged quantiles."""

AVERAGED = 0.5
"""Share of the mass of the averaged quantiles; the mixture has the rest."""


class Mixture(NamedTuple):
    """A mixture for L locations and T forecasts, with the inputs of an average."""

    members: FloatArray
    """(L, T, k) in blocks, observations first"""
    weights: FloatArray
    """(L, T, k)"""
    quantiles: Mapping[int, FloatArray]
    """(L, T, 200) of each component with weight, if an average is needed"""
    missing: npt.NDArray[np.bool_]
    """(L, T) true for missing forecasts"""

    def average(self, shares: FloatArray, bounds: FloatArray) -> None:
        """Give half of the mass to the last block: the average of the quantiles between bounds.

        Weights are (L, T, C) for all components, or (L, 1, C).
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
    """Mixture of the components with weight (L, C), in blocks of given numbers of members.

    Members stay between bounds (L, 2), which raw forecasts may exceed.
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
