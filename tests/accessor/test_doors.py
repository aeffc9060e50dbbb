"""Doors have the signatures and docstrings of the functions that they call; types: ``typed.py``."""

import doctest
import functools
import inspect
import pydoc
import re

import pytest
import xarray as xr

from xrecal import diagnostics
from xrecal.accessor.recal import DataArrayRecal
from xrecal.fit import fit_hindcast as recalibrate
from xrecal.methods.call_errors import explained
from xrecal.methods.doors import Accessor, door

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
    behind = inspect.getdoc(recalibrate.fit)
    assert text.splitlines()[0] == behind.splitlines()[0]
    passed = "The accessor passes its forecasts as the parameter `hindcast`"
    assert f"{passed}, so do not pass it yourself; see :func:`" in text
    assert "\nNotes\n" not in text
    assert "References" not in inspect.getdoc(DataArrayRecal.skce_test)
    assert "]_" not in inspect.getdoc(DataArrayRecal.skce_test)
    assert text.partition("Parameters\n")[2].partition("\n\n")[0] in behind


@pytest.mark.parametrize("name", DOORS)
def test_every_door_names_what_is_behind_it(name):
    (link,) = re.findall(
        r"; see :(?:func|meth):`([\w.]+)`", inspect.getdoc(getattr(DataArrayRecal, name))
    )
    whole = {"rps": "ranked_probability_score"}  # a name that is short for another
    assert pydoc.locate(link).__name__ == whole.get(name, name)


def test_help_on_fit_tells_how_to_see_its_progress():
    assert (
        "progress : bool\n    Whether to show progress on standard error if the work takes"
        in inspect.getdoc(DataArrayRecal.fit)
    )


def test_names_of_other_functions_lead_there():
    assert ":func:`~xrecal.products.statistics.mean`" in inspect.getdoc(DataArrayRecal.quantile)
    assert not re.search(r":(func|meth):`\w+`", inspect.getdoc(DataArrayRecal.skce))


def test_example_of_apply(example_names):
    text = inspect.getdoc(DataArrayRecal.apply)
    example = doctest.DocTestParser().get_doctest(text, dict(example_names), "apply", None, 0)
    assert doctest.DocTestRunner().run(example) == (0, 1)


def test_what_is_behind_is_left_alone():
    assert "\nReferences\n" in inspect.getdoc(diagnostics.skce_test)


def scaled(forecast, by, *, shift=0.0):
    """Scaled; as :func:`other`."""
    if isinstance(by, str):
        raise TypeError("by is text")
    return forecast * by + shift


def undescribed(forecast):
    return forecast


class Held(Accessor):
    _typed_as = "held"

    scaled = door(scaled)
    undescribed = door(undescribed)


def test_a_door_calls_its_function_with_the_forecasts():
    forecast = xr.DataArray([1.0, 2.0])
    assert Held(forecast).scaled(2, shift=1).identical(forecast * 2 + 1)
    assert Held(forecast).undescribed() is forecast


def test_a_docstring_without_parameters_stays():
    assert Held.scaled.__doc__ == "Scaled; as :func:`other`."
    assert Held.undescribed.__doc__ is None


def test_a_signature_lacks_the_forecasts():
    assert str(inspect.signature(Held.scaled)) == "(self, by, *, shift=0.0)"
    assert str(inspect.signature(Held(xr.DataArray(0)).scaled)) == "(by, *, shift=0.0)"


def test_wrong_calls_are_explained_and_errors_inside_are_left_alone():
    held = Held(xr.DataArray([1.0]))
    with pytest.raises(TypeError, match=r"^forecast.held.scaled needs by: write forecast.held.sc"):
        held.scaled()
    with pytest.raises(TypeError, match=r"^forecast.held.scaled has no parameter 'forecast'"):
        held.scaled(2, forecast=1)
    with pytest.raises(TypeError, match=r"^by is text$"):
        held.scaled("2")


def test_a_door_is_one_frame_and_skips_the_explanation_of_its_function():
    @explained("xrecal.frames")
    def frames(forecast):
        return [frame.function for frame in inspect.stack()]

    class Seen(Accessor):
        seen = door(frames)

    assert Seen(xr.DataArray(0)).seen()[:3] == ["frames", "called", inspect.stack()[0].function]


def test_what_wraps_an_explained_function_is_called():
    @explained("xrecal.half")
    def half(forecast):
        return forecast / 2

    @functools.wraps(half)
    def quarter(forecast):
        return half(forecast) / 2

    class Parts(Accessor):
        of_two = door(half)
        of_four = door(quarter)

    assert Parts(xr.DataArray(8.0)).of_two().item() == 4
    assert Parts(xr.DataArray(8.0)).of_four().item() == 2
