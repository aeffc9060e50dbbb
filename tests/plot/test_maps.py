import cartopy
import cartopy.crs as ccrs
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from cartopy.mpl.gridliner import Gridliner
from matplotlib.collections import LineCollection, PathCollection, QuadMesh

import xrecal
from xrecal import diagnostics, plot

from .evidence import LATITUDES, LONGITUDES, data_of, lead_skill, many

SKILL, TESTED = data_of("skill_map", "many"), data_of("p_value_map", "many")


def mesh(ax):
    return next(c for c in ax.collections if isinstance(c, QuadMesh))


def dots(ax):
    return next(c for c in ax.collections if isinstance(c, PathCollection)).get_offsets()


def test_locations_with_too_few_cases_for_a_test_are_counted():
    forecast, truth = many()
    tests = forecast[:30].recal.skce_test(truth, test="serial", n_resamples=100)
    p = tests.p_value.copy()
    p[2, 1:4] = np.nan
    ax = plot.p_value_map(tests.assign(p_value=p))
    assert ax.get_title("right").endswith(" of 14 locations rejected, 5 have too few cases")
    assert plot.p_value_map(p).get_title("right").endswith(" of 14 locations rejected")


def test_skill_at_each_place():
    ax = plot.skill_map(SKILL)
    np.testing.assert_array_equal(mesh(ax).get_array(), SKILL.skill)
    assert np.ma.is_masked(mesh(ax).get_array()[0, 0])
    assert ax.get_xlabel() == "longitude (°E)"
    assert ax.get_ylabel() == "latitude (°N)"
    low, high = mesh(ax).norm.vmin, mesh(ax).norm.vmax
    assert high == -low == float(abs(SKILL.skill).max())


def test_skill_below_minus_one_is_cut_off():
    data = SKILL.skill.where(SKILL.lat < 42, -7.0)
    ax = plot.skill_map(data)
    assert mesh(ax).norm.vmin == -1
    assert mesh(ax).colorbar.extend == "min"
    assert mesh(plot.skill_map(SKILL)).colorbar.extend == "neither"


def test_dots_are_rejections_after_control_of_false_discoveries():
    for figure, data, word in (
        (plot.skill_map, SKILL, "significant"),
        (plot.p_value_map, TESTED, "rejected"),
    ):
        adjusted = diagnostics.adjusted_p_values(data.p_value)
        wanted = (adjusted < 0.05).to_numpy()
        assert 0 < wanted.sum() < 19
        ax = figure(data)
        found = {tuple(map(float, point)) for point in dots(ax)}
        lat, lon = np.meshgrid(LATITUDES, LONGITUDES, indexing="ij")
        assert found == set(zip(lon[wanted].tolist(), lat[wanted].tolist(), strict=True))
        assert ax.get_title("right") == f"{wanted.sum()} of 19 locations {word}"


def test_skill_alone_has_no_dots():
    ax = plot.skill_map(SKILL.skill)
    assert not any(isinstance(c, PathCollection) for c in ax.collections)
    assert not ax.get_title("right")


def test_small_p_values_are_dark():
    ax = plot.p_value_map(TESTED.p_value)
    shades = [sum(mesh(ax).cmap(mesh(ax).norm(p))[:3]) for p in (1e-4, 5e-3, 0.03, 0.07, 0.3, 0.9)]
    assert (np.diff(shades) > 0.1).all()
    assert [t.get_text() for t in mesh(ax).colorbar.ax.get_yticklabels()] == [
        *("0", "0.001", "0.01", "0.05", "0.1", "0.5", "1")
    ]


def test_the_order_of_dimensions_says_nothing():
    turned = SKILL.transpose("lon", "lat")
    a, b = plot.skill_map(SKILL), plot.skill_map(turned)
    np.testing.assert_array_equal(mesh(a).get_array(), mesh(b).get_array())
    np.testing.assert_array_equal(np.sort(dots(a), 0), np.sort(dots(b), 0))
    down = plot.skill_map(SKILL.isel(lat=slice(None, None, -1)))
    np.testing.assert_array_equal(np.sort(dots(a), 0), np.sort(dots(down), 0))
    assert down.get_ylim()[0] < down.get_ylim()[1]


def curvilinear():
    """Skill over rows and columns, with longitude and latitude of each."""
    lon, lat = np.meshgrid(LONGITUDES, LATITUDES)
    bare = SKILL.drop_vars(["lat", "lon"]).rename(lat="row", lon="column")
    return bare.assign_coords(
        nav_lon=(("row", "column"), lon + 0.1 * lat, {"units": "degrees_east"}),
        nav_lat=(("row", "column"), lat - 0.1 * lon, {"units": "degrees_north"}),
    )


def test_curvilinear_grids():
    data = curvilinear()
    ax = plot.skill_map(data)
    np.testing.assert_array_equal(mesh(ax).get_array(), data.skill)
    wanted = (diagnostics.adjusted_p_values(data.p_value) < 0.05).to_numpy()
    found = {tuple(np.round(point, 9)) for point in dots(ax)}
    points = np.column_stack([data.nav_lon.to_numpy()[wanted], data.nav_lat.to_numpy()[wanted]])
    assert found == {tuple(np.round(point, 9)) for point in points}
    assert ax.get_xlabel() == "nav lon (°E)"


