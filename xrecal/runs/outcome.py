"""Outcome of a run of the daily cycle: its counts, and its warnings about starts."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.inputs.metadata import shown_units

Date = np.datetime64

N_STARTS = 30
"""Number of latest starts for which the status lists missing parts."""


def stem_of(start: Date) -> str:
    """Return the name of a start in file names, such as 20261123T060000."""
    text = np.datetime_as_string(start.astype("datetime64[us]"), unit="us")
    whole, _, fraction = text.replace("-", "").replace(":", "").partition(".")
    return whole + (f".{fraction}" if fraction.strip("0") else "")


def start_of(stem: str) -> Date:
    """Return the date of a start from its name in file names."""
    day, time = stem.split("T")
    date = f"{day[:-4]}-{day[-4:-2]}-{day[-2:]}T{time[:2]}:{time[2:4]}:{time[4:]}"
    return np.datetime64(date, "us")


def shown(date: Date) -> str:
    """Return a date as text for messages."""
    return str(date.astype("datetime64[s]"))


@dataclass
class Outcome:
    """Outcome of a run of :class:`xrecal.Cycle`.

    Attributes
    ----------
    status : str
        "complete", "nothing new", or "incomplete" with an ``error``.
    output : str
        Folder of the cycle.
    starts : int
        Number of starts in the given forecasts. A start counts as issued if its forecast is issued.
        Each start counts in one of the fields from ``issued`` to ``in_hindcast``. Only starts in
        ``late`` count twice: they are also in ``issued``.
    issued : list of str
        Starts with a new forecast, such as 20261123T060000.
    late : list of str
        Starts in ``issued`` that were issued after later starts.
    issued_anew : list of str
        Starts that an earlier run has issued and that this run has issued again (``reissue``).
    issued_before : int
        Number of starts that an earlier run has issued and this run has not issued again.
    too_late, early, empty : list of str
        Starts that are not issued. The reasons are, in this order: all kept models know later
        cases, the start is in the future, all members are missing.
    refused : dict from str to str
        Starts that are not issued because of an error, with the message of the error.
    in_hindcast : int
        Number of starts that are not issued because they are cases of the first fit, and are
        earlier than all issued starts.
    learned, revised : int
        Number of observations that were new to the model, and number of observations that replaced
        an earlier value.
    of_the_future : int
        Number of observations with a date in the future.
    doubtful : dict
        For each variable, observed numbers that are far from all others and often mark missing
        values, such as -9999, each with the number of forecasts that it verifies.
    scored, unscored : int
        Number of verified forecasts that this run has scored, and number of verified forecasts that
        it could not score because their models are removed. The numbers count each place and lead.
    scores : dict
        For each variable, the number ``n`` of forecasts that this run has scored, and their mean
        CRPS. ``in_all`` has the mean CRPS of all forecasts scored so far.
    alarms, changes : int
        Number of places and leads with an alarm, and number of changes of calibration.
    findings : list of dict
        Alarms and changes, each with variable, lead, place, direction, amount, date of the
        beginning, evidence and advice; ``new`` is true if it needs action and the run before did
        not report it. Places with similar findings at one lead share an entry, which has the
        numbers of the worst place.
    missing : dict from str to str
        Recent starts with incomplete forecasts, each with a text on missing leads or members.
    missing_starts : list of str
        Recent starts without a forecast. The usual time between starts shows when starts are due.
    removed : list of str
        Names of models that the run has removed because of ``model_at``.
    notes : list of str
        Lines of text on findings and on missing inputs.
    model : str, optional
        Path of the newest model.
    """

    status: str = "complete"
    output: str = ""
    starts: int = 0
    issued: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    issued_anew: list[str] = field(default_factory=list)
    issued_before: int = 0
    too_late: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    in_hindcast: int = 0
    learned: int = 0
    revised: int = 0
    of_the_future: int = 0
    doubtful: dict[str, dict[str, int]] = field(default_factory=dict)
    scored: int = 0
    unscored: int = 0
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    alarms: int = 0
    changes: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    missing_starts: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    model: str | None = None
    error: str | None = None
    has_new_change: bool = False
    """True if there is a change of calibration that no earlier run has reported."""
    has_written: bool = False
    """True if the run has changed a file in the folder."""

    @property
    def not_issued(self) -> dict[str, Any]:
        """Starts without a forecast, by reason; for ``in_hindcast``, the number of these starts."""
        names = ("too_late", "early", "empty", "refused", "in_hindcast")
        return {name: getattr(self, name) for name in names}

    def part_from_hindcast(self, cases: Collection[str], issued: Sequence[str]) -> None:
        """Move starts that are cases of the first fit from ``too_late`` to ``in_hindcast``.

        Starts after the first issued start stay in ``too_late``.
        """
        first = issued[0] if issued else ""
        past = [stem for stem in self.too_late if stem < first and stem in cases]
        self.in_hindcast = len(past)
        self.too_late = [stem for stem in self.too_late if stem not in past]

    def note(self) -> None:
        """Write the notes: texts on findings, missing parts and missing starts."""
        self.notes = [one["text"] for one in self.findings]
        for name, held in self.doubtful.items():
            told = ", ".join(f"{value} at {count} forecasts" for value, count in held.items())
            self.notes.append(
                f"{name}: observations hold {told}, far from all other values, and the model "
                "learns from them; if they mark missing values, replace them by NaN in the file, "
                "and go back to an earlier model (--model-at)"
            )
        for text in dict.fromkeys(self.missing.values()):
            stems = [stem for stem, own in self.missing.items() if own == text]
            self.notes.append(f"{_counted('start', stems)}: {text}")
        if stems := self.missing_starts:
            counted = _counted("start", stems)
            if len(stems) == N_STARTS:
                counted = (
                    f"the latest {counted}, and perhaps none for earlier starts; to repeat a past "
                    "morning, set its time (--now)"
                )
            self.notes.append(f"no forecast for {counted}")

    def add_scores(self, name: Hashable, piece: xr.Dataset) -> None:
        """Add the scores of a start to the sums of a variable."""
        sums = self._sums(name, piece)
        known = piece[f"{name}_crps"].notnull()
        sums["n"] += int(known.sum())
        for what in ("crps", "crps_raw"):
            sums[what] += float(piece[f"{name}_{what}"].where(known).sum())

    def _sums(self, name: Hashable, scores: xr.Dataset) -> dict[str, Any]:
        units = shown_units(scores[f"{name}_crps"].attrs)
        none = {"crps": 0.0, "crps_raw": 0.0, "units": units, "n": 0}
        return self.scores.setdefault(str(name), none)

    def add_all(self, name: Hashable, scores: xr.Dataset) -> None:
        """Add the means of all scores of a variable to the field ``scores``."""
        known = scores[f"{name}_crps"].notnull()
        means = self._sums(name, scores)["in_all"] = {"n": int(known.sum())}
        for what in ("crps", "crps_raw"):
            mean = float(scores[f"{name}_{what}"].where(known).mean(dtype=np.float64))
            means[what] = mean if np.isfinite(mean) else None

    def mail(self, issued: Sequence[str]) -> str:
        """Return the status as text."""
        last = f"last start issued: {issued[-1]}; " if issued else ""
        lines = [f"{last}{len(issued)} starts in all"]
        for name, one in self.scores.items():
            means = one["in_all"]
            if means["crps"] is not None:
                lines.append(f"{name}: {means_text(means, one['units'])}")
        counts = f"alarms: {self.alarms}, changes of calibration: {self.changes}"
        return "\n".join([*lines, counts, *self.notes])

    def end(self, newest: str) -> None:
        """Compute the mean scores, and set the status and the error.

        ``newest`` is the last start that is not in the future.
        """
        for sums in self.scores.values():
            for what in ("crps", "crps_raw"):
                mean = sums[what] / sums["n"] if sums["n"] else np.nan
                sums[what] = mean if np.isfinite(mean) else None
        self.status = "complete" if self.has_written else "nothing new"
        if self.refused:
            self.error = f"not issued: {', '.join(self.refused)}; the warning gives the reason"
        elif newest in (*self.too_late, *self.empty):
            self.error = f"the newest start, {newest}, is not issued; the warning gives the reason"
        if self.error is not None:
            self.status = "incomplete"


def means_text(means: Mapping[str, Any], units: str) -> str:
    """Return mean scores as text."""
    return f"CRPS {means['crps']:.4g} {units}, raw {means['crps_raw']:.4g}, {means['n']} cases"


def start_warnings(
    done: Outcome, now: Date, model: str, newest: Date | None, missing: Sequence[str]
) -> Iterator[str]:
    """Yield warnings about starts that are late, not issued, or issued without values.

    ``model`` is the name of the first fit, and ``newest`` the last valid time that this fit knows.
    ``missing`` are the starts issued without a value at any place.
    """
    if done.late:
        yield (
            f"{_counted('forecast', done.late)} came late; a late forecast comes from a model "
            "without cases from after its start"
        )
    if done.too_late:
        knows = f": {model} knows observations up to {shown(newest)}" if newest else ""
        yield Advice(
            f"{_counted('forecast', done.too_late)} came too late to be issued, as all kept "
            f"models know later observations{knows}; leave late forecasts out of ",
            Typed("forecasts"),
            " or, to issue them, fit to the observations up to their starts, and take another ",
            Typed("folder"),
        )
    if done.early:
        yield Advice(
            f"{_counted('forecast', done.early)} not issued yet, with a start in the future (now "
            f"is {shown(now)}); check start dates and ",
            Typed("now"),
        )
    if done.empty:
        yield (
            f"{_counted('forecast', done.empty)} not issued, as all members are missing; give "
            "such forecasts again once members are available"
        )
    if missing:
        yield (
            f"{_counted('forecast', missing)} issued without a value; the model knows too few "
            "cases of every place: fit the model to more cases"
        )
    for message in dict.fromkeys(done.refused.values()):
        stems = [stem for stem, own in done.refused.items() if own == message]
        yield Advice(f"{_counted('forecast', stems)} refused: ", message)


def _counted(noun: str, stems: Sequence[str]) -> str:
    """Return as text how many starts or forecasts there are, with the first and the last start."""
    if len(stems) == 1:
        return f"1 {noun} ({stems[0]})"
    return f"{len(stems)} {noun}s ({stems[0]} the first, {stems[-1]} the last)"
