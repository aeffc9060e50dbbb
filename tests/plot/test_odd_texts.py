"""Names and units that matplotlib or a browser would take for more than text are shown as typed."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text

import xrecal
from xrecal import plot
from xrecal.plot.labels import label_of, shown_labels

from .evidence import lead_skill, many, one

TEXTS = [
    r"$\frac{$",
    "100 % of $x",
    "$x^n$ and $",
    "from $ to $",
    "a^{b and \\alpha\\",
    r"5 \$",
    "<script>alert('&amp;')</script>",
]
"""Without underscores, which names lose, and digits behind letters, which units raise."""


def shown(figure):
    """Texts of a figure as they are drawn; each is drawn without an error."""
    figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert not any(is_math_text(text) for text in texts)
    return [" ".join(text.replace(r"\$", "$").split()) for text in texts]


def odd(text, place=one):
    """Forecasts and observations of a variable with that name and unit."""
    attrs = {"long_name": text, "units": text}
    return tuple(array.assign_attrs(attrs) for array in place())


@pytest.mark.parametrize("text", TEXTS)
def test_labels(text):
    figure = Figure()
    forecast, _ = odd(text)
    figure.text(0, 0, label_of(forecast, width=100))
    figure.text(0, 0, shown_labels(np.array([text]))[0])
    assert shown(figure) == [f"{text} ({text})", text]


@pytest.mark.parametrize("text", TEXTS[:2])
def test_figures_of_forecasts(text):
    forecast, truth = odd(text)
    label = f"{text} ({text})"
    for ax in (
        forecast.recal.plot.fan(truth, raw=forecast),
        forecast[3].recal.plot.cdf(truth[3], raw=forecast[3]),
        forecast[3].recal.plot.density(truth[3]),
    ):
        assert label in shown(ax.figure)
    assert f"probability density (per {text})" in shown(ax.figure)
    plt.close("all")


@pytest.mark.parametrize("text", TEXTS[:2])
def test_figures_of_evidence(text):
    forecast, truth = odd(text)
    drawn = shown(forecast.recal.plot.spread_skill(truth).figure)
    assert f"spread ({text})" in drawn
    drawn = shown(forecast.recal.plot.reliability(truth, 281.0).figure)
    assert f"issued probability of more than 281 {text}" in drawn
    drawn = shown(forecast.recal.plot.reliability(truth, [280.0, 281.0]).figure)
    assert f"> 281 {text}" in drawn
    skill = lead_skill(methods=True).assign_coords(method=["raw", text])
    skill["lead"].attrs["long_name"] = text
    drawn = shown(plot.skill_by_lead(skill).figure)
    assert {text, f"{text} (days)"} <= set(drawn)
    plt.close("all")


def test_report(tmp_path):
    text, along = " ".join(TEXTS[:2]), "$\\time{$ <b>"
    forecast, truth = (array.isel(lat=1, lon=[2, 3]) for array in odd(text, many))
    forecast, truth = (array.rename(lon=text, time=along) for array in (forecast, truth))
    page = forecast.recal.report(truth, along, tmp_path / "page.png", n_resamples=20)
    drawn = shown(page)
    assert f"Calibration of {text} at 41°N ({text})" in " ".join(drawn).replace("\n", " ")
    assert f"CRPS ({text})" in drawn
    assert any(f"cases along {along}" in one and f"2 {text}" in one for one in drawn)


def test_dollars_beside_exponents():
    """Exponents of units are raised, what the user typed is not parsed."""
    forecast, truth = (array.assign_attrs(units="$ m-2") for array in one())
    ax = forecast.recal.plot.spread_skill(truth)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel() == r"spread (\$ m$\mathregular{^{-2}}$)"
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
def test_html_of_notebooks():
    """Tags of names are no tags of the page."""
    tag = "<script>alert('&')</script>"
    forecast, truth = odd(tag, many)
    forecast, truth = (
        array[:, ..., :2, :2].rename(tag, lat=tag + "2") for array in (forecast, truth)
    )
    model = forecast.recal.fit(truth, xrecal.EMOS(), pool="lon")
    summary = forecast.recal.summary(truth, n_resamples=20)
    for shown_in_notebook in (model, summary, xrecal.CKME(condition_on=tag)):
        html = shown_in_notebook._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html
