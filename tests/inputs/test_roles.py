"""Cases and leads by what their dimensions are: by standard name, valid time, type, unit, name."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from xrecal.inputs.roles import CALIBRATION, LEVEL, MEMBER, Roles, is_lead
from xrecal.inputs.valid_time import lead_dim

N = 40
STARTS = pd.date_range("2001-01-01", periods=N, freq="5D")
TIMES = pd.date_range("2001-01-01", periods=5 * N, freq="D")
OBSERVED = random("time", "x", seed=1, sizes={"time": 5 * N, "x": 2}, time=TIMES)
HINDCAST = random(
    "init", "lead", "x", "member", sizes={"init": N, "lead": 2, "x": 2}, init=STARTS
).assign_coords(lead=("lead", [1, 3], {"units": "days"}))
DAYS = np.array([1, 3], "m8[D]").astype("m8[ns]")
EMOS = xrecal.EMOS()
EXPECTED = HINDCAST.recal.crps(OBSERVED)
LEAD_NAMES = [
    "leadtime", "lead_time", "lead_day", "fhour", "horizon", "ltime", "forecast_hour", "LeadTime",
    "leads", "step", "lead_time0", "forecast_period",
]  # fmt: skip
START_NAMES = [
    "time", "forecast_time", "ref_time", "reference_time", "initialization_time", "start",
    "start_date", "base_time", "issue_time", "reference_date", "origin_date", "initial_time0",
    "forecast_reference_time", "InitTime", "date", "anything",
]  # fmt: skip


def find(array, role, explicit=None):
    return Roles(array).find(role, explicit, name="hindcast")


@pytest.mark.parametrize("role", [MEMBER, LEVEL, CALIBRATION], ids=lambda role: role.what)
def test_the_argument_counts_then_standard_names_then_names(role):
    first, second = role.names[:2]
    for name in role.names:
        assert find(random("lat", name), role) == name
    for name in role.standard_names:
        array = random("x", first, x=("x", [1, 2, 3], {"standard_name": name}))
        assert find(array, role) == "x"
        assert find(array, role, first) == first
    several = f"hindcast has several {role.what} dimensions, ['{first}', '{second}']; name one: "
    for array, explicit, message in (
        (random(first, second), None, f"{several}{role.argument}='{first}'"),
        (random("x"), "z", f"hindcast has no dimension 'z' ({role.argument}); it has ['x']"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            find(array, role, explicit)


def test_scalar_and_2d_coordinates_say_nothing():
    both = np.zeros((3, 3))
    array = random("x", "y").assign_coords(
        number=((), 3, {"standard_name": "realization"}),
        time=(("x", "y"), both, {"standard_name": "time"}),
        x=(("x", "y"), both, {"standard_name": "time"}),
    )
    assert find(array, MEMBER) is find(array, CALIBRATION) is find(array, LEVEL) is None
    named = {d: (d, [1, 2, 3], {"standard_name": "realization"}) for d in ("x", "y")}
    with pytest.raises(ValueError, match=r"several member dimensions, \['x', 'y'\]"):
        find(random("x", "y", **named), MEMBER)
    one = random("x", "y", x=[1, 2, 3]).isel(x=0)
    with pytest.raises(ValueError, match=r"it has \['y'\]; use hindcast.expand_dims\('x'\)"):
        find(one, CALIBRATION, "x")


def test_leads_and_starts_by_their_usual_names():
    for name in LEAD_NAMES:
        assert Roles(HINDCAST.rename(lead=name).drop_vars(name)).leads == [name]
    for name in START_NAMES:
        assert Roles(HINDCAST.rename(init=name)).cases == [name]


def over_both(hindcast):
    return hindcast.assign_coords(valid_time=hindcast.init + xr.DataArray(DAYS, dims="lead"))


BY_WHAT_IT_IS = {
    "lengths of time": HINDCAST.assign_coords(lead=DAYS).rename(lead="x1"),
    "seconds": HINDCAST.assign_coords(lead=DAYS.astype("m8[s]")).rename(lead="x1"),
    "a unit": HINDCAST.rename(lead="x1"),
    "hours": HINDCAST.assign_coords(lead=("lead", [24.0, 72.0], {"units": "Hrs"})).rename(
        lead="x1"
    ),
    "a valid time over both": over_both(HINDCAST).assign_coords(lead=[0, 1]).rename(lead="x1"),
    "a valid time and no label": over_both(HINDCAST).drop_vars("lead").rename(lead="x1"),
}


@pytest.mark.parametrize("what", BY_WHAT_IT_IS)
def test_leads_by_what_they_are(what):
    hindcast = BY_WHAT_IT_IS[what]
    assert Roles(hindcast).leads == ["x1"]
    assert Roles(hindcast).cases == ["init"]
    np.testing.assert_array_equal(hindcast.recal.crps(OBSERVED), EXPECTED)
    one = hindcast.isel(x1=1).recal.crps(OBSERVED)
    np.testing.assert_array_equal(one, EXPECTED.isel(lead=1))


def coordinate(name, values, **attrs):
    return xr.Variable(name, values, attrs)


@pytest.mark.parametrize(
    ("name", "values", "attrs"),
    [
        ("averaging_period", [1, 3], {"units": "days"}),
        ("accumulation", DAYS, {}),
        ("frequency", [1.0, 2.0], {"units": "s-1"}),
        ("wave", [5.0, 9.0], {"units": "s", "standard_name": "sea_surface_wave_period"}),
        ("return_time", [10, 100], {"units": "years"}),
        ("window", DAYS, {}),
        ("age", [20, 60], {"units": "years"}),
        ("month", [1, 2], {"units": "months"}),
        ("height", [2.0, 10.0], {"units": "m"}),
        ("reference", [1.0, 2.0], {"units": "days since 2000-01-01"}),
        ("lead", STARTS[:2], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_lengths_are_no_leads(name, values, attrs):
    label = coordinate(name, values, **attrs)
    assert not is_lead(name, label)
    array = random("init", name, "member", sizes={"init": N, name: 2}, init=STARTS)
    array = array.assign_coords({name: label})
    assert Roles(array).leads == []
    assert Roles(array.isel({name: 0})).single_leads == []


def test_cases_counted_in_a_unit_are_no_leads():
    days = coordinate("time", np.arange(N), units="days")
    array = random("time", "member", sizes={"time": N}, time=days)
    assert Roles(array).leads == []
    assert Roles(array).cases == ["time"]
    named = array.rename(time="day")
    assert lead_dim(Roles(named), "day", name="hindcast") is None
    two = HINDCAST.rename(lead="forecast_time")  # counted from the other
    assert Roles(two).cases == ["init"]
    assert Roles(two).leads == ["forecast_time"]
    np.testing.assert_array_equal(two.recal.crps(OBSERVED), EXPECTED)


def test_what_counts_first():
    both = HINDCAST.rename(x="step").assign_coords(step=("step", [0, 6], {"units": "hours"}))
    several = r"lead times, \['lead', 'step'\]; rename .*\(step="
    with pytest.raises(ValueError, match=several):
        both.recal.crps(OBSERVED.rename(x="step"))
    assert Roles(over_both(both)).leads == ["lead"]
    with pytest.raises(ValueError, match="or mark the dimension that holds leads: ") as error:
        lead_dim(Roles(both), name="hindcast")
    exec(str(error.value).rpartition("leads: ")[2], {"hindcast": both})
    assert lead_dim(Roles(both), name="hindcast") == "lead"
    assert Roles(both.rename(step="lead1")).leads == ["lead"]


def test_two_dimensions_of_dates_are_named():
    array = HINDCAST.rename(init="a", x="b").assign_coords(b=STARTS[:2])
    with pytest.raises(ValueError, match=r"calibration dimensions, \['a', 'b'\]; name one: dim='a"):
        array.recal.fit(OBSERVED.rename(x="b"), EMOS)
    observed = OBSERVED.rename(x="b").assign_coords(b=STARTS[:2])
    with pytest.raises(ValueError, match=r"several calibration dimensions, \['a', 'b'\]"):
        array.recal.crps(observed)


# dim and member_dim -------------------------------------------------------------------------------

CASES = (
    HINDCAST.isel(lead=0, drop=True).rename(init="k", member="run").assign_coords(k=np.arange(N))
)
TRUTH = random("k", "x", seed=3, sizes={"k": N, "x": 2}, k=np.arange(N))
ORDINARY = CASES.rename(k="time", run="member"), TRUTH.rename(k="time")
CALLS = {
    "crps": {},
    "pit": {},
    "wis": {"levels": [0.5]},
    "brier_score": {"threshold": 0.0},
    "summary": {},
    "spread_skill": {},
    "energy_score": {"over": "x"},
    "pit_histogram": {"bins": 3},
    "reliability": {"threshold": 0.0},
}


@pytest.mark.parametrize("call", CALLS)
def test_scores_match_cases_along_the_dimension_that_is_named(call):
    """Observations in another order, along a dimension that no rule recognises."""
    named = {"dim": ["k"], "member_dim": "run"}
    found = getattr(CASES.recal, call)(TRUTH[::-1], **CALLS[call], **named)
    expected = getattr(ORDINARY[0].recal, call)(ORDINARY[1], **CALLS[call], dim="time")
    if isinstance(found, xr.DataArray):
        found, expected = (array.to_dataset(name="found") for array in (found, expected))
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_pages_and_figures_take_both():
    pytest.importorskip("matplotlib")
    CASES.recal.report(TRUTH[::-1], "k", member_dim="run", raw=CASES)
    one = CASES.isel(x=0)
    drawn = one.recal.plot.fan(TRUTH.isel(x=0)[::-1], dim="k", member_dim="run")
    usual = one.rename(run="member")
    expected = usual.recal.plot.fan(TRUTH.isel(x=0), dim="k")
    assert len(drawn.lines) == len(expected.lines) > 0
    for a, b in zip(drawn.lines, expected.lines, strict=True):
        np.testing.assert_array_equal(a.get_ydata(), b.get_ydata())


def test_weights_of_members_of_any_name():
    weights = xr.ones_like(CASES[0, 0])
    weighted = xrecal.weighted(CASES, weights, member_dim="run")
    np.testing.assert_allclose(
        weighted.recal.mean(member_dim="run")["t2m"], CASES.mean("run"), rtol=1e-12
    )


def test_lists_are_settings_like_tuples():
    assert xrecal.CKME(condition_on=["a", "b"], bounds=[0, None]) == xrecal.CKME(
        condition_on=("a", "b"), bounds=(0, None)
    )
    for method in (xrecal.IDR, xrecal.Climatology, xrecal.LinearPool, xrecal.OnlinePool):
        assert method(condition_on=["season"]).condition_on == ("season",)
    pooled = [ORDINARY[0].recal.fit(ORDINARY[1], EMOS, pool=p) for p in (["x"], ("x",))]
    np.testing.assert_array_equal(pooled[0].state["slope"], pooled[1].state["slope"])
