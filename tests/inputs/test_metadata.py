import itertools

import numpy as np
import pytest
import xarray as xr

from xrecal.inputs.metadata import check_units, same_units

SPELLINGS = [
    ["K", "kelvin", "Kelvin", " K "],
    ["degC", "degree_Celsius", "°C", "celsius", "Celsius", "deg_C", "degrees_C", "C", "deg C"],
    ["degF", "degrees_Fahrenheit", "°F"],
    ["mm", "kg m-2", "kg m**-2", "kg/m^2", "kg m^-2", "kg/m2", "kg m⁻²", "m-2 kg", "millimeters"],
    ["m s-1", "m/s", "m s**-1", "m  s-1", "m s^-1", "m s⁻¹", "m.s-1", "m*s**-1", "meters/second"],
    ["1", "", "dimensionless", "-", "(0 - 1)"],
    ["m3 s-1", "m**3 s**-1", "m3/s", "m^3/s", "m³ s⁻¹"],
    ["Pa", "pascal"],
    ["hPa", "mbar", "millibar", "mb"],
    ["%", "percent"],
    ["mm day-1", "mm/day", "mm d-1", "mm d**-1", "kg m-2 day-1"],
    ["degree", "degrees", "deg"],
    ["d", "day", "days"],
    ["days since 2000-01-01"],
    ["knots", "kt", "knot"],
    ["W m-2", "W m**-2", "W/m2"],
    ["m2 s-2", "m**2 s**-2"],
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda s: s[0])
def test_spellings_of_one_unit_are_equal(spellings):
    for a, b in itertools.product(spellings, repeat=2):
        assert same_units(a, b), (a, b)
        assert check_units("hindcast", a, "observations", b) is None


def test_different_units_differ():
    for (i, a), (j, b) in itertools.product(enumerate(SPELLINGS), repeat=2):
        if i != j:
            assert not any(same_units(x, y) for x, y in itertools.product(a, b)), (a[0], b[0])


def test_case_matters_for_symbols():
    assert not same_units("mm", "Mm")
    assert not same_units("s", "S")
    assert not same_units("k", "K")


def test_missing_units_are_noted():
    assert check_units("hindcast", None, "observations", None) is None
    note = check_units("hindcast", "K", "observations", None)
    assert note == "units of observations not stated, taken as K"
    note = check_units("hindcast", None, "observations", "mm")
    assert note == "units of hindcast not stated, taken as mm"


def test_message_names_the_conversion():
    with pytest.raises(ValueError, match="hindcast is in K") as error:
        check_units("hindcast", "K", "observations", "degC")
    assert str(error.value) == (
        "hindcast is in K but observations are in degC; if the values are converted already, "
        "correct the attribute units alone; otherwise convert first: "
        "observations = (observations + 273.15).assign_attrs(units='K')"
    )
    with pytest.raises(ValueError, match=r"\(observations \* 1000\)\.assign_attrs\(units='mm'\)"):
        check_units("hindcast", "mm", "observations", "m")
    with pytest.raises(ValueError, match="forecast is in no unit but observations are in %"):
        check_units("forecast", "", "observations", "%")


EQUAL_QUANTITIES = [
    [(300.0, "K"), (26.85, "degC"), (80.33, "degF")],
    [(1.5, "m"), (1500.0, "mm"), (150.0, "cm"), (0.0015, "km"), (1500.0, "kg m-2")],
    [(101325.0, "Pa"), (1013.25, "hPa"), (101.325, "kPa"), (1013.25, "mbar")],
    [(10.0, "m s-1"), (36.0, "km h-1"), (36000.0 / 1852.0, "knots"), (36.0, "km/h")],
    [(0.25, "1"), (25.0, "%"), (0.25, "")],
    [(86.4, "mm day-1"), (0.001, "kg m-2 s-1"), (3.6, "mm/h"), (1e-6, "m s-1")],
    [(2.0, "d"), (48.0, "h"), (2880.0, "min"), (172800.0, "s")],
    [(1.0, "km2"), (1e6, "m**2")],
]


@pytest.mark.parametrize("quantities", EQUAL_QUANTITIES, ids=lambda q: q[0][1])
def test_suggested_conversion_is_right(quantities):
    for (expected, units_a), (value, units_b) in itertools.permutations(quantities, 2):
        if same_units(units_a, units_b):
            continue
        with pytest.raises(ValueError, match="; otherwise convert first: observations = ") as error:
            check_units("hindcast", units_a, "observations", units_b)
        line = str(error.value).partition("observations = ")[2]
        converted = eval(line, {"observations": xr.DataArray(value)})
        assert converted.attrs == {"units": units_a}
        np.testing.assert_allclose(converted, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("a", "b"), [("K", "m"), ("K", "Pa"), ("degC2", "K2"), ("degC d-1", "K d-1"), ("foo", "bar")]
)
def test_unknown_conversions_are_left_to_the_user(a, b):
    with pytest.raises(
        ValueError, match="convert one of them so that both have the same units attribute"
    ):
        check_units("hindcast", a, "observations", b)
