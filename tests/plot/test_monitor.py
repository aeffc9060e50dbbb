import numpy as np
import pytest

from xrecal import plot

from .evidence import data_of


def lines(ax):
    return {line.get_label(): line for line in ax.lines if "curve" in str(line.get_gid())}


def test_curves_limits_and_alarms():
    data = data_of("monitor", "one")
    ax = plot.monitor(data)
    e_value = lines(ax)["e-value"]
    known = ~np.isnan(e_value.get_ydata())
    np.testing.assert_allclose(e_value.get_ydata()[known], data.e_value)
    assert (~known).sum() == int(data.restarts.sum()) == 2  # cut where it begins anew
    np.testing.assert_allclose(lines(ax)["change"].get_ydata(), data.change_statistic)
    heights = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]
    assert {100.0, 3650} == set(heights)
    (dots,) = (line for line in ax.lines if line.get_label() == "alarm")
    alarm = data.alarm.to_numpy()
    first = alarm & ~np.append(False, alarm[:-1] & ~data.restarts.to_numpy()[1:])
    np.testing.assert_array_equal(dots.get_xdata(), data.time[first])
    assert 0 < first.sum() < 3
    assert len(ax.patches) == int(data.change.sum()) > 0
    assert ax.get_yscale() == "log"


def test_many_places_are_counted():
    data = data_of("monitor", "many")
    ax = plot.monitor(data)
    np.testing.assert_allclose(
        lines(ax)["change"].get_ydata(), 10 ** np.log10(data.change_statistic).median("place")
    )
    alarms, changes = (int(data[name].any("time").sum()) for name in ("alarm", "change"))
    told = f"; alarm at {alarms} of 12 and change at {changes} of 12"
    assert ax.get_title(loc="right").endswith(told)
    assert not ax.patches


def test_cases_without_labels():
    data = data_of("monitor", "one").drop_vars("time")
    position = np.searchsorted(data_of("monitor", "one").time, data.since)
    ax = plot.monitor(data.assign(since=("time", position.astype(float))))
    assert ax.get_xlabel() == "time"
    assert len(ax.patches) == int(data.change.sum())


def test_an_e_value_beyond_all_bounds_is_cut():
    data = data_of("monitor", "one")
    ax = plot.monitor(data.assign(e_value=data.e_value * 1e200))
    assert ax.get_ylim()[0] == pytest.approx(1e-2)
    assert 3650e2 < ax.get_ylim()[1] < 1e8
    curve = next(line for line in ax.lines if line.get_label() == "e-value")
    ax.figure.draw_without_rendering()
    assert curve.clipbox.y1 <= ax.get_legend().get_window_extent().y0
