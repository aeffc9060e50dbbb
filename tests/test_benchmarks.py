"""Every benchmark runs, at its smallest size."""

import importlib
import pkgutil

import pytest

import benchmarks

# Tested in tests/benchmarks.
OTHERS = ("beyond_sample", "gpu", "hindsight", "issued", "left_out", "paper", "record", "speed")
SLOW = ("grid", "pool_threads", "scale", "streams")  # they start processes, or replay a pool


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(found.name, marks=[pytest.mark.slow] if found.name in SLOW else [])
        for found in pkgutil.iter_modules(benchmarks.__path__)
        if found.name not in OTHERS
    ],
)
def test_runs(name, capsys):
    importlib.import_module(f"benchmarks.{name}").main(quick=True)
    assert "budget " in capsys.readouterr().out.splitlines()[-1]