def test_projected_and_nameless_coordinates():
    metres = SKILL.rename(lat="y", lon="x").assign_coords(
        x=("x", 1e3 * np.arange(5), {"units": "m", "standard_name": "projection_x_coordinate"}),
        y=("y", 1e3 * np.arange(4), {"units": "m", "standard_name": "projection_y_coordinate"}),
    )
    ax = plot.skill_map(metres)
    assert ax.get_xlabel() == "projection x coordinate (m)"
    assert ax.get_aspect() == 1
    bare = SKILL.skill.drop_vars(["lat", "lon"]).rename(lat="a", lon="b")
    ax = plot.skill_map(bare)
    assert ax.get_xlabel() == "b"
    np.testing.assert_array_equal(mesh(ax).get_array(), SKILL.skill)


def test_what_is_no_map():
    with pytest.raises(
        ValueError, match=r"'lon'\]; select along each other dimension, such as \.isel\(lead=0\)"
    ):
        plot.skill_map(SKILL.expand_dims(lead=2))
    with pytest.raises(ValueError, match=r"skill_map needs values over two dimensions, but they"):
        plot.skill_map(lead_skill().squeeze("place"))
    with pytest.raises(ValueError, match="p_value_map draws the variable 'p_value' of"):
        plot.p_value_map(SKILL[["skill"]])
    with pytest.raises(TypeError, match="skill_map draws a Dataset or DataArray, got list"):
        plot.skill_map([1])
    with pytest.raises(ValueError, match=r"p-values? .*\[0, 1\]|between 0 and 1"):
        plot.p_value_map(TESTED.p_value + 2)


# terciles -----------------------------------------------------------------------------------------


def terciles(*cells):
    """Probabilities of terciles of some places in each of two rows, and one without."""
    values = np.array(2 * [[*cells, (np.nan,) * 3]])
    coords = {"lat": [50.0, 60.0], "lon": 10.0 * np.arange(values.shape[1])}
    coords["category"] = ["below_normal", "near_normal", "above_normal"]
    return xr.DataArray(values, coords, ["lat", "lon", "category"])


def colours(ax):
    return [mesh(ax).to_rgba(c)[:3] for c in np.ma.getdata(mesh(ax).get_array())[0, :-1]]


def test_colours_of_terciles():
    given = terciles((0.72, 0.2, 0.08), (0.42, 0.3, 0.28), (0.35, 0.35, 0.3), (0.2, 0.65, 0.15))
    ax = plot.tercile_map(given)
    sure, faint, none, near = colours(ax)
    assert sure[2] > sure[0]
    assert sum(sure) < sum(faint) < 3
    assert none == (1, 1, 1)
    assert near[1] > max(near[0], near[2])
    (above,) = colours(plot.tercile_map(terciles((0.1, 0.3, 0.6))))
    assert above[0] > above[1] > above[2]
    assert np.ma.is_masked(mesh(ax).get_array()[0, -1])
    assert ax.get_xlabel() == "lon"
    turned = plot.tercile_map(given.transpose("category", "lon", "lat"))
    assert colours(turned) == colours(ax)


def test_the_bar_tells_the_terciles():
    ax = plot.tercile_map(data_of("tercile_map", "many"))
    bar = mesh(ax).colorbar.ax
    assert {t.get_text() for t in bar.texts} >= {"below normal", "near normal", "above normal"}
    ticks = " ".join(t.get_text() for t in bar.get_xticklabels())
    assert ticks == "70 60 50 40 40 50 60 70 40 50 60 70"


def test_a_summary_of_terciles_has_a_map_of_its_skill():
    forecast, truth = many()
    summary = forecast.recal.tercile_summary(truth)
    ax = plot.skill_map(summary)
    np.testing.assert_array_equal(mesh(ax).get_array(), summary.rpss)
    assert "locations significant" in ax.get_title(loc="right")
    one = plot.tercile_map(summary.isel(time=0))
    expected = plot.tercile_map(summary["probability"].isel(time=0))
    np.testing.assert_array_equal(mesh(one).get_array(), mesh(expected).get_array())


def test_categories_have_a_map_as_they_come():
    forecast, truth = many()
    edges = truth.quantile([1 / 3, 2 / 3])
    issued = forecast.recal.categories(edges)
    expected = mesh(plot.tercile_map(issued.isel(time=0))).get_array()
    as_dataset = forecast.to_dataset(name="t2m").recal.categories(edges)
    found = mesh(plot.tercile_map(as_dataset.isel(time=0))).get_array()
    np.testing.assert_array_equal(found, expected)
    held_out = forecast.recal.cross_validate(
        truth, xrecal.Climatology(), by="block", output="categories", min_samples=5
    )
    assert mesh(plot.tercile_map(held_out.isel(time=0))).get_array().shape == expected.shape


