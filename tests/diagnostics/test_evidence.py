"""Laws of all diagnostics: labels, chunks, types, missing data, attributes, errors."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.arrays.status import EVIDENCE_MEANINGS, FEW, NO_EVENT, TOO_FEW

from .calls import EVIDENCE, FORMS, PIT, SCORES, WHOLE, hindcast, pairs_of, variables

ENSEMBLE, TRUTH = hindcast()
TIED = hindcast(step=0.5)
ALL = EVIDENCE | SCORES | PIT
LOCATION_CHUNKS = {"lat": 1}  # and observations cut along the other dimension
CASE_CHUNKS = [{"time": (1, 9, 2), "lon": 1}, {"time": 5}]

OF_SUCCESSIVE = ("_error", "p_value", "skill_low", "skill_high")
SKILLS = ("rpss", "brier_skill_score", "tercile_summary")
OF_SKILL = ("p_value", "skill_low", "skill_high")
"""Missing where ten cases that depend on each other say too little."""


@cache
def result(name, form="ensemble", tied=False):
    """Of the whole ensemble in one of its forms, which no test changes."""
    forecast, truth = TIED if tied else (ENSEMBLE, TRUTH)
    return ALL[name](FORMS[form](forecast), truth)


def assert_near(found, expected):
    assert set(variables(found)) == set(variables(expected))
    for name, array in variables(expected).items():
        one = variables(found)[name]
        xr.testing.assert_allclose(one.transpose(*array.dims), array, rtol=1e-11, atol=1e-11)


# one law for all labels, orders and chunks --------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "dims", [("lon", "member", "time", "lat"), ("member", "lat", "lon", "time")]
)
def test_the_order_of_dimensions_says_nothing(name, dims):
    forecast, truth = TIED
    expected = result(name, tied=True)
    found = ALL[name](forecast.transpose(*dims), truth.transpose("lat", "time", "lon"))
    for variable, array in variables(expected).items():
        turned = variables(found)[variable]
        np.testing.assert_array_equal(turned.transpose(*array.dims), array, variable)
        places = [d for d in dims if d in TRUTH.dims]
        assert [d for d in turned.dims if d in places] == [d for d in places if d in turned.dims]


@pytest.mark.each_value
@pytest.mark.parametrize(("name", "form"), pairs_of(ALL))
def test_location_chunks_are_lazy_and_bit_equal(name, form):
    forecast, truth = FORMS[form](TIED[0]), TIED[1]
    expected = result(name, form, tied=True)
    with forbid_compute():
        lazy = ALL[name](forecast.chunk(LOCATION_CHUNKS), truth.chunk(lon=1))
    computed = lazy.compute()
    xr.testing.assert_identical(computed, expected)
    for variable, array in variables(lazy).items():
        assert array.chunks is not None
        assert array.dtype == variables(computed)[variable].dtype
        assert array.dtype == variables(expected)[variable].dtype


@pytest.mark.each_value
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("chunks", CASE_CHUNKS)
def test_chunks_along_the_cases(name, chunks):
    expected = result(name, tied=True)
    with forbid_compute():
        lazy = ALL[name](TIED[0].chunk(chunks), TIED[1].chunk(time=4))
    assert_near(lazy.compute(), expected)
    assert_near(ALL[name](TIED[0], TIED[1].chunk(time=4)).compute(), expected)


def test_coordinates_of_dask_are_not_computed():
    height = xr.DataArray(np.ones((2, 2)), dims=["lat", "lon"]).chunk(lat=1)
    month = TRUTH.time.dt.month.chunk(time=4)
    forecast = ENSEMBLE.assign_coords(height=height, month=month).chunk(lat=1)
    for name, call in ALL.items():
        with forbid_compute():
            found = call(forecast, TRUTH)
        assert "height" in found.coords, name
        assert found.height.chunks is not None


@pytest.mark.each_value
@pytest.mark.parametrize("name", EVIDENCE)
@pytest.mark.parametrize("dim", [["time", "lat"], ("lon", "time"), ["lat"], ...])
def test_several_dimensions_of_cases_are_one_stacked(name, dim):
    dims = list(TRUTH.dims) if dim is ... else list(dim)
    forecast, truth = (a.stack(case=dims).drop_vars(["case", *dims]) for a in (ENSEMBLE, TRUTH))
    expected = EVIDENCE[name](forecast, truth, "case")
    for chunks in ({}, {"time": 5, "lat": 1}):
        found = EVIDENCE[name](ENSEMBLE.chunk(chunks) if chunks else ENSEMBLE, TRUTH, dim)
        for variable, array in found.compute().data_vars.items():
            if set(dims) <= set(array.dims):
                array = array.stack(case=dims).drop_vars(["case", *dims])
            if variable.endswith(OF_SUCCESSIVE) and len(dims) > 1:
                continue  # neighbours along other dimensions are no successive cases
            if variable == "skill" and len(dims) > 1:
                continue  # each place has the shares of its own dates
            wanted = expected[variable].transpose(*array.dims)
            np.testing.assert_allclose(array, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_averaged(name):
    truth = TRUTH.where(TRUTH > 278)
    scores = SCORES[name](ENSEMBLE, truth)
    assert scores.isnull().any()
    for dim in ("time", ["time", "lat"], ("lat", "lon"), ...):
        found = SCORES[name](ENSEMBLE, truth, dim)
        xr.testing.assert_allclose(found, scores.mean(dim), rtol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_observations_are_matched_by_label(name):
    expected = result(name)
    earlier = TRUTH[:2].assign_coords(time=TRUTH.time[:2] - np.timedelta64(99, "D"))
    more = xr.concat([earlier, TRUTH], "time")
    xr.testing.assert_identical(ALL[name](ENSEMBLE, more[::-1]), expected)
    named = ALL[name](ENSEMBLE.to_dataset(), {"t2m": more})
    assert_near(named.rename(t2m=name) if name in SCORES | PIT else named, _renamed(expected, name))


def _renamed(result, name):
    return result if isinstance(result, xr.Dataset) else result.rename(name).to_dataset()


@pytest.mark.parametrize("name", ALL)
def test_observations_may_lack_a_location(name):
    alike = TRUTH.isel(lat=0, drop=True)
    expected = ALL[name](ENSEMBLE, alike.broadcast_like(TRUTH).transpose(*TRUTH.dims))
    xr.testing.assert_identical(ALL[name](ENSEMBLE, alike), expected)
    lazy = ALL[name](ENSEMBLE.chunk(lat=1), alike.chunk(lon=1))
    xr.testing.assert_identical(lazy.compute(), expected)


@pytest.mark.parametrize("name", EVIDENCE)
def test_the_order_of_the_cases_is_the_users(name):
    order = np.random.default_rng(0).permutation(TRUTH.sizes["time"])
    expected = result(name)
    found = EVIDENCE[name](ENSEMBLE[order], TRUTH)
    for variable, array in expected.data_vars.items():
        wanted = array[order] if "time" in array.dims else array
        xr.testing.assert_allclose(found[variable], wanted, rtol=1e-10, atol=1e-12)


# cases that are compared with each other ---------------------------------------------------------

LONG, LONG_TRUTH = hindcast(n=40)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_series_lazily_and_in_any_order(name):
    call = WHOLE[name]
    expected = call(LONG, LONG_TRUTH)
    with forbid_compute():
        lazy = call(LONG.chunk(lat=1), LONG_TRUTH.chunk(lon=1))
    assert all(array.chunks is not None for array in variables(lazy).values())
    xr.testing.assert_identical(lazy.compute(), expected)
    turned = LONG.transpose("lon", "member", "time", "lat")
    found = call(turned, LONG_TRUTH.transpose("lat", "time", "lon"))
    assert_near(found, expected)
    mixed = np.random.default_rng(0).permutation(40)
    assert_near(call(LONG[mixed], LONG_TRUTH[::-1]), expected)
    alike = LONG_TRUTH.isel(lat=0, drop=True)
    assert_near(call(LONG, alike), call(LONG, alike.broadcast_like(LONG_TRUTH)))


@pytest.mark.parametrize("name", WHOLE)
def test_types_and_errors_of_whole_series(name):
    call = WHOLE[name]
    forecast = LONG.astype("float32").assign_attrs(history="made")
    forecast, truth = (freeze(a.copy(deep=True)) for a in (forecast, LONG_TRUTH.astype("float32")))
    before = forecast.copy(deep=True)
    found = call(forecast, truth)
    assert forecast.identical(before)
    lines = found.attrs["history"].splitlines()
    assert lines[0] == "made"
    assert lines[1].startswith("xrecal: ")
    evidence = {"e_value", "change_statistic"}  # which grow beyond single precision
    for variable, array in found.data_vars.items():
        assert array.attrs["long_name"]
        if array.dtype.kind == "f":
            assert array.dtype == (np.float64 if variable in evidence else np.float32)
    with pytest.raises(ValueError, match="is in K but observations are in degC"):
        call(LONG, LONG_TRUTH.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match=r"one variable, .*\['a', 'b'\]; .*\['a'\]"):
        call(xr.Dataset({"a": LONG, "b": LONG}), {"a": LONG_TRUTH, "b": LONG_TRUTH})
    if name != "monitor":  # which brings the cases together itself
        with pytest.raises(ValueError, match=r"'time' in 2 chunks.*chunk\(\{'time': -1\}\)"):
            call(LONG.chunk(time=20), LONG_TRUTH)


# missing data and few cases -----------------------------------------------------------------------


@pytest.mark.parametrize("name", EVIDENCE)
def test_missing_cases_are_left_out(name):
    forecast, truth = ENSEMBLE.copy(), TRUTH.copy()
    forecast[3], truth[7] = np.nan, np.nan
    keep = [t for t in range(12) if t not in (3, 7)]
    expected, found = EVIDENCE[name](ENSEMBLE[keep], TRUTH[keep]), EVIDENCE[name](forecast, truth)
    for variable, array in expected.data_vars.items():
        one = found[variable]
        if "time" in one.dims:
            one = one[keep]
        xr.testing.assert_allclose(one, array, rtol=1e-12, atol=1e-12)
    assert (found.n_cases == 10).all()


@pytest.mark.parametrize("name", EVIDENCE)
def test_few_cases_are_flagged_and_too_few_have_no_result(name):
    for n, status in ((1, TOO_FEW), (2, FEW), (9, FEW), (10, 0)):
        found = EVIDENCE[name](ENSEMBLE[:n], TRUTH[:n])
        assert found.status.dtype == np.int16
        assert (found.status & ~NO_EVENT == status).all()  # few cases may be without an event
        assert (found.n_cases == n).all()
        for variable in set(found.data_vars) - {"status", "n_cases"}:
            array = found[variable]
            if variable in ("probability", "forecast_quantile"):
                assert array.notnull().all()  # issued whatever is known of them
            elif n == 1:
                assert array.isnull().all(), variable
            elif n == 10 and not (variable in OF_SKILL and name in SKILLS):
                assert array.notnull().all(), variable


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_place_without_observations_leaves_the_others_alone(name):
    sea = (TRUTH.lat == 45) & (TRUTH.lon == 5)
    expected, found = result(name, tied=True), EVIDENCE[name](TIED[0], TIED[1].where(~sea))
    there, elsewhere = {"lat": 0, "lon": 1}, {"lat": 1}
    assert (found.n_cases[there] == 0).all()
    assert (found.status[there] == TOO_FEW).all()
    for variable in set(found.data_vars) - {
        "status",
        "n_cases",
        "probability",
        "forecast_quantile",
    }:
        assert found[variable][there].isnull().all()
    xr.testing.assert_identical(found.isel(elsewhere), expected.isel(elsewhere))


@pytest.mark.parametrize("name", SCORES | PIT)
def test_missing_values_have_no_score(name):
    forecast, truth = TIED[0].copy(), TIED[1].copy()
    forecast[2, :, 0, 0], truth[3, 1, 1] = np.nan, np.nan
    expected, found = result(name, tied=True), ALL[name](forecast, truth)
    missing = found.isnull()
    assert missing.isel(time=2, lat=0, lon=0).all()
    assert missing.isel(time=3, lat=1, lon=1).all()
    assert int(missing.sum()) == 2 * found.size / TRUTH.size
    xr.testing.assert_identical(found, expected.where(~missing))


# types and attributes -----------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize(("name", "form"), pairs_of(ALL))
def test_float32_and_read_only(name, form):
    forecast, truth = hindcast(step=0.5, dtype=np.float32)
    forecast = freeze(FORMS[form](forecast).astype("float32").copy(deep=True))
    truth = freeze(truth.copy(deep=True))
    before, truth_before = forecast.copy(deep=True), truth.copy(deep=True)
    found = ALL[name](forecast, truth)
    counts = {"n_cases": np.int64, "status": np.int16, "n_in_bin": np.float64}
    for variable, array in variables(found).items():
        assert array.dtype == counts.get(variable, np.float32)
    exact = ALL[name](forecast.astype("float64"), truth.astype("float64"))
    for variable, array in variables(exact).items():
        one = variables(found)[variable]
        # Ranks tell apart what single precision does not.
        if not variable.startswith(("p_value", "slope_p", "convexity_p", "area", "roc_area")):
            np.testing.assert_allclose(one, array, rtol=2e-4, atol=2e-5)
    assert forecast.identical(before)
    assert truth.identical(truth_before)


@pytest.mark.parametrize("name", EVIDENCE)
def test_attributes_of_evidence(name):
    forecast = ENSEMBLE.assign_attrs(history="made", station="Sodankylä")
    found = EVIDENCE[name](forecast, TRUTH)
    lines = found.attrs["history"].splitlines()
    assert lines[0] == "made"
    assert lines[1].startswith("xrecal: ")
    assert lines[1].endswith(" over 'time'")
    assert "station" not in found.attrs
    for variable, array in found.data_vars.items():
        assert array.attrs["long_name"]
        assert "station" not in array.attrs
        counted = variable in ("n_cases", "status", "n_in_bin")
        assert ("units" in array.attrs) != counted, variable
    assert found.n_cases.attrs == {"long_name": "number of cases"}
    assert found.status.attrs["flag_meanings"] == " ".join(EVIDENCE_MEANINGS.values())
    np.testing.assert_array_equal(found.status.attrs["flag_masks"], list(EVIDENCE_MEANINGS))
    assert found.status.attrs["flag_masks"].dtype == found.status.dtype
    bare = forecast.drop_attrs().assign_attrs(units=forecast.units)
    dataset = bare.to_dataset().assign_attrs(history="made")
    assert EVIDENCE[name](dataset, {"t2m": TRUTH}).attrs["history"] == found.attrs["history"]


@pytest.mark.parametrize("name", SCORES | PIT)
def test_attributes_of_scores(name):
    forecast = ENSEMBLE.assign_attrs(history="made")
    found = ALL[name](forecast, TRUTH)
    assert found.attrs["long_name"]
    in_kelvin = any(part in name for part in ("crps", "quantile", "wis"))
    assert found.attrs["units"] == ("K" if in_kelvin else "K4" if name == "error_spread" else "1")
    assert found.attrs["history"].startswith("made\nxrecal: ")
    assert ("estimator" in found.attrs) == (name != "pit")
    assert found.name == name.removeprefix("fair_").removesuffix("_between")
    two = xr.Dataset({"a": forecast, "b": forecast + 1}, attrs={"history": "two"})
    together = ALL[name](two, {"a": TRUTH, "b": TRUTH + 1})
    assert list(together) == ["a", "b"]
    assert together.attrs["history"].startswith("two\nxrecal: ")
    np.testing.assert_array_equal(together["a"], found)
    if name in SCORES:
        mean = SCORES[name](forecast, TRUTH, ["time", "lat"])
        assert mean.attrs["history"].endswith(", mean over 'time' and 'lat'")


@pytest.mark.parametrize("name", EVIDENCE)
def test_coordinates_stay(name):
    forecast = ENSEMBLE.assign_coords(
        month=TRUTH.time.dt.month, height=2.0, name=("lat", ["a", "b"])
    )
    found = EVIDENCE[name](forecast, TRUTH.assign_coords(height=3.0))
    assert {"lat", "lon", "name", "height"} <= set(found.coords)
    assert found.height == 2
    assert ("month" in found.coords) == ("time" in found.dims)
    for d in found.dims:
        assert d in found.coords


# errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVIDENCE)
def test_what_cannot_be_judged(name):
    call = EVIDENCE[name]
    two = xr.Dataset({"a": ENSEMBLE, "b": ENSEMBLE})
    with pytest.raises(ValueError, match=r"for one variable, .* \['a', 'b'\]; .*forecast\['a'\]"):
        call(two, {"a": TRUTH, "b": TRUTH})
    message = r"dim='x', but forecast has no dimension 'x' .* only \['time', 'lat', 'lon'\]"
    with pytest.raises(ValueError, match=message):
        call(ENSEMBLE, TRUTH, "x")
    with pytest.raises(ValueError, match="has no dimension 'member' of cases or locations"):
        call(ENSEMBLE, TRUTH, ["time", "member"])
    for dim in ([], ["time", "time"]):
        with pytest.raises(ValueError, match="must name dimensions of the cases, each once"):
            call(ENSEMBLE, TRUTH, dim)
    cases = [a.rename(time="case") for a in (ENSEMBLE, TRUTH)]
    with pytest.raises(ValueError, match="forecast has none of the known calibration dimensions"):
        call(*(a.drop_vars("case") for a in cases))
    for dim in ((), ("case",)):  # the only dates, or named
        assert_near(call(*cases, *dim).drop_vars("case", errors="ignore"), _without_dates(name))


def _without_dates(name):
    found = result(name)
    return found.rename(time="case").drop_vars("case") if "time" in found.dims else found


@pytest.mark.parametrize("name", ALL)
def test_what_does_not_fit(name):
    call = ALL[name]
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        call(ENSEMBLE, TRUTH.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="no label along 'time' is common"):
        call(ENSEMBLE, TRUTH.assign_coords(time=TRUTH.time + np.timedelta64(1, "D")))
    with pytest.raises(ValueError, match="labels along 'lat' differ"):
        call(ENSEMBLE, TRUTH.assign_coords(lat=[1.0, 2.0]))
    with pytest.raises(ValueError, match="are the two swapped"):
        call(TRUTH, ENSEMBLE)
    with pytest.raises(TypeError, match="observations has dtype int64"):
        call(ENSEMBLE, TRUTH.astype(int))
    with pytest.raises(ValueError, match=r"forecast.chunk\(\{'member': -1\}\)"):
        call(ENSEMBLE.chunk(member=2), TRUTH)
    with pytest.warns(UserWarning, match="only 5 of 12 forecasts along 'time' have an observation"):
        call(ENSEMBLE, TRUTH[:5])


RESERVED = {
    "pit_histogram": "pit_bin",
    "rank_histogram": "rank",
    "reliability": "threshold",
    "coverage": "level",
    "spread_skill": "spread_bin",
    "roc": "probability_level",
    "economic_value": "cost_loss",
    "tercile_summary": "category",
}


@pytest.mark.parametrize("name", RESERVED)
def test_dimensions_of_results_are_reserved(name):
    dim = RESERVED[name]
    with pytest.raises(ValueError, match=rf"has a dimension '{dim}'.*forecast.rename\({dim}=...\)"):
        EVIDENCE[name](ENSEMBLE.rename(lat=dim), TRUTH.rename(lat=dim))


@pytest.mark.parametrize("name", ["pit_histogram", "pit_test", "rank_histogram", "coverage"])
def test_seeds_are_whole(name):
    for seed in (1.5, True, "3"):
        with pytest.raises(ValueError, match="seed must be a whole number, got"):
            EVIDENCE[name](ENSEMBLE, TRUTH, seed=seed)


@pytest.mark.parametrize("name", EVIDENCE)
def test_other_member_dimensions_are_named(name):
    found = EVIDENCE[name](ENSEMBLE.rename(member="m"), TRUTH, member_dim="m")
    xr.testing.assert_identical(found, result(name))


def test_cases_along_another_dimension_are_still_matched_by_date():
    """Values over the map of each day: locations are the cases, days are matched by label."""
    found = ENSEMBLE[3:].recal.spread_skill(TRUTH, ["lat", "lon"])
    assert found.bias.dims == ("time",)
    xr.testing.assert_identical(found, ENSEMBLE[3:].recal.spread_skill(TRUTH[3:], ["lat", "lon"]))
    one = ENSEMBLE[3:].recal.pit_histogram(TRUTH, "lat")
    xr.testing.assert_identical(one, ENSEMBLE[3:].recal.pit_histogram(TRUTH[3:], "lat"))
    two = ENSEMBLE.rename(lat="init"), TRUTH.rename(lat="init")
    with pytest.raises(ValueError, match=r"several calibration dimensions, \['time', 'init'\]"):
        two[0].recal.pit_test(two[1])
    assert two[0].recal.pit_test(two[1], "init").p_value.dims == ("time", "lon")
