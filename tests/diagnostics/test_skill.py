import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import ensemble_and_truth, points
from xrecal import arrays
from xrecal.arrays.status import FEW, TOO_FEW
from xrecal.diagnostics import skill

from .calls import hindcast

ENSEMBLE, TRUTH = hindcast(n=40)
SCORES = ENSEMBLE.recal.crps(TRUTH)
REFERENCE = ENSEMBLE.mean("time", keep_attrs=True).expand_dims(time=TRUTH.time).recal.crps(TRUTH)
NAMES = ("skill", "skill_error", "p_value", "skill_low", "skill_high")


def assert_values(found, expected):
    for name, value in zip(NAMES, expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)


def test_the_reference_is_named_as_far_as_history_tells():
    forecast, truth = ensemble_and_truth(n=30)
    scores = forecast.recal.crps(truth)

    def reference(crps):
        return xrecal.skill(scores, crps).attrs.get("reference")

    assert reference(scores) == "forecasts as issued"
    assert reference(scores.drop_attrs().assign_attrs(units="K")) is None
    model = forecast.recal.fit(truth, xrecal.Climatology(window=90))
    assert reference(model.apply(forecast).recal.crps(truth)) == "Climatology(window=90)"
    held_out = forecast.recal.cross_validate(truth, xrecal.EMOS(), by="block", gap=1, output="crps")
    assert reference(held_out) == "EMOS()"


def test_skill_at_each_point():
    scores = SCORES.where(SCORES > 0.2)
    found = skill(scores, REFERENCE)
    for point in points(TRUTH):
        s, r = (array.isel(point).to_numpy() for array in (scores, REFERENCE))
        assert_values(found.isel(point), arrays.skill_score(s, r))
        assert found.n_cases.isel(point) == np.isfinite(s).sum() < 40
    assert (found.skill > 0.1).all()


def test_several_dimensions_are_stacked():
    for dim in (["time", "lat"], ("time", "lon", "lat"), ...):
        dims = list(SCORES.dims) if dim is ... else list(dim)
        s, r = (a.stack(case=dims).to_numpy() for a in (SCORES, REFERENCE))
        found = skill(SCORES, REFERENCE, dim)
        np.testing.assert_allclose(found.skill, arrays.skill_score(s, r).skill, rtol=1e-12)
        # Cases of one date are no repetitions: errors are those of a number for each date.
        others = [d for d in dims if d != "time"]
        means = [a.mean(others).transpose(..., "time").to_numpy() for a in (SCORES, REFERENCE)]
        alone = arrays.skill_score(*means)
        np.testing.assert_allclose(found.skill_error, alone.standard_error, rtol=1e-12)
        np.testing.assert_allclose(found.p_value, alone.p_value, rtol=1e-10)


def test_a_reference_may_lack_dimensions():
    everywhere = REFERENCE.mean("lat")
    found = skill(SCORES, everywhere)
    expected = skill(SCORES, everywhere.broadcast_like(SCORES).transpose(*SCORES.dims))
    xr.testing.assert_identical(found, expected)
    constant = skill(SCORES, REFERENCE.mean("time"))
    np.testing.assert_allclose(constant.skill, 1 - SCORES.mean("time") / REFERENCE.mean("time"))


def test_cases_are_put_in_the_order_of_time():
    order = np.random.default_rng(0).permutation(40)
    expected = skill(SCORES, REFERENCE)
    xr.testing.assert_allclose(skill(SCORES[order], REFERENCE[order]), expected, rtol=1e-12)
    bare = REFERENCE[order].drop_vars("time")  # taken as it stands beside the scores
    xr.testing.assert_allclose(skill(SCORES[order], bare), expected, rtol=1e-12)
    together = skill(SCORES[order], REFERENCE[order], ["lat", "time"])
    xr.testing.assert_allclose(together, skill(SCORES, REFERENCE, ["lat", "time"]), rtol=1e-12)


@pytest.mark.parametrize("chunks", [{"lat": 1}, {"lat": 1, "lon": 1}, {"time": 7}])
def test_lazy_and_bit_equal(chunks):
    expected = skill(SCORES, REFERENCE)
    with forbid_compute():
        lazy = skill(SCORES.chunk(chunks), REFERENCE.chunk(lon=1))
    assert lazy.skill.chunks is not None
    xr.testing.assert_identical(lazy.compute(), expected)
    turned = skill(SCORES.transpose("lon", "time", "lat"), REFERENCE)
    xr.testing.assert_identical(turned.transpose("lat", "lon"), expected)


