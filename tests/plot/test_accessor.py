"""``.recal.plot`` and ``.recal.report``: evidence made and handed over."""

import inspect

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal import plot
from xrecal.accessor.plot import Plots

from .evidence import by_lead, calibrated, data_of, ensemble, many, one, pixels

FORECAST, TRUTH = one()
GRID, GRID_TRUTH = many()
CKME = xrecal.CKME(support="observations", folds="block")
METHODS = [name for name in plot.__all__ if name != "report"]


def better(forecast, truth):
    return forecast - 0.8 * (forecast - truth).mean(["time", "member"])


def skill(forecast, truth, reference):
    return xrecal.skill(forecast.recal.crps(truth), reference.recal.crps(truth))


def case():
    return calibrated().isel(time=3)


LEADS, LEADS_TRUTH = (array.isel(place=0) for array in by_lead())

DOORS = {
    "fan": (
        lambda: FORECAST.recal.plot.fan(TRUTH, raw=FORECAST),
        lambda: plot.fan(
            FORECAST.recal.quantile([0.05, 0.25, 0.5, 0.75, 0.95]), observations=TRUTH, raw=FORECAST
        ),
    ),
    "cdf": (
        lambda: case().recal.plot.cdf(TRUTH, raw=FORECAST, label="CKME"),
        lambda: plot.cdf(case(), observations=TRUTH[83], raw=FORECAST[83], label="CKME"),
    ),
    "density": (
        lambda: case().recal.plot.density(TRUTH, raw=FORECAST),
        lambda: plot.density(case(), observations=TRUTH[83], raw=FORECAST[83]),
    ),
    "pit": (
        lambda: FORECAST.recal.plot.pit(TRUTH, "time", bins=7, seed=3),
        lambda: plot.pit(FORECAST.recal.pit_histogram(TRUTH, "time", bins=7, seed=3)),
    ),
    "rank_histogram": (
        lambda: FORECAST.recal.plot.rank_histogram(TRUTH, seed=3),
        lambda: plot.rank_histogram(FORECAST.recal.rank_histogram(TRUTH, seed=3)),
    ),
    "reliability": (
        lambda: GRID.recal.plot.reliability(GRID_TRUTH, 281.0, dim=..., label="all"),
        lambda: plot.reliability(GRID.recal.reliability(GRID_TRUTH, 281.0, dim=...), label="all"),
    ),
    "quantile_reliability": (
        lambda: FORECAST.recal.plot.quantile_reliability(TRUTH, [0.2, 0.8]),
        lambda: plot.quantile_reliability(FORECAST.recal.quantile_reliability(TRUTH, [0.2, 0.8])),
    ),
    "roc": (
        lambda: GRID.recal.plot.roc(GRID_TRUTH, 281.0, dim=..., label="all"),
        lambda: plot.roc(GRID.recal.roc(GRID_TRUTH, 281.0, dim=...), label="all"),
    ),
    "performance": (
        lambda: FORECAST.recal.plot.performance(TRUTH, [280.0, 282.0]),
        lambda: plot.performance(FORECAST.recal.roc(TRUTH, [280.0, 282.0])),
    ),
    "coverage": (
        lambda: FORECAST.recal.plot.coverage(TRUTH, level=[0.3, 0.6], seed=1),
        lambda: plot.coverage(FORECAST.recal.coverage(TRUTH, level=[0.3, 0.6], seed=1)),
    ),
    "monitor": (
        lambda: FORECAST.recal.plot.monitor(TRUTH, alpha=0.1),
        lambda: plot.monitor(FORECAST.recal.monitor(TRUTH, alpha=0.1)),
    ),
    "spread_skill": (
        lambda: FORECAST.recal.plot.spread_skill(TRUTH, bins=3),
        lambda: plot.spread_skill(FORECAST.recal.spread_skill(TRUTH, bins=3)),
    ),
    "skill_by_lead": (
        lambda: LEADS.recal.plot.skill_by_lead(LEADS_TRUTH, LEADS + 1),
        lambda: plot.skill_by_lead(skill(LEADS, LEADS_TRUTH, LEADS + 1)),
    ),
    "skill_map": (
        lambda: better(GRID, GRID_TRUTH).recal.plot.skill_map(GRID_TRUTH, GRID),
        lambda: plot.skill_map(data_of("skill_map", "many")),
    ),
    "tercile_map": (
        lambda: GRID[0].recal.plot.tercile_map([280.0, 282.0]),
        lambda: plot.tercile_map(GRID[0].recal.categories([280.0, 282.0])),
    ),
    "p_value_map": (
        lambda: GRID[:30].recal.plot.p_value_map(GRID_TRUTH, n_resamples=200, seed=2),
        lambda: plot.p_value_map(
            GRID[:30].recal.skce_test(GRID_TRUTH, test="serial", n_resamples=200, seed=2)
        ),
    ),
    "ridge_curve": (
        lambda: FORECAST.recal.plot.ridge_curve(TRUTH, CKME),
        lambda: plot.ridge_curve(data_of("ridge_curve", "one")),
    ),
}


