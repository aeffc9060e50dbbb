import numpy as np
from matplotlib.collections import LineCollection

from xrecal import plot
from xrecal.plot.bands import error_limits

from .evidence import curves, data_of, ends_at, one

FORECAST, TRUTH = one()


def test_points_band_and_numbers():
    data = data_of("spread_skill", "one")
    ax = plot.spread_skill(data)
    (line,) = curves(ax)
    np.testing.assert_array_equal(line.get_xdata(), data.spread_of_bin)
    np.testing.assert_array_equal(line.get_ydata(), data.rmse_of_bin)
    low, high = data.spread_of_bin.to_numpy() * error_limits(data.n_in_bin)
    for x, *ends in zip(line.get_xdata(), low, high, strict=True):
        np.testing.assert_allclose(ends_at(ax, x), ends)
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
    np.testing.assert_allclose(curves(ax)[0].get_xdata(), at.spread_of_bin.median("p"))
    np.testing.assert_allclose(curves(ax)[0].get_ydata(), at.rmse_of_bin.median("p"))
    assert ax.texts[0].get_text().startswith("medians of 19 locations:\n")


def test_a_single_group():
    ax = plot.spread_skill(FORECAST.recal.spread_skill(TRUTH, bins=1))
    assert any(isinstance(c, LineCollection) for c in ax.collections)
