"""A disk that is full ends every command with its code, and leaves what was there."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.processes import python

from .days import FORECASTS, TRUTH
from .files import ONE_BY_ONE, run

LIMITED = f"""{ONE_BY_ONE}
import json, resource, sys
from tests.cli.files import run
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
for words in json.loads(sys.argv[1]):
    done = run(*words)
    print(done.code, done.err[-100:].strip())
"""
COMMANDS = (
    "fit hindcast truth model --method emos --overwrite",
    "apply model later out --members 3 --overwrite",
    "update model later truth updated --overwrite",
    "monitor later truth seen --overwrite",
    "cycle model --forecasts later --observations truth --output days --members 3 --now 2020-02-13",
)
REPORTS = ("score hindcast truth --report page.pdf", "score hindcast truth --report page.png")
RESULTS = ("model", "out", "updated", "seen")


def write(kind):
    """Forecasts and observations in this folder, and a good result of each command."""
    data = {"hindcast": FORECASTS[:40], "truth": TRUTH[:44], "later": FORECASTS[40:44]}
    for name, array in data.items():
        dataset = array.to_dataset(name="t2m").drop_encoding()
        path = f"{name}.{kind}"
        dataset.to_netcdf(path) if kind == "nc" else dataset.to_zarr(path, consolidated=False)


def typed(command, kind):
    files = {"hindcast", "truth", "later", *RESULTS}
    return [f"{word}.{kind}" if word in files else word for word in command.split()] + ["--quiet"]


def contents(folder):
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    kept = [path for path in files if not any(".partial" in part for part in path.parts)]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in kept}


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("kind", ["nc", pytest.param("zarr", marks=pytest.mark.slow)])
def test_a_full_disk(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    write(kind)
    commands = [*COMMANDS, *(REPORTS if kind == "nc" else ())]
    words = [typed(command, kind) for command in commands]
    for one in words[:-3] if kind == "nc" else words[:-1]:
        assert run(*one).code in (0, 10)
    for name in ("page.pdf", "page.png"):
        Path(name).write_bytes(b"good")
    before = contents(".")
    enter = f"import os\nos.chdir({str(tmp_path)!r})\n"
    done = python(enter + LIMITED, json.dumps(words))
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ["5"] * len(words), lines
    assert contents(".").items() >= before.items()
    assert run(*words[4]).code in (0, 10)  # as soon as there is room
