import numpy as np
import pytest

from xrecal import plot

from .evidence import curves, data_of, ensemble, labels, many, one

FORECAST, TRUTH = one()


def numbers(ax):
    """Written probabilities and the points that they belong to."""
    return {float(t.get_text()): t.xy for t in ax.texts if t.get_gid() == "xrecal-number"}


def acted(level):
    """Events and other cases at which one acts from a probability on, counted one by one."""
    counts = np.zeros((2, 2))
    for members, truth in zip(FORECAST.to_numpy(), TRUTH.to_numpy(), strict=True):
        counts[int(truth > 281), int((members > 281).mean() >= level)] += 1
    return counts


def test_the_curve_is_that_of_acting_on_each_probability():
    data = data_of("roc", "one")
    ax = plot.roc(data)
    (line,) = curves(ax)
    points = {tuple(np.round(point, 9)) for point in line.get_xydata()}
    for level in (0.1, 0.5, 0.9):
        counts = acted(level)
        rates = counts[:, 1] / counts.sum(1)
        assert tuple(np.round(rates, 9)) in points
    assert {(0.0, 0.0), (1.0, 1.0)} <= points
    for level, at in numbers(ax).items():
        counts = acted(level)
        np.testing.assert_allclose(at, counts[:, 1] / counts.sum(1))
    assert set(numbers(ax)) <= {0.1, 0.3, 0.5, 0.7, 0.9}
    assert labels(ax) == [f"area {data.area.item():.3f} ± {data.area_error.item():.3f}"]
    assert ax.get_title("right") == "more than 281 K"


def test_the_performance_is_that_of_warnings():
    ax = plot.performance(data_of("performance", "one"))
    found = numbers(ax)
    assert found
    for level, at in found.items():
        counts = acted(level)
        success, hits = counts[1, 1] / counts[:, 1].sum(), counts[1, 1] / counts[1].sum()
        np.testing.assert_allclose(at, (success, hits))
    share = float((TRUTH > 281).mean())
    assert f"{share:.1%} of 120 cases are events" in [t.get_text() for t in ax.texts]


def test_lines_of_bias_and_critical_success_index():
    ax = plot.performance(data_of("performance", "one"))
    ends = {t.get_text(): t.xy for t in ax.texts if hasattr(t, "xy") and not t.get_gid()}
    np.testing.assert_allclose(ends["2"], (0.5, 1.0))
    np.testing.assert_allclose(ends["0.5"], (1.0, 0.5))
    contours = next(c for c in ax.collections if hasattr(c, "levels"))
    for index, path in zip(contours.levels, contours.get_paths(), strict=True):
        x, y = path.vertices.T
        np.testing.assert_allclose(1 / (1 / x + 1 / y - 1), index, rtol=0.05)


def test_thresholds_and_second_calls_have_curves_of_their_own():
    for name in ("roc", "performance"):
        figure = getattr(plot, name)
        data = FORECAST.recal.roc(TRUTH, [279.0, 281.0])
        ax = figure(data)
        assert len(curves(ax)) == 2
        assert [text.split(",")[0] for text in labels(ax)] == ["> 279 K", "> 281 K"]
        assert not numbers(ax)
        both = figure(data_of(name, "one"), label="raw")
        n_lines = len(both.lines)
        figure(data_of(name, "gaps"), ax=both, label="gaps")
        assert len({line.get_color() for line in curves(both)}) == 2
        assert len(both.lines) <= n_lines + 2  # the curve and its points
        assert [text.split(",")[0] for text in labels(both)] == ["raw", "gaps"]


def test_many_places_are_a_median_and_a_range_or_need_a_selection():
    forecast, truth = many()
    data = forecast.recal.roc(truth, 281.0)
    (line,) = curves(plot.roc(data))
    x, y = line.get_xydata().T
    found = []
    for i in range(4):
        for j in range(5):
            hits, alarms = (data[n][i, j].to_numpy() for n in ("hit_rate", "false_alarm_rate"))
            if not np.isnan(hits).any():
                found.append(np.interp(0.3, np.append(alarms[::-1], 1), np.append(hits[::-1], 1)))
    np.testing.assert_allclose(y[np.argmin(abs(x - 0.3))], np.median(found), atol=1e-6)
    with pytest.raises(ValueError, match=r"20 along 'lat' and 'lon'; select one: .*dim=\.\.\.\)"):
        plot.performance(data)
    forecast, truth = ensemble()
    assert len(curves(plot.performance(forecast.recal.roc(truth, 281.0, dim=...)))) == 1


def test_nothing_but_events_is_told():
    never = FORECAST.recal.roc(TRUTH, 400.0)
    for name in ("roc", "performance"):
        with pytest.raises(ValueError, match="with the event and cases without it; nothing to"):
            getattr(plot, name)(never)
