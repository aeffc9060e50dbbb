"""The commands: each names its options, and returns the work that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from xrecal.chunks.texts import quoted

from . import cycle as cycling_
from . import evidence, fit_apply, monitoring, reading, updating
from . import scoring as scoring_
from . import warm as warming
from .cycle_terms import Cycle
from .fit_apply import Output, Product
from .inputs import Pair, Selection, source
from .monitoring import Watch
from .options import (
    Work,
    computing,
    cycling,
    dry,
    learning,
    roles,
    scoring,
    shared,
    splitting,
    watching,
    writing,
)
from .typed_methods import MethodType, TypedMethod

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Commands(click.Group):
    """The commands; texts that a wrong command line has are quoted in the message."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if type(error) is not click.UsageError:  # its own kinds quote what was typed
                raise
            raise click.UsageError(quoted(error.message), error.ctx) from error


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(package_name="xrecal")
def xrecal() -> None:
    """Recalibrate ensemble forecasts in netCDF files and Zarr stores.

    Exit codes: 0 done, 2 wrong command line, 3 inputs or request refused, 4 scheduler not
    reachable or without workers, 5 computing failed, 129 hung up, 130 interrupted, 143 ended
    (--resume goes on after these); of cycle and monitor 10 done with alarms, 11 nothing new.
    """


@xrecal.command()
@click.argument("hindcast")
@click.argument("observations", metavar="OBS")
@click.argument("model")
@click.option(
    "--method",
    type=MethodType(),
    default="ckme",
    show_default=True,
    help='How: a name, or as in Python, such as "EMOS()".',
)
@learning
@roles
@writing
@shared
def fit(
    hindcast: str,
    observations: str,
    model: str,
    method: TypedMethod,
    settings: list[tuple[str, str]],
    resume: bool,
    overwrite: bool,
    force: bool,
    dry_run: bool,
    **selection: Any,
) -> Work:
    """Learn from HINDCAST and what verified, OBS, and write MODEL (.zarr or .nc)."""
    learned = _learned(selection)
    return lambda session: fit_apply.fit_files(
        session,
        _pair("hindcast", hindcast, observations, selection),
        _output(model, resume, overwrite, force, dry_run),
        method.method(settings),
        learned,
    )


@xrecal.command()
@click.argument("model")
@click.argument("forecast")
@click.argument("output", metavar="OUT")
@click.option(
    "--quantiles",
    metavar="Q,...",
    callback=reading.quantile_levels,
    help="Write these quantiles, such as 0.1,0.5,0.9.",
)
@click.option(
    "--members",
    metavar="N",
    type=click.IntRange(min=1),
    help="Write N equally likely members: the quantiles at (i - 1/2)/N, in an order of their own.",
)
@click.option(
    "--exceedance",
    metavar="V,...",
    callback=reading.numbers,
    help="Write the probabilities of more than these values, such as 0,5.",
)
@click.option(
    "--categories",
    metavar="Q,...",
    callback=reading.quantile_levels,
    help="Write the probabilities between these quantiles of the climatology; terciles: 1/3,2/3.",
)
@writing
@shared
def apply(
    model: str,
    forecast: str,
    output: str,
    quantiles: list[float] | None,
    members: int | None,
    exceedance: list[float] | None,
    categories: list[float] | None,
    resume: bool,
    overwrite: bool,
    force: bool,
    dry_run: bool,
    **selection: Any,
) -> Work:
    """Recalibrate FORECAST with MODEL and write OUT (.zarr or .nc)."""
    product = Product(quantiles, members, exceedance, categories)
    if sum(asked is not None for asked in product) != 1:
        raise click.UsageError(
            "say what to write: one of --quantiles 0.1,0.5,0.9, --members 50, --exceedance 0,5 and "
            "--categories 1/3,2/3"
        )
    return lambda session: fit_apply.apply_files(
        session,
        model,
        source(forecast, "forecast"),
        _output(output, resume, overwrite, force, dry_run),
        Selection(**selection),
        product,
    )


@xrecal.command()
@click.argument("forecast")
@click.argument("observations", metavar="OBS")
@scoring
@roles
@shared
def score(forecast: str, observations: str, **given: Any) -> Work:
    """Print the mean CRPS of FORECAST, in any form, against OBS; with options also other evidence.

    Each score is that of the function of this name in Python, over all cases and locations; roc,
    economic_value, anomaly_correlation and generalised_discrimination are means over the locations
    of that of each. --summary tests each location.
    """
    names = ("scores", "threshold", "summary", "report", "raw")
    wanted = scoring_.Wanted(**{name: given.pop(name) for name in names})
    wanted.require_thresholds()
    return lambda session: scoring_.score_files(
        session, _pair("forecast", forecast, observations, given), wanted
    )


