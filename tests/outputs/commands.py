"""What the command line writes and prints, and what a daily cycle leaves."""

import json
import tempfile
from pathlib import Path
from typing import Any

import xarray as xr

import xrecal
from tests.cli import days, files

from .cases import Output

TIMES = ("seconds", "fit_seconds", "apply_seconds")


def by_command() -> Output:
    """Fits, forecasts, updates and a monitor by the command, in files of both kinds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hindcast, truth, new, verified, _ = files.write(folder)
        fits = {
            "ckme": ["--method", "ckme"],
            "season": ["--method", "emos", "--condition-on", "season"],
            "pooled": ["--method", "CKME(support='errors')", "--pool", "lat,lon"],
            "windows": ["--method", "emos", "--pool", "lat=3", "--min-samples", 30],
        }
        products = {
            "ckme": {"quantiles": "0.137,0.491,0.877", "exceedance": "279,283"},
            "season": {"members": 5, "categories": "0.311,0.677"},
            "pooled": {"categories": "0.491"},
            "windows": {"quantiles": "0.491"},
        }
        for fit, options in fits.items():
            model = folder / f"{fit}.nc"
            yield f"{fit}.fit", told(folder, "fit", hindcast, truth, model, *options)
            yield f"{fit}.state", opened(model)
            for product, value in products[fit].items():
                kind = "zarr" if product == "members" else "nc"
                out = folder / f"{fit}_{product}.{kind}"
                done = told(folder, "apply", model, new, out, f"--{product}", value)
                yield f"{fit}.{product}.told", done
                yield f"{fit}.{product}", opened(out)
        updated, issued = folder / "updated.nc", folder / "issued.nc"
        yield "update", told(folder, "update", folder / "season.nc", new, verified, updated)
        told(folder, "apply", updated, new, issued, "--quantiles", "0.137,0.491,0.877")
        yield "updated.state", opened(updated)
        yield "updated.quantiles", opened(issued)
        watched = folder / "watched.nc"
        for restart in ("year", "never"):
            args = "--restart", restart, "--alpha", 0.05, "--overwrite"
            yield f"monitor.{restart}", told(folder, "monitor", hindcast, truth, watched, *args)
            yield f"watched.{restart}", opened(watched)


def scored_by_command() -> Output:
    """Scores and comparisons as the command prints them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hindcast, truth, new, verified, _ = files.write(folder)
        table = xrecal.diagnostics.SCORES
        of_events = [name for name, score in table.items() if score.thresholds]
        events = [part for score in of_events for part in ("--score", score)]
        others = [name for name in table if name not in ("crps", *of_events)]
        scores = [part for score in others for part in ("--score", score)]
        yield "scores", told(folder, "score", hindcast, truth, *scores)
        yield "events", told(folder, "score", hindcast, truth, *events, "--threshold", "279,282")
        yield "text", files.succeed("score", new, verified, "--summary").out
        methods = "--method", "emos", "--method", "climatology"
        yield "year", told(folder, "compare", hindcast, truth, *methods, "--by", "year")
        args = "--by", "rolling", "--every", 12, "--refit", 24, "--pool", "lat,lon"
        yield "rolling", told(folder, "compare", hindcast, truth, *methods, *args)


def mornings(method: Any, *options: str) -> Output:
    """What a daily cycle leaves after four mornings: the third is missed, and an observation late.

    On the last one an observation has changed.
    """
    with tempfile.TemporaryDirectory() as name:
        cycle = days.first_fit(Path(name), method)
        changed, first = days.TRUTH.copy(), days.LEARNED - 1
        changed[first + 1, 1] += 1.5
        late = days.TRUTH.copy()
        late[first + 1, 0] = float("nan")
        for day, truth in ((first, days.TRUTH), (first + 1, late), (first + 3, changed)):
            done = cycle.morning(day, *options, truth=truth)
            assert done.code in (0, 10), done.err
            yield f"{day}.told", plain(done.data, cycle.folder)
        for path in sorted(cycle.output.rglob("*")):
            part = path.relative_to(cycle.output)
            if path.name == "status.json":
                yield "status", plain(json.loads(path.read_text()), cycle.folder)
            elif part.parts[0] == "models" and path.suffix == ".nc":
                model = xrecal.open_recalibrator(path).compute()
                yield f"{path.stem}.state", model.to_dataset()
                yield f"{path.stem}.model_quantile", model.quantile(days.FORECASTS[-2:], [0.137])
            elif path.suffix == ".nc":
                yield str(part.with_suffix("")), opened(path)


def told(folder: Path, *args: Any) -> Any:
    """What a command that goes well prints as JSON; alarms of a monitor are no failure."""
    done = files.run(*args, "--json", "--quiet")
    assert done.code in (0, 10), done.err
    return plain(done.data, folder)


def plain(data: Any, folder: Path) -> Any:
    """What was printed without times and with paths within the folder."""
    if isinstance(data, dict):
        return {k: plain(v, folder) for k, v in data.items() if k not in TIMES}
    if isinstance(data, list):
        return [plain(each, folder) for each in data]
    return data.replace(str(folder), ".") if isinstance(data, str) else data


def opened(path: Path) -> xr.Dataset:
    """All that a file holds."""
    with xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None) as found:
        return found.load()
