"""Laws of all figures: Axes, inputs, Dask, settings of matplotlib, errors."""

import subprocess
import sys
from functools import cache

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from xrecal import plot

from .evidence import DATA, FIGURES, curves, data_of, labels

EACH = pytest.mark.parametrize(("name", "place"), DATA, ids=["-".join(key) for key in DATA])
ONE = dict(reversed(DATA))
ONCE = pytest.mark.parametrize(("name", "place"), ONE.items(), ids=ONE)


def test_every_figure_has_data():
    assert set(ONE) == set(FIGURES)


@ONCE
def test_draws_on_the_axes_given_and_returns_them(name, place):
    figure, (left, right) = plt.subplots(1, 2)
    assert FIGURES[name](data_of(name, place), ax=left) is left
    assert left.has_data()
    assert not right.has_data()
    assert plt.get_fignums() == [figure.number]
    assert plt.gcf() is figure


@cache
def drawn(name, place):
    """A figure of its own, laid out, which no test changes; drawing leaves the data alone."""
    data, figures = data_of(name, place), plt.get_fignums()
    before = data.copy(deep=True)
    ax = FIGURES[name](data)
    assert data.identical(before)
    assert plt.get_fignums() == [*figures, ax.figure.number]
    ax.figure.canvas.draw()
    return ax


@pytest.mark.each_value
@EACH
def test_makes_a_figure_of_its_own_otherwise(name, place):
    ax = drawn(name, place)
    assert isinstance(ax, plt.Axes)
    assert ax.get_xlabel() or name in ("fan", "monitor")  # dates of "time" speak for themselves
    assert ax.get_ylabel()


@pytest.mark.each_value
@EACH
def test_nothing_lies_outside_the_figure(name, place):
    """Labels, ticks and legends are not cut off, and the legend lies inside the Axes."""
    ax = drawn(name, place)
    figure = ax.figure
    whole, tight = figure.bbox, ax.get_tightbbox()
    assert tight.x0 >= whole.x0 - 1
    assert tight.y0 >= whole.y0 - 1
    assert tight.x1 <= whole.x1 + 1
    assert tight.y1 <= whole.y1 + 1
    if ax.get_legend() is not None:
        inside, legend = ax.bbox, ax.get_legend().get_window_extent()
        assert legend.x1 - legend.x0 <= inside.width
        assert legend.y0 >= inside.y0 - 1
        assert legend.y1 <= inside.y1 + 1


@ONCE
def test_legible_on_a_dark_background(name, place):
    with plt.style.context("dark_background"):
        ax = FIGURES[name](data_of(name, place))
        text = [t for t in ax.texts if t.get_text()]
        assert all(mpl.colors.to_rgb(t.get_color()) == (1, 1, 1) for t in text)
        for spine in ("left", "bottom"):
            assert mpl.colors.to_rgb(ax.spines[spine].get_edgecolor()[:3]) == (1, 1, 1)


@ONCE
def test_an_array_of_axes_is_refused(name, place):
    _, axes = plt.subplots(1, 2)
    with pytest.raises(TypeError, match=r"must be one matplotlib Axes, got ndarray.*ax=axes\[0\]"):
        FIGURES[name](data_of(name, place), ax=axes)


CURVES = ["coverage", "spread_skill", "ridge_curve", "reliability", "roc", "performance"]


@pytest.mark.parametrize("name", CURVES)
def test_curves_can_be_compared_on_the_same_axes(name):
    """Each call adds a curve in a colour of its own; bands and references are drawn once."""
    ax = FIGURES[name](data_of(name, "one"), label="raw")
    before = [len(part) for part in (ax.collections, ax.child_axes)]
    references = [line for line in ax.lines if line.get_gid() == "xrecal-reference"]
    FIGURES[name](data_of(name, "gaps"), ax=ax, label="gaps")
    assert [len(part) for part in (ax.collections, ax.child_axes)] == before
    assert references == [line for line in ax.lines if line.get_gid() == "xrecal-reference"]
    assert len({line.get_color() for line in curves(ax)}) == 2
    found = [text.split(",")[0] for text in labels(ax)]
    assert found.index("raw") < found.index("gaps")


DIAGNOSTICS = [name for name in ONE if name not in ("fan", "cdf", "density")]


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_other_data_are_refused(name):
    with pytest.raises(TypeError, match=rf"{name} draws .*, got ndarray"):
        FIGURES[name](np.zeros(3))
    with pytest.raises(ValueError, match=rf"{name} draws .* found \['nothing'\]"):
        FIGURES[name](xr.Dataset({"nothing": 1.0}))


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_nothing_but_missing_values_is_refused(name):
    data = data_of(name, ONE[name])
    empty = data.where(False)
    for count in ("n_cases", "n_in_bin"):
        if count in data:
            empty[count] = xr.zeros_like(data[count])
    with pytest.raises(ValueError, match="nothing to draw"):
        FIGURES[name](empty)


def test_a_missing_matplotlib_is_told():
    code = "import sys; sys.modules['matplotlib'] = None; import xrecal; xrecal.plot"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "ImportError: figures need matplotlib: pip install 'xrecal[plot]'"
    assert done.stderr.strip().endswith(message)


def test_every_figure_is_told_of():
    for name in plot.__all__:
        assert name in plot.__doc__
        assert callable(getattr(plot, name))
