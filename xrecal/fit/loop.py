"""Loop over held-out cases: in each round a model learns and predicts; the loop stores results.

Cross-validation refits the model in each round. To predict as in operation, the loop also updates
the model between two fits, with newly verified cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import Distribution, sort_members
from xrecal.chunks.progress import counted
from xrecal.chunks.run import OF_PLACE, Named
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.pool import Pool
from xrecal.methods import Method
from xrecal.methods.base import Cases, FitArrays, NewCases
from xrecal.methods.known import days_ahead, issue_times
from xrecal.typing import FloatArray, IntArray

from .case_order import order_of_positions
from .cases import Kept, cases_of, in_blocks
from .fitted import MODEL_PARTS
from .named_members import weigh_cases
from .pooling import as_cases, bytes_at, of_all_positions, of_fits, own_of_fits
from .shared_component import Sharing, fit_sharing
from .together import fit_with
from .update_task import UpdateTask

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Record, Timeline

KnownName: TypeAlias = Literal["observed", "cases", "issued", "learned"]
"""Names of arrays of a round of predictions, from which scores are computed: observations (L, T),
positions of the cases in order of time (L, T), raw forecasts (L, T, m), and training observations
(L, N) of the location itself."""


class Fold(NamedTuple):
    """A method, its training cases, and the cases to predict.

    ``train`` and ``test`` are positions of cases in the order of time. If cases are pooled, they
    are positions of dates instead.
    """

    method: Method
    train: IntArray
    test: IntArray
    pool: Pool | None = None
    """Places or leads whose cases one fit learns from; None without a pool."""
    sharing: Sharing | None = None
    """Facts about the component that all places share, if the method has such a component."""

    @property
    def n_cases(self) -> int:
        """Number of training cases, including those of all pooled positions."""
        return self.train.size * (1 if self.pool is None else len(self.pool.taken))

    @property
    def pooled(self) -> Pool | None:
        """Places or leads whose cases one fit joins; None if each place or lead has its own fit."""
        return self.pool if self.sharing is None else None


class Round(NamedTuple):
    """One round of the loop: cases to learn from, and then cases to predict."""

    fit: Fold | None
    """Split with method and pool, if the model is fitted in this round; None if it is updated."""
    learn: IntArray
    test: IntArray
    common: Record | Timeline | None = None
    """In a first pass, a record that collects the regrets of places. In the second pass, the common
    regrets that follow from this record."""


@dataclass(frozen=True)
class Wanted:
    """A reduction (such as a score) of held-out distributions, with its inputs and results."""

    reduction: Callable[..., tuple[FloatArray, ...]]
    takes: tuple[KnownName | int, ...]
    """Arguments that the reduction takes after the distributions: names of facts, or positions
    of arrays among the extras."""
    sizes: tuple[tuple[int, ...], ...]
    """Lengths of the last axes of each result."""
    dtypes: tuple[npt.DTypeLike, ...]

    def empty(self, shape: tuple[int, ...]) -> list[FloatArray]:
        """Return results for cases of this shape, filled with NaN."""
        kinds = zip(self.sizes, self.dtypes, strict=True)
        return [np.full((*shape, *own), np.nan, dtype) for own, dtype in kinds]


class _Model(NamedTuple):
    """A model after some rounds: its split, its cases, their ``dates``, and its fit."""

    fold: Fold
    cases: Cases
    fitted: FitArrays
    dates: IntArray
    members: Named
    """Weights and offsets (B, m) of m named models in B fits; empty if members have no names."""


class _Block(NamedTuple):
    """Cases of a block, a group of B fits that the loop makes together.

    The fits learn from the training cases. The served cases are at the places that the fits
    forecast.
    """

    cases: Cases
    """(B, n k) training cases of n dates at k positions, sorted by date and then by position"""
    served: Cases
    """(B t, n) cases at the t places that each fit forecasts"""
    known: tuple[FloatArray, FloatArray] | None
    """For each training case, and for each served case: position, in order of time, of the first
    case that is issued once the observation of the training or served case is known."""
    extras: Named
    """(B t, n, ...) further inputs of the reduction"""
    choices: Mapping[int, Named]
    """(B, ...) settings that places have chosen together, by the number of the round"""


@dataclass(frozen=True)
class LoopTask:
    """Task that runs the loop on a chunk of locations and returns a reduction of its predictions.

    Each fit gets only the cases of its round, so no choice of a method can depend on other cases.
    The task computes distances among all cases together, so other cases affect only the rounding of
    distances. Arrays of pooled cases are (L, pooled dimensions, n, ...). Each fit joins the pooled
    positions date by date, as ``fit`` does. So a held-out date is held out at all pooled positions.
    """

    rounds: Sequence[Round]
    axis: CaseAxis
    periods: Mapping[str, float | None]
    wanted: Wanted
    min_samples: int
    pool: Pool | None
    """All pooled places or leads, of any fit; None without pooled cases."""
    reuse_distances: bool
    as_kept: bool
    """True if predictions use cases in the form that a model stores, with sorted members."""
    by_place: ClassVar[bool] = True

    def __call__(
        self,
        inside: npt.NDArray[np.bool_] | None = None,
        common: Named | None = None,
        **given: Named,
    ) -> dict[int, FloatArray]:
        """Run the loop on one chunk."""
        if common:
            return self._with_common(common[0][0])(inside, **given)
        given, choices = self._parted(given)
        parts = [self._reduced(block) for block in self._blocks(given, choices, inside)]
        whole = dict(enumerate(np.concatenate(part) for part in zip(*parts, strict=True)))
        if self.pool is None:
            return whole
        observed = given["observed"][0]
        return {
            i: of_all_positions(result, observed.shape[: 1 + len(self.pool.dims)], inside)
            for i, result in whole.items()
        }

    def _parted(self, given: Mapping[str, Named]) -> tuple[dict[str, Named], dict[int, Named]]:
        """Return the groups of arrays without the joint choices, and the joint choices by round."""
        names = {choices_group(number): number for number in range(len(self.rounds))}
        rest = {group: of for group, of in given.items() if group not in names}
        return rest, {names[group]: of for group, of in given.items() if group in names}

    @property
    def method(self) -> Method:
        """The method of the last fit."""
        return next(one.fit.method for one in reversed(self.rounds) if one.fit is not None)

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Do a first pass over these places; return their common regrets in each round."""
        from xrecal.arrays.online.common import Record, timelines

        records = [Record(with_known=False) for _ in self.rounds]
        recording = self._with_common(records)
        given, choices = self._parted(given)

        def visit() -> None:
            for block in recording._blocks(given, choices, None):
                model: _Model | None = None
                for number, one in enumerate(recording.rounds):
                    if one.learn.size:
                        own = block.choices.get(number, {})
                        model = recording._learned(block, one, model, own)
                    if model is not None:
                        recording._record_new(block, one, model)

        return timelines(records, [one.fit is not None for one in self.rounds], visit)

    def _record_new(self, block: _Block, one: Round, model: _Model) -> None:
        """Add the predictors of forecasts to a record that collects predictors."""
        from xrecal.arrays.online.common import Record

        record = one.common
        if isinstance(record, Record) and record.predictors is None:
            new = replace(block.served, squared=None).as_new(one.test)
            found = model.fold.method.predictors_of_new(new, model.cases)
            for times, own in zip(self._issued(new, one.test), found, strict=True):
                record.add_new(times, own)

    def _issued(self, new: NewCases, test: IntArray) -> list[FloatArray]:
        """Return, for each location, the times (T,) of issue of its forecasts.

        Without dates, they are negative, so they differ from the times of past cases.
        """
        axis, n = self.axis.take(test), len(new.forecasts.loc)
        if axis.days is None:
            return [-1.0 - test] * n
        each = [new.covariates.take((slice(i, i + 1),)) for i in range(n)]
        return [issue_times(axis, days_ahead(own)) for own in each]

    def _with_common(self, common: Sequence[Record | Timeline | None]) -> LoopTask:
        """Return this loop with records or common regrets of places in each round."""
        pairs = zip(self.rounds, common, strict=True)
        return replace(self, rounds=[one._replace(common=own) for one, own in pairs])

    def _blocks(
        self,
        given: Mapping[str, Named],
        choices: Mapping[int, Named],
        inside: npt.NDArray[np.bool_] | None,
    ) -> Iterator[_Block]:
        """Yield the cases of a few fits at a time, so that copies fit into a fixed memory."""
        from xrecal.arrays.distributions.distance import pairwise_distances
        from xrecal.arrays.rows import WORKSPACE, location_blocks

        first = given["observed"][0]
        if self.pool is None:
            whole = self._block(given, given, self.axis)
            each = 8 * first.shape[1] ** 2 if self.reuse_distances else 0
            for at in location_blocks(len(first), each):
                cases = whole.cases.take(at)
                if self.reuse_distances:
                    assert cases.forecasts is not None
                    cases = replace(cases, squared=pairwise_distances(cases.forecasts))
                known = None if whole.known is None else (whole.known[0][at], whole.known[1][at])
                extras = {i: a[at] for i, a in whole.extras.items()}
                yield _Block(cases, cases, known, extras, _taken(choices, at))
            return
        sizes = first.shape[1 : 1 + len(self.pool.dims)]
        learned = replace(self.pool, sizes=sizes).positions()
        served = np.arange(np.prod(sizes, dtype=int)).reshape(len(learned), -1)
        if inside is not None:
            learned, served = learned[inside], served[inside]
        n_fits = len(first) * len(learned)
        n_dims = len(self.pool.own_fits)
        choices = {r: own_of_fits(of, n_dims, inside) for r, of in choices.items()}
        each = 4 * bytes_at(given, sizes) * (learned.shape[1] + served.shape[1])
        if any(one.fit is not None and one.fit.sharing for one in self.rounds):
            each = WORKSPACE  # one fit at a time
        axis = self.pool.axis(self.axis, first.shape[-1])
        of_cases = {group: of for group, of in given.items() if group != "extras"}
        for at in location_blocks(n_fits, each):
            fits = np.arange(n_fits)[at]
            block = self._block(
                of_fits(of_cases, sizes, learned, fits, as_cases),
                of_fits(given, sizes, served, fits, _each),
                axis,
            )
            yield block._replace(choices=_taken(choices, at))

    def _block(
        self, learned: Mapping[str, Named], served: Mapping[str, Named], axis: CaseAxis
    ) -> _Block:
        """Join arrays of training cases and arrays of cases to predict in a block."""

        def cases(of: Mapping[str, Named], axis: CaseAxis) -> Cases:
            arrays = of["forecasts"], of["observed"], of["covariates"]
            return cases_of(*arrays, axis, self.periods)[0]

        own = cases(served, self.axis)
        known = learned["known"].get(0), served["known"].get(0)
        return _Block(
            own if learned is served else cases(learned, axis),
            own,
            None if known[0] is None or known[1] is None else (known[0], known[1]),
            served["extras"],
            {},
        )

    def _reduced(self, block: _Block) -> list[FloatArray]:
        """Return the results of all rounds for the served cases (B t, n) of the block."""
        results = self.wanted.empty(block.served.observations.shape)
        model: _Model | None = None
        for number, one in enumerate(counted(self.rounds)):
            if one.learn.size:
                model = self._learned(block, one, model, block.choices.get(number, {}))
            if model is not None:
                predicted = self._predicted(block, model, one)
                for result, values in zip(results, predicted, strict=True):
                    result[:, one.test] = values
        return results

    def _learned(
        self, block: _Block, one: Round, model: _Model | None, choices: Named
    ) -> _Model | None:
        """Return the model after a fit with joint choices, or after an update of ``model``."""
        fold = one.fit or (None if model is None else model.fold)
        if fold is None:
            return None
        members: Named = {name: choices[name] for name in MODEL_PARTS if name in choices}
        choices = {name: a for name, a in choices.items() if name not in members}
        if one.fit is None:
            assert model is not None
            members = model.members
        cases = self._selected(block, fold, one.learn, int(one.test[0]))
        if members:
            assert cases.forecasts is not None
            cases = replace(cases, forecasts=weigh_cases(cases.forecasts, members))
        if one.fit is None:
            assert model is not None
            return self._updated(model, cases, one)
        cases = replace(cases, common=one.common)
        fitted: FitArrays
        if fold.sharing is not None:
            fitted = fit_sharing(fold.sharing, fold.method, cases, self.min_samples)
        else:
            fitted = fit_with(fold.method, cases, self.min_samples, choices)
        if self.as_kept:
            assert cases.forecasts is not None
            cases = replace(cases, forecasts=sort_members(cases.forecasts))
        return _Model(fold, cases, fitted, one.learn, members)

    def _selected(self, block: _Block, fold: Fold, dates: IntArray, at: int) -> Cases:
        """Return cases of some dates, with the observations known when case ``at`` is issued."""
        pool, number = fold.pooled, int(fold.sharing is not None)
        which, axis = dates, self.axis.take(dates)
        if pool is not None:
            each = np.arange(len(pool.taken))
            which = (dates[:, np.newaxis] * each.size + each).ravel()
            axis = pool.axis(axis, dates.size)
        cases = replace((block.cases, block.served)[number].select(which), axis=axis)
        if block.known is None:
            return cases
        there = block.known[number][:, which] <= at
        return replace(cases, observations=np.where(there, cases.observations, np.nan))

    def _updated(self, model: _Model, added: Cases, one: Round) -> _Model:
        """Return the model with ``added`` cases; the model may know some of these already."""
        dates = one.learn
        fold, pool = model.fold, model.fold.pooled
        order, every = order_of_positions(model.dates, dates)
        axis = replace(self.axis.take(every), step=None)
        if pool is not None:
            order = order.at_positions(len(pool.taken))
            axis = pool.axis(axis, every.size)
        task = UpdateTask(fold.method, self.periods, self.min_samples, order, added.axis, axis)
        known = (*task.parameters, "n_cases", "status")
        kept = self._kept(
            model.cases, {name: a for name, a in model.fitted.items() if name in known}
        )
        assert added.forecasts is not None
        new = self._kept(replace(added, forecasts=sort_members(added.forecasts)), {})
        partners = {0: kept.observations} if order.has_known else {}
        joined = task.joined(kept, added, new.forecasts, partners)
        joined = task.learned_again(joined, one.common)
        return _Model(fold, joined.cases(self.periods, axis), joined.fitted, every, model.members)

    def _kept(self, cases: Cases, fitted: FitArrays) -> Kept:
        """Return cases and fit in the form of a state."""
        parts = {} if cases.forecasts is None else cases.forecasts._asdict()
        known = {name: cases.covariates.values[..., i] for i, name in enumerate(self.periods)}
        return Kept(
            {name: part for name, part in parts.items() if part is not None},
            cases.observations,
            known,
            fitted,
        )

    def _predicted(self, block: _Block, model: _Model, one: Round) -> list[FloatArray]:
        """Return results (B t, T, ...) for the T cases of a round at each of t places of B fits.

        The function computes the weights of some fits at a time. If one fit has many forecasts, the
        function computes the weights of some of these forecasts at a time.
        """
        from xrecal.arrays.online.common import Timeline

        method, cases, served, test = model.fold.method, model.cases, block.served, one.test
        new = replace(served, squared=None).as_new(test)
        n_fits, n_each = len(cases.observations), test.size
        shape = (n_fits, len(served.observations) // max(n_fits, 1) * n_each)
        across = None
        if block.cases.squared is not None:
            across = block.cases.squared[:, test[:, np.newaxis], model.dates]
        forecasts, in_common = new.forecasts, None
        if model.members:
            forecasts = weigh_cases(forecasts, model.members)
        if isinstance(one.common, Timeline):
            known_to_all = one.common.predictors
            in_common = np.stack([known_to_all.predictors_at(t) for t in self._issued(new, test)])
        new = NewCases(
            forecasts.map(lambda part: _rows(part, shape)),
            replace(new.covariates, values=_rows(new.covariates.values, shape)),
            None if across is None else np.ascontiguousarray(across),
            in_common,
        )
        numbers = np.broadcast_to(test, (len(served.observations), n_each))
        pool = model.fold.pooled
        known: dict[KnownName | int, Any] = {
            "observed": _rows(served.observations[:, test], shape),
            "cases": _rows(numbers, shape),
            **{i: _rows(a[:, test], shape) for i, a in block.extras.items()},
        }
        own = cases.observations[:, slice(None) if pool is None else pool.own_cases]

        def products(at: slice, piece: slice) -> tuple[FloatArray, ...]:
            some = _part(new, (at, piece))
            values = {name: a[at, piece] for name, a in known.items()}
            values |= {"issued": some.forecasts, "learned": own[at]}
            state = {name: a[at] for name, a in model.fitted.items()}
            issued: Distribution = method.predict_locations(some, cases.take(at), state)
            return self.wanted.reduction(issued, *(values[name] for name in self.wanted.takes))

        blocks = in_blocks(products, method, cases.observations.shape[1], shape)
        results = [np.concatenate(result) for result in zip(*blocks, strict=True)]
        return [r.reshape((len(served.observations), n_each, *r.shape[2:])) for r in results]


def choices_group(number: int) -> str:
    """Return the name of the group of inputs with the joint choices of a round."""
    return f"{OF_PLACE}_{number}"


def _taken(choices: Mapping[int, Named], at: slice) -> dict[int, Named]:
    """Select the choices of some fits."""
    return {r: {name: a[at] for name, a in of.items()} for r, of in choices.items()}


def _part(new: NewCases, at: tuple[slice, slice]) -> NewCases:
    """Select some forecasts of some locations."""
    across = None if new.across is None else new.across[at]
    in_common = None if new.in_common is None else new.in_common[at]
    return NewCases(new.forecasts.take(at), new.covariates.take(at), across, in_common)


def _rows(array: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Reshape an array (B t, T, ...), with t places per fit, to (B, t T, ...)."""
    return array.reshape((*shape, *array.shape[2:]))


def _each(at: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reshape arrays (B, t, n, ...), with t places per fit, to (B t, n, ...)."""
    return at.reshape((-1, *at.shape[2:]))
