"""Names of dimensions in other packages and archives, as the page of inputs lists them."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

PAGE = (Path(__file__).parents[2] / "docs" / "inputs.md").read_text()
TABLE = PAGE.split("| from | members | cases | leads | places |\n")[1].split("\n\n")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines()[1:]]
STARTS = pd.date_range("2001-01-01", periods=40, freq="10D")
HOURS = [24, 48]
rng = np.random.default_rng(0)
HINDCAST = xr.DataArray(
    rng.normal(10.0, 3.0, (40, 2, 5, 2, 2)),
    {"time": STARTS, "lead": HOURS, "member": range(5), "y": [1.0, 2.0], "x": [3.0, 4.0]},
    ("time", "lead", "member", "y", "x"),
    "t",
)
HINDCAST["lead"].attrs["units"] = "hours"
TIMES = pd.date_range("2001-01-01", periods=400, freq="D")
OBSERVED = xr.DataArray(
    rng.normal(10.0, 3.0, (400, 2, 2)),
    {"time": TIMES, "y": [1.0, 2.0], "x": [3.0, 4.0]},
    ("time", "y", "x"),
)
EXPECTED = HINDCAST.recal.fit(OBSERVED, xrecal.EMOS()).quantile(HINDCAST, [0.1, 0.9])


def names_in(cell):
    return [name for name in re.findall(r"`(\w+)`", cell) if name not in ("units", "forecastMonth")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_names_of_other_packages(row):
    _, members, cases, leads, places = row
    (case,) = names_in(cases)
    y, x = names_in(places) or ("y", "x")
    for member, lead in product(names_in(members), names_in(leads) or [None]):
        names = {"member": member, "lead": lead, "y": y, "x": x, "time": case}
        one = {"lead": 0} if lead is None else {}
        given = HINDCAST.isel(one, drop=True)
        given = given.rename({a: b for a, b in names.items() if a in given.dims})
        observed = OBSERVED.rename(y=y, x=x)
        found = given.recal.fit(observed, xrecal.EMOS()).quantile(given, [0.1, 0.9])
        if lead is not None:
            assert found.dims == tuple(names.get(d, d) for d in EXPECTED.dims)
            np.testing.assert_array_equal(found, EXPECTED)
        else:
            assert {*found.dims} == {"quantile", "time", y, x}


def test_a_climpred_hindcast_is_scored_by_xskillscore():
    xs = pytest.importorskip("xskillscore")
    inits = xr.date_range("1980-01-01", periods=40, freq="YS", use_cftime=True)
    hindcast = HINDCAST.rename(time="init").assign_coords(init=inits)
    hindcast = hindcast.assign_coords(lead=("lead", [1, 2], {"units": "years"}))
    years = xr.date_range("1980-01-01", periods=43, freq="YS", use_cftime=True)
    observed = OBSERVED.isel(time=slice(43)).assign_coords(time=years)
    members = hindcast.recal.fit(observed, xrecal.EMOS()).members(hindcast, 8)
    ours = members.recal.crps(observed, dim="init")
    for lead in (1, 2):
        verified = observed.isel(time=slice(lead, 40 + lead))
        verified = verified.rename(time="init").assign_coords(init=inits)
        theirs = xs.crps_ensemble(verified, members.sel(lead=lead), member_dim="member", dim="init")
        np.testing.assert_allclose(ours.sel(lead=lead), theirs, rtol=1e-12)
