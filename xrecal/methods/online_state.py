"""State of an online pool at one place: fits of its experts, their weights and their regrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .base import Cases, FitArrays, Parameter
from .components import Arrays
from .corrected import LAST_IN_COMMON, of_place
from .experts import N_LEVELS, RAW, Experts
from .known import days_ahead, known_of, verification_times

if TYPE_CHECKING:
    from xrecal.arrays.online.state import Settings as Learning
    from xrecal.arrays.online.state import State

WARM_UP = 180
"""Largest number of cases of the warm-up, which is the part of a fit that learns the first weights
of the experts. The warm-up uses the last cases of the hindcast, at most half of all cases."""

SHORT = 30
"""If the own experts of a place were fitted to this number of cases, the shared expert begins with
at least half of the weight."""

EARLIER = "earlier:"
"""Prefix of the names of choices that were made without the cases of the warm-up."""

COMMON = "common_regret"
"""Name of the parameter with the common regrets, which are the same at all places."""

IN_COMMON = (COMMON, LAST_IN_COMMON)
"""Names of the parameters that are the same at all places, in the order of ``Timeline.last``."""

Said: TypeAlias = Mapping[tuple[int, int], dict[str, FloatArray]]
"""Quantiles (1, J) that experts forecast, at J levels. An outer key has the position of a case and
the number of cases that the slow experts were fitted to. An inner key is the label of an expert."""

NOTHING_SAID: Said = MappingProxyType({})
"""Mapping without entries: no quantiles of experts are known yet."""

AHEAD_OF_REFIT = 32
"""Largest number of new cases of a place that an update forecasts in one call for several places.
It forecasts further cases in a separate call for each place."""

OF_WEIGHTS = ("regret", "square", "largest", "score", "n_scored")
"""Names of the parameters that store the fields of :class:`xrecal.arrays.online.state.State`, in
the same order."""


class Fitting(NamedTuple):
    """Inputs of a fit of slow experts, which are refitted only at intervals."""

    min_samples: int
    choices: FitArrays | None = None
    """Choices (L, ...) that the fit uses; with None, the fit searches for choices."""

    def at(self, place: int) -> Fitting:
        """Return the inputs at one location."""
        if self.choices is None:
            return self
        own = slice(place, place + 1)
        return self._replace(choices={name: array[own] for name, array in self.choices.items()})

    def in_warm_up(self) -> Fitting:
        """Return the inputs of a fit that must not know the cases of the warm-up."""
        if self.choices is None:
            return self
        return self._replace(choices=earlier_choices(self.choices))


def earlier_choices(choices: FitArrays) -> Arrays:
    """Return the choices made without the cases of the warm-up, under names without a prefix."""
    return {n.removeprefix(EARLIER): a for n, a in choices.items() if n.startswith(EARLIER)}


def each_place(cases: Cases, arrays: FitArrays) -> list[tuple[Cases, Arrays]]:
    """Return a list with the cases and the arrays of each location."""
    places = [slice(i, i + 1) for i in range(cases.observations.shape[0])]
    return [(cases.take(at), {name: a[at] for name, a in arrays.items()}) for at in places]


def shaped_like(values: npt.NDArray[Any], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Pad values with -1 to the shape of ``like``, which may have room for more landmarks."""
    room = [(0, size - own) for size, own in zip(like.shape, values.shape, strict=True)]
    return np.pad(values, room, constant_values=-1).astype(like.dtype)


def state_of(part: FitArrays) -> State:
    """Select, from the parameters of a location, those that determine the weights of experts."""
    from xrecal.arrays.online.state import State

    return State(*(np.ascontiguousarray(part[name], np.float64) for name in OF_WEIGHTS))


def record_known(cases: Cases, part: FitArrays) -> None:
    """Record the regrets that a location has from earlier cases, if a first pass makes a record."""
    from xrecal.arrays.online.common import Record, comparable

    if isinstance(cases.common, Record) and cases.common.with_known:
        cases.common.add(-np.inf, comparable(state_of(part)))


def predictors_recorded(cases: Cases, delay: int | str) -> bool:
    """Add all locations to a record that collects predictors; return whether there is one."""
    from xrecal.arrays.online.common import Record

    record = cases.common
    if not isinstance(record, Record) or record.predictors is not None:
        return False
    for one, _ in each_place(cases, {}):
        record.add_place(of_place(one, delay))
    return True


def common_at_end(cases: Cases) -> Arrays:
    """Return the last common regrets and mean errors (1, ...), or nothing if no first pass ran."""
    from xrecal.arrays.online.common import Timeline

    common = cases.common
    if not isinstance(common, Timeline):
        return {}
    return {name: a[np.newaxis] for name, a in zip(IN_COMMON, common.last, strict=True)}