@xrecal.command()
@click.argument("hindcast")
@click.argument("observations", metavar="OBS")
@click.option(
    "--method",
    "methods",
    type=MethodType(),
    multiple=True,
    help="To compare; may be repeated. EMOS, CKME and LinearPool if left out.",
)
@splitting
@dry
@learning
@roles
@shared
def compare(
    hindcast: str,
    observations: str,
    methods: tuple[TypedMethod, ...],
    settings: list[tuple[str, str]],
    forecast: str | None,
    dry_run: bool,
    **given: Any,
) -> Work:
    """Print scores of methods on cases of HINDCAST that they have not seen, or on --forecast."""
    if settings and len(methods) != 1:
        raise click.UsageError("--option belongs to one method; give one --method with it")
    options = {name: given.pop(name) for name in evidence.SPLITS} | _learned(given)
    return lambda session: evidence.compare_files(
        session,
        _pair("hindcast", hindcast, observations, given),
        evidence.Asked(
            [method.method(settings) for method in methods] or None,
            options,
            None if forecast is None else source(forecast, "forecast"),
            dry_run,
        ),
    )


@xrecal.command()
@click.argument("model")
@click.argument("hindcast")
@click.argument("observations", metavar="OBS")
@click.argument("output", metavar="OUT")
@click.option("--observed-variable", metavar="NAME", help="What verified --variable.")
@writing
@shared
def update(model: str, hindcast: str, observations: str, output: str, **given: Any) -> Work:
    """Let MODEL learn from more cases, HINDCAST and what verified, OBS, and write it to OUT.

    What it has chosen by cross-validation stays. Cases that it knows are ignored, missing ones
    filled in, other values taken in place of those known and counted.
    """
    written = {name: given.pop(name) for name in ("resume", "overwrite", "force", "dry_run")}
    return lambda session: updating.update_files(
        session,
        source(model, "model"),
        _pair("hindcast", hindcast, observations, given),
        _output(output, **written),
    )


@xrecal.command()
@click.argument("forecast")
@click.argument("observations", metavar="OBS")
@click.argument("output", metavar="OUT")
@watching
@roles
@writing
@shared
def monitor(forecast: str, observations: str, output: str, **given: Any) -> Work:
    """Write the evidence against the calibration of FORECAST, in any form, to OUT."""
    written = {name: given.pop(name) for name in ("resume", "overwrite", "force", "dry_run")}
    watch = Watch(**{name: given.pop(name) for name in ("alpha", "run_length", "restart")})
    return lambda session: monitoring.monitor_files(
        session,
        _pair("forecast", forecast, observations, given),
        _output(output, **written),
        watch,
    )


@xrecal.command()
@click.argument("model")
@cycling
@watching
@computing
def cycle(model: str, **given: Any) -> Work:
    """Do the work of a day: learn what has verified, issue, score, and watch the calibration.

    MODEL is the first fit, and stays as it is. The folder of --output gets forecasts/, models/,
    scores.nc, monitor.nc and status.json. Each start is issued by a model that has learned what had
    verified when it was issued; starts that were missed are made up for in their order. Repeat the
    command as often as you like: what is done is not done again. docs/cycle.md has examples.
    """
    levels, n_members = given.pop("quantiles"), given.pop("members")
    if (levels is None) == (n_members is None):
        raise click.UsageError("say what to issue: --quantiles 0.1,0.5,0.9 or --members 50")
    watch = Watch(**{name: given.pop(name) for name in ("alpha", "run_length", "restart")})
    product = Product(levels, n_members)
    return lambda session: cycling_.cycle_files(
        session, Cycle(source(model, "model"), product=product, watch=watch, **given)
    )


@xrecal.command()
@computing
def warm() -> Work:
    """Compile everything ahead, on this machine or on each worker of a cluster.

    What is compiled is kept in the user's cache, or in the folder XRECAL_CACHE_DIR.
    """
    return warming.warm_up


def _learned(given: dict[str, Any]) -> dict[str, Any]:
    """What a fit learns from, out of the options of a command."""
    names = ("condition_on", "min_samples", "pool")
    learned = {name: given.pop(name) for name in names}
    names = learned["condition_on"]
    return learned | {"condition_on": names[0] if len(names) == 1 else names or None}


def _pair(name: str, forecasts: str, observations: str, selection: Mapping[str, Any]) -> Pair:
    """Two inputs by their paths; ``name`` is what the forecasts are called in messages."""
    return Pair(
        source(forecasts, name), source(observations, "observations"), Selection(**selection)
    )


def _output(path: str, resume: bool, overwrite: bool, force: bool, dry_run: bool) -> Output:
    if resume and overwrite:
        raise click.UsageError("--resume goes on and --overwrite starts again; give one of them")
    return Output(path, resume, overwrite, force, dry_run)
