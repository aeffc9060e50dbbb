"""Compute the held-out loss of a CKME for each ridge that a fit may choose."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.status import MEANINGS
from xrecal.chunks.blockwise import require_free, work_on
from xrecal.chunks.run import Named, run
from xrecal.fit.cases import cases_of
from xrecal.fit.conditioned import checked
from xrecal.fit.fit_hindcast import DEFAULT, pair_hindcast, prepare
from xrecal.fit.state import given_cases
from xrecal.inputs.covariates import Given
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import history_only
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.methods import CKME, Method
from xrecal.methods.call_errors import explained

RIDGE = "ridge"


@explained("xrecal.diagnostics.ridge_curve")
def ridge_curve(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    min_samples: int = 20,
) -> xr.Dataset:
    """Compute the held-out loss for each ridge that the fit of a CKME may choose.

    Parameters
    ----------
    hindcast, observations, dim, member_dim, condition_on, covariates, min_samples
        See ``hindcast.recal.fit``; one variable.
    method : CKME
        A CKME with its settings. The curve tries all ridges, even if the method has a fixed ridge.

    Returns
    -------
    Dataset
        Over ``ridge`` and locations: ``loss``, the mean held-out CRPS in the unit of the variable.
        With ``CKME(loss="laplace")``, ``loss`` is the mean held-out Laplace-kernel loss, without a
        unit. Each ridge has its best bandwidth, support and strength of covariates. Over locations:
        ``chosen_ridge``, which may lie between two ridges of the curve; ``n_cases`` and the
        ``status`` of the fit. Loss and ridge are NaN with fewer than ``min_samples`` cases. The
        result is lazy if an input is lazy.

    Raises
    ------
    TypeError
        If the method is not a CKME.
    ValueError
        If there is more than one variable; also see ``hindcast.recal.fit``.

    Notes
    -----
    If the curve is flat, the ridge hardly matters. If the loss falls towards large ridges, the
    forecast has almost no skill. The cost is several times the cost of a fit.

    Examples
    --------
    >>> paper = xrecal.CKME(support="observations")
    >>> curve = hindcast.recal.ridge_curve(observations, paper)
    >>> curve["loss"].mean("location").idxmin("ridge").round(4).item()
    0.0032
    """
    method = checked(method, condition_on, min_samples, "hindcast.recal.ridge_curve", covariates)
    if not isinstance(method, CKME):
        raise TypeError(f"a ridge curve needs a CKME, got {method!r}; give xrecal.CKME(...)")
    paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    if len(paired) > 1:
        raise ValueError(
            f"a ridge curve shows one variable, but hindcast has {list(paired)}; select one, "
            f"such as hindcast[{next(iter(paired))!r}]"
        )
    ((form, observed),) = paired.values()
    require_free(form.dims, [RIDGE])
    pairs = pair_hindcast(form, observed, method, dim)
    prepared = prepare(pairs, method, covariates, min_samples)
    dtype = form.loc.dtype
    loss, chosen, n_cases, status = run(
        _RidgeTask(method, prepared.periods, prepared.axis, min_samples),
        given_cases(prepared),
        {
            "loss": ({RIDGE: _ridges().size}, dtype),
            "ridge": ({}, dtype),
            "n_cases": ({}, np.int32),
            "status": ({}, np.int16),
        },
        what=work_on("the ridge curve", form.name),
    ).values()
    variables = {
        "loss": loss.assign_attrs(_loss_attrs(method, form.loc.attrs, observed.attrs)),
        "chosen_ridge": chosen.assign_attrs(long_name="ridge that the fit chooses", units="1"),
        "n_cases": n_cases.assign_attrs(long_name="number of cases used"),
        "status": status.assign_attrs(
            long_name="status of the fit",
            flag_masks=np.array(list(MEANINGS), dtype=np.int16),
            flag_meanings=" ".join(MEANINGS.values()),
        ),
    }
    line = history_only(hindcast.attrs, f"held-out loss by ridge over {prepared.pairs.dim!r}")
    curve = xr.Dataset(variables, attrs={"method": repr(method), **line})
    attrs = {"long_name": "ridge of the kernel regression", "units": "1"}
    curve = curve.assign_coords({RIDGE: (RIDGE, _ridges(), attrs)})
    return curve.transpose(*[d for d in form.dims if d in curve.dims], ...)


def _ridges() -> npt.NDArray[np.float64]:
    from xrecal.arrays.ckme.ridges import RIDGES

    return RIDGES


def _loss_attrs(
    method: CKME, forecast: Mapping[Any, Any], observed: Mapping[Any, Any]
) -> dict[str, Any]:
    if method.loss == "laplace":
        return {"long_name": "mean held-out Laplace-kernel loss", "units": "1"}
    units = {k: v for attrs in (observed, forecast) for k, v in attrs.items() if k == "units"}
    return {"long_name": "mean held-out CRPS", **units}


@dataclass(frozen=True)
class _RidgeTask:
    """Task that computes the curves of a chunk of locations."""

    method: CKME
    periods: Mapping[str, float | None]
    axis: CaseAxis
    min_samples: int

    def __call__(self, forecasts: Named, observed: Named, covariates: Named) -> Named:
        """Return losses (L, R) of R ridges at L locations; chosen ridges, counts, statuses (L,)."""
        from xrecal.arrays import ridge_losses

        cases, flags = cases_of(forecasts, observed, covariates, self.axis, self.periods)
        curve = ridge_losses(**self.method.array_arguments(cases, self.min_samples))
        return {**curve._asdict(), "status": curve.status | flags}
