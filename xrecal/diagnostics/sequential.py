"""Compare forecasts by e-values, which are valid after every case."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from xrecal.chunks.labels import labels_along
from xrecal.chunks.run import Named, run


def sequential_evidence(
    kept_of: Mapping[str, tuple[xr.DataArray, ...]],
    references: Sequence[str],
    dim: Hashable,
    lags: xr.DataArray,
) -> dict[str, xr.DataArray]:
    """Return e-values for each reference: large if a method has a lower CRPS than the reference.

    There is an e-value for each method, location and case. Quantiles of equal probability replace
    each forecast. So the CRPS of two forecasts differ by at most twice the mean distance between
    their sorted quantiles; e-values need this bound.

    Parameters
    ----------
    kept_of : mapping from label to tuple of DataArray
        For each method, quantiles of equal probability of its forecasts, in memory. The tuple of
        the first label also has the observations.
    references : sequence of str
        Labels of the reference methods.
    dim : hashable
        Dimension of the cases.
    lags : DataArray
        Number of cases between issue and verification, from :func:`.lags.verification_lag`.
    """
    observed = next(iter(kept_of.values()))[1]
    observed = observed.sortby(dim) if dim in observed.indexes else observed
    quantiles = {}
    for label, (own, *_) in kept_of.items():
        bare = own.drop_vars(set(own.coords) - labels_along(own, observed.dims))
        quantiles[label] = bare.sortby(dim) if dim in bare.indexes else bare
    bare_observed = observed.drop_vars([c for c in observed.coords if c not in observed.indexes])
    variables = {}
    for reference in references:
        parts = []
        for forecast in quantiles.values():
            given = {
                "forecast": (forecast, (dim, "quantile")),
                "reference": (quantiles[reference], (dim, "quantile")),
                "observed": (bare_observed, (dim,)),
                "lags": (lags, ()),
            }
            each = {dim: forecast.sizes[dim]}
            what = "the sequential comparison"
            found = run(_e_values, {"given": given}, {"e": (each, np.float64)}, what=what)
            parts.append(found["e"])
        variables[f"e_{reference}"] = (
            xr.concat(parts, "method")
            .assign_coords(method=list(quantiles))
            .assign_attrs(long_name=f"evidence of a lower CRPS than {reference}", units="1")
        )
    return variables


def _e_values(given: Named) -> Named:
    """Compute e-values (L, n) from quantiles (L, n, q) and observations (L, n)."""
    from xrecal.arrays import crps, score_e_values

    q, r = (np.sort(given[name].astype(np.float64)) for name in ("forecast", "reference"))
    y = given["observed"].astype(np.float64)
    bound = 2 * abs(q - r).mean(-1)
    return {"e": score_e_values(crps(y, r) - crps(y, q), bound, given["lags"])}
