import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection

from xrecal import plot
from xrecal.plot.bands import reliability_limits

from .evidence import calibrated, curves, data_of, ends_at, labels, many, one

FORECAST, TRUTH = one()


# probabilities ------------------------------------------------------------------------------------


def test_the_curve_is_the_isotonic_regression():
    data = data_of("reliability", "one")
    ax = plot.reliability(data)
    (line,) = curves(ax)
    x, at = np.unique(data.probability, return_index=True)
    expected = data.conditional_probability.to_numpy()[at]
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([x, expected]))
    assert line.get_marker() == "o"  # ten different probabilities
    assert ax.get_xlabel() == "issued probability of more than 281 K"
    diagonal = next(line for line in ax.lines if line.get_gid() == "xrecal-reference")
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])


def test_many_probabilities_are_a_line_without_points():
    data = calibrated().recal.reliability(TRUTH[80:], 281.0)
    (line,) = curves(plot.reliability(data))
    x, at = np.unique(data.probability, return_index=True)
    assert x.size > 30
    expected = data.conditional_probability.to_numpy()[at]
    np.testing.assert_allclose(np.interp(x, *line.get_xydata().T), expected)
    assert line.get_marker() == "None"


def test_the_band_and_the_distribution_of_a_single_curve():
    data = data_of("reliability", "one")
    ax = plot.reliability(data)
    at, (low, high) = reliability_limits(data.probability.to_numpy())
    for x, *ends in zip(at, low, high, strict=True):
        np.testing.assert_allclose(ends_at(ax, x), ends)
    (inset,) = ax.child_axes
    heights = inset.collections[0].get_paths()[0].vertices[:, 1]
    counts, _ = np.histogram(data.probability, 20, (0, 1))
    assert heights.max() == counts.max()
    assert (inset.get_yscale() == "log") == (counts.max() > 30 * counts[counts > 0].min())


def test_the_distribution_makes_room_for_a_curve_below_the_diagonal():
    data = data_of("reliability", "one")
    for share, left in ((1.0, 0.62), (0.0, 0.12)):
        conditional = xr.full_like(data.conditional_probability, share)
        ax = plot.reliability(data.assign(conditional_probability=conditional))
        (inset,) = ax.child_axes
        ax.figure.draw_without_rendering()
        x = ax.transAxes.inverted().transform(inset.get_window_extent())[0, 0]
        assert x == pytest.approx(left)


def test_lines_of_the_climatology_and_of_no_skill():
    data = data_of("reliability", "one")
    ax = plot.reliability(data)
    share = float((TRUTH > 281).mean())
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_allclose(lines[f"climatology {share:.2g}"][:, 1], share)
    # Where the curve is on this line the Brier score of a bin is that of the share.
    x, y = lines["no skill"].T
    np.testing.assert_allclose((y - x) ** 2, (y - share) ** 2)
    several = FORECAST.recal.plot.reliability(TRUTH, [279.0, 281.0])
    assert len(several.lines) == 3


def test_the_score_and_its_parts_are_told():
    data = data_of("reliability", "one")
    (text,) = plot.reliability(data).texts
    score, *parts = (float(line.split()[0 if i else 2]) if i == 0 else float(line.split()[1])
                     for i, line in enumerate(text.get_text().split("\n")))  # fmt: skip
    assert score == pytest.approx(float(data.brier_score), abs=6e-4)
    assert score == pytest.approx(parts[0] - parts[1] + parts[2], abs=2e-3)
    assert not plot.reliability(data, label="raw").texts


def test_an_event_that_is_never_forecast_is_told():
    never = FORECAST.recal.plot.reliability(TRUTH, 400.0)
    told = "forecast probability never differs from 0"
    assert [text.get_text() for text in never.texts if "never" in text.get_text()] == [told]
    both = FORECAST.recal.plot.reliability(TRUTH, [281.0, 400.0])
    assert [text.get_text() for text in both.texts] == [f"> 400 K: {told}"]
    forecast, truth = many()
    n = int((truth.notnull().any("time")).sum())
    rare = forecast.where((forecast.lat == forecast.lat[1]) & (forecast.lon == forecast.lon[1]), 0)
    ax = rare.recal.plot.reliability(truth, 281.0)
    assert [text.get_text() for text in ax.texts] == [f"{told}\nat {n - 1} of {n} locations"]
    sure = rare.where(rare.lat != rare.lat[0], 400.0).recal.plot.reliability(truth, 281.0)
    assert sure.texts[0].get_text().startswith("forecast probability never differs\nat ")
    assert not [t for t in plot.reliability(data_of("reliability", "many")).texts if t.get_text()]


def test_thresholds_have_names():
    data = FORECAST.recal.reliability(TRUTH, [279.0, 281.5])
    ax = plot.reliability(data)
    assert labels(ax) == ["> 279 K", "> 281.5 K"]
    assert len(curves(ax)) == 2
    assert not any(isinstance(a, PolyCollection) for a in ax.collections)


def test_many_places_are_a_median_and_a_range():
    forecast, truth = many()
    data = forecast.recal.reliability(truth, 281.0)
    ax = plot.reliability(data)
    (line,) = curves(ax)
    x, y = line.get_xydata().T
    found = []
    for i in range(4):
        for j in range(5):
            p = data.probability[:, i, j].to_numpy()
            c = data.conditional_probability[:, i, j].to_numpy()
            known = ~np.isnan(c)
            if known.any():
                u, at = np.unique(p[known], return_index=True)
                found.append(np.interp(x, u, c[known][at], left=np.nan, right=np.nan))
    assert len(found) == 19
    np.testing.assert_allclose(y, np.nanmedian(found, 0))
    expected = np.nanquantile(np.array(found)[:, 50], [0.05, 0.95])
    np.testing.assert_allclose(ends_at(ax, x[50]), expected)


# quantiles ----------------------------------------------------------------------------------------


def test_curves_of_quantiles():
    data = data_of("quantile_reliability", "one")
    ax = plot.quantile_reliability(data)
    drawn = [line for line in ax.lines if line.get_gid() is None]
    for i, (line, level) in enumerate(zip(drawn, data["quantile"].to_numpy(), strict=True)):
        x, at = np.unique(data.forecast_quantile.isel(quantile=i), return_index=True)
        expected = data.conditional_quantile.isel(quantile=i).to_numpy()[at]
        np.testing.assert_allclose(np.interp(x, *line.get_xydata().T), expected)
        assert line.get_label() == f"{level:g}: {float(data.below[i]):.0%} below"
    assert ax.get_xlabel() == "issued quantile (K)"


def test_levels_in_any_order_and_alone():
    data = FORECAST.recal.quantile_reliability(TRUTH, [0.9, 0.1])
    assert [text.split(":")[0] for text in labels(plot.quantile_reliability(data))] == [
        "0.1",
        "0.9",
    ]
    alone = FORECAST.recal.quantile_reliability(TRUTH, 0.9)
    assert labels(plot.quantile_reliability(alone)) == labels(plot.quantile_reliability(data))[1:]


def test_quantiles_of_many_places_need_a_selection():
    forecast, truth = many()
    data = forecast.recal.quantile_reliability(truth)
    message = r"quantile_reliability shows one location .* or pool their cases: .*dim=\.\.\."
    with pytest.raises(ValueError, match=message):
        plot.quantile_reliability(data)
    plot.quantile_reliability(data.isel(lat=1, lon=1))
    plot.quantile_reliability(forecast.recal.quantile_reliability(truth, dim=...))
