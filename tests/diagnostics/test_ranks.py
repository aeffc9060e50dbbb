import numpy as np
import pytest
import xarray as xr

from tests.strategies import points
from xrecal import arrays

from .calls import FORMS, hindcast
from .test_pit import number, rain

ENSEMBLE, TRUTH = hindcast(n=30, step=0.5)
TESTS = ("statistic", "p_value", "slope", "slope_p_value", "convexity", "convexity_p_value")


@pytest.mark.parametrize("seed", [0, 7])
def test_counts_and_tests_at_each_point(seed):
    found = ENSEMBLE.recal.rank_histogram(TRUTH, seed=seed)
    assert found["n_in_bin"].dims == ("lat", "lon", "rank")
    np.testing.assert_array_equal(found["rank"], np.arange(6))
    for point in points(TRUTH):
        u = arrays.hash_uniform(seed, number(point), 30)[0]
        members, y = ENSEMBLE.isel(point).to_numpy(), TRUTH.isel(point).to_numpy()
        counts = arrays.rank_counts(arrays.observation_ranks(y, members, u)[0], 6)
        np.testing.assert_array_equal(found["n_in_bin"].isel(point), counts)
        for name, value in zip(TESTS, arrays.flatness_test(counts), strict=True):
            assert found[name].isel(point) == value, name


def test_seeds_place_ties_alone():
    one, other = (ENSEMBLE.recal.rank_histogram(TRUTH, seed=seed) for seed in (0, 1))
    assert (one["n_in_bin"] != other["n_in_bin"]).any()
    forecast, truth = hindcast(n=30)
    free = [forecast.recal.rank_histogram(truth, seed=seed) for seed in (0, 1)]
    xr.testing.assert_identical(*free)


def test_flat_for_exchangeable_members_with_many_ties():
    forecast, truth = rain(n=2000, m=7)
    assert (truth == 0).mean() > 0.5
    found = forecast.recal.rank_histogram(truth)
    for name in ("p_value", "slope_p_value", "convexity_p_value"):
        assert (found[name] > 0.01).all()
    np.testing.assert_allclose(found["n_in_bin"], 250, atol=60)
    assert (found.n_cases == 2000).all()


def test_what_is_wrong_is_told_by_its_sign():
    forecast, truth = rain(n=500)
    too_high = (forecast + 0.5).recal.rank_histogram(truth)
    assert (too_high.slope < -3).all()
    assert (too_high.slope_p_value < 0.01).all()
    forecast, truth = hindcast(n=500)
    centre = forecast.mean("member")
    narrow = (centre - 0.3 + (forecast - centre) / 2).recal.rank_histogram(truth)
    assert (narrow.convexity > 3).all()


def test_cases_with_a_missing_member_are_left_out():
    gaps = ENSEMBLE.where((ENSEMBLE.member != 2) | (ENSEMBLE.time > ENSEMBLE.time[9]))
    found = gaps.recal.rank_histogram(TRUTH)
    assert (found.n_cases == 20).all()
    assert (found["n_in_bin"].sum("rank") == 20).all()


@pytest.mark.parametrize("form", [form for form in FORMS if form != "ensemble"])
def test_other_forms_have_no_ranks(form):
    message = "a rank histogram needs plain ensembles, but .* use pit_histogram"
    with pytest.raises(ValueError, match=message):
        FORMS[form](ENSEMBLE).recal.rank_histogram(TRUTH)
    members = FORMS[form](ENSEMBLE).recal.members(3)
    assert (members.recal.rank_histogram({"t2m": TRUTH}).n_cases == 30).all()
