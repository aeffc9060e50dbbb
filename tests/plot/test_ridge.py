import numpy as np
import pytest

from xrecal import plot

from .evidence import curve, curves, ends_at


def test_the_curve_of_one_place():
    data = curve()
    ax = plot.ridge_curve(data)
    np.testing.assert_array_equal(curves(ax)[0].get_xydata().T, [data.ridge, data.loss])
    (chosen,) = [line for line in ax.lines if str(line.get_label()).startswith("chosen")]
    np.testing.assert_array_equal(chosen.get_xdata(), [data.chosen_ridge] * 2)
    assert ax.get_xscale() == "log"
    assert ax.get_ylabel() == "mean held-out CRPS (K)"
    low, high = ax.get_ylim()
    assert low < float(data.loss.min()) < high <= 1.41 * float(data.loss.min())


def test_the_curves_of_many_places():
    data = curve("many")
    ax = plot.ridge_curve(data)
    excess = 100 * (data.loss / data.loss.min("ridge") - 1).stack(p=["lat", "lon"])
    np.testing.assert_allclose(curves(ax)[0].get_ydata(), excess.median("p"))
    for i in (0, 6, 12):
        expected = excess.isel(ridge=i).quantile([0.05, 0.95])
        np.testing.assert_allclose(ends_at(ax, float(data.ridge[i])), expected)
    ticks = next(line for line in ax.lines if line.get_label() == "chosen")
    known = data.chosen_ridge.to_numpy().ravel()
    np.testing.assert_array_equal(ticks.get_xdata(), known[~np.isnan(known)])
    assert known.size == 4
    assert ax.get_title("right") == "median and 90% of 3 locations"


def test_no_curve():
    with pytest.raises(ValueError, match="no location has a curve, as there are too few cases"):
        plot.ridge_curve(curve().where(False))
