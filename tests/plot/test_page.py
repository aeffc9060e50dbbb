from functools import cache
from itertools import pairwise

import dask
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from xrecal import plot

from .evidence import by_lead, calibrated, many, one

FORECAST, TRUTH = one()
QUICK = {"n_resamples": 100}


@cache
def page(threshold=None):
    """The page of a plain ensemble at one place, which no test changes."""
    return FORECAST.recal.report(TRUTH, threshold=threshold, **QUICK)


@cache
def page_of_many():
    """The page of a plain ensemble at many places, which no test changes."""
    forecast, truth = many()
    return forecast.recal.report(truth, **QUICK)


TITLES = {
    "pit": "Probability integral transform",
    "ranks": "Ranks",
    "coverage": "Central intervals",
    "spread": "Spread and error",
    "quantiles": "Quantiles",
    "events": "Probabilities",
    "table": "Summary",
}


def titles(figure):
    return [ax.get_title("left") for ax in figure.axes]


def texts(figure, title):
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == title]
    return [text.get_text() for text in ax.texts]


def test_panels_of_a_plain_ensemble():
    assert isinstance(page(281.0), Figure)
    assert titles(page(281.0)) == list(TITLES.values())
    assert titles(page()) == [t for name, t in TITLES.items() if name != "events"]


def test_panels_of_other_forms():
    figure = calibrated().recal.report(TRUTH[80:], **QUICK)
    assert titles(figure) == [t for n, t in TITLES.items() if n not in ("events", "ranks")]
    assert figure.texts[1].get_text() == (
        "weighted ensemble; cases along time, 2020-03-21 to 2020-04-29"
    )


@pytest.mark.parametrize("form", ["ensemble", "quantile"])
def test_cells_of_the_table_do_not_touch(form):
    figure = page_of_many()
    if form == "quantile":
        forecast, truth = many()
        forecast = forecast.recal.quantile([0.1, 0.25, 0.5, 0.9])
        figure = forecast.recal.report(truth, threshold=281.0, **QUICK)
    FigureCanvasAgg(figure).draw()
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == "Summary"]
    rows = {}
    for text in ax.texts[:-1]:
        if text.get_text():
            rows.setdefault(text.get_position()[1], []).append(text.get_window_extent())
    assert len(rows) == 9
    gaps = [(b.x0 - a.x1) * 72 / figure.dpi for row in rows.values() for a, b in pairwise(row)]
    assert min(gaps) > 2  # points
    assert min(box.x0 for row in rows.values() for box in row) > 0
    assert max(box.x1 for row in rows.values() for box in row) < figure.bbox.x1


def test_pyplot_knows_nothing_of_it():
    FORECAST.recal.report(TRUTH, **QUICK)
    assert plt.get_fignums() == []


def test_the_table_is_that_of_the_summary():
    figure = page()
    summary = FORECAST.recal.summary(TRUTH, **QUICK)
    found = texts(figure, "Summary")
    assert found[0] == "CRPS (K)"
    assert found[1] == f"{float(summary.crps):.4g}"
    foot = repr(summary).splitlines()[-1]
    assert foot.startswith("120 cases; successive cases that count as one: PIT ")
    assert " ".join(found[-1].split()) == foot
    rows = dict(zip(found[:-1:2], found[1:-1:2], strict=True))
    assert list(rows) == [
        *("CRPS (K)", "bias (K)", "spread / error", "coverage of 50%", "coverage of 90%"),
        *("SKCE", "PIT p", "SKCE p"),
    ]
    assert rows["SKCE p"] == repr(summary).split("SKCE p")[1].split()[0]


def test_many_places():
    forecast, truth = many()
    figure = page_of_many()
    assert figure.texts[1].get_text().endswith("; locations: 4 lat × 5 lon")
    found = texts(figure, "Summary")
    assert found[:5] == ["", "median", "lowest", "highest", "p < 0.05"]
    pooled = texts(forecast.recal.report(truth, dim=..., **QUICK), "Summary")
    assert pooled[0] == "CRPS (K)"


def test_title():
    assert page().texts[0].get_text() == "Calibration of 2 m temperature at 41°N, 11°E (K)"
    bare = FORECAST.drop_attrs().rename(None).recal.report(TRUTH.drop_attrs(), **QUICK)
    assert bare.texts[0].get_text() == "Calibration of forecast at lat 41, lon 11"


def test_nothing_is_cut_off():
    figure = page(281.0)
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1 - 60  # below the titles


def test_files(tmp_path):
    for name, start in (("page.pdf", b"%PDF"), ("page.PNG", b"\x89PNG")):
        FORECAST.recal.report(TRUTH, None, tmp_path / name, **QUICK)
        assert (tmp_path / name).read_bytes().startswith(start)
    plot.report(FORECAST, TRUTH, path=str(tmp_path / "again.pdf"), **QUICK)
    assert (tmp_path / "again.pdf").read_bytes() == (tmp_path / "page.pdf").read_bytes()
    with pytest.raises(ValueError, match=r"path must end in \.pdf or \.png, got 'page\.svg'; for"):
        FORECAST.recal.report(TRUTH, path="page.svg")


