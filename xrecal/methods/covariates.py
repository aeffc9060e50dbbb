"""Covariates of cases and forecasts, and replacements of missing and broken values.

All methods get their features from this module, so a broken predictor has the same effect on all
methods. A predictor is a covariate other than the season and the place; its value is broken if it
is implausible. The median of the past values replaces a missing or broken value. An indicator,
which is a further feature, marks the replaced values, if enough past cases have replaced values to
learn their effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from xrecal import arrays
from xrecal.arrays.dispatch import namespace
from xrecal.arrays.predictors import INDICATOR, Usual, unstacked, usual_of
from xrecal.inputs.covariates import AHEAD, DAY, SEASON
from xrecal.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from xrecal.arrays.kernels.kernel import Features

OF_PLACE = "xrecal_"
"""Prefix of covariates that identify the place of a case."""


def may_break(name: str) -> bool:
    """Return whether a covariate may be missing or broken.

    The result is False for covariates that come from dates, and for covariates that identify a
    place.
    """
    return name not in (SEASON, DAY, AHEAD) and not name.startswith(OF_PLACE)


def count_features(periods: Mapping[str, float | None]) -> int:
    """Return the number of features of covariates, from their names and periods.

    A circular covariate has two features, and any other covariate has one. A covariate that may be
    missing or broken has one more feature, its indicator.
    """
    return sum((1 if period is None else 2) + may_break(name) for name, period in periods.items())


@dataclass(frozen=True)
class Covariates:
    """Covariates at L locations: values that are known when a forecast is issued."""

    values: FloatArray
    """(L, n, p) values of p covariates, NaN where missing"""
    names: tuple[str, ...] = ()
    periods: tuple[float | None, ...] = ()
    """(p,) period of each circular covariate, None for other covariates"""
    record: Covariates | None = None
    """Covariates of the cases of a fit. They define which values of further cases are missing or
    implausible, and the medians that replace these values."""
    found: dict[str, Usual] = field(default_factory=dict, compare=False)
    """Cache of the usual values of each covariate: its median, its plausible range, and others."""

    def take(self, part: tuple[slice | IntArray, ...]) -> Covariates:
        """Return the covariates of some locations, or of some cases at these locations."""
        record = None if self.record is None else self.record.take(part[:1])
        return replace(self, values=self.values[part], record=record, found={})

    @property
    def n_features(self) -> int:
        """Number of features of all covariates."""
        return count_features(dict(zip(self.names, self.periods, strict=True)))

    def usual(self, name: str) -> Usual:
        """Return the usual values of a covariate, such as its median and its plausible range."""
        if name not in self.found:
            place = self.names.index(name)
            self.found[name] = usual_of(self.values[..., place], self.periods[place])
        return self.found[name]

    def judged_by(self, names: Sequence[str], numbers: FloatArray) -> Covariates:
        """Return the covariates with a record that has only their usual values.

        ``numbers`` (L, p, 8) has eight usual values of each of p covariates, such as the median.
        """
        record = replace(self, found=dict(zip(names, unstacked(numbers), strict=True)))
        return replace(self, record=record, found={})

    def as_given(self, names: Sequence[str]) -> Features:
        """Return the named covariates for ``xrecal.arrays``, without replacements of values."""
        places = [self.names.index(name) for name in names]
        periods = tuple(self.periods[place] for place in places)
        features: Features = arrays.features(self.values[..., places], periods)
        n_columns = [1 if period is None else 2 for period in periods]
        predictors = np.repeat([may_break(name) for name in names], n_columns)
        return features._replace(predictors=np.flatnonzero(predictors))

    def features(self, names: Sequence[str], record: Covariates | None = None) -> Features:
        """Return the named covariates in the form that ``xrecal.arrays`` takes.

        The median of the record replaces missing and implausible values. Indicators, which are
        features that mark such values, come last. An indicator is always 0 if the record has too
        few cases with a value, or too few cases without a value.

        Parameters
        ----------
        names : sequence of str
            Names of the covariates, in the order of the result.
        record : Covariates, optional
            Covariates of past cases, which define the medians and the plausible ranges. The default
            is the attribute ``record``, or these covariates themselves if the attribute is None.
        """
        breakable = [name for name in names if may_break(name)]
        if not breakable:
            return self.as_given(names)
        of, xp = record or self.record or self, namespace(self.values)
        features, indicators = self.replaced(of).as_given(names), []
        for name in breakable:
            usual = of.usual(name)
            gone = usual.unusable(self.values[..., self.names.index(name)])
            indicators.append(xp.where(gone & usual.mixed, INDICATOR, 0.0))
        whole = xp.concatenate([features.values, xp.stack(indicators, axis=-1)], axis=-1)
        k, every = features.circular.size, whole.shape[-1]
        fixed = np.append(features.circular, [True] * len(indicators))
        predictors = np.append(features.predictors, np.arange(k, every))
        return features._replace(values=whole, circular=fixed, predictors=predictors)

    def replaced(self, record: Covariates) -> Covariates:
        """Return the covariates; a record's medians replace missing and implausible values."""
        values = self.values.copy()
        for place, name in enumerate(self.names):
            if may_break(name) and name in record.names:
                usual, own = record.usual(name), self.values[..., place]
                values[..., place] = namespace(own).where(usual.unusable(own), usual.middle, own)
        return replace(self, values=values, found={})

    def joining(self, record: Covariates) -> Covariates:
        """Return covariates of cases that join a record, with NaN for implausible values.

        So a broken predictor does not widen the range of plausible values.
        """
        xp, values = namespace(self.values), self.values.copy()
        for place, name in enumerate(self.names):
            if may_break(name) and name in record.names:
                broken = record.usual(name).broken(self.values[..., place])
                values[..., place] = xp.where(broken, np.nan, self.values[..., place])
        return replace(self, values=values, record=record, found={})
