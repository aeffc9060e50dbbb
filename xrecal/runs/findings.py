"""Alarms and changes of calibration as text: place, date, direction, size and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal.inputs.dims import text_of
from xrecal.inputs.identities import naming
from xrecal.inputs.leads import seconds_of, unit_of_leads
from xrecal.inputs.metadata import same_units, shown_units
from xrecal.inputs.roles import Roles
from xrecal.typing import FloatArray

from .outcome import shown

LOW, HIGH, NARROW, WIDE = "too low", "too high", "too narrow", "too wide"
OF_TEMPERATURES = {LOW: "too cold", HIGH: "too warm"}
TEMPERATURES = ("K", "degC", "degF")

OUTERMOST = 3.1
"""Limit of the absolute value of normal scores (standard normal quantiles at the PIT). The monitor
has the same limit: it treats all PIT values within 0.001 of 0 alike, and all within 0.001 of 1."""

PRIOR = 10
"""Number of imaginary calibrated cases that an estimate of the spread adds to the real cases."""

NEAR = 10
"""A change that begins at most this many cases after the last detection of an earlier change counts
as part of the earlier change."""

RECENT, FEWEST, CALM = 20, 10, 6.0
"""A finding is over if there are at least ``FEWEST`` later cases, and the evidence in the last
``RECENT`` of these cases (or all, if they are fewer) has a strength below ``CALM``."""

ADVICE = {
    "refit": "refit the model",
    "check observations": "check the observations there, as other places have no such fault",
    "nothing": "nothing to do, as later cases are calibrated",
}
ONE_PLACE = "check the observations, then refit the model"
"""Advice for a single place: no other place can show whether its observations are wrong."""


class Strength(NamedTuple):
    """Strength of the evidence that normal scores do not have a standard normal distribution."""

    bias: FloatArray
    """Twice the logarithm of the likelihood ratio for the mean of the scores."""
    spread: FloatArray
    """Twice the logarithm of the likelihood ratio for the standard deviation of the scores."""


@dataclass(frozen=True)
class Finding:
    """An alarm, or a change that was detected once or several times, at one place and lead."""

    kind: str
    place: int
    lead: int
    direction: str
    n: int
    first: int
    last: int
    """Positions of the first and the last case of the finding."""
    evidence: float
    action: str


def findings(
    scores: xr.Dataset,
    seen: xr.Dataset,
    names: Iterable[Hashable],
    dim: Hashable,
    before: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return alarms and changes of all variables; places with similar findings share an entry.

    The order of entries depends on four criteria, the most important first: action needed or
    not, new or reported before, alarm or change, strong or weak evidence.

    ``scores`` has the scores of a cycle, and ``seen`` the result of its monitor. ``before`` has
    the entries of the last run; entries with more findings than these are new.
    """
    entries = [entry for name in names for entry in _Watched.of(scores, seen, name, dim).entries()]
    _mark_new(entries, before)

    def order(one: dict[str, Any]) -> tuple[bool, bool, bool, float]:
        is_over = one["action"] == "nothing"
        return is_over, not one["new"], one["kind"] == "change", -one["evidence"]

    return sorted(entries, key=order)


