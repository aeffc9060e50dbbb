import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection, PolyCollection

from xrecal import plot

from .evidence import by_lead, gaps, many, one

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def bands(ax):
    """Lower and upper end of each band, by label, where it is drawn."""
    found = {}
    for area in ax.collections:
        if isinstance(area, PolyCollection):
            points = np.concatenate([path.vertices for path in area.get_paths()])
            at = np.unique(points[:, 0])
            ends = [[end(points[points[:, 0] == x, 1]) for x in at] for end in (np.min, np.max)]
            found[area.get_label()] = (at, *map(np.array, ends))
    return found


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_bands_are_pairs_of_quantiles():
    forecast, truth = one()
    q = forecast.recal.quantile(LEVELS)
    ax = plot.fan(q[..., ::-1] if q.dims[-1] == "quantile" else q[::-1], observations=truth)
    found, values = bands(ax), q.transpose("quantile", "time").to_numpy()
    assert list(found) == ["90%", "50%"]
    dates = mdates.date2num(q.time)
    for i, label in enumerate(found):
        at, low, high = found[label]
        np.testing.assert_allclose(at, dates)
        np.testing.assert_allclose(low, values[i])
        np.testing.assert_allclose(high, values[-1 - i])
    np.testing.assert_array_equal(lines(ax)["median"].get_ydata(), values[2])
    np.testing.assert_array_equal(lines(ax)["observed"].get_ydata(), truth)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "90%",
        "50%",
        "median",
        "observed",
    ]
    assert ax.get_ylabel() == "2 m temperature (K)"


@pytest.mark.parametrize(
    ("levels", "labels"),
    [
        ([0.1, 0.9], ["80%"]),
        ([0.5], ["median"]),
        ([0.1, 0.2, 0.8], ["10% to 80%", "20%"]),
        ([0.25], ["25%"]),
    ],
)
def test_levels_say_what_is_drawn(levels, labels):
    ax = plot.fan(one()[0].recal.quantile(levels))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == labels


def test_nothing_is_drawn_over_gaps_and_missing_forecasts():
    forecast, truth = gaps()
    q = forecast.recal.quantile(LEVELS)
    ax = plot.fan(q, observations=truth)
    area = next(a for a in ax.collections if isinstance(a, PolyCollection))
    (wide, *_) = (path.vertices[:, 0] for path in area.get_paths())
    spans = sorted((v.min(), v.max()) for v in (p.vertices[:, 0] for p in area.get_paths()))
    day = mdates.date2num(q.time)
    known = ~np.isnan(q.isel(quantile=0).to_numpy())
    runs = [(0, 4), (8, 19), (20, 39), (41, 70)]
    assert [(a, b) for a, b in spans if b > a] == [(day[i], day[j]) for i, j in runs]
    alone = [6, 40]
    assert known[alone].all()
    bars = [c for c in ax.collections if isinstance(c, LineCollection)]
    for i, level in ((0, -1), (1, -2)):
        drawn = np.array(bars[i].get_segments())
        np.testing.assert_allclose(drawn[:, 0, 0], day[alone])
        np.testing.assert_allclose(drawn[:, 0, 1], q.isel(time=alone, quantile=i))
        np.testing.assert_allclose(drawn[:, 1, 1], q.isel(time=alone, quantile=level))
    assert wide.size


def test_leads_are_joined_whatever_their_steps():
    forecast, _ = by_lead()
    some = forecast.isel(init=3, place=0, lead=[0, 1, 2, 7])
    ax = plot.fan(some.recal.quantile([0.1, 0.9]))
    np.testing.assert_array_equal(bands(ax)["80%"][0], [1, 2, 3, 8])
    area = next(a for a in ax.collections if isinstance(a, PolyCollection))
    assert len(area.get_paths()) == 1
    assert ax.get_xlabel() == "lead time (days)"


