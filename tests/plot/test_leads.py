import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

from xrecal import plot

from .evidence import curves, lead_skill


def areas(ax):
    found = []
    for area in ax.collections:
        points = area.get_paths()[0].vertices
        at = np.unique(points[:, 0])
        found.append([[end(points[points[:, 0] == x, 1]) for x in at] for end in (np.min, np.max)])
    return np.array(found)


def markers(ax):
    """Positions of filled and of open points."""
    points = [line for line in ax.lines if line.get_marker() == "o" and line.get_gid() is None]
    filled = [p for p in points if p.get_markerfacecolor() == p.get_color()]
    return [np.sort(np.concatenate([p.get_xdata() for p in group] or [[]])) for group in (
        filled, [p for p in points if p not in filled]
    )]  # fmt: skip


def test_skill_its_error_and_its_significance():
    data = lead_skill().squeeze("place")
    ax = plot.skill_by_lead(data)
    (line,) = curves(ax)
    np.testing.assert_array_equal(line.get_xdata(), data.lead)
    np.testing.assert_array_equal(line.get_ydata(), data.skill)
    width = norm.ppf(0.95) * data.skill_error
    np.testing.assert_allclose(areas(ax)[0], [data.skill - width, data.skill + width])
    filled, left = markers(ax)
    np.testing.assert_array_equal(filled, data.lead[data.p_value < 0.05])
    np.testing.assert_array_equal(left, data.lead[data.p_value >= 0.05])
    assert filled.size
    assert left.size
    assert ax.get_xlabel() == "lead time (days)"
    assert ax.get_title("right") == "filled: p < 0.05; area: 90%"


def test_methods_have_names_and_colours():
    ax = plot.skill_by_lead(lead_skill(methods=True))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["raw", "wider"]
    assert len({line.get_color() for line in curves(ax)}) == 2


def test_median_and_range_of_places():
    data = lead_skill(6)
    ax = plot.skill_by_lead(data)
    np.testing.assert_allclose(curves(ax)[0].get_ydata(), data.skill.median("place"))
    expected = data.skill.quantile([0.05, 0.95], "place")
    np.testing.assert_allclose(areas(ax)[0], expected.transpose("quantile", "lead"))
    assert ax.get_title("right") == "median and 90% of locations"


def test_leads_in_any_order_and_of_any_kind():
    data = lead_skill()
    shuffled = data.isel(lead=[3, 0, 7, 2, 1, 6, 5, 4])
    np.testing.assert_array_equal(
        curves(plot.skill_by_lead(shuffled))[0].get_xydata(),
        curves(plot.skill_by_lead(data))[0].get_xydata(),
    )
    hours = data.assign_coords(lead=data.lead * np.timedelta64(6, "h").astype("m8[ns]"))
    ax = plot.skill_by_lead(hours)
    np.testing.assert_array_equal(curves(ax)[0].get_xdata(), 6 * np.arange(1, 9))
    assert ax.get_xlabel() == "lead time (h)"
    bare = plot.skill_by_lead(data.drop_vars("lead"))
    np.testing.assert_array_equal(curves(bare)[0].get_xdata(), np.arange(8))


def test_other_dimensions_by_name():
    data = lead_skill().rename(lead="month")
    with pytest.raises(ValueError, match=r"skill has no lead dimension among \['month', 'place'\]"):
        plot.skill_by_lead(data)
    assert plot.skill_by_lead(data, dim="month").get_xlabel() == "lead time (days)"
    with pytest.raises(ValueError, match="skill has no dimension 'week'; it has"):
        plot.skill_by_lead(data, dim="week")
    two = lead_skill().expand_dims(step=2)
    with pytest.raises(ValueError, match="skill has several lead dimension"):
        plot.skill_by_lead(two)


def test_very_bad_skill_does_not_hide_the_rest():
    data = lead_skill()
    bad = data.where(data.lead < 8, xr.full_like(data, -50.0))
    assert plot.skill_by_lead(bad).get_ylim()[0] >= -1.5
