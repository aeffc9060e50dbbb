"""Each figure against a stored image, without text, whose shape differs between machines.

After a change that is meant, look at the new images and store them:

    python -m pytest tests/plot/test_looks.py --mpl-generate-path=tests/plot/baseline
"""

import cartopy.crs as ccrs
import matplotlib.pyplot as plt
import pytest
from cartopy.mpl.gridliner import Gridliner
from matplotlib.text import Text

from xrecal import plot

from .evidence import DATA, FIGURES, by_lead, calibrated, data_of, gaps, lead_skill, one

SMALL = {"dpi": 80}


def bare(figure):
    """The figure without texts in it; those of ticks and titles are removed by pytest-mpl."""
    for text in figure.findobj(Text):
        text.set_visible(False)
    return figure


def axes(size=(4, 3), **options):
    return plt.figure(figsize=size, layout="constrained").add_subplot(**options)


@pytest.mark.each_value
@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
@pytest.mark.parametrize(("name", "place"), DATA, ids=["-".join(key) for key in DATA])
def test_look(name, place):
    """Of lazy data, which stay as they are."""
    lazy = data_of(name, place).chunk()
    before = lazy.copy()
    figure = FIGURES[name](lazy, ax=axes()).figure
    assert lazy.identical(before)
    assert lazy.chunks
    return bare(figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_a_fan_over_dates():
    forecast, truth = gaps()
    return bare(forecast.recal.plot.fan(truth, raw=forecast, ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_a_fan_over_leads():
    forecast, truth = (array.isel(place=0, init=7) for array in by_lead())
    return bare(forecast.recal.plot.fan(truth, raw=forecast, ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL, style="dark_background")
def test_look_of_a_fan_in_the_dark():
    forecast, truth = one()
    return bare(forecast[:40].recal.plot.fan(truth, raw=forecast, ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_a_distribution_with_all_beside_it():
    forecast, truth = one()
    case = calibrated().isel(time=3)
    return bare(case.recal.plot.cdf(truth, raw=forecast, label="CKME", ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_several_thresholds():
    forecast, truth = one()
    return bare(forecast.recal.plot.reliability(truth, [279.0, 281.0, 283.0], ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_several_events():
    forecast, truth = one()
    return bare(forecast.recal.plot.performance(truth, [279.0, 281.0, 283.0], ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_of_several_methods():
    return bare(plot.skill_by_lead(lead_skill(methods=True), ax=axes()).figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs=SMALL)
def test_look_in_a_projection():
    ax = axes(projection=ccrs.LambertConformal(central_longitude=9, central_latitude=41))
    plot.skill_map(data_of("skill_map", "many"), ax=ax)
    for lines in ax.figure.findobj(Gridliner):  # makes its texts as it is drawn
        lines.left_labels = lines.bottom_labels = False
    return bare(ax.figure)


@pytest.mark.mpl_image_compare(remove_text=True, savefig_kwargs={"dpi": 40})
def test_look_of_a_report():
    forecast, truth = one()
    return bare(forecast.recal.report(truth, threshold=281.0, n_resamples=100))
