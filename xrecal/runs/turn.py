"""One run of the daily cycle; the caller has locked the folder of the cycle.

The model that issues the forecast of a start has learned all cases that had verified at that start,
and no later cases. This does not depend on the time of the run. So a cycle with killed, missed or
repeated runs leads to the same files as an undisturbed cycle.
``docs/cycle.md`` lists the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed, text_of
from xrecal.chunks.blockwise import TaskError
from xrecal.chunks.warnings import warn
from xrecal.fit.news import last_known
from xrecal.inputs.missing import customary
from xrecal.model import Recalibrator, open_recalibrator

from .archive import Archive
from .cycle_folder import MAIL, MARK, MISSING, MONITOR, SCORES, STATUS, Folder
from .cycle_scores import digest_of, joined, new_ones, scored
from .files import for_files
from .findings import findings
from .issued import Product
from .outcome import N_STARTS, Date, Outcome, shown, start_of, start_warnings, stem_of
from .shortfalls import bytes_of, missing_in, missing_starts, require_room
from .watching import Watch, count_alarms, watched

SILENCE = np.timedelta64(14, "D")
"""Longest time without observations that causes no warning."""

OF_SCORES = "xrecal_scores"
"""Attribute of the monitor's file: hash of the scores and settings that the monitor used."""


@dataclass(frozen=True)
class Settings:
    """Settings of a cycle."""

    product: Product
    keep: int
    """Number of models to keep."""
    watch: Watch
    compute: Callable[[list[Any]], Sequence[Any]]
    """Function that computes a list of Dask collections."""


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Context in which a library's RuntimeError for a damaged file becomes a ValueError."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, TaskError):
            raise
        raise ValueError(
            f"some of the {name} cannot be read ({error}): a file is damaged; hand over whole files"
        ) from error


