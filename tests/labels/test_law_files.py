"""What the command and the daily cycle make of files in other writings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .commands import (
    commands,
    cycle,
    expected_of_commands,
    expected_of_the_cycle,
    world_of_the_cycle,
)
from .draws import check_files, examples_in_files
from .worlds import world

KINDS = ["nc", "zarr"]
OF_COMMANDS = ["stations days ensemble", "grid days ensemble", "stations none ensemble",
               "stations days quantiles", "stations months ensemble"]  # fmt: skip
OF_CYCLES = ["stations days ensemble", "grid days ensemble"]


def check_commands(example, kind):
    here = world(example.world)
    check_files(example, here, lambda _, *given: commands(*given), expected_of_commands, kind)


def check_cycle(example, kind):
    check_files(example, world_of_the_cycle(example.world), cycle, expected_of_the_cycle, kind)


@settings(max_examples=3)
@given(examples_in_files(OF_COMMANDS), st.sampled_from(KINDS))
def test_commands(example, kind):
    check_commands(example, kind)


@settings(max_examples=2)
@given(examples_in_files(OF_CYCLES[:1]), st.sampled_from(KINDS))
def test_a_cycle(example, kind):
    check_cycle(example, kind)


@pytest.mark.slow
@settings(max_examples=30)
@given(examples_in_files(OF_COMMANDS), st.sampled_from(KINDS))
def test_commands_on_thirty_writings(example, kind):
    check_commands(example, kind)


@pytest.mark.slow
@settings(max_examples=30)
@given(examples_in_files(OF_CYCLES), st.sampled_from(KINDS))
def test_a_cycle_on_thirty_writings(example, kind):
    check_cycle(example, kind)