def _mark_new(entries: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> None:
    """Add the field ``new`` to all entries, and the word to the texts of new entries.

    An entry that needs no action is never new. If the findings are those of the last run, its new
    entries stay new.
    """
    reported = {_facts(one): one.get("new", False) for one in before}
    is_same = {_facts(one) for one in entries} == reported.keys()
    found, known = _counts(entries), _counts(before)
    for one in entries:
        is_new = found[_kind(one)] > known[_kind(one)] and one["action"] != "nothing"
        one["new"] = reported[_facts(one)] if is_same else is_new
        if one["new"]:
            one["text"] = f"new {one['text']}"


def _facts(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return all fields of an entry that do not depend on earlier runs."""
    return tuple(sorted((name, v) for name, v in entry.items() if name not in ("new", "text")))


def _kind(entry: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(entry[name] for name in ("kind", "variable", "lead", "direction"))


def _counts(entries: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Count the findings of each kind, variable, lead and direction."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for one in entries:
        counts[_kind(one)] += one["n"]
    return counts


@dataclass(frozen=True)
class _Watched:
    """Scores and results of the monitor for one variable, as arrays (place, lead, case)."""

    name: str
    pit: xr.DataArray
    """PIT values over places, leads and cases."""
    lead: list[Hashable]
    dates: np.ndarray[Any, Any]
    scores: FloatArray
    """Normal scores of the PIT values, limited to ``OUTERMOST``."""
    errors: FloatArray | None
    """Median minus observation; None if an earlier version of xrecal wrote the scores."""
    units: str
    monitor: dict[str, np.ndarray[Any, Any]]
    begins: int
    """Position of the case at which the evidence last restarted."""
    limits: dict[str, float]

    @classmethod
    def of(cls, scores: xr.Dataset, seen: xr.Dataset, name: Hashable, dim: Hashable) -> _Watched:
        """Read the scores of a variable, and the results of its monitor."""
        from scipy.special import ndtri

        pit = scores[f"{name}_pit"]
        lead = [d for d in Roles(pit).leads if d in pit.dims][:1]
        places = [d for d in pit.dims if d not in (dim, *lead)]
        pit = pit.transpose(*places, *lead, dim)
        shape = (-1, pit.sizes[lead[0]] if lead else 1, pit.sizes[dim])

        def stacked(array: xr.DataArray) -> np.ndarray[Any, Any]:
            whole = array.broadcast_like(pit).transpose(*pit.dims)
            return whole.to_numpy().reshape(shape)

        index = scores.indexes[dim]
        names = ("e_value", "alarm", "change_statistic", "change", "since")
        monitor = {what: stacked(seen[f"{name}_{what}"]) for what in names}
        begun = index.get_indexer(monitor["since"].ravel())
        monitor["since"] = begun.reshape(monitor["since"].shape)
        observed, median = scores[f"{name}_observation"], scores.get(f"{name}_median")
        return cls(
            str(name), pit, lead, index.to_numpy(),
            np.clip(ndtri(stacked(pit)), -OUTERMOST, OUTERMOST),
            None if median is None else stacked(median) - stacked(observed),
            shown_units(scores[f"{name}_crps"].attrs), monitor,
            int(np.flatnonzero(seen["restarts"].to_numpy())[-1]),
            {"alarm": 1 / seen.attrs["alpha"], "change": float(seen.attrs["run_length"])},
        )  # fmt: skip

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield entries; findings of one kind, lead, direction and advice share one entry."""
        groups: dict[tuple[str, int, str, str], list[Finding]] = {}
        for one in self._with_actions(list(self._all())):
            groups.setdefault((one.kind, one.lead, one.direction, one.action), []).append(one)
        for group in groups.values():
            yield self._entry(group)

    def _all(self) -> Iterator[Finding]:
        """Yield each alarm and each change."""
        last_alarm = self.monitor["alarm"][..., -1].astype(bool)
        for place, lead in np.argwhere(last_alarm | self.monitor["change"].any(-1)):
            if last_alarm[place, lead]:
                yield self._alarm(place, lead)
            yield from self._changes(place, lead)

    def _alarm(self, place: int, lead: int) -> Finding:
        """Return the current alarm: it lasts from the restart to the peak of the evidence."""
        evidence = self.monitor["e_value"][place, lead]
        last = self.begins + int(np.argmax(evidence[self.begins :]))
        span = self.begins, last
        return self._found("alarm", place, lead, span, 1, float(evidence[last]))

    def _changes(self, place: int, lead: int) -> Iterator[Finding]:
        """Yield the changes; successive detections count as one change."""
        statistic, since = (
            self.monitor[what][place, lead] for what in ("change_statistic", "since")
        )
        runs: list[list[int]] = []
        for at in np.flatnonzero(self.monitor["change"][place, lead]).tolist():
            if runs and since[at] - runs[-1][-1] <= NEAR:
                runs[-1].append(at)
            else:
                runs.append([at])
        for run in runs:
            first = self._found("change", place, lead, (int(since[run[0]]), run[0]), 1, 0.0).first
            most = float(statistic[run].max())
            yield self._found("change", place, lead, (first, run[-1]), len(run), most, first)

    def _found(
        self,
        kind: str,
        place: int,
        lead: int,
        span: tuple[int, int],
        n: int,
        evidence: float,
        begun: int | None = None,
    ) -> Finding:
        """Return a finding in a span of cases, with its direction.

        Without ``begun``, the finding begins at its likeliest onset within the span. With
        ``begun``, it begins at the first case of the span.
        """
        first, last = span
        z = self.scores[place, lead]
        cases = np.flatnonzero(~np.isnan(z))
        now, later = cases[(cases >= first) & (cases <= last)], z[cases[cases > last]][-RECENT:]
        now = now[onset(z[now]) if begun is None else 0 :]
        is_over = later.size >= FEWEST and max(strength(later)) < CALM
        action = "nothing" if is_over else "refit"
        way = direction(z[now])
        return Finding(kind, place, lead, way, n, int(now[0]), last, evidence, action)

    def _with_actions(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """Yield findings with advice.

        If at most a quarter of the places have an error, the advice for a place with this error at
        all leads is to check its observations.
        """
        n_places = len(self.scores)
        has_cases = np.asarray(np.isfinite(self.scores).any(-1))
        where: dict[str, set[tuple[int, int]]] = {}
        for one in found:
            if one.action == "refit":
                where.setdefault(one.direction, set()).add((one.place, one.lead))
        for one in found:
            here = where.get(one.direction, set())
            leads = {(one.place, int(lead)) for lead in np.flatnonzero(has_cases[one.place])}
            n_here = len({place for place, lead in here if lead == one.lead})
            alone = 4 * n_here <= n_places and leads <= here
            doubtful = one.action == "refit" and alone
            yield replace(one, action="check observations") if doubtful else one

    def _entry(self, group: Sequence[Finding]) -> dict[str, Any]:
        """Return one entry for several findings, with the numbers of the strongest finding."""
        worst = max(group, key=lambda one: one.evidence)
        amount, units, how_much = self._amount(worst)
        places = len({one.place for one in group})
        entry = {
            "kind": worst.kind, "variable": self.name, "lead": self._lead(worst.lead),
            "direction": self._words(worst.direction), "n": sum(one.n for one in group),
            "places": places, "of_places": len(self.scores), "place": self._place(worst.place),
            "amount": amount, "units": units, "since": shown(self.dates[worst.first]),
            "last": shown(self.dates[worst.last]), "evidence": min(worst.evidence, 1e300),
            "limit": self.limits[worst.kind], "action": worst.action,
        }  # fmt: skip
        return entry | {"text": _text(entry, how_much)}

    def _amount(self, one: Finding) -> tuple[float, str, str]:
        """Return the size of the error: a number, its units, and both as text."""
        cases = slice(one.first, one.last + 1)
        z = self.scores[one.place, one.lead, cases]
        z = z[~np.isnan(z)]
        if one.direction in (NARROW, WIDE):
            ratio = float(np.sqrt(np.mean((z - z.mean()) ** 2)))
            return ratio, "1", f"errors spread {ratio:.2g} times as widely as forecast"
        if self.errors is not None:
            errors = self.errors[one.place, one.lead, cases]
            errors = errors[~np.isnan(errors)]
            if errors.size and (errors.mean() > 0) == (one.direction == HIGH):
                amount = float(abs(errors.mean()))
                return amount, self.units, f"by {amount:.2g} {self.units}".rstrip()
        amount = float(abs(z.mean()))
        return amount, "standard deviations", f"by {amount:.2g} standard deviations"

    def _words(self, direction: str) -> str:
        """Return words for a direction; temperatures are too cold or too warm."""
        is_one = any(same_units(self.units, unit) for unit in TEMPERATURES)
        return OF_TEMPERATURES.get(direction, direction) if is_one else direction

    def _lead(self, at: int) -> str:
        return lead_text(self.pit[self.lead[0]][at]) if self.lead else ""

    def _place(self, number: int) -> str:
        """Return the labels of a place as text."""
        dims = self.pit.dims[: -1 - len(self.lead)]
        at = np.unravel_index(number, [self.pit.sizes[d] for d in dims]) if dims else ()
        return ", ".join(_label(self.pit, d, int(i)) for d, i in zip(dims, at, strict=True))


def _label(array: xr.DataArray, dim: Hashable, at: int) -> str:
    """Return the name of a place along a dimension: its first text label, or all its numbers."""
    named = naming(array, dim)
    texts = {n: c for n, c in named.items() if c.dtype.kind in "OSUT"}
    chosen = dict([*texts.items()][:1]) or named
    labels = [
        f"{n} {value:g}" if isinstance(value := c[at].item(), int | float) else
        f"{n} {text_of(value).strip()}"
        for n, c in chosen.items()
    ]  # fmt: skip
    return " ".join(labels) or f"{dim} number {at}"


def lead_text(lead: xr.DataArray) -> str:
    """Return a lead with any unit as text."""
    seconds = seconds_of(lead)
    if seconds is None:
        return f"{lead.item():g} {unit_of_leads(lead) or ''}".rstrip()
    unit, length = ("day", 86400) if float(seconds) % 86400 == 0 else ("hour", 3600)
    number = f"{float(seconds) / length:g}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def strength(z: FloatArray) -> Strength:
    """Return the strength of the evidence that normal scores (n,) have a bias or wrong spread."""
    return Strength(*(one[0] for one in _of_ends(z)))


def onset(z: FloatArray) -> int:
    """Return the onset: from this position on, normal scores (n,) show the most evidence."""
    return int(np.argmax(np.maximum(*_of_ends(z))))


def _of_ends(z: FloatArray) -> Strength:
    """Return, for each case, the strength of the evidence from this case to the last case."""
    n = np.arange(z.size, 0, -1)
    total, squares = (np.cumsum(part[::-1])[::-1] for part in (z, z * z))
    mean = total / n
    variance = (np.maximum(squares - n * mean**2, 0) + PRIOR) / (n + PRIOR)
    return Strength(n * mean**2, n * (variance - 1 - np.log(variance)))


def direction(z: FloatArray) -> str:
    """Return the direction of the error of forecasts with normal scores (n,)."""
    found = strength(z)
    if found.bias >= found.spread:
        return LOW if z.mean() > 0 else HIGH
    return NARROW if z.std() > 1 else WIDE


def _text(entry: dict[str, Any], how_much: str) -> str:
    """Return the line of text of an entry."""
    several = entry["places"] > 1
    lead = f"lead {entry['lead']}" if entry["lead"] else ""
    where = [entry["variable"], "" if several else entry["place"], lead]
    since, last = (entry[name].removesuffix("T00:00:00") for name in ("since", "last"))
    number = "e-value" if entry["kind"] == "alarm" else "statistic"
    said = f"{how_much} since {since} ({number} {entry['evidence']:.3g}, limit {entry['limit']:g}"
    if entry["n"] > entry["places"]:
        said += f", detected {entry['n']} times, last {last}"
    at = "" if how_much.startswith("by ") else ":"
    if several:
        at = f" at {entry['places']} of {entry['of_places']} places, worst at {entry['place']}:"
    advice = ADVICE[entry["action"]]
    if entry["action"] == "refit" and entry["of_places"] == 1:
        advice = ONE_PLACE
    place = ", ".join(part for part in where if part)
    return f"{entry['kind']}: {place}: {entry['direction']}{at} {said}); {advice}"