def test_what_has_no_map_of_terciles():
    with pytest.raises(ValueError, match="three categories along 'category', found"):
        plot.tercile_map(terciles((0.4, 0.3, 0.3)).isel(category=[0, 1]))
    with pytest.raises(ValueError, match="tercile_map needs values over two dimensions"):
        plot.tercile_map(terciles((0.4, 0.3, 0.3)).expand_dims(time=2))


# what, over what, and where -----------------------------------------------------------------------


def bar_label(ax):
    return " ".join(mesh(ax).colorbar.ax.get_ylabel().split())


@pytest.mark.parametrize("size", [(9, 3), (3, 8)])
@pytest.mark.parametrize("options", [{}, {"projection": ccrs.PlateCarree()}])
def test_the_bar_is_not_higher_than_the_map(size, options):
    figure = plt.figure(figsize=size, layout="constrained")
    ax = plot.skill_map(SKILL, ax=figure.add_subplot(**options))
    figure.draw_without_rendering()
    bar, box = mesh(ax).colorbar.ax.get_window_extent(), ax.get_window_extent()
    assert box.y0 < bar.y0 < bar.y1 < box.y1
    assert bar.y1 - bar.y0 > 0.9 * (box.y1 - box.y0)
    assert mesh(ax).colorbar.ax.get_tightbbox().x1 < figure.bbox.x1


def test_locations_that_are_scored_without_a_test_are_counted():
    skill = SKILL.copy()
    skill["p_value"] = skill.p_value.where(skill.p_value.lon < 10)
    n = int(SKILL.skill.notnull().sum())
    told = plot.skill_map(skill).get_title("right")
    tested = int(skill.p_value.notnull().sum())
    assert told.endswith(f" of {tested} locations significant, {n - tested} have too few cases")


def test_the_bar_names_score_and_reference():
    told = "skill by the continuous ranked probability score over forecasts as issued"
    assert bar_label(plot.skill_map(SKILL)) == told
    named = SKILL.assign_attrs(reference="Climatology()")
    assert bar_label(plot.skill_map(named)).endswith("probability score over Climatology()")
    forecast, truth = many()
    found = forecast.recal.brier_skill_score(truth, 281.0)
    told = "skill by the Brier score over the shares of these cases"
    assert bar_label(plot.skill_map(found)) == told
    summary = forecast.recal.tercile_summary(truth)
    told = "ranked probability skill score over equal odds"
    assert bar_label(plot.skill_map(summary)) == told
    assert bar_label(plot.skill_map(SKILL.skill.drop_attrs())) == "skill"


@pytest.fixture
def coast(tmp_path, monkeypatch):
    """A coastline of 50 m where cartopy looks for one."""
    shapefile = pytest.importorskip("shapefile")
    folder = tmp_path / "shapefiles" / "natural_earth" / "physical"
    folder.mkdir(parents=True)
    with shapefile.Writer(str(folder / "ne_50m_coastline")) as file:
        file.field("name", "C")
        for line in ([(6.0, 41.0), (7.0, 42.0)], [(-100.0, 0.0), (-99.0, 1.0)]):
            file.line([line])
            file.record("coast")
    monkeypatch.setitem(cartopy.config, "data_dir", tmp_path)


def coastlines(ax):
    found = [c for c in ax.collections if isinstance(c, LineCollection)]
    return [path.vertices.tolist() for c in found for path in c.get_paths()]


def test_coastlines_are_drawn_where_cartopy_has_them(coast):
    ax = plot.skill_map(SKILL)
    limits = ax.get_xlim(), ax.get_ylim()
    assert coastlines(ax) == [[[6.0, 41.0], [7.0, 42.0]]]
    shifted = SKILL.assign_coords(lon=SKILL.lon + 360)
    shifted.lon.attrs["units"] = "degrees_east"
    assert coastlines(plot.skill_map(shifted)) == [[[366.0, 41.0], [367.0, 42.0]]]
    assert limits == (ax.get_xlim(), ax.get_ylim())
    assert not coastlines(plot.skill_map(SKILL.drop_vars(["lat", "lon"]).rename(lat="a", lon="b")))


def test_no_coastlines_without_cartopy_or_files(coast, monkeypatch, tmp_path):
    monkeypatch.setattr("xrecal.plot.coasts.find_spec", lambda name: None)
    assert not coastlines(plot.skill_map(SKILL))
    monkeypatch.undo()
    assert not coastlines(plot.skill_map(SKILL))


def test_a_projection_has_longitudes_and_latitudes_at_its_edges():
    ax = plt.figure().add_subplot(projection=ccrs.LambertConformal(central_longitude=9))
    plot.skill_map(SKILL, ax=ax)
    (lines,) = ax.findobj(Gridliner)
    ax.figure.canvas.draw()
    shown = {t.get_text() for t in (*lines.left_label_artists, *lines.bottom_label_artists)}
    assert {"41°N", "42°N", "6°E", "12°E"} <= shown
    assert not any(t.get_visible() for t in lines.top_label_artists)
