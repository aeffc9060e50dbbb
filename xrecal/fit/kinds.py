"""Kinds of places that choose their settings together, and a sample of the places of each kind.

Places of one kind are alike in bounds, skill, number of cases and size of errors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.dispatch import to_host
from xrecal.arrays.distributions.forms import find_bounds, moments
from xrecal.chunks.run import Named
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form
from xrecal.inputs.place_order import order_of_places
from xrecal.inputs.roles import is_lead
from xrecal.methods import Method
from xrecal.methods.base import Cases
from xrecal.typing import FloatArray, IntArray

from .cases import cases_of

Choose: TypeAlias = Hashable | Sequence[Hashable]
"""Places that choose their settings together: all places of a kind ("together"), no places
("each"), or the places along named dimensions."""

TOGETHER, EACH = "together", "each"

SAMPLE = 64
"""Largest number of places of each kind at which the fit searches settings. The random error of a
mean over 64 places is an eighth of the error of one place."""

OF_A_KIND = 16
"""Least number of places that a kind needs to choose together, if there are several kinds."""

KINDS = 16
"""Largest number of kinds whose places choose together; places of rarer kinds choose alone."""

LOWER, UPPER, SKILFUL, CLASSES = 1, 2, 4, 16
"""Bits that mark a lower bound, an upper bound and skill in the code of a kind. ``CLASSES`` is the
number of classes of record lengths, and also of sizes of errors."""

LEAST_ERROR = 1e-6
"""Least relative size of errors in :func:`_error`; smaller errors count as errors of this size."""

SIGNIFICANT = 2.0
"""A lead has skill if the correlation of forecasts and observations is larger than this many
standard errors. The correlation is a mean over places; the standard error is that of one place."""


@dataclass(frozen=True)
class Together:
    """Places that choose their settings together."""

    dims: tuple[Hashable, ...]
    """Dimensions of the places that choose together."""
    order: IntArray
    """(P,) positions of the P places, in the order in which the sample takes places"""
    sizes: tuple[int, ...]
    lead: int | None
    """Position of the dimension of leads among ``dims``; None without leads"""

    def among(self, facts: Named, min_samples: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the number of the kind of each place, and a mask of the sampled places.

        A place that chooses alone has the number -1. Both results have the shape of the arrays in
        ``facts``.
        """
        lead = facts["n_cases"].shape[: -len(self.sizes)]
        flat = {name: a.reshape(math.prod(lead), -1) for name, a in facts.items()}
        kind = np.full(flat["n_cases"].shape, -1, np.int8)
        sample = np.zeros(kind.shape, np.bool_)
        for group in range(len(kind)):
            one = {name: a[group] for name, a in flat.items()}
            kind[group], sample[group] = self._of_group(one, min_samples)
        shape = (*lead, *self.sizes)
        return kind.reshape(shape), sample.reshape(shape)

    def _of_group(self, facts: Named, min_samples: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Do the work of :meth:`among` for a group of P places that differ only along ``dims``."""
        n_cases = facts["n_cases"]
        enough = n_cases >= max(min_samples, 2)
        kind, sample = np.full(n_cases.size, -1, np.int8), np.zeros(n_cases.size, np.bool_)
        if enough.sum() < 2:
            return kind, sample
        code = np.full(n_cases.size, -1)
        code[enough] = facts["bounded"][enough] + SKILFUL * self._skilful(facts)[enough]
        code[enough] += 2 * SKILFUL * _halvings(n_cases[enough])
        error = _halvings(facts["error"][enough])
        for own in np.unique(code[enough]).tolist():
            same = code[enough] == own
            error[same] = _with_larger(error[same])
        code[enough] += 2 * SKILFUL * CLASSES * error
        codes, counts = np.unique(code[enough], return_counts=True)
        if codes.size > 1:
            codes, counts = codes[counts >= OF_A_KIND], counts[counts >= OF_A_KIND]
        for number, own in enumerate(codes[np.argsort(-counts, kind="stable")][:KINDS]):
            kind[code == own] = number
            sample[self.order[code[self.order] == own][:SAMPLE]] = True
        return kind, sample

    def _skilful(self, facts: Named) -> IntArray:
        """Mark places (P,) at leads with skill; mark all places if there are no leads."""
        skill, n = facts["skill"], facts["n_cases"]
        if self.lead is None:
            return np.ones(n.size, np.int64)
        axes = tuple(a for a in range(len(self.sizes)) if a != self.lead)
        there = np.isfinite(skill)
        units = np.where(there, skill * np.sqrt(n), 0.0).reshape(self.sizes)
        total = there.reshape(self.sizes).sum(axes, keepdims=True)
        mean = units.sum(axes, keepdims=True) / np.maximum(total, 1)
        return np.asarray(np.broadcast_to(mean > SIGNIFICANT, self.sizes).ravel(), np.int64)


def places_together(form: Form, places: Sequence[Hashable], choose: Choose) -> Together | None:
    """Return the places that choose together, or None if each place chooses alone.

    ``places`` are the dimensions along which each position has its own fit. Raises ValueError if
    ``choose`` names other dimensions.
    """
    dims = read_choose(choose, places)
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    if math.prod(sizes[d] for d in dims) < 2:
        return None
    labels = {d: part[d] for part in form.parts.values() for d in part.indexes}
    leads = [i for i, d in enumerate(dims) if is_lead(d, labels.get(d))]
    return Together(
        dims, order_of_places(form, dims), tuple(sizes[d] for d in dims), next(iter(leads), None)
    )


def read_choose(choose: Choose, places: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the dimensions of places that choose together; raise ValueError for other names."""
    if isinstance(choose, str) and choose in (TOGETHER, EACH):
        return tuple(places) if choose == TOGETHER else ()
    given = (choose,) if isinstance(choose, str) or not isinstance(choose, Sequence) else choose
    unknown = [d for d in given if d not in places]
    if unknown:
        raise ValueError(
            Advice(
                f"{unknown[0]!r} is not a dimension of places with a fit of their own; such "
                f"dimensions are {list(places)}; use ",
                Typed("choose", TOGETHER),
                ", ",
                Typed("choose", EACH),
                " or names of these",
            )
        )
    return tuple(d for d in places if d in given)


@dataclass(frozen=True)
class KindTask:
    """Task that returns the facts that determine the kinds of places, from their cases."""

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    of_line: bool
    """True if forecasts are numbers, not vectors or points on a circle."""

    facts: ClassVar = ("n_cases", "bounded", "skill", "error")

    @property
    def on_device(self) -> bool:
        """True if the task accepts CuPy arrays."""
        return self.method.on_device

    def __call__(
        self, forecasts: Named, observed: Named, covariates: Named, shared: Named | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        parts, values, known = (
            {name: to_host(a) for name, a in group.items()}
            for group in (forecasts, observed, covariates)
        )
        return self.of(cases_of(parts, values, known, self.axis, self.periods)[0])

    def of(self, cases: Cases) -> dict[str, npt.NDArray[Any]]:
        """Return facts (L,) about places by name, from their cases (L, n)."""
        verified = cases.observations
        low, high, _ = find_bounds(verified, "auto")
        skill, error = np.full(len(verified), np.nan), np.ones(len(verified))
        if self.of_line and cases.forecasts is not None:
            means = moments(cases.forecasts)[0]
            error = np.array([_error(*both) for both in zip(means, verified, strict=True)])
            skill = np.array(
                [_rank_correlation(*both) for both in zip(means, verified, strict=True)]
            )
        return {
            "n_cases": np.isfinite(verified).sum(-1),
            "bounded": LOWER * np.isfinite(low) + UPPER * np.isfinite(high),
            "skill": skill,
            "error": error,
        }


def _halvings(values: FloatArray) -> IntArray:
    """Return classes of positive values (n,), by their ratio to the largest value.

    Class 0 has ratios from 1/2 to 1, class 1 from 1/4 to 1/2, class 2 from 1/8 to 1/4, and so on.
    """
    halvings = np.ceil(np.log2(values.max() / values)) - 1
    return np.asarray(np.clip(halvings, 0, CLASSES - 1), np.int64)


def _with_larger(classes: IntArray) -> IntArray:
    """Merge each rare class of errors with the nearest frequent class; return the classes (n,).

    If all classes are rare, they stay unchanged.
    """
    codes, counts = np.unique(classes, return_counts=True)
    large = codes[counts >= OF_A_KIND]
    if not large.size:
        return classes
    return np.asarray(large[np.abs(np.subtract.outer(classes, large)).argmin(-1)])


def _error(mean: FloatArray, observed: FloatArray) -> float:
    """Return the mean size of n errors, as a share of the mean size of observed anomalies.

    The function first subtracts the median error from the errors. An anomaly is an observation
    minus the median observation. The result is at most 1.
    """
    there = np.isfinite(mean) & np.isfinite(observed)
    if not there.any():
        return 1.0
    error, anomaly = (a - np.median(a) for a in (observed[there] - mean[there], observed[there]))
    size, usual = np.abs(error).mean(), np.abs(anomaly).mean()
    return float(np.clip(size / usual, LEAST_ERROR, 1.0)) if usual > 0 else 1.0


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Return the rank correlation of two arrays (n,); NaN if fewer than 3 pairs are known."""
    there = np.isfinite(x) & np.isfinite(y)
    n = int(there.sum())
    if n < 3:
        return math.nan
    first, second = (np.argsort(np.argsort(a[there], kind="stable"), kind="stable") for a in (x, y))
    return float(1 - 6 * ((first - second) ** 2).sum() / (n * (n**2 - 1)))
