"""The command that lets a stored model learn from more cases."""

from __future__ import annotations

from typing import Any

from xrecal.chunks.texts import quoted
from xrecal.fit.news import news_of
from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.forms import read_forms
from xrecal.inputs.pairing import in_order, pair_cases, pair_variables
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.storage.encoding import to_plain
from xrecal.storage.storage import in_blocks
from xrecal.storage.stored import to_dataset

from .blocks import blocks_of, write_in_blocks
from .fit_apply import Output, blocks_of_model, fingerprints, forecasts_for
from .inputs import Pair, Source, observed_variables
from .session import Result, Session


def update_files(session: Session, one: Source, pair: Pair, output: Output) -> Result:
    """Update a model and write it."""
    inputs = one, pair.forecasts, pair.observations
    read = fingerprints(*inputs)
    chosen = pair.chosen
    blocks = blocks_of_model(open_recalibrator(one.path, chunks={}), chosen.chunks)
    model = open_recalibrator(one.path, chunks=blocks)
    hindcast = forecasts_for(model, pair.forecasts.open(blocks), chosen.variable)
    member_dim = explicit_member_dim(model, hindcast)
    forms = read_forms(hindcast, member_dim, name="hindcast")
    observed = observed_variables(pair.observations.open(blocks), chosen.observed_variable, forms)
    counts = _counts(model, hindcast, observed, member_dim)
    updated = model.update(hindcast, observed)
    state = in_blocks(to_plain(to_dataset(updated)), updated)
    request = {
        "command": "update",
        **read,
        "variable": chosen.variable,
        "chunks": {str(d): n for d, n in blocks.items()},
    }
    run = output.run(request, *inputs)
    text = ", ".join(
        f"{quoted(name)}: {told['learned']} observations learned, {told['revised']} revised"
        for name, told in counts.items()
    )
    if output.dry_run:
        run.is_complete(overwrite=output.overwrite, resume=output.resume)
        planned = {"status": "planned", "output": str(run.target), "variables": counts}
        return Result(planned, f"update -> {quoted(run.target)}: {text}")
    n = skipped = len(blocks_of(state))
    with run.alone():
        if not run.is_complete(overwrite=output.overwrite, resume=output.resume):
            run.make_way(overwrite=output.overwrite)
            n, skipped = write_in_blocks(state, run, session.compute)
    data = {"status": "complete", "output": str(run.target), "blocks": n, "blocks_skipped": skipped}
    return Result({**data, "variables": counts}, f"wrote {quoted(run.target)}: {text}")


def _counts(
    model: Recalibrator, hindcast: Any, observed: Any, member_dim: Any
) -> dict[str, dict[str, int]]:
    """Observations that are new to each variable, and those that differ from what it knows."""
    counts = {}
    first = next(iter(model.variables.values()))
    for name, (form, array) in pair_variables(
        hindcast, observed, member_dim, name="hindcast"
    ).items():
        fitted = model.variables.get(name, first)
        news = news_of(fitted, in_order(pair_cases(form, array, fitted.dim, name="hindcast")))
        counts[str(name)] = {"learned": news.n_learned, "revised": news.n_revised}
    return counts
