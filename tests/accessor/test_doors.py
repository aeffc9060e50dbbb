"""Docstrings of ``.recal`` show those of the functions that they call."""

import doctest
import inspect
import re

import pytest

from xrecal import diagnostics
from xrecal.accessor.doors import show_what_is_behind
from xrecal.accessor.recal import DataArrayRecal
from xrecal.fit import fit_hindcast as recalibrate

DOORS = [
    name
    for name, found in inspect.getmembers(DataArrayRecal, inspect.isfunction)
    if not name.startswith("_") and name != "report"  # which needs matplotlib
]


@pytest.mark.parametrize("name", DOORS)
def test_every_parameter_of_a_door_is_described(name):
    door = getattr(DataArrayRecal, name)
    text = inspect.getdoc(door)
    described = text.partition("\nParameters\n----------\n")[2].partition("\n\n")[0]
    for parameter in list(inspect.signature(door).parameters)[1:]:
        lines = [line for line in described.splitlines() if not line.startswith(" ")]
        assert any(parameter in line.partition(" :")[0].split(", ") for line in lines), parameter
    assert "\nReturns\n-------\n" in text
    assert "\nExamples\n--------\n" in text


def test_first_line_stays_and_sources_are_left_out():
    text = inspect.getdoc(DataArrayRecal.fit)
    assert text.startswith("Learn from these past forecasts and what verified; see :func:`xrecal.")
    assert "The forecasts held here are `hindcast` below, which is not given." in text
    assert "\nNotes\n" not in text
    assert "References" not in inspect.getdoc(DataArrayRecal.skce_test)
    assert "]_" not in inspect.getdoc(DataArrayRecal.skce_test)
    behind = inspect.getdoc(recalibrate.fit)
    assert text.partition("Parameters\n")[2].partition("\n\n")[0] in behind


def test_help_on_fit_tells_how_to_see_its_progress():
    assert "ProgressBar(): model = model.compute()" in inspect.getdoc(DataArrayRecal.fit)


def test_names_of_other_functions_lead_there():
    assert ":func:`~xrecal.products.statistics.mean`" in inspect.getdoc(DataArrayRecal.quantile)
    assert not re.search(r":(func|meth):`\w+`", inspect.getdoc(DataArrayRecal.skce))


def test_example_of_apply(example_names):
    text = inspect.getdoc(DataArrayRecal.apply)
    example = doctest.DocTestParser().get_doctest(text, dict(example_names), "apply", None, 0)
    assert doctest.DocTestRunner().run(example) == (0, 1)


def test_what_is_behind_is_left_alone():
    assert "\nReferences\n" in inspect.getdoc(diagnostics.skce_test)


def test_own_parameters_stay_and_names_that_are_not_imported_are_no_error():
    class Doors:
        def own(self):
            """Own; see :func:`xrecal.fit.fit_hindcast.fit`.

            Parameters
            ----------
            """

        def unknown(self):
            """Draw; see :func:`xrecal.nowhere.draw`."""

        def none(self):
            pass

    before = [inspect.getdoc(getattr(Doors, name)) for name in ("own", "unknown", "none")]
    show_what_is_behind(Doors)
    assert [inspect.getdoc(getattr(Doors, n)) for n in ("own", "unknown", "none")] == before