def blank_arrays(parameters: Mapping[str, Parameter], n_locations: int, n: int) -> Arrays:
    """Return parameters (L, ...) without values, for locations with n cases."""
    blank: Arrays = {}
    for name, parameter in parameters.items():
        shape = n_locations, *parameter.sizes(n).values()
        unknown = np.nan if parameter.dtype is np.float64 and name not in OF_WEIGHTS else 0
        blank[name] = np.full(shape, -1 if parameter.of_slots else unknown, parameter.dtype)
    return blank


def warm_up_cases(cases: Cases, known: IntArray, min_samples: int) -> IntArray:
    """Return the positions of the cases of a location from which the warm-up learns weights.

    These are the last cases. The result leaves out a case if fewer than ``min_samples`` cases had
    verified at its issue.
    """
    verified = np.flatnonzero(np.isfinite(cases.observations[0]))
    last = verified[verified.size - min(WARM_UP, verified.size // 2) :]
    return last[np.searchsorted(verified, known[last]) >= min_samples]


def learning_settings(experts: Experts, cases: Cases, part: FitArrays) -> Learning:
    """Return the settings for learning the weights of the experts at a location.

    A strategy is one way to weight the experts. The linear pool, which is the last expert, is also
    a strategy: it gets all the weight. The prior weight of the raw forecast is larger if the raw
    forecast has a large weight in the linear pool. Other experts then need better forecasts to get
    large weights. The prior weight of the shared expert is larger if the slow experts of the
    place were fitted to fewer cases.
    """
    from xrecal.arrays.online.state import prior_weights, settings_of, with_at_least

    n, share = len(experts.labels), experts.pool.share_as_issued(part["pool_weight"][0])
    bounds = np.stack([part["lower"], part["upper"]], axis=-1)
    settings = settings_of(bounds, n, N_LEVELS, alone=n - 1)
    raw = experts.labels.index(RAW)
    prior = prior_weights(n, raw, share)
    if experts.shared is not None:
        last = int(part["last_fitted"][0])
        own = int(np.isfinite(cases.observations[0, : last + 1]).sum())
        law = experts.labels.index(experts.shared.label)
        prior = with_at_least(prior, law, SHORT / (SHORT + own))
    return settings._replace(prior=prior)


def quantiles_of_new(
    experts: Experts, delay: int | str, cases: Cases, given: FitArrays
) -> Sequence[Said]:
    """Return the experts' quantiles for the first new cases of each location, without a refit."""
    n_slow = given["last_fitted"] + 1
    known = np.array([known_of(one, delay) for one, _ in each_place(cases, {})])
    new = np.isfinite(cases.observations) & (n_slow[:, np.newaxis] > 0)
    new &= np.arange(known.shape[1]) > given["last_learned"][:, np.newaxis]
    new &= (np.cumsum(new, -1) <= AHEAD_OF_REFIT) & (known >= n_slow[:, np.newaxis])
    said: list[dict[tuple[int, int], dict[str, FloatArray]]] = [{} for _ in n_slow]
    for case in np.flatnonzero(new.any(0)).tolist():
        of_case, fits = cases.as_new(np.array([case])), np.where(new[:, case], n_slow, 0)
        for place, quantiles in experts.quantiles_at(of_case, cases, given, fits, known[:, case]):
            said[place][case, int(n_slow[place])] = quantiles
    return said


def weights_learned(
    experts: Experts, cases: Cases, part: FitArrays, which: IntArray, said: FloatArray
) -> State:
    """Learn the weights of a location from n cases, and return the numbers that determine them.

    ``said`` (1, n, K, J) has J quantiles of each of K experts for the cases at positions ``which``
    (n,). A first pass over places also records how each case changes the regrets.
    """
    from xrecal.arrays.online.aggregation import learn
    from xrecal.arrays.online.common import Common, Record, comparable

    settings, observed = learning_settings(experts, cases, part), cases.observations
    state = state_of(part)
    times, common = verification_times(cases.axis, days_ahead(cases.covariates)), cases.common
    if isinstance(common, Record):
        for t, case in enumerate(which):
            before = comparable(state)
            state = learn(state, settings, said[:, t : t + 1], observed[:, case : case + 1])
            common.add(float(times[case]), comparable(state) - before)
        return state
    last_known = Common(part[COMMON], np.zeros((1, which.size), np.int64))
    found = last_known if common is None else common.before(times[which])
    return learn(state, settings, said, observed[:, which], found)