class Turn:
    """One run of the daily cycle; the caller has locked the folder of the cycle."""

    def __init__(
        self, settings: Settings, folder: Folder, base: Recalibrator, archive: Archive, now: Date
    ) -> None:
        self.settings, self.folder, self.base, self.archive = settings, folder, base, archive
        self.now, self.done = now, Outcome(output=str(folder.path), starts=archive.starts.size)
        self.after: str | None = None
        self.missing: list[str] = []
        """Starts issued without a value at any place."""

    def read_mark(self, digest: str) -> None:
        """Read the last start whose model comes from an earlier fit.

        If the hash ``digest`` shows that the fit is new, first write the hash to the folder.
        """
        mark = self.folder.read_json(MARK)
        if mark.get("fit") == digest:
            self.after = mark["after"]
            return
        models = self.folder.models()
        self._mark(digest, models[-1] if models else None)

    def _mark(self, digest: str, after: str | None) -> None:
        """Record the hash of the fit, and the last start whose model comes from an earlier fit."""
        self.after = after
        self.folder.write_json(MARK, {"fit": digest, "after": after})
        self.done.has_written = True

    def go_back(self, to: Date) -> None:
        """Remove the models of starts after a date."""
        date, models = stem_of(to), self.folder.models()
        kept = [stem for stem in models if stem <= date]
        if not kept:
            kept_now = f"models from {models[0]} to {models[-1]}" if models else "no model yet"
            raise ValueError(
                Advice(
                    f"no model of {shown(to)} or before is kept (the folder has {kept_now}); "
                    "name a later date, or begin again in another ",
                    Typed("folder"),
                )
            )
        if self.after is not None and kept[-1] <= self.after:
            self._mark(self.folder.read_json(MARK)["fit"], None)
        dropped = models[len(kept) :]
        self.folder.drop_models(dropped[::-1])
        self.done.removed = [self.folder.model(stem).name for stem in dropped]
        self.done.has_written |= bool(dropped)

    def count_future(self) -> None:
        """Count observations with future valid times, and warn about them."""
        now, latest = self.now, []
        for one in self.archive.variables.values():
            ahead = one.observed.notnull() & (one.valid > now)
            self.done.of_the_future += int(ahead.sum())
            of_some = ahead.any([d for d in ahead.dims if d not in one.valid.dims])
            latest += [one.valid.to_numpy()[of_some.transpose(*one.valid.dims).to_numpy()]]
        if self.done.of_the_future:
            warn(
                Advice(
                    f"{self.done.of_the_future} observations have future dates: the latest date is "
                    f"{shown(np.concatenate(latest).max())}, and now is {shown(now)}. xrecal does "
                    "not use them: check their dates and ",
                    Typed("now"),
                )
            )

    def count_doubtful(self) -> None:
        """Count observed numbers such as -9999, which often mark missing values.

        The model learns from them, because a flow can be 9999 m³/s.
        """
        for name, one in self.archive.variables.items():
            held = customary(one.observed.to_numpy())
            if held:
                self.done.doubtful[str(name)] = {f"{v:.7g}": n for v, n in held.items()}

    def require_room(self) -> None:
        """Raise OSError unless the disk has room for the files of this run."""
        issued, models = self.folder.issued(), self.folder.models()
        n = sum(stem_of(start) not in issued for start in self.archive.starts if start <= self.now)
        each = sum(fit.state.nbytes for fit in self.base.variables.values())
        if models:
            each = bytes_of(self.folder.model(models[-1]))
        if issued:
            each += bytes_of(self.folder.path / "forecasts" / f"{issued[-1]}.nc")
        anew = sum(bytes_of(self.folder.path / name) for name in (SCORES, MONITOR))
        require_room(self.folder.path, n, each, anew)

    def issue(self, named: str, again: bool) -> None:
        """Learn cases and issue forecasts, start by start, and record the outcome of each start.

        ``named`` is the name of the first fit in messages. ``again`` is True to issue again the
        starts that an earlier run has issued.
        """
        issued, models, done = self.folder.issued(), self.folder.models(), self.done
        fit_knows = self._known_of(self.base)
        for start in self.archive.starts:
            stem = stem_of(start)
            if stem in issued and again and stem in models:
                self._try_to_issue(start, stem, done.issued_anew)
            elif stem in issued:
                done.issued_before += 1
            elif start > self.now:
                done.early.append(stem)
            elif (parent := self._parent(start, fit_knows)) is None:
                done.too_late.append(stem)
            elif self._try_to_issue(start, parent, done.issued) and issued and stem < issued[-1]:
                done.late.append(stem)
        dates = [v.state[f"calibration_{self.archive.dim}"] for v in self.base.variables.values()]
        cases = {stem_of(date) for one in dates for date in np.unique(one.to_numpy())}
        done.part_from_hindcast(cases, self.folder.issued())
        if again and done.issued_before:
            warn(
                Advice(
                    f"starts not issued again: {done.issued_before}, as ",
                    Typed("keep", self.settings.keep),
                    " has removed the models that issued them",
                )
            )
        newest = None if fit_knows is None else fit_knows[1]
        for text in start_warnings(done, self.now, named, newest, self.missing):
            warn(text)

    def _try_to_issue(self, start: Date, parent: str, issued: list[str]) -> bool:
        """Issue a start, or record the error if this fails; return whether the start is issued."""
        stem = stem_of(start)
        try:
            is_issued = self._issue(start, parent)
        except (ValueError, TypeError, KeyError, TaskError) as error:
            self.done.refused[stem] = text_of(error)
            return False
        (issued if is_issued else self.done.empty).append(stem)
        return is_issued

    def _known_of(self, model: Recalibrator) -> tuple[Date, Date] | None:
        """Return the newest start and the newest valid time among the cases of a model."""
        known = []
        for name, fitted in model.variables.items():
            one = self.archive.variables.get(name) or next(iter(self.archive.variables.values()))
            newest = last_known(fitted, (one.valid - one.starts).isel({fitted.dim: 0}, drop=True))
            if newest is None:
                continue
            start, valid = newest
            if fitted.leads is None:  # only the forecasts have the single lead
                valid = start + np.max(one.valid.to_numpy() - one.starts.to_numpy())
            known.append((start, valid))
        return (max(s for s, _ in known), max(v for _, v in known)) if known else None

    def _parent(self, start: Date, fit_knows: tuple[Date, Date] | None) -> str | None:
        """Return the name of the newest model that knows no case later than a start.

        Return "" for the first fit, and None if each model knows later cases.
        """
        stem, models = stem_of(start), self.folder.models()
        before = [one for one in models if one < stem]
        own = [one for one in before if self.after is None or one > self.after]
        if stem in models or own:
            return stem if stem in models else own[-1]
        if fit_knows is None or (fit_knows[0] < start and fit_knows[1] <= start):
            return ""
        return before[-1] if before else None

    def _issue(self, start: Date, parent: str) -> bool:
        """Make the forecast of a start; if the start has no model yet, make the model first.

        If all members are missing, store no forecast and return False.
        """
        stem, forecast = stem_of(start), self._forecast(start)
        path = self.folder.model(stem)
        model = self.base if parent == "" else self._model(parent)
        if parent != stem:
            model = self._learned(start, model)
            if self.after is not None and parent != "" and parent <= self.after:
                self._mark(self.folder.read_json(MARK)["fit"], stem)
            self.folder.write(path, model.save)
        if not model.is_computed:
            model = self._model(stem)
        values = for_files(self.settings.product.of(model, forecast, self.archive.covariates))
        (values,) = self.settings.compute([values])
        fits = model.variables
        if all(bool(values[name].isnull().all()) for name in self.archive.variables):
            has_fit = any(bool((fit.state["status"] == 0).any()) for fit in fits.values())
            if has_fit or all(one.isnull().all() for one in forecast.values()):
                return False
            self.missing.append(stem)
        values.attrs["xrecal_model"] = path.name
        if text := missing_in(values, forecast, self.archive.variables, fits):
            values.attrs[MISSING] = text
        self.folder.write_data(f"forecasts/{stem}.nc", values)
        self.done.has_written = True
        return True

    def _model(self, stem: str) -> Recalibrator:
        return open_recalibrator(self.folder.model(stem))

    def _forecast(self, start: Date) -> xr.Dataset:
        """Read the forecast of one start into memory."""
        at = np.flatnonzero(self.archive.starts == start)
        return self._read({self.archive.dim: at})

    def _read(self, at: Mapping[Hashable, Any]) -> xr.Dataset:
        """Read some of the forecasts into memory."""
        read: xr.Dataset
        with readable("forecasts"):
            (read,) = self.settings.compute([self.archive.forecasts.isel(at)])
        return read

    def _learned(self, start: Date, model: Recalibrator) -> Recalibrator:
        """Update a model with the cases that had verified at a start."""
        dim = self.archive.dim
        fresh = np.zeros(self.archive.starts.size, bool)
        for name, one in self.archive.variables.items():
            with readable("forecasts"):
                news = one.news_at(start, model.variables.get(name, one.fitted))
            fresh |= news.cases
            self.done.learned += news.n_learned
            self.done.revised += news.n_revised
        if fresh.any():
            at = {dim: np.flatnonzero(fresh)}
            known = {name: one.known_at(start) for name, one in self.archive.variables.items()}
            observed, covariates = self.archive.observations(known, at), self.archive.covariates
            model = model.update(self._read(at), observed, covariates=covariates)
        self._warn_if_behind(start, model)
        return model

    def _warn_if_behind(self, start: Date, model: Recalibrator) -> None:
        """Warn if a model knows no observation of the two weeks before a start."""
        known = self._known_of(model)
        if known is not None and start - known[1] > SILENCE:
            newest = known[1]
            days = int((start - newest) / np.timedelta64(1, "D"))
            warn(
                f"the model that issues the forecast of {shown(start)} knows no observation of "
                f"the {days} days before; give the observations of these days, and the model "
                "learns from them"
            )

    def score(self) -> None:
        """Score issued forecasts that have verified."""
        old = self.folder.read_data(SCORES)
        models, issued = set(self.folder.models()), set(self.folder.issued())
        pieces, dim = [], self.archive.dim
        known = {n: one.until(self.now) for n, one in self.archive.variables.items()}
        for start in self.archive.starts:
            stem = stem_of(start)
            if stem not in issued:
                continue
            here = {n: array.sel({dim: [start]}) for n, array in known.items()}
            fresh = {n: new_ones(old, n, array, dim) for n, array in here.items()}
            n_fresh = sum(int(one.sum()) for one in fresh.values())
            if not n_fresh:
                continue
            if stem not in models:
                self.done.unscored += n_fresh
                continue
            self.done.scored += n_fresh
            pieces.append(piece := self._scored(start, known))
            for name, one in fresh.items():
                self.done.add_scores(name, piece.where(one))
        if self.done.unscored:
            warn(
                Advice(
                    f"{self.done.unscored} forecasts have verified but get no score, as ",
                    Typed("model_at"),
                    " or ",
                    Typed("keep", self.settings.keep),
                    " has removed the models that issued them; keep at least as many models as "
                    "there are starts within the longest lead",
                )
            )
        if not pieces:
            return
        self.folder.write_data(SCORES, joined(old, pieces, dim))
        self.done.has_written = True

    def _scored(self, start: Date, known: Mapping[Hashable, xr.DataArray]) -> xr.Dataset:
        """Return scores of the forecast of one start, before and after recalibration."""
        at = {self.archive.dim: np.flatnonzero(self.archive.starts == start)}
        observed = self.archive.observations(known, at)
        here = {name: array.isel(at) for name, array in known.items()}
        # Each start has its own random numbers for PIT values within jumps of the CDF.
        seed = int(start.astype("datetime64[s]").astype(np.int64))
        model, forecast = self._model(stem_of(start)), self._forecast(start)
        valid = {name: self.archive.variables[name].valid.isel(at) for name in here}
        covariates = self.archive.covariates
        return scored(model, forecast, observed, here, valid, seed, covariates)

    def monitor(self) -> None:
        """Monitor the calibration of all verified forecasts."""
        scores = self.folder.read_data(SCORES)
        if scores is None:
            return
        watch = self.settings.watch
        digest = digest_of(scores, repr(watch))
        old = self.folder.read_data(MONITOR)
        if old is not None and old.attrs.get(OF_SCORES) == digest:
            return
        names = list(self.archive.variables)
        seen = watched(scores, names, self.archive.dim, watch)
        self.folder.write_data(MONITOR, for_files(seen).assign_attrs({OF_SCORES: digest}))
        self.done.has_written = True

    def _explain(self) -> dict[str, int]:
        """Record mean scores and findings; return the numbers of alarms and of changes."""
        scores, seen = (self.folder.read_data(name) for name in (SCORES, MONITOR))
        if scores is None or seen is None:
            return {"alarms": 0, "changes": 0}
        names = list(self.archive.variables)
        for name in names:
            self.done.add_all(name, scores)
        before = self.folder.read_json(STATUS).get("findings", [])
        self.done.findings = findings(scores, seen, names, self.archive.dim, before)
        return count_alarms(seen)

    def result(self) -> Outcome:
        """Remove old models, write the status, and return the outcome."""
        done, models = self.done, self.folder.models()
        old = models[: -self.settings.keep]
        self.folder.drop_models(old)
        kept, issued = models[len(old) :], self.folder.issued()
        counts = self._explain()
        done.alarms, done.changes = counts["alarms"], counts["changes"]
        last = issued[-N_STARTS:]
        done.missing = {stem: text for stem in last if (text := self.folder.missing_in(stem))}
        starts = [start_of(stem) for stem in last]
        done.missing_starts = missing_starts(starts, self.now)[-N_STARTS:]
        done.note()
        done.has_new_change = done.changes > self.folder.read_json(STATUS).get("changes", 0)
        status = {
            "last_issued": issued[-1] if issued else None,
            "n_issued": len(issued),
            **done.not_issued,
            "missing": done.missing,
            "missing_starts": done.missing_starts,
            "models": kept,
            "scores": {name: one["in_all"] for name, one in done.scores.items()},
            **counts,
            "findings": done.findings,
        }
        if not (self.folder.path / MAIL).exists() or self.folder.read_json(STATUS) != status:
            self.folder.write_text(MAIL, done.mail(issued))
            done.has_written = True
        done.has_written |= self.folder.write_json(STATUS, status) or bool(old)
        done.model = str(self.folder.model(kept[-1])) if kept else None
        due = self.archive.starts[self.archive.starts <= self.now]
        done.end(stem_of(due[-1]) if due.size else "")
        return done
