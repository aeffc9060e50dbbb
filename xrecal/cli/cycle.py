"""The daily cycle: learn what has verified, issue what is new, score, and watch the calibration.

A forecast is issued by a model that has learned what had verified at its start, whenever the
command runs. So a run that was killed, missed or repeated leaves what an undisturbed one leaves.
``docs/cycle.md`` says what is written when.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from hashlib import blake2b, file_digest

import numpy as np
import xarray as xr

from xrecal.fit.news import last_known
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.storage.paths import local_path

from .archive import Archive, Date, open_archive, sources
from .cycle_folder import MARK, MONITOR, SCORES, STATUS, Folder, stem_of
from .cycle_scores import digest_of, joined, means, n_new, scored
from .cycle_terms import Cycle, Done, text_of
from .fit_apply import for_files
from .inputs import Source
from .monitoring import count_alarms, watched
from .session import ALARMED, NOTHING_NEW, Result, Session

SILENCE = np.timedelta64(14, "D")
"""Without observations for longer a model is behind."""

OF_SCORES = "xrecal_scores"
"""Attribute of a monitor: hash of the scores that it is made of."""


def cycle_files(session: Session, cycle: Cycle) -> Result:
    """Do what is to be done; see the documentation of the command."""
    folder = Folder(local_path(cycle.output, name="the output"), cycle.model.path.suffix)
    digest = _digest(cycle.model)
    base = open_recalibrator(cycle.model.path)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        archive = open_archive(
            base,
            sources(cycle.forecasts, "forecasts"),
            sources(cycle.observations, "observations"),
            cycle.variable,
            cycle.observed_variable,
        )
        with folder.alone():
            turn = _Turn(session, cycle, folder, base, archive)
            turn.read_mark(digest)
            turn.go_back()
            turn.count_future()
            turn.issue()
            turn.score()
            turn.monitor()
            return turn.result()


def _digest(one: Source) -> str:
    """Hash of a model in a file; of a store of the sizes and dates of its files."""
    if one.path.is_dir():
        told = {k: v for k, v in one.fingerprint().items() if k != "path"}
        return blake2b(repr(told).encode(), digest_size=16).hexdigest()
    with one.path.open("rb") as stream:
        return file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()


class _Turn:
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
                f"no model of {_told(self.cycle.model_at)} or before is kept, those kept are "
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
                f"{_told(np.concatenate(latest).max())}, while it is {_told(now)}; they are not "
                "used: check their dates, or give --now",
                stacklevel=2,
            )

    def issue(self) -> None:
        """Learn and issue, start by start."""
        issued = self.folder.issued()
        there = set(issued)
        fit_knows = self._known_of(self.base)
        for start in self.archive.starts:
            stem = stem_of(start)
            if start > self.cycle.now or stem in there:
                continue
            parent = self._parent(start, fit_knows)
            if parent is None:
                if issued and stem > issued[0]:
                    self.done.too_late.append(stem)
                continue
            self._issue(start, parent)
            self.done.issued.append(stem)
            if issued and stem < issued[-1]:
                self.done.late.append(stem)
        for stems, text in (
            (self.done.late, "issued by the models of before them"),
            (self.done.too_late, "not issued, as all models that are kept know what came after"),
        ):
            if stems:
                warnings.warn(
                    f"{len(stems)} forecasts came late, {stems[0]} the first; they are {text}",
                    stacklevel=2,
                )

    def _known_of(self, model: Recalibrator) -> tuple[Date, Date] | None:
        """The newest start and the newest valid time that a model has learned from."""
        known = []
        for name, fitted in model.variables.items():
            newest = last_known(fitted)
            if newest is None:
                continue
            start, valid = newest
            one = self.archive.variables.get(name) or next(iter(self.archive.variables.values()))
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

    def _issue(self, start: Date, parent: str) -> None:
        """Make the model of a start and its forecast, unless they are there."""
        stem = stem_of(start)
        path = self.folder.model(stem)
        if parent != stem:
            model = self._learned(start, self.base if parent == "" else self._model(parent))
            if self.after is not None and parent != "" and parent <= self.after:
                self._mark(self.folder.read_json(MARK)["fit"], stem)
            self.folder.write(path, model.save)
        forecast = self._forecast(start)
        values = for_files(self.cycle.product.of(self._model(stem), forecast))
        (values,) = self.session.compute([values])
        values.attrs["xrecal_model"] = path.name
        self.folder.write_data(f"forecasts/{stem}.nc", values)
        self.done.has_written = True

    def _model(self, stem: str) -> Recalibrator:
        return open_recalibrator(self.folder.model(stem))

    def _forecast(self, start: Date) -> xr.Dataset:
        """The forecast of one start, in memory."""
        at = np.flatnonzero(self.archive.starts == start)
        forecast: xr.Dataset
        (forecast,) = self.session.compute([self.archive.forecasts.isel({self.archive.dim: at})])
        return forecast

    def _learned(self, start: Date, model: Recalibrator) -> Recalibrator:
        """A model with what had verified at a start."""
        dim = self.archive.dim
        fresh = np.zeros(self.archive.starts.size, bool)
        for name, one in self.archive.variables.items():
            news = one.news_at(start, model.variables.get(name, one.fitted))
            fresh |= news.cases
            self.done.n_learned += news.n_learned
            self.done.n_revised += news.n_revised
        if fresh.any():
            at = {dim: np.flatnonzero(fresh)}
            known = {name: one.known_at(start) for name, one in self.archive.variables.items()}
            (given,) = self.session.compute([self.archive.forecasts.isel(at)])
            model = model.update(given, self.archive.observations(known, at))
        self._warn_if_behind(start, model)
        return model

    def _warn_if_behind(self, start: Date, model: Recalibrator) -> None:
        """Warn where nothing of the last weeks was learned."""
        known = self._known_of(model)
        if known is not None and start - known[1] > SILENCE:
            newest = known[1]
            days = int((start - newest) / np.timedelta64(1, "D"))
            warnings.warn(
                f"the forecast of {_told(start)} is issued by a model that knows "
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
            "models": kept,
            **counts,
        }
        done.has_written |= self.folder.write_json(STATUS, status) or bool(old)
        alarmed = counts["alarms"] > 0 or counts["changes"] > before.get("changes", 0)
        scores = {name: means(told) for name, told in done.scores.items()}
        data = {
            "status": "complete" if done.has_written else "nothing new",
            "output": str(self.folder.path),
            "issued": done.issued,
            "late": done.late,
            "too_late": done.too_late,
            "learned": done.n_learned,
            "revised": done.n_revised,
            "of_the_future": done.n_future,
            "scored": done.n_scored,
            "unscored": done.n_unscored,
            "scores": scores,
            **counts,
            "model": str(self.folder.model(kept[-1])) if kept else None,
        }
        if not done.has_written:
            return Result(data, "nothing new", NOTHING_NEW)
        return Result(data, text_of(data), ALARMED if alarmed else 0)


def _told(date: Date) -> str:
    """A date in messages."""
    return str(date.astype("datetime64[s]"))
