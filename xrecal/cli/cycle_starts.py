"""Starts that a daily cycle does not issue, and those that it issues late: why, and what to do."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from xrecal.model import Recalibrator

from .archive import Date
from .cycle_folder import stem_of
from .cycle_terms import Cycle, Done


def cases_of(model: Recalibrator, dim: Hashable) -> set[str]:
    """Names of the starts that a model was fitted to."""
    dates = [one.state.coords[f"calibration_{dim}"] for one in model.variables.values()]
    return {stem_of(date) for one in dates for date in np.unique(one.to_numpy())}


def warnings_of(done: Done, cycle: Cycle, newest: Date | None) -> Iterator[str]:
    """Warnings of starts; ``newest`` is the last valid time that the first fit knows."""
    if done.late:
        yield (
            f"{len(done.late)} forecasts came late, {done.late[0]} the first; they are issued by "
            "the models of before them"
        )
    if done.too_late:
        yield (
            f"{len(done.too_late)} forecasts came late, {_range(done.too_late)}; they are not "
            "issued, as all models that are kept know what came after"
            + (f": {cycle.model.path} knows observations up to {told(newest)}" if newest else "")
            + "; leave them out of --forecasts or, to issue them, fit to what was observed up to "
            "them, and take another --output"
        )
    if done.early:
        yield (
            f"{len(done.early)} forecasts are of the future, {_range(done.early)}, while it is "
            f"{told(cycle.now)}; they are not issued before their time: check their dates, or "
            "give --now"
        )
    if done.empty:
        yield (
            f"{len(done.empty)} forecasts are empty, {_range(done.empty)}; they are not issued, as "
            "all their members are missing; hand them over again when members are there"
        )
    if done.missing:
        yield (
            f"{len(done.missing)} forecasts are issued without a value, {_range(done.missing)}; "
            "the model knows too few cases of every place: fit it to more"
        )
    for message in dict.fromkeys(done.refused.values()):
        stems = [stem for stem, own in done.refused.items() if own == message]
        yield f"{len(stems)} forecasts are refused, {_range(stems)}: {message}"


def _range(stems: list[str]) -> str:
    """The first and the last of some starts."""
    return stems[0] if len(stems) == 1 else f"{stems[0]} the first, {stems[-1]} the last"


def told(date: Date) -> str:
    """A date in messages."""
    return str(date.astype("datetime64[s]"))
