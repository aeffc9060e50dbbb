import numpy as np
from matplotlib.collections import LineCollection, PolyCollection

from xrecal import plot
from xrecal.plot.bands import error_limits

from .evidence import data_of, one

FORECAST, TRUTH = one()


def curves(ax):
    return [line for line in ax.lines if "curve" in str(line.get_gid())]


def test_points_band_and_numbers():
    data = data_of("spread_skill", "one")
    ax = plot.spread_skill(data)
    (line,) = curves(ax)
    np.testing.assert_array_equal(line.get_xdata(), data.spread_of_bin)
    np.testing.assert_array_equal(line.get_ydata(), data.rmse_of_bin)
    area = next(a for a in ax.collections if isinstance(a, PolyCollection))
    points = area.get_paths()[0].vertices
    low, high = data.spread_of_bin.to_numpy() * error_limits(data.n_in_bin)
    for x, ends in zip(line.get_xdata(), zip(low, high, strict=True), strict=True):
        here = points[np.isclose(points[:, 0], x), 1]
        np.testing.assert_allclose([here.min(), here.max()], ends)
    bias = f"{float(data.bias):+.3g}".replace("-", "−")
    assert ax.texts[0].get_text() == f"spread / error {float(data.ratio):.2f}\nbias {bias} K"
    assert ax.get_xlabel() == "spread (K)"
    assert ax.get_ylabel() == "error of the mean (RMSE) (K)"


def test_groups_of_many_places():
    data = data_of("spread_skill", "many")
    ax = plot.spread_skill(data)
    dots = next(line for line in ax.lines if line.get_gid() is None)
    np.testing.assert_array_equal(
        np.sort(dots.get_xydata()[:, 0]), np.sort(data.spread_of_bin.to_numpy().ravel())
    )
    at = data.stack(p=["lat", "lon"])
    for i, (x, y) in enumerate(dots.get_xydata()):
        assert x in data.spread_of_bin or np.isnan(x), i
        pair = (data.spread_of_bin == x) & (data.rmse_of_bin == y)
        assert pair.any() or np.isnan(x)
    np.testing.assert_allclose(curves(ax)[0].get_xdata(), at.spread_of_bin.median("p"))
    np.testing.assert_allclose(curves(ax)[0].get_ydata(), at.rmse_of_bin.median("p"))
    assert ax.texts[0].get_text().startswith("medians of 19 locations:\n")


def test_a_single_group():
    ax = plot.spread_skill(FORECAST.recal.spread_skill(TRUTH, bins=1))
    assert any(isinstance(c, LineCollection) for c in ax.collections)


def test_curves_can_be_compared_on_the_same_axes():
    data = data_of("spread_skill", "one")
    ax = plot.spread_skill(data, label="raw")
    plot.spread_skill(
        2 * data.drop_vars("n_in_bin").assign(n_in_bin=data.n_in_bin), ax=ax, label="2"
    )
    assert ax.get_xlim()[1] >= 2 * float(data.rmse_of_bin.max())
    assert len({line.get_color() for line in curves(ax)}) == 2
    assert not ax.texts