def test_types():
    found = skill(SCORES.astype("float32"), REFERENCE.astype("float32"))
    assert {found[name].dtype for name in NAMES} == {np.dtype("float32")}
    lazy = skill(SCORES.astype("float32").chunk(lat=1), REFERENCE.astype("float32"))
    assert lazy.skill.dtype == lazy.skill.compute().dtype == "float32"
    np.testing.assert_allclose(found.skill, skill(SCORES, REFERENCE).skill, rtol=1e-5)
    hits = (SCORES > 0.5).astype(int)
    np.testing.assert_allclose(skill(hits, hits + 1).skill, skill(hits * 1.0, hits + 1.0).skill)
    skill(freeze(SCORES.copy(deep=True)), freeze(REFERENCE.copy(deep=True)))


@pytest.mark.parametrize(("n", "status"), [(1, TOO_FEW), (2, FEW), (9, FEW), (10, 0)])
def test_few_cases(n, status):
    found = skill(SCORES[:n], REFERENCE[:n])
    assert (found.status == status).all()
    assert (found.n_cases == n).all()
    assert (found.skill.isnull() == (n < 2)).all()
    assert (found.skill_error.isnull() == (n < 3)).all()
    independent = skill(SCORES[:n], REFERENCE[:n], block_length=1)
    for name in ("skill_error", "p_value", "skill_low", "skill_high"):
        assert (independent[name].isnull() == (n < 3)).all()


def test_perfect_references_leave_no_skill():
    found = skill(SCORES, 0 * REFERENCE)
    assert found.skill.isnull().all()
    assert found.p_value.notnull().all()


def test_equal_scores_have_no_skill():
    found = skill(SCORES, SCORES)
    np.testing.assert_allclose(found.skill, 0, atol=1e-15)
    np.testing.assert_allclose(found.p_value, 1)


def test_attributes_and_coordinates():
    scores = SCORES.assign_coords(height=2.0, month=SCORES.time.dt.month)
    found = skill(scores, REFERENCE)
    assert found.attrs["score"] == "continuous ranked probability score in K"
    assert found.attrs["history"].splitlines()[-1] == "xrecal: skill over 'time'"
    assert set(found.coords) == {"lat", "lon", "height"}
    assert {found[name].attrs["units"] for name in NAMES} == {"1"}
    assert found.n_cases.attrs == {"long_name": "number of cases"}
    brier = ENSEMBLE.recal.brier_score(TRUTH, 280.0)
    assert skill(brier, brier).attrs["score"] == "Brier score"