def test_every_figure_has_a_door():
    assert set(DOORS) == set(METHODS)
    assert [name for name in dir(Plots) if not name.startswith("_")] == sorted(METHODS)
    for name in METHODS:
        assert f":func:`xrecal.plot.{name}`" in getattr(Plots, name).__doc__
        assert name in repr(FORECAST.recal.plot)


@pytest.mark.filterwarnings("ignore:only 30 of")
@pytest.mark.parametrize("name", DOORS)
def test_a_door_draws_what_the_function_draws(name):
    through, alone = DOORS[name]
    np.testing.assert_array_equal(pixels(through()), pixels(alone()))


@pytest.mark.parametrize("name", plot.__all__)
def test_axes_come_first_among_the_keywords(name):
    parameters = inspect.signature(getattr(plot, name)).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert keywords[0] == ("raw" if name == "report" else "ax")


def test_as_many_dots_on_the_map_as_the_summary_counts():
    asked = {"n_resamples": 200, "seed": 2}
    ax = GRID.recal.plot.p_value_map(GRID_TRUTH, **asked)
    rows = repr(GRID.recal.summary(GRID_TRUTH, **asked)).splitlines()
    (counted,) = (row.split("  ")[-1].strip() for row in rows if row.startswith("SKCE p"))
    assert ax.get_title("right") == f"{counted} locations rejected"
    assert counted.endswith(" of 19")  # and a place without observations


@pytest.mark.parametrize("name", ["fan", "cdf", "density", "pit"])
def test_other_member_dimensions_are_named(name):
    forecast = FORECAST if name in ("fan", "pit") else FORECAST[83]
    expected = getattr(forecast.recal.plot, name)(TRUTH)
    renamed = getattr(forecast.rename(member="m").recal.plot, name)(TRUTH, member_dim="m")
    np.testing.assert_array_equal(pixels(renamed), pixels(expected))


def test_observations_over_valid_times():
    forecast, truth = by_lead()
    series = truth.isel(place=0, lead=0, drop=True)
    series = series.assign_coords(init=series.init + np.timedelta64(1, "D")).rename(init="time")
    some = forecast.isel(place=0, lead=[0])
    ax = some.recal.plot.fan(series)
    (points,) = [line for line in ax.lines if line.get_label() == "observed"]
    np.testing.assert_array_equal(points.get_ydata(), series)


def test_a_case_without_observation_has_none():
    ax = case().recal.plot.cdf(TRUTH.drop_isel(time=83))
    assert "observed" not in [line.get_label() for line in ax.lines]


def test_a_place_finds_its_own_observation_and_members():
    forecast, truth = ensemble()
    here = forecast.isel(lat=1, lon=3)
    found = here.recal.plot.fan(truth, raw=forecast)
    np.testing.assert_array_equal(pixels(found), pixels(FORECAST.recal.plot.fan(TRUTH, raw=here)))


def test_several_variables_are_refused():
    two = xr.Dataset({"a": FORECAST, "b": FORECAST})
    for draw in (two.recal.plot.fan, two.recal.plot.pit):
        with pytest.raises(ValueError, match=r"\['a', 'b'\]; select one, such as forecast\['a'\]"):
            draw({"a": TRUTH, "b": TRUTH})


def test_plot_is_no_figure_itself():
    forecast, truth = one()
    with pytest.raises(TypeError, match=r"name a figure, as in .recal.plot.fan\(observ.*cdf, "):
        forecast.recal.plot(truth)
