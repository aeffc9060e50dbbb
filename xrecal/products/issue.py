"""A product of forecasts with what users are to know beside it, by one comparison with the past."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import xarray as xr

from xrecal.arrays.distributions.forms import Empirical
from xrecal.fit.fitted import Fitted
from xrecal.typing import FloatArray

from .apply import BEYOND, mass_beyond, record_of
from .novelty import DESCRIBED
from .recalibrated import Recalibrated, recalibrated
from .reductions import Reduction


def issue(
    model: Fitted, forecast: xr.Dataset, product: Callable[[Recalibrated], xr.DataArray], line: str
) -> xr.Dataset:
    """A product of each variable, and its novelty and its mass far beyond the record.

    Parameters
    ----------
    forecast : Dataset
        As for ``apply``.
    product : callable
        Makes a product of the distributions of one variable, by a single reduction.
    line : str
        About the product, for the history.

    Returns
    -------
    Dataset
        ``NAME``, and ``NAME_novelty`` and ``NAME_beyond`` where ``apply`` has them. Lazy if the
        forecast or the model is.
    """
    sources = recalibrated(model, forecast, None)
    witnesses = {name: _witness(source) for name, source in sources.variables.items()}
    issued = replace(sources, variables=witnesses).product(product, line)
    assert isinstance(issued, xr.Dataset)
    for name, witness in witnesses.items():
        beside = {f"{name}_{what}": witness.as_given(of) for what, of in witness.seen.items()}
        if beside:
            issued[name].attrs["ancillary_variables"] = " ".join(beside)
        issued = issued.assign(beside)
    return issued


@dataclass(frozen=True)
class _Witness(Recalibrated):
    """Distributions that are reduced once, and what was seen of them then."""

    seen: dict[str, xr.DataArray] = field(default_factory=dict)

    def reduce(
        self,
        reduction: Reduction,
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray] = (),
    ) -> tuple[xr.DataArray, ...]:
        """As :meth:`Recalibrated.reduce`."""
        if not self.knows_novelty:
            return super().reduce(reduction, *out, extras=extras)
        if self.fitted.method.shares_members:
            *results, novelty = self.reduce_with_novelty(reduction, *out, extras=extras)
        else:
            record = record_of(self.fitted.observed)
            *results, beyond, novelty = self.reduce_with_novelty(
                partial(issued_of, reduction=reduction), *out, {}, extras=[*extras, *record]
            )
            self.seen["beyond"] = beyond.assign_attrs(BEYOND)
        self.seen["novelty"] = novelty.assign_attrs(DESCRIBED)
        return tuple(results)


def _witness(source: Recalibrated) -> _Witness:
    return _Witness(source.form, source.fitted, source.covariates, source.forecast)


def issued_of(
    distribution: Empirical, *given: FloatArray, reduction: Reduction
) -> tuple[FloatArray, ...]:
    """Results of a reduction, and mass (L, T) beyond the record, whose ends are given last."""
    *own, low, high = given
    return *reduction(distribution, *own), mass_beyond(distribution, low, high)
