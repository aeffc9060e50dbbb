"""The daily cycle: learn what has verified, issue what is new, score, and watch the calibration.

A forecast is issued by a model that has learned what had verified at its start, whenever the
command runs. So a run that was killed, missed or repeated leaves what an undisturbed one leaves.
``docs/cycle.md`` says what is written when.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import TaskError
from xrecal.fit.news import last_known
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.storage.paths import local_path

from .archive import Archive, Date, open_archive, sources
from .blocks import RunError
from .cycle_folder import MARK, MONITOR, SCORES, STATUS, Folder, digest_of_file, stem_of
from .cycle_scores import digest_of, joined, n_new, scored
from .cycle_starts import cases_of, told, warnings_of
from .cycle_terms import Cycle, Done, text_of
from .fit_apply import for_files
from .monitoring import count_alarms, watched
from .session import ALARMED, NOTHING_NEW, REFUSED, Result, Session

SILENCE = np.timedelta64(14, "D")
"""Without observations for longer a model is behind."""

OF_SCORES = "xrecal_scores"
"""Attribute of a monitor: hash of the scores that it is made of."""


def cycle_files(session: Session, cycle: Cycle) -> Result:
    """Do what is to be done; see the documentation of the command."""
    folder = Folder(local_path(cycle.output, name="the output"), cycle.model.path.suffix)
    digest = digest_of_file(cycle.model)
    base = open_recalibrator(cycle.model.path)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        with _readable("observations"):
            archive = open_archive(
                base,
                sources(cycle.forecasts, "forecasts"),
                sources(cycle.observations, "observations"),
                cycle.variable,
                cycle.observed_variable,
            )
        with folder.alone():
            turn = Turn(session, cycle, folder, base, archive)
            turn.read_mark(digest)
            turn.go_back()
            turn.count_future()
            turn.issue()
            try:
                turn.score()
            except TaskError as error:
                raise RunError(str(error)) from error
            turn.monitor()
            return turn.result()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Raise ValueError where a library cannot read a damaged file."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, TaskError):
            raise
        raise ValueError(
            f"some of the {name} cannot be read ({error}): a file is damaged; hand over whole files"
        ) from error


class Turn:
    """One run, within the lock of its folder."""

    def __init__(
        self, session: Session, cycle: Cycle, folder: Folder, base: Recalibrator, archive: Archive
    ) -> None:
        self.session, self.cycle, self.folder = session, cycle, folder
        self.base, self.archive, self.done = base, archive, Done()
        self.after: str | None = None

    def read_mark(self, digest: str) -> None:
        """Note which fit the models come from, and after which of them another fit takes over."""
        mark = self.folder.read_json(MARK)
        if mark.get("fit") == digest:
            self.after = mark["after"]
            return
        models = self.folder.models()
        self._mark(digest, models[-1] if models else None)

    def _mark(self, digest: str, after: str | None) -> None:
        """Models up to ``after`` come from an earlier fit than this one."""
        self.after = after
        self.folder.write_json(MARK, {"fit": digest, "after": after})
        self.done.has_written = True

    def go_back(self) -> None:
        """Remove the models after a date, if that was asked for."""
        if self.cycle.model_at is None:
            return
        date, models = stem_of(self.cycle.model_at), self.folder.models()
        kept = [stem for stem in models if stem <= date]
        if not kept:
            first = f"from {models[0]} to {models[-1]}" if models else "none yet"
            raise ValueError(
                f"no model of {told(self.cycle.model_at)} or before is kept, those kept are "
                f"{first}; name a later date, or begin again in another --output"
            )
        if self.after is not None and kept[-1] <= self.after:
            self._mark(self.folder.read_json(MARK)["fit"], None)
        dropped = models[len(kept) :]
        self.folder.drop_models(dropped[::-1])
        self.done.has_written |= bool(dropped)

    def count_future(self) -> None:
        """Count observations of valid times to come, and warn of them."""
        now, latest = self.cycle.now, []
        for one in self.archive.variables.values():
            ahead = one.observed.notnull() & (one.valid > now)
            self.done.n_future += int(ahead.sum())
            of_some = ahead.any([d for d in ahead.dims if d not in one.valid.dims])
            latest += [one.valid.to_numpy()[of_some.transpose(*one.valid.dims).to_numpy()]]
        if self.done.n_future:
            warnings.warn(
                f"{self.done.n_future} observations are of the future, up to "
                f"{told(np.concatenate(latest).max())}, while it is {told(now)}; they are not "
                "used: check their dates, or give --now",
                stacklevel=2,
            )

    def issue(self) -> None:
        """Learn and issue, start by start; each start that was handed over is counted."""
        issued, done = self.folder.issued(), self.done
        fit_knows = self._known_of(self.base)
        for start in self.archive.starts:
            stem = stem_of(start)
            if stem in issued:
                done.n_before += 1
            elif start > self.cycle.now:
                done.early.append(stem)
            elif (parent := self._parent(start, fit_knows)) is None:
                done.too_late.append(stem)
            elif self._try_to_issue(start, parent) and issued and stem < issued[-1]:
                done.late.append(stem)
        done.part_from_hindcast(cases_of(self.base, self.archive.dim), self.folder.issued())
        for text in warnings_of(done, self.cycle, None if fit_knows is None else fit_knows[1]):
            warnings.warn(text, stacklevel=2)

    def _try_to_issue(self, start: Date, parent: str) -> bool:
        """Issue a start, or note why that cannot be; other starts do not wait for it."""
        stem = stem_of(start)
        try:
            is_issued = self._issue(start, parent)
        except (ValueError, TypeError, KeyError, TaskError) as error:
            self.done.refused[stem] = str(error)
            return False
        (self.done.issued if is_issued else self.done.empty).append(stem)
        return is_issued

    def _known_of(self, model: Recalibrator) -> tuple[Date, Date] | None:
        """The newest start and the newest valid time that a model has learned from."""
        known = []
        for name, fitted in model.variables.items():
            one = self.archive.variables.get(name) or next(iter(self.archive.variables.values()))
            newest = last_known(fitted, (one.valid - one.starts).isel({fitted.dim: 0}, drop=True))
            if newest is None:
                continue
            start, valid = newest
            if fitted.leads is None:  # a single one, which only the forecasts tell
                valid = start + np.max(one.valid.to_numpy() - one.starts.to_numpy())
            known.append((start, valid))
        return (max(s for s, _ in known), max(v for _, v in known)) if known else None

    def _parent(self, start: Date, fit_knows: tuple[Date, Date] | None) -> str | None:
        """The newest model that knows nothing of after a start; "" is the first fit, None none."""
        stem, models = stem_of(start), self.folder.models()
        before = [one for one in models if one < stem]
        own = [one for one in before if self.after is None or one > self.after]
        if stem in models or own:
            return stem if stem in models else own[-1]
        if fit_knows is None or (fit_knows[0] < start and fit_knows[1] <= start):
            return ""
        return before[-1] if before else None

    def _issue(self, start: Date, parent: str) -> bool:
        """Make the model of a start, unless it is there, and its forecast, unless that is empty."""
        stem, forecast = stem_of(start), self._forecast(start)
        path = self.folder.model(stem)
        if parent != stem:
            model = self._learned(start, self.base if parent == "" else self._model(parent))
            if self.after is not None and parent != "" and parent <= self.after:
                self._mark(self.folder.read_json(MARK)["fit"], stem)
            self.folder.write(path, model.save)
        values = for_files(self.cycle.product.of(self._model(stem), forecast))
        (values,) = self.session.compute([values])
        if all(bool(values[name].isnull().all()) for name in self.archive.variables):
            if self._has_fit(stem) or all(one.isnull().all() for one in forecast.values()):
                return False
            self.done.missing.append(stem)
        values.attrs["xrecal_model"] = path.name
        self.folder.write_data(f"forecasts/{stem}.nc", values)
        self.done.has_written = True
        return True

    def _has_fit(self, stem: str) -> bool:
        """Whether the model of a start has learned from enough cases at any place."""
        fits = self._model(stem).variables.values()
        return any(bool((one.state["status"] == 0).any()) for one in fits)

    def _model(self, stem: str) -> Recalibrator:
        return open_recalibrator(self.folder.model(stem))

    def _forecast(self, start: Date) -> xr.Dataset:
        """The forecast of one start, in memory."""
        at = np.flatnonzero(self.archive.starts == start)
        return self._read({self.archive.dim: at})

    def _read(self, at: Mapping[Hashable, Any]) -> xr.Dataset:
        """Some of the forecasts, in memory."""
        read: xr.Dataset
        with _readable("forecasts"):
            (read,) = self.session.compute([self.archive.forecasts.isel(at)])
        return read

    def _learned(self, start: Date, model: Recalibrator) -> Recalibrator:
        """A model with what had verified at a start."""
        dim = self.archive.dim
        fresh = np.zeros(self.archive.starts.size, bool)
        for name, one in self.archive.variables.items():
            with _readable("forecasts"):
                news = one.news_at(start, model.variables.get(name, one.fitted))
            fresh |= news.cases
            self.done.n_learned += news.n_learned
            self.done.n_revised += news.n_revised
        if fresh.any():
            at = {dim: np.flatnonzero(fresh)}
            known = {name: one.known_at(start) for name, one in self.archive.variables.items()}
            model = model.update(self._read(at), self.archive.observations(known, at))
        self._warn_if_behind(start, model)
        return model

    def _warn_if_behind(self, start: Date, model: Recalibrator) -> None:
        """Warn where nothing of the last weeks was learned."""
        known = self._known_of(model)
        if known is not None and start - known[1] > SILENCE:
            newest = known[1]
            days = int((start - newest) / np.timedelta64(1, "D"))
            warnings.warn(
                f"the forecast of {told(start)} is issued by a model that knows "
                f"no observation of the {days} days before; hand over those of the gap, and it "
                "learns from them",
                stacklevel=2,
            )

    def score(self) -> None:
        """Score what has verified of forecasts that were issued."""
        old = self.folder.read_data(SCORES)
        models, issued = set(self.folder.models()), set(self.folder.issued())
        pieces, dim = [], self.archive.dim
        known = {n: one.until(self.cycle.now) for n, one in self.archive.variables.items()}
        for start in self.archive.starts:
            stem = stem_of(start)
            if stem not in issued:
                continue
            here = {n: array.sel({dim: [start]}) for n, array in known.items()}
            n_fresh = sum(n_new(old, name, array, dim) for name, array in here.items())
            if not n_fresh:
                continue
            if stem not in models:
                self.done.n_unscored += n_fresh
                continue
            self.done.n_scored += n_fresh
            pieces.append(self._scored(start, known))
        if self.done.n_unscored:
            warnings.warn(
                f"{self.done.n_unscored} forecasts have verified and no score, as --model-at or "
                f"--keep {self.cycle.keep} has removed the models that issued them; keep at least "
                "as many as there are starts within the longest lead",
                stacklevel=2,
            )
        if not pieces:
            return
        self.folder.write_data(SCORES, joined(old, pieces, dim))
        self.done.has_written = True

    def _scored(self, start: Date, known: Mapping[Hashable, xr.DataArray]) -> xr.Dataset:
        """Scores of the forecast of one start, before and after recalibration."""
        at = {self.archive.dim: np.flatnonzero(self.archive.starts == start)}
        observed = self.archive.observations(known, at)
        here = {name: array.isel(at) for name, array in known.items()}
        # What places an observation within a jump differs from start to start.
        seed = int(start.astype("datetime64[s]").astype(np.int64))
        model, forecast = self._model(stem_of(start)), self._forecast(start)
        valid = {name: self.archive.variables[name].valid.isel(at) for name in here}
        piece = scored(model, forecast, observed, here, valid, seed)
        for name in here:
            self.done.tell(name, piece)
        return piece

    def monitor(self) -> None:
        """Watch the calibration of all forecasts that have verified."""
        scores = self.folder.read_data(SCORES)
        if scores is None:
            return
        watch = self.cycle.watch
        digest = digest_of(scores, repr(watch))
        old = self.folder.read_data(MONITOR)
        if old is not None and old.attrs.get(OF_SCORES) == digest:
            return
        names = list(self.archive.variables)
        seen = watched(scores, names, self.archive.dim, watch)
        self.folder.write_data(MONITOR, for_files(seen).assign_attrs({OF_SCORES: digest}))
        self.done.has_written = True

    def result(self) -> Result:
        """Remove old models, write the status, and say what was done."""
        done, models = self.done, self.folder.models()
        old = models[: -self.cycle.keep]
        self.folder.drop_models(old)
        kept, issued = models[len(old) :], self.folder.issued()
        monitor = self.folder.read_data(MONITOR)
        counts = {"alarms": 0, "changes": 0} if monitor is None else count_alarms(monitor)
        before = self.folder.read_json(STATUS)
        status = {
            "last_issued": issued[-1] if issued else None,
            "n_issued": len(issued),
            **done.not_issued,
            "models": kept,
            **counts,
        }
        done.has_written |= self.folder.write_json(STATUS, status) or bool(old)
        data = done.data(self.folder.path, self.archive.starts.size) | counts
        data["model"] = str(self.folder.model(kept[-1])) if kept else None
        code = 0 if done.has_written else NOTHING_NEW
        if counts["changes"] > before.get("changes", 0):  # reported once, so before all others
            code = ALARMED
        elif (error := done.why_incomplete(self._newest_due())) is not None:
            data, code = {**data, "status": "incomplete", "error": error}, REFUSED
        elif counts["alarms"] and done.has_written:
            code = ALARMED
        return Result(data, text_of(data), code)

    def _newest_due(self) -> str:
        """The newest start that is not in the future; empty if there is none."""
        due = self.archive.starts[self.archive.starts <= self.cycle.now]
        return stem_of(due[-1]) if due.size else ""
