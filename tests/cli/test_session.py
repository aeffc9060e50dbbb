"""Advice of the package in the words of the command line."""

import pytest

from xrecal.cli.session import for_command_line

from .files import refused, run

HINTS = {
    "fewer than min_samples=20; pool neighbours or leads (pool=...), give more cases, or a smaller "
    "min_samples if so few are meant": "fewer than --min-samples 20; pool neighbours or leads "
    "(--pool DIM,...), give more cases, or a smaller --min-samples if so few are meant",
    "16 at most; give pool=('lat', 'lon') to learn from the cases of all positions together, or a "
    "smaller min_samples": "16 at most; give --pool lat,lon to learn from the cases of all "
    "positions together, or a smaller --min-samples",
    "give pool='lead' to learn": "give --pool lead to learn",
    "which may give them away: use gap=..., such as gap='5D', of the lead time": (
        "which may give them away: use --gap, such as --gap 5D, of the lead time"
    ),
    "name it: dim=...": "name it: --dim DIM",
    "name another with member_dim=...": "name another with --member-dim DIM",
    "otherwise convert first: observations = (observations - 273.15).assign_attrs(units='degC')": (
        "otherwise convert first: write a file of observations in 'degC'"
    ),
    "there is no a.nc": "there is no a.nc",
    "by='rolling' needs every, the time between two fits; give every=30, say": (
        "--by rolling needs --every, the time between two fits; give --every 30, say"
    ),
    "refit belongs to by='rolling', but by is 'year'; leave it out": (
        "refit belongs to --by rolling, but by is 'year'; leave it out"
    ),
}


@pytest.mark.parametrize("text", HINTS)
def test_what_can_be_typed(text):
    assert for_command_line(text) == HINTS[text]


def test_advice_can_be_followed(files):
    args = "compare", files.hindcast, files.truth, "--method", "climatology"
    told = refused(*args, "--min-samples", "45")
    assert (
        "fewer than --min-samples 45 cases to learn from, 39 at most; give --pool lat,lon" in told
    )
    assert "min_samples=" not in told
    assert run(*args, "--min-samples", "45", "--pool", "lat,lon").code == 0
