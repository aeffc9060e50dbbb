"""Texts of the command line that change what a terminal shows, such as names of files."""

import pytest

from .days import STARTS, first_fit
from .files import run

EVIL = "a\x1b[31m\u202eb\nwrote c\x07"
SHOWN = r"a\x1b[31m\u202eb\nwrote c\x07"


@pytest.mark.parametrize("args", [("score", "f", "o", EVIL), (EVIL,), ("fit", f"--{EVIL}")])
def test_a_wrong_command_line_is_quoted(args):
    done = run(*args)
    assert done.code == 2
    assert SHOWN in done.err
    assert done.err.splitlines()[-1].startswith("Error: ")


def test_names_of_what_is_written_are_quoted(tmp_path):
    days = first_fit(tmp_path)
    days.hand_over(41)
    pair, more = (days.forecasts, days.observations), ("--quiet",)
    out = tmp_path / f"{EVIL}.nc"
    commands = [
        ("apply", days.model, days.forecasts, out, "--members", "3"),
        ("apply", days.model, days.forecasts, out, "--members", "3", "--resume"),
        ("fit", *pair, out, "--dry-run", "--overwrite", "--min-samples", "2"),
        ("update", days.model, *pair, out, "--overwrite"),
        ("monitor", *pair, out, "--overwrite"),
    ]
    for command in commands:
        done = run(*command, *more)
        assert done.code in (0, 10), done.err
        assert f"{SHOWN}.nc" in done.out
        assert EVIL not in done.out
    args = days.args(STARTS[41])
    args[args.index(days.output)] = tmp_path / EVIL
    args.remove("--json")
    done = run(*args)
    assert done.code == 0
    assert f"{SHOWN}: of 7 starts" in done.out
