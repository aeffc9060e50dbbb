"""The doors of ``.recal`` to evidence. Each method calls one function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
import xarray as xr

from xrecal import diagnostics
from xrecal.diagnostics.skce import Test
from xrecal.diagnostics.summary import Summary
from xrecal.fit import fit_hindcast as prepare
from xrecal.fit.held_out import By, Span
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.methods import Method

from .scores import Scores

T = TypeVar("T", xr.DataArray, xr.Dataset)


class Evidence(Scores[T]):
    """Score and test the forecasts held here; see :mod:`xrecal.diagnostics`."""

    def pit(
        self,
        observations: Observations,
        *,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Where observations fall within these forecasts; see :func:`xrecal.diagnostics.pit`."""
        return diagnostics.pit(
            self._obj, observations, augmented=augmented, seed=seed, member_dim=member_dim
        )

    def pit_histogram(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        bins: int = 10,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Histogram of the transform; see :func:`xrecal.diagnostics.pit_histogram`."""
        return diagnostics.pit_histogram(
            self._obj,
            observations,
            dim,
            bins=bins,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )

    def pit_test(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Test of calibration on average; see :func:`xrecal.diagnostics.pit_test`."""
        return diagnostics.pit_test(
            self._obj, observations, dim, augmented=augmented, seed=seed, member_dim=member_dim
        )

    def rank_histogram(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Ranks of observations; see :func:`xrecal.diagnostics.rank_histogram`."""
        return diagnostics.rank_histogram(
            self._obj, observations, dim, seed=seed, member_dim=member_dim
        )

    def reliability(
        self,
        observations: Observations,
        threshold: Threshold,
        dim: Dims = None,
        *,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """What verifies, given the probability; see :func:`xrecal.diagnostics.reliability`."""
        return diagnostics.reliability(
            self._obj, observations, threshold, dim, member_dim=member_dim
        )

    def quantile_reliability(
        self,
        observations: Observations,
        q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
        dim: Dims = None,
        *,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """What verifies given quantiles; see :func:`xrecal.diagnostics.quantile_reliability`."""
        return diagnostics.quantile_reliability(
            self._obj, observations, q, dim, member_dim=member_dim
        )

    def coverage(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        level: float | Sequence[float] = (0.5, 0.8, 0.9),
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Coverage and width of central intervals; see :func:`xrecal.diagnostics.coverage`."""
        return diagnostics.coverage(
            self._obj, observations, dim, level=level, seed=seed, member_dim=member_dim
        )

    def spread_skill(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        bins: int = 5,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Bias, error and spread; see :func:`xrecal.diagnostics.spread_skill`."""
        return diagnostics.spread_skill(
            self._obj, observations, dim, bins=bins, member_dim=member_dim
        )

    def skce(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        augmented: bool = False,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Squared kernel calibration error; see :func:`xrecal.diagnostics.skce`."""
        return diagnostics.skce(
            self._obj, observations, dim, augmented=augmented, member_dim=member_dim
        )

    def skce_test(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        test: Test = "bootstrap",
        n_resamples: int = 1000,
        block_length: int | None = None,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> xr.Dataset:
        """Test of calibration given the forecast; see :func:`xrecal.diagnostics.skce_test`."""
        return diagnostics.skce_test(
            self._obj,
            observations,
            dim,
            test=test,
            n_resamples=n_resamples,
            block_length=block_length,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )

    def decompose(
        self,
        observations: Observations,
        method: Method = prepare.DEFAULT,
        *,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        by: By = "block",
        gap: Span = 0,
        blocks: int = 5,
        window: Span | None = None,
        every: Span | None = None,
        condition_on: str | tuple[str, ...] | None = None,
        covariates: Given = None,
        min_samples: int = 20,
    ) -> xr.Dataset:
        """What recalibration would gain; see :func:`xrecal.diagnostics.decompose`."""
        return diagnostics.decompose(
            self._obj,
            observations,
            method,
            dim=dim,
            member_dim=member_dim,
            by=by,
            gap=gap,
            blocks=blocks,
            window=window,
            every=every,
            condition_on=condition_on,
            covariates=covariates,
            min_samples=min_samples,
        )

    def ridge_curve(
        self,
        observations: Observations,
        method: Method = prepare.DEFAULT,
        *,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        condition_on: str | tuple[str, ...] | None = None,
        covariates: Given = None,
        min_samples: int = 20,
    ) -> xr.Dataset:
        """Held-out loss with each ridge; see :func:`xrecal.diagnostics.ridge_curve`."""
        return diagnostics.ridge_curve(
            self._obj,
            observations,
            method,
            dim=dim,
            member_dim=member_dim,
            condition_on=condition_on,
            covariates=covariates,
            min_samples=min_samples,
        )

    def summary(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        test: Test = "bootstrap",
        n_resamples: int = 1000,
        block_length: int | None = None,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Summary:
        """The most telling evidence together; see :func:`xrecal.diagnostics.summary`."""
        return diagnostics.summary(
            self._obj,
            observations,
            dim,
            test=test,
            n_resamples=n_resamples,
            block_length=block_length,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )
