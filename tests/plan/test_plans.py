import dataclasses

import numpy as np
import pytest

import xrecal
from xrecal.plan.costs import Resources
from xrecal.plan.plans import Plan, TaskPlan, split

MIB = 2**20


def task_plan(**changes):
    part = TaskPlan(
        variable="t2m",
        work="fit",
        cases=500,
        members=20,
        forecasts=0,
        splits=0,
        locations=1000,
        tasks=10,
        locations_per_task=100,
        input_bytes=200 * MIB,
        output_bytes=100 * MIB,
        workspace_bytes=100 * MIB,
        seconds_per_location=0.5,
        cases_tried=400,
        chunks={"time": -1, "member": -1, "lat": 5, "lon": -1},
        sizes={"lat": 100, "lon": 10},
        bytes_of_smallest=10 * MIB,
    )
    return dataclasses.replace(part, **changes)


def plan(memory=None, at_once=4, **changes):
    return Plan((task_plan(**changes),), Resources(memory, at_once))


def test_a_plan_that_fits_is_let_through():
    for fine in (plan(), plan(400 * MIB)):
        assert fine.fits
        xrecal.check_plan(fine)
    xrecal.check_plan(plan(300 * MIB), force=True)
    xrecal.check_plan(plan(300 * MIB), 500 * MIB)


def test_a_plan_that_is_too_large_says_what_to_type():
    large = plan(300 * MIB)
    assert not large.fits
    match = (
        r"each task needs 400 MiB, but may use only 300 MiB; use hindcast\.chunk\(\{'time': -1, "
        r"'member': -1, 'lat': 3, 'lon': -1\}\), or force=True"
    )
    with pytest.raises(xrecal.MemoryPlanError, match=match):
        xrecal.check_plan(large)
    with pytest.raises(ValueError, match=r"forecast\.chunk\(\{.*'lat': 1, 'lon': 5\}"):
        xrecal.check_plan(plan(work="apply"), 60 * MIB)


def test_where_chunks_cannot_help_the_error_says_so():
    with pytest.raises(ValueError, match="one location alone needs 10 MiB; use workers"):
        xrecal.check_plan(plan(5 * MIB))


def test_wall_clock_counts_rounds_of_tasks():
    assert plan().seconds == 3 * 100 * 0.5  # ten tasks, four at a time
    assert plan(at_once=1).seconds == plan().largest.seconds == 500
    assert plan(tasks=1, locations_per_task=1000).seconds == 500
    assert plan(seconds_per_location=None).seconds is None


def test_prints_as_a_table():
    text = str(plan(300 * MIB))
    for told in (
        "<xrecal plan: fit>",
        "500 cases of 20 members",
        "1000, at most 100 a task",
        "400 MiB (input 200 MiB, output 100 MiB, workspace 100 MiB)",
        "about 8.3 min (500 ms a location; estimated from 400 synthetic cases)",
        "about 2.5 min with 4 at a time",
        "300 MiB of memory a task with 4 at a time: too little: take the suggested chunks",
        ".chunk({'time': -1, 'member': -1, 'lat': 5, 'lon': -1})",
    ):
        assert told in text
    assert "time" not in str(plan(seconds_per_location=None)).split("suggested")[0]
    apply = str(plan(work="apply", forecasts=30, variable=None, seconds_per_location=40.0))
    assert "30 forecasts of 20 members, from 500 cases" in apply
    assert "unnamed" in apply
    assert "about 11 h" in apply
    assert repr(plan()) == str(plan())
    noted = dataclasses.replace(plan(), notes=("mind this",))
    assert str(noted).endswith("note           mind this")


def test_reads_as_a_dataset():
    found = plan(seconds_per_location=None).to_dataset()
    assert found.task_bytes.item() == 400 * MIB
    assert found.task_bytes.attrs["units"] == "byte"
    assert np.isnan(found.seconds_per_location.item())
    assert list(found.variable) == ["t2m"]
    assert "sizes" not in found


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, {"a": 1, "b": 1}),
        (5, {"a": 1, "b": 5}),
        (25, {"a": 2, "b": 10}),
        (10**6, {"a": 7, "b": 10}),
        (6, {"a": 1, "b": 5}),
    ],
)
def test_pieces_are_even_and_whole_along_the_last_dimension(most, expected):
    assert split(most, {"a": 7, "b": 10}) == expected
