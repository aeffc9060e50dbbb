"""Stations with names, in files and stores, through every command, each in a process of its own.

Libraries of netCDF end a process that has a file with text open twice, so no other test may run in
the same process before or after.
"""

import json

import numpy as np
import pytest

from tests.processes import python

from .days import FORECASTS, TRUTH
from .files import ONE_BY_ONE, run_apart

NAMES = np.array(["Tromsø", "Bern"], object)
LEARNED, NOW = 40, 41
KINDS = ["nc", "zarr"]
COMMANDS = (
    "fit hindcast truth model --method emos",
    "fit hindcast truth other --method ckme --dry-run",
    "apply model today quantiles --quantiles 0.1,0.5,0.9",
    "score quantiles truth --summary",
    "score hindcast truth --report page.png",
    "score hindcast hindcast --observed-variable verified",
    "compare hindcast truth --method emos --forecast later",
    "update model later truth updated",
    "monitor later truth seen",
    "cycle model --forecasts later --observations truth --output out --members 3 --now 2020-02-11",
)


def write(folder, kind):
    """Forecasts at stations, and what verified, by the names that commands give to them."""
    forecasts, truth = (
        one.assign_coords(place=NAMES).drop_encoding() for one in (FORECASTS, TRUTH)
    )
    both = forecasts[:LEARNED].to_dataset(name="t2m")
    parts = {
        "hindcast": both.assign(verified=both["t2m"].mean("member")),
        "truth": truth[: NOW + 1].to_dataset(name="t2m"),
        "later": forecasts[LEARNED : NOW + 1].to_dataset(name="t2m"),
        "today": forecasts[NOW - 2 : NOW + 1].to_dataset(name="t2m"),
    }
    for name, dataset in parts.items():
        path = folder / f"{name}.{kind}"
        dataset.to_netcdf(path) if kind == "nc" else dataset.to_zarr(path, consolidated=False)


def typed(folder, kind, command):
    """The words of a command, with paths for what is read and written."""
    name, *words = command.split()
    files = {
        "hindcast",
        "truth",
        "today",
        "later",
        "model",
        "other",
        "quantiles",
        "updated",
        "seen",
    }
    given = [f"{folder / one}.{kind}" if one in files else one for one in words]
    given = [str(folder / one) if one in ("out", "page.png") else one for one in given]
    variable = (
        [] if name in ("cycle", "update") and "hindcast" not in words else ["--variable", "t2m"]
    )
    return [name, *given, *variable, "--quiet"]


ALL = f"""{ONE_BY_ONE}
import json, sys
from tests.cli.files import run
print(json.dumps([run(*words).code for words in json.loads(sys.argv[1])]))
"""


@pytest.mark.parametrize("kind", ["nc", pytest.param("zarr", marks=pytest.mark.slow)])
def test_all_commands_in_one_process(tmp_path, kind):
    write(tmp_path, kind)
    done = python(ALL, json.dumps([typed(tmp_path, kind, command) for command in COMMANDS]))
    assert done.code == 0, done
    assert set(json.loads(done.out)) <= {0, 10}, done


@pytest.mark.slow  # as many processes as there are commands
@pytest.mark.parametrize("kind", KINDS)
def test_each_command_in_a_process_of_its_own(tmp_path, kind):
    write(tmp_path, kind)
    for command in COMMANDS:
        done = run_apart(*typed(tmp_path, kind, command))
        assert done.code in (0, 10), (command, done)
