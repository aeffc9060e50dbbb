"""Advice of the package in the words of the command line."""

import pytest
import xarray as xr

import xrecal
from xrecal.cli.words import in_options

from .files import HINDCAST, TRUTH, refused, run

CLIMATOLOGY = xrecal.Climatology()
HINTS = {
    "--by rolling needs --every, the time between two fits; give --every 30, say": (
        lambda: HINDCAST.recal.cross_validate(TRUTH, CLIMATOLOGY, by="rolling")
    ),
    "refit belongs to --by rolling, but by is 'year'; leave it out": (
        lambda: HINDCAST.recal.cross_validate(TRUTH, CLIMATOLOGY, refit=3)
    ),
    "name it: --dim DIM": (
        lambda: (
            HINDCAST.drop_vars("time")
            .rename(time="t")
            .recal.fit(TRUTH.drop_vars("time").rename(time="t"), CLIMATOLOGY)
        )
    ),
    "name another dimension with --member-dim DIM": lambda: HINDCAST.rename(member="m").recal.fit(
        TRUTH
    ),
    "otherwise convert first: write a file of observations in 'K'": (
        lambda: HINDCAST.recal.fit(TRUTH.assign_attrs(units="degC"), CLIMATOLOGY)
    ),
    "fewer than --min-samples 60; pool neighbours or leads (--pool DIM,...), give more cases, or a "
    "smaller --min-samples to fit with so few": (
        lambda: HINDCAST.recal.fit(TRUTH, CLIMATOLOGY, min_samples=60)
    ),
    "leave --condition-on out": (
        lambda: HINDCAST.drop_vars("time").recal.fit(
            TRUTH.drop_vars("time"), xrecal.CKME(condition_on="season"), dim="time"
        )
    ),
    "there is no a.nc": lambda: xrecal.open_recalibrator("a.nc"),
    "there is no b/*.nc; give one file, because patterns are for cycle": (
        lambda: xrecal.open_recalibrator("b/*.nc")
    ),
}


@pytest.mark.parametrize("text", HINTS)
def test_what_can_be_typed(text):
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        HINTS[text]()
    assert in_options(caught.value).endswith(text)


def test_warnings_can_be_typed():
    daily = xr.date_range("2001-01-01", periods=HINDCAST.sizes["time"])
    pair = (one.assign_coords(time=daily) for one in (HINDCAST, TRUTH))
    with pytest.warns(UserWarning, match="use gap=..., such as gap='7D'. The gap") as caught:
        next(pair).recal.cross_validate(next(pair), CLIMATOLOGY, by="block")
    texts = [in_options(one.message) for one in caught]
    assert any(
        "use --gap, such as --gap 7D. The gap should cover at least the lead time" in text
        for text in texts
    )


def test_advice_can_be_followed(files):
    args = "compare", files.hindcast, files.truth, "--method", "climatology"
    told = refused(*args, "--min-samples", "45")
    assert (
        "fewer than --min-samples 45 cases to learn from, 39 at most; give --pool lat,lon" in told
    )
    assert "min_samples=" not in told
    assert run(*args, "--min-samples", "45", "--pool", "lat,lon").code == 0
