"""Advice of the package in the words of the command line."""

import pytest

from xrecal.cli.session import POOLING, for_command_line

from .files import refused

HINTS = {
    "fewer than min_samples=20; pool neighbours or leads (pool=...), give more cases, or a smaller "
    "min_samples if so few are meant": "fewer than --min-samples 20; give more cases, or a smaller "
    f"--min-samples if so few are meant; {POOLING}",
    "16 at most; give pool=('lat', 'lon') to learn from the cases of all positions together, or a "
    "smaller min_samples": f"16 at most; give a smaller --min-samples; {POOLING}",
    "name it: dim=...": "name it: --dim DIM",
    "name another with member_dim=...": "name another with --member-dim DIM",
    "otherwise convert first: observations = (observations - 273.15).assign_attrs(units='degC')": (
        "otherwise convert first: write a file of observations in 'degC'"
    ),
    "there is no a.nc": "there is no a.nc",
}


@pytest.mark.parametrize("text", HINTS)
def test_what_can_be_typed(text):
    assert for_command_line(text) == HINTS[text]


def test_no_advice_for_python_alone(files, tmp_path):
    told = refused("compare", files.hindcast, files.truth, "--min-samples", "45")
    assert "fewer than --min-samples 45 cases to learn from, 39 at most; give a smaller" in told
    assert "min_samples=" not in told
    assert told.endswith(POOLING)
