import numpy as np
import pytest
from scipy.stats import binom

from xrecal import plot

from .evidence import data_of, many

FIGURES = {"pit": (plot.pit, "pit_bin", 10), "rank_histogram": (plot.rank_histogram, "rank", 10)}
EACH = pytest.mark.parametrize(("figure", "dim", "bins"), FIGURES.values(), ids=FIGURES)


def heights(ax):
    return np.array([bar.get_height() for bar in ax.containers[0]])


def band(ax):
    (area,) = [p for p in ax.patches if p.get_label() == "calibrated (90%)"]
    return area.get_y(), area.get_y() + area.get_height()


@EACH
def test_bars_of_one_place(figure, dim, bins):
    data = data_of(figure.__name__, "one")
    ax = figure(data)
    np.testing.assert_allclose(heights(ax), data.n_in_bin * bins / 120)
    assert len(ax.collections) == 0
    assert ax.texts[0].get_text() == "120 cases"
    np.testing.assert_allclose([b.get_x() + b.get_width() / 2 for b in ax.containers[0]], data[dim])


@EACH
def test_band_of_the_binomial_distribution(figure, dim, bins):
    low, high = band(figure(data_of(figure.__name__, "one")))
    expected = binom.ppf([0.05, 0.95], 120, 1 / bins) * bins / 120
    np.testing.assert_allclose([low, high], expected)


@EACH
def test_places_are_pooled_and_their_range_shown(figure, dim, bins):
    data = data_of(figure.__name__, "many")
    ax = figure(data)
    total = data.n_in_bin.sum(["lat", "lon"])
    np.testing.assert_allclose(heights(ax), total * bins / data.n_cases.sum())
    frequency = (data.n_in_bin * bins / data.n_cases.where(data.n_cases > 0)).stack(
        p=["lat", "lon"]
    )
    ends = np.array(ax.collections[0].get_segments())[:, :, 1]
    expected = frequency.quantile([0.05, 0.95], "p").transpose(dim, "quantile")
    np.testing.assert_allclose(ends, expected)
    assert ax.texts[0].get_text() == f"19 locations\n{int(data.n_cases.sum())} cases"
    usual = int(data.n_cases.where(data.n_cases > 0).median())
    np.testing.assert_allclose(band(ax)[0], binom.ppf(0.05, usual, 1 / bins) * bins / usual)


def test_the_test_of_flatness_is_told_for_one_place():
    alone, several = (
        [t.get_text() for t in plot.rank_histogram(data_of("rank_histogram", place)).texts]
        for place in ("one", "many")
    )
    assert data_of("rank_histogram", "one").p_value < 0.001
    assert "flat: p < 0.001" in alone
    assert not any("flat" in text for text in several)


def test_bins_of_any_number():
    forecast, truth = many()
    ax = plot.pit(forecast.recal.pit_histogram(truth, bins=7, dim=...))
    assert len(ax.containers[0]) == 7
    assert ax.get_xlim() == (0, 1)