def test_what_cannot_be_compared():
    with pytest.raises(TypeError, match=r"reference must be a DataArray, .* got Dataset"):
        skill(SCORES, REFERENCE.to_dataset())
    with pytest.raises(ValueError, match="scores are in K but reference is in degC"):
        skill(SCORES, REFERENCE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="scores and reference differ along 'time': 40 against 30"):
        skill(SCORES, REFERENCE[:30])
    with pytest.raises(ValueError, match="labels along 'lat' differ"):
        skill(SCORES, REFERENCE.assign_coords(lat=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"reference has dimensions \['lon'\] that scores lack"):
        skill(SCORES.isel(lon=0), REFERENCE)
    with pytest.raises(ValueError, match=r"dim='x', but scores have no dimension 'x'"):
        skill(SCORES, REFERENCE, "x")
    with pytest.raises(ValueError, match=r"dim=\[\] must name dimensions of the cases"):
        skill(SCORES, REFERENCE, [])
    with pytest.raises(ValueError, match="scores have none of the known calibration dimensions"):
        skill(*(a.rename(time="case").drop_vars("case") for a in (SCORES, REFERENCE)))


def test_blocks_and_clusters_are_those_of_the_array_function():
    here = {"lat": 0, "lon": 1}
    s, r = SCORES.isel(here).to_numpy(), REFERENCE.isel(here).to_numpy()
    for how in ({"block_length": 1}, {"block_length": 3}):
        assert_values(skill(SCORES, REFERENCE, **how).isel(here), arrays.skill_score(s, r, **how))
    times = xr.date_range("2000-12-01", periods=SCORES.sizes["time"], freq="20D")
    dated, reference = (a.assign_coords(time=times) for a in (SCORES, REFERENCE))
    quarter = (12 * times.year + times.month) // 3
    for name, cluster in {"year": times.year, "season": quarter}.items():
        found = skill(dated, reference, cluster=name)
        assert_values(found.isel(here), arrays.skill_score(s, r, cluster=np.asarray(cluster)))
    lazy = skill(dated.chunk(lat=1, time=7), reference.chunk(lat=1), cluster="season")
    xr.testing.assert_identical(lazy.compute(), skill(dated, reference, cluster="season"))
    means = skill(dated, reference, ["time", "lat"], cluster="season")
    alone = skill(dated.mean("lat"), reference.mean("lat"), cluster="season")
    for name in NAMES:
        np.testing.assert_allclose(means[name], alone[name], rtol=1e-12)


def test_clusters_need_dates():
    with pytest.raises(ValueError, match="cluster='year' needs dates along the dimension of the"):
        skill(SCORES.drop_vars("time"), REFERENCE.drop_vars("time"), cluster="year")
    with pytest.raises(ValueError, match="cluster is 'month'; give 'year' or 'season'"):
        skill(SCORES, REFERENCE, cluster="month")
    with pytest.raises(ValueError, match="give one of lag, block_length and cluster, not block_le"):
        skill(SCORES, REFERENCE, cluster="year", block_length=2)


# rows ---------------------------------------------------------------------------------------------


def test_rows_by_a_place():
    found = skill(SCORES, REFERENCE, by="lat")
    for lat in SCORES.lat.values:
        alone = skill(SCORES.sel(lat=lat), REFERENCE.sel(lat=lat), ["time", "lon"])
        for name in (*NAMES, "n_cases"):
            np.testing.assert_allclose(found[name].sel(lat=lat), alone[name], rtol=1e-12)
    head, *rows = [line.split() for line in repr(found).splitlines()[:3]]
    assert head == ["lat", "cases", "skill", "±", "95", "%", "interval", "p"]
    assert [row[2] for row in rows] == [f"{value:.1%}" for value in found.skill.values]
    assert found._repr_html_().count("<tr>") == 3
    assert "Dimensions" in repr(skill(SCORES, REFERENCE, "time", by="lat"))  # places are no rows


def test_rows_with_too_few_cases_say_so():
    few = np.random.default_rng(0).random((10, 1)).cumsum(0)
    time = np.arange("2020-01-01", "2020-01-11", dtype="datetime64[D]")
    scores = xr.DataArray(few, {"time": time, "lead": [1]}, ("time", "lead"), attrs={"units": "m"})
    _, row, *foot = repr(skill(scores, 0.5 + scores + few**2, by="lead")).splitlines()
    assert row.split()[-2:] == ["?", "?"]
    assert foot[-1] == "?: too few cases (dependent cases count as fewer)"
    assert "?" not in repr(skill(SCORES, REFERENCE, by="lat"))


def test_rows_by_season():
    found = skill(SCORES, REFERENCE, ["time", "lat", "lon"], by="season")
    assert list(found.season.values) == [
        s for s in ("DJF", "MAM", "JJA", "SON") if s in SCORES.time.dt.season
    ]
    for season in found.season.values:
        cases = (SCORES.time.dt.season == season).values
        alone = skill(SCORES.isel(time=cases), REFERENCE.isel(time=cases), ...)
        np.testing.assert_allclose(found.skill.sel(season=season), alone.skill, rtol=1e-12)
        assert found.n_cases.sel(season=season) == alone.n_cases
    lazy = skill(SCORES.chunk(lat=1), REFERENCE, by="season")
    assert lazy.chunks
    assert "season" in repr(lazy.compute()).splitlines()[0]
    with pytest.raises(
        ValueError, match="by='month' is not a dimension of places or leads of scores"
    ):
        skill(SCORES, REFERENCE, by="month")
    with pytest.raises(ValueError, match="by='season' needs dates along 'time'"):
        skill(SCORES.drop_vars("time"), REFERENCE.drop_vars("time"), by="season")