def test_valid_times_are_preferred():
    forecast, _ = by_lead()
    some = forecast.isel(init=3, place=0)
    valid = some.init + some.lead * np.timedelta64(1, "D")
    ax = plot.fan(some.recal.quantile([0.1, 0.9]).assign_coords(valid_time=valid))
    np.testing.assert_allclose(bands(ax)["80%"][0], mdates.date2num(valid))


def test_members_are_runs_over_leads_and_points_over_dates():
    forecast, truth = by_lead()
    run = forecast.isel(init=3, place=0)
    ax = plot.fan(run.recal.quantile(LEVELS), raw=run, observations=truth.isel(init=3, place=0))
    runs = [line for line in ax.lines if len(line.get_xdata()) == 8 and line.get_lw() < 1]
    drawn = np.array([line.get_ydata() for line in runs])
    np.testing.assert_array_equal(drawn, run.transpose("member", "lead"))
    forecast, _ = one()
    ax = plot.fan(forecast.recal.quantile(LEVELS), raw=forecast)
    points = lines(ax)["raw ensemble"]
    assert points.get_linestyle() == "None"
    np.testing.assert_array_equal(
        points.get_ydata(), forecast.transpose("time", "member").to_numpy().ravel()
    )


def test_observations_and_members_are_matched_by_label():
    forecast, truth = one()
    q = forecast[10:40].recal.quantile(LEVELS)
    shuffled = np.random.default_rng(0).permutation(truth.size)
    ax = plot.fan(q, observations=truth[shuffled], raw=forecast[shuffled])
    np.testing.assert_array_equal(lines(ax)["observed"].get_ydata(), truth[10:40])
    part = plot.fan(q, observations=truth[20:])
    np.testing.assert_array_equal(
        lines(part)["observed"].get_ydata(), truth[10:40].where(truth.time >= truth.time[20])
    )


def test_a_single_date_is_a_fan_too():
    forecast, truth = one()
    ax = plot.fan(forecast[:1].recal.quantile(LEVELS), observations=truth[:1], raw=forecast[:1])
    assert sum(isinstance(c, LineCollection) for c in ax.collections) == 2


def test_what_is_no_fan():
    forecast, truth = one()
    q = forecast.recal.quantile(LEVELS)
    with pytest.raises(ValueError, match=r"fan draws quantiles, but 't2m' is .* 'ensemble'; use"):
        plot.fan(forecast)
    places = many()[0].recal.quantile(LEVELS)
    with pytest.raises(ValueError, match=r"there are 20 along 'lat' and 'lon'; select one"):
        plot.fan(places)
    with pytest.raises(ValueError, match=r"a fan lies along dates or leads.*xrecal.plot.cdf"):
        plot.fan(q.isel(time=0))
    with pytest.raises(ValueError, match="quantiles are in K but observations are in degC"):
        plot.fan(q, observations=truth.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="quantiles are in K but raw is in degC"):
        plot.fan(q, raw=forecast.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match=r"observations have no dimension 'time', along which"):
        plot.fan(q, observations=truth.isel(time=0))
    message = "raw= takes a plain ensemble, whose members are drawn, but 't2m' is"
    with pytest.raises(ValueError, match=message):
        plot.fan(q, raw=q)
    two = xr.Dataset({"a": q, "b": q})
    with pytest.raises(ValueError, match=r"one variable, but quantiles has \['a', 'b'\]; select"):
        plot.fan(two)
    bare = truth[3:].drop_vars("time")
    with pytest.raises(ValueError, match="have 117 cases along 'time', but quantiles have 120"):
        plot.fan(q, observations=bare)


def test_label_is_wrapped_where_axes_are_low():
    forecast = one()[0].assign_attrs(long_name="air temperature two metres above the ground")
    high, low = (plt.subplots(n, 1, figsize=(6, 4))[1] for n in (1, 3))
    labels = [forecast.recal.plot.fan(ax=ax).get_ylabel() for ax in (high, low[0])]
    assert labels[0].replace("\n", " ") == labels[1].replace("\n", " ")
    assert labels[0].count("\n") < labels[1].count("\n")
