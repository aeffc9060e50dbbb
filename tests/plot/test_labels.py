import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from xrecal import plot
from xrecal.plot.labels import (
    WIDTH,
    label_of,
    positions,
    pretty_units,
    range_of_leads,
    shown_labels,
    shown_relation,
    single_labels,
    with_units,
    wrapped,
)


def power(text):
    return f"$\\mathregular{{^{{{text}}}}}$"


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ("K", "K"),
        ("kelvin", "kelvin"),
        ("degree_Celsius", "°C"),
        ("degC", "°C"),
        ("degrees_north", "°N"),
        ("degrees_east", "°E"),
        ("m s-1", f"m s{power('-1')}"),
        ("m s**-1", f"m s{power('-1')}"),
        ("m3 s^-1", f"m{power('3')} s{power('-1')}"),
        ("W/m2", f"W/m{power('2')}"),
        ("0.01 inch", "0.01 inch"),
        ("%", "%"),
        ("1", ""),
        ("dimensionless", ""),
    ],
)
def test_units_as_they_are_printed(units, shown):
    assert pretty_units({"units": units}) == shown
    assert with_units("depth", {"units": units}) == (f"depth ({shown})" if shown else "depth")


def test_names_of_variables():
    array = xr.DataArray(0.0, name="t_2m")
    assert label_of(array) == "t 2m"
    assert label_of(array.assign_attrs(standard_name="air_temperature")) == "air temperature"
    told = array.assign_attrs(standard_name="x", long_name="Temperature", units="K")
    assert label_of(told) == "Temperature (K)"
    assert label_of(xr.DataArray(0.0), "rain") == "rain"


def test_long_names_take_lines_of_about_equal_length():
    name = "minimum of the temperature at two metres above the ground in the valley"
    lines = wrapped(name).split("\n")
    assert " ".join(lines) == name
    assert len(lines) == 3
    assert all(len(line) <= WIDTH for line in lines)
    assert max(map(len, lines)) - min(map(len, lines)) < 12
    assert wrapped("short") == "short"
    assert wrapped("") == ""


def test_long_names_are_not_cut_off():
    forecast = calendar("standard").convert_calendar("standard", use_cftime=False)
    name = "minimum temperature at two metres, 18 to 30 hours"
    ax = plot.fan(forecast.assign_attrs(long_name=name, units="degC"))
    ax.figure.draw_without_rendering()
    box = ax.yaxis.label.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= ax.figure.bbox.y1


def test_lengths_of_time_are_hours_or_days():
    for hours, unit, expected in (([6, 12], "h", [6, 12]), ([24, 72], "d", [1, 3])):
        lead = np.array(hours) * np.timedelta64(1, "h").astype("timedelta64[ns]")
        values, label = positions(xr.DataArray(lead, dims="lead", name="lead"))
        np.testing.assert_array_equal(values, expected)
        assert label == f"lead ({unit})"


def test_dates_speak_for_themselves():
    dates = xr.DataArray(np.array(["2020-01-01"], "M8[ns]"), dims="time", name="time")
    assert positions(dates)[1] == ""
    assert positions(dates.rename("init"))[1] == "init"
    assert positions(dates.assign_attrs(long_name="valid time"))[1] == "valid time"


def test_labels_of_cases():
    days = np.array(["2020-01-01T06", "2021-02-03T06"], "M8[ns]")
    assert shown_labels(days) == ["2020-01-01", "2021-02-03"]
    hours = np.array(["2020-01-01T06", "2021-02-03T12"], "M8[ns]")
    assert shown_labels(hours) == ["2020-01-01 06:00", "2021-02-03 12:00"]
    cftime = xr.date_range("2000-02-29", periods=2, calendar="360_day", use_cftime=True).to_numpy()
    assert shown_labels(cftime) == ["2000-02-29", "2000-02-30"]
    assert shown_labels(np.array([1.5, 2.0])) == ["1.5", "2"]
    assert shown_labels(np.array(["a", "b"])) == ["a", "b"]
    assert shown_labels(np.array([3, 14])) == ["3", "14"]


def test_p_values():
    assert shown_relation(0.0312) == "= 0.031"
    assert shown_relation(1e-5) == "< 0.001"


def calendar(name):
    time = xr.date_range("2000-01-01", periods=30, calendar=name, use_cftime=True)
    values = np.random.default_rng(0).normal(size=(3, 30))
    coords = {"quantile": [0.1, 0.5, 0.9], "time": time}
    return xr.DataArray(np.sort(values, 0), coords, ["quantile", "time"], "t")


@pytest.mark.filterwarnings("ignore:The nonsingular function was deprecated")  # in nc-time-axis
@pytest.mark.parametrize("name", ["noleap", "360_day", "standard"])
def test_dates_of_other_calendars(name):
    ax = plot.fan(calendar(name))
    ax.figure.draw_without_rendering()
    assert any("2000" in text.get_text() for text in ax.get_xticklabels())


def test_dates_of_other_calendars_need_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nc_time_axis", None)
    message = r"dates of the calendar 'noleap' need nc-time-axis: pip install nc-time-axis"
    with pytest.raises(ImportError, match=message):
        plot.fan(calendar("noleap"))
    assert not plt.gcf().axes or not plt.gca().has_data()


def test_leads_as_text():
    hours = xr.DataArray([6, 24, 72], dims="lead", name="lead", attrs={"units": "hours"})
    assert range_of_leads(hours) == "lead 6 to 72 hours"
    lengths = hours.copy(data=np.array([6, 24, 72], "m8[h]").astype("m8[ns]"))
    assert range_of_leads(lengths) == "lead 6 hours to 3 days"
    array = xr.DataArray(np.zeros(3), {"lead": lengths}, ("lead",))
    shown = [single_labels(array[i]) for i in range(3)]
    assert shown == [["lead 6 hours"], ["lead 1 day"], ["lead 3 days"]]