def test_dask_is_computed_once():
    forecast, truth = many()
    runs = []

    def counted(*args, **options):
        runs.append(args)
        return dask.get(*args, **options)

    expected = page_of_many()
    with dask.config.set(scheduler=counted):
        found = forecast.chunk(lat=1).recal.report(truth.chunk(lon=2), **QUICK)
    assert len(runs) == 1
    images = []
    for figure in (expected, found):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        images.append(np.asarray(canvas.buffer_rgba()).copy())
    np.testing.assert_array_equal(*images)


def test_what_has_no_report():
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        FORECAST.recal.report(TRUTH.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="test is 'magic'; give one of"):
        FORECAST.recal.report(TRUTH, test="magic")


# the raw forecast beside, and where it is ---------------------------------------------------------


@cache
def page_with_raw():
    """The page of recalibrated forecasts beside the raw ones of all dates."""
    return calibrated().recal.report(TRUTH, raw=FORECAST, threshold=281.0, **QUICK)


def labels(figure, title):
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == title]
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_raw_forecast_is_drawn_beside_in_each_panel():
    figure = page_with_raw()
    assert figure.texts[1].get_text().startswith("weighted ensemble beside the raw forecast; cases")
    for name in ("coverage", "spread", "events"):
        found = [text for text in labels(figure, TITLES[name]) if text in ("raw", "recalibrated")]
        assert found == ["recalibrated", "raw"]
    assert "raw" in labels(figure, TITLES["pit"])
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == TITLES["pit"]]
    (outline,) = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    same = FORECAST[80:]
    counts = same.recal.pit_histogram(TRUTH).n_in_bin
    np.testing.assert_allclose(outline.get_data().values, counts * 10 / 40)
    found = texts(figure, "Summary")
    assert found[:3] == ["", "raw", "recalibrated"]
    summaries = [one.recal.summary(TRUTH, **QUICK) for one in (same, calibrated())]
    assert found[3:6] == ["CRPS (K)", *(f"{float(one.crps):.4g}" for one in summaries)]


def test_raw_ranks_and_quantiles_are_beside():
    better = (FORECAST[:, :6] - 0.5).assign_attrs(FORECAST.attrs)
    figure = better.recal.report(TRUTH, raw=FORECAST, **QUICK)
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == TITLES["ranks"]]
    (outline,) = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    heights, edges, _ = outline.get_data()
    counts = FORECAST.recal.rank_histogram(TRUTH).n_in_bin
    np.testing.assert_allclose(heights, counts * 10 / 120)
    assert (edges[0], edges[-1]) == (-0.5, 6.5)  # on the axis of seven ranks
    assert labels(figure, TITLES["ranks"])[-1] == "raw"
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == TITLES["quantiles"]]
    assert labels(figure, TITLES["quantiles"])[-1] == "raw"
    n_levels = 5
    own, raw = ax.lines[:n_levels], ax.lines[-n_levels - 1 : -1]  # the diagonal, and the label
    colours = [[line.get_color() for line in lines] for lines in (own, raw)]
    np.testing.assert_array_equal(*colours)
    for drawn, forecast in ((own, better), (raw, FORECAST)):
        data = forecast.recal.quantile_reliability(TRUTH, dim=..., q=0.9)
        x, y = drawn[-1].get_xdata(), drawn[-1].get_ydata()
        given = np.unique(data.forecast_quantile)[[0, -1]]
        np.testing.assert_allclose(x[[0, -1]], given)
        ends = [data.conditional_quantile.min(), data.conditional_quantile.max()]
        np.testing.assert_allclose(y[[0, -1]], ends)


def test_raw_forecasts_of_other_cases_are_refused():
    with pytest.raises(
        ValueError, match="raw lacks 4 of 40 cases along 'time', such as 2020-04-26"
    ):
        calibrated().recal.report(TRUTH, raw=FORECAST[:-4], **QUICK)


def test_the_title_names_station_lead_and_place():
    place = {"station": "Zürich", "lead": np.timedelta64(72, "h"), "height": 2.0}
    here = FORECAST.assign_coords(place)
    here.height.attrs["units"] = "m"
    title = here.recal.report(TRUTH, **QUICK).texts[0].get_text()
    assert title.startswith("Calibration of 2 m temperature at ")
    for text in ("41°N", "11°E", "Zürich", "lead 3 days", "height 2 m"):
        assert text in title.replace("\n", " ")


def test_leads_are_told():
    forecast, truth = (one.isel(place=0, drop=True) for one in by_lead())
    figure = forecast.recal.report(truth, **QUICK)
    assert figure.texts[1].get_text().endswith("locations: 8 lead; lead 1 to 8 days")
