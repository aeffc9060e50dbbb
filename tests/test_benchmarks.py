"""Every benchmark runs, at its smallest size."""

import importlib
import pkgutil

import pytest

import benchmarks


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
)
def test_runs(name, capsys):
    importlib.import_module(f"benchmarks.{name}").main(quick=True)
    assert "budget " in capsys.readouterr().out.splitlines()[-1]
