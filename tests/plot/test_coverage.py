import numpy as np
import pytest
from scipy.stats import binom

from xrecal import plot

from .evidence import curves, data_of, ends_at, one

FORECAST, TRUTH = one()


def test_points_and_widths():
    data = data_of("coverage", "one")
    ax = plot.coverage(data)
    (line,) = curves(ax)
    np.testing.assert_array_equal(line.get_xdata(), data.level)
    np.testing.assert_array_equal(line.get_ydata(), data.coverage)
    assert [text.get_text() for text in ax.texts] == [f"{w:.3g}" for w in data.width.to_numpy()]
    assert ax.get_xlabel() == "probability of the central interval\nnumbers: mean width (K)"


def test_band_of_the_binomial_distribution():
    ax = plot.coverage(data_of("coverage", "one"))
    for level in (0.25, 0.5, 0.9):
        expected = binom.ppf([0.05, 0.95], 120, level) / 120
        np.testing.assert_allclose(ends_at(ax, level), expected)


def test_median_and_range_of_places():
    data = data_of("coverage", "many")
    ax = plot.coverage(data)
    flat = data.coverage.stack(p=["lat", "lon"])
    np.testing.assert_allclose(curves(ax)[0].get_ydata(), flat.median("p"))
    ends = np.array(ax.collections[1].get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, flat.quantile([0.05, 0.95], "p").transpose("level", ...))


def test_levels_in_any_order_and_alone():
    data = FORECAST.recal.coverage(TRUTH, level=[0.9, 0.5])
    ordered = FORECAST.recal.coverage(TRUTH, level=[0.5, 0.9])
    found, expected = (curves(plot.coverage(d))[0].get_xydata() for d in (data, ordered))
    np.testing.assert_array_equal(found, expected)
    alone = plot.coverage(FORECAST.recal.coverage(TRUTH, level=0.5))
    np.testing.assert_array_equal(curves(alone)[0].get_xydata(), expected[:1])


def test_intervals_that_quantiles_leave_open_are_told():
    quantiles = FORECAST.recal.quantile([0.1, 0.25, 0.75, 0.9])
    ax = quantiles.recal.plot.coverage(TRUTH)
    (line,) = curves(ax)
    np.testing.assert_array_equal(np.isnan(line.get_ydata()), [False, False, True])
    quantiles.recal.plot.coverage(TRUTH, ax=ax, label="again")
    told = [text.get_text() for text in ax.texts if "known" in text.get_text()]
    assert told == ["90%: not known from these quantiles"]


def test_no_case():
    data = data_of("coverage", "one")
    with pytest.raises(ValueError, match="no location has a case with forecast and observation"):
        plot.coverage(data.assign(n_cases=0 * data.n_cases))
