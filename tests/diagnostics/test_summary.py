from html import escape

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, ensemble_and_truth

from .test_skce import normalised

ENSEMBLE, TRUTH = ensemble_and_truth(n=30)
OPTIONS = {"n_resamples": 50}


@pytest.mark.parametrize("form", FORMS)
def test_holds_what_the_single_functions_say(form):
    forecast = normalised(FORMS[form](ENSEMBLE))
    found = forecast.recal.summary(TRUTH, **OPTIONS)
    score = forecast.recal.crps(TRUTH, "time")
    np.testing.assert_allclose(found.crps, score)
    spread = forecast.recal.spread_skill(TRUTH)
    np.testing.assert_array_equal(found.bias, spread.bias)
    np.testing.assert_array_equal(found.spread_error_ratio, spread.ratio)
    inside = forecast.recal.coverage(TRUTH, level=[0.5, 0.9])
    np.testing.assert_array_equal(found.coverage, inside.coverage)
    np.testing.assert_array_equal(
        found.pit_p_value, forecast.recal.pit_test(TRUTH, block_length=None).p_value
    )
    tested = forecast.recal.skce_test(TRUTH, test="serial", **OPTIONS)
    np.testing.assert_array_equal(found.skce, tested.skce)
    np.testing.assert_array_equal(found.skce_p_value, tested.p_value)
    np.testing.assert_array_equal(found.status, tested.status)
    with forbid_compute():
        lazy = forecast.chunk(lat=1).recal.summary(TRUTH, **OPTIONS)
        told = "<xrecal summary, not computed: .compute() shows the table>"
        assert repr(lazy) == told  # not a table, which would need the values
        assert lazy._repr_html_() == f"<p>{escape(told)}</p>"
    xr.testing.assert_identical(lazy.compute(), found)


def test_tables_of_one_and_of_several_locations():
    here = {"lat": 0, "lon": 1}
    alone = ENSEMBLE.isel(here).recal.summary(TRUTH.isel(here), **OPTIONS)
    *rows, foot = repr(alone).splitlines()
    named = {row.split("  ")[0]: row.split("  ")[-1].strip() for row in rows}
    assert named["CRPS"] == f"{alone.crps.item():.4g} K"
    assert named["bias"] == f"{alone.bias.item():.4g} K"
    assert named["coverage of 90%"] == f"{alone.coverage.sel(level=0.9).item():.1%}"
    assert named["SKCE p"] == f"{alone.skce_p_value.item():.2g}"
    assert foot == "30 cases; successive cases that count as one: PIT 2, SKCE 7"
    few = repr(ENSEMBLE.isel(here)[:8].recal.summary(TRUTH.isel(here), **OPTIONS)).splitlines()
    assert [row.split()[-1] for row in few if "p  " in row] == ["?", "?"]
    assert few[-1].startswith("8 cases; ")
    assert few[-1].endswith("; ?: too few cases (dependent cases count as fewer)")
    every = ENSEMBLE.recal.summary(TRUTH, **OPTIONS)
    head, *rows, foot = repr(every).splitlines()
    assert head.split() == ["median", "lowest", "highest", "p", "<", "0.05"]
    assert next(row for row in rows if row.startswith("SKCE p")).endswith("4 of 4")
    assert foot.startswith("4 locations, 30 cases each")
    leads = ENSEMBLE.isel(lon=0).rename(lat="lead").assign_coords(lead=range(ENSEMBLE.lat.size))
    leads = leads.recal.summary(leads.mean("member") + 1, **OPTIONS)
    assert repr(leads).splitlines()[-1].startswith("2 leads, 30 cases each")
    assert "<table>" in every._repr_html_()
    assert "CRPS" not in repr(every.drop_vars("crps")).splitlines()[0]


def test_locations_that_have_no_test_are_told():
    truth = TRUTH.where((TRUTH.lat > TRUTH.lat[0]) | (TRUTH.time < TRUTH.time[8]))
    every = ENSEMBLE.recal.summary(truth, **OPTIONS)
    assert every.skce_p_value.isnull().sum() == 2
    *rows, foot = repr(every).splitlines()
    assert next(row for row in rows if row.startswith("SKCE p")).endswith("2 of 2")
    told = "; rejections among the locations with enough cases (dependent cases count as fewer)"
    assert told in foot
    assert told not in repr(ENSEMBLE.recal.summary(TRUTH, **OPTIONS))


@pytest.mark.parametrize("absent", ["observations", "forecasts"])
def test_locations_without_cases_are_counted_apart(absent):
    sea = (TRUTH.lat == TRUTH.lat[0]) & (TRUTH.lon == TRUTH.lon[1])
    truth = TRUTH.where(TRUTH.time != TRUTH.time[3]).where(TRUTH.lat != TRUTH.lat[1], TRUTH)
    forecast = ENSEMBLE
    if absent == "observations":
        truth = truth.where(~sea)
    else:
        forecast = ENSEMBLE.where(~sea)
    every = forecast.recal.summary(truth, **OPTIONS)
    assert every.n_cases.min() == 0
    foot = repr(every).splitlines()[-1]
    assert foot.startswith(
        "3 locations, 29 to 30 cases each; 1 of 4 locations without cases; p < 0.05 after"
    )
    none = forecast.recal.summary(truth * np.nan, **OPTIONS)
    foot = repr(none).splitlines()[-1]
    assert foot.startswith("0 locations, 0 cases each; 4 of 4 locations without cases; ")


def test_tables_tell_intervals_that_quantiles_leave_open():
    quantiles = ENSEMBLE.recal.quantile([0.1, 0.25, 0.75, 0.9])
    several = repr(quantiles.recal.summary(TRUTH, **OPTIONS)).splitlines()
    (row,) = (row for row in several if row.startswith("coverage of 90%"))
    assert row.split() == ["coverage", "of", "90%", "not", "known"]
    assert "discoveries; not known: beyond the levels of these quantiles; successive" in several[-1]
    here = {"lat": 0, "lon": 1}
    alone = repr(quantiles.isel(here).recal.summary(TRUTH.isel(here), **OPTIONS)).splitlines()
    assert [row.split()[2:] for row in alone if "coverage of 90%" in row] == [
        ["90%", "not", "known"]
    ]
    assert alone[-1].startswith("30 cases; not known: beyond the levels of these quantiles; succ")


def test_censored_forecasts_are_tested_by_quantiles():
    loc, scale = ENSEMBLE.mean("member", keep_attrs=True), ENSEMBLE.std("member", keep_attrs=True)
    bounded = xrecal.gaussian(loc, scale, lower=270.0)
    found = bounded.recal.summary(TRUTH, **OPTIONS)
    assert found.skce_p_value.notnull().all()
    assert "of 200 quantiles" in found.skce.attrs["estimator"]
    free = xrecal.gaussian(loc, scale).recal.summary(TRUTH, **OPTIONS)
    np.testing.assert_allclose(found.skce, free.skce, atol=0.003)


def test_too_few_cases_still_print():
    lone = ENSEMBLE.isel(time=[0]).recal.summary(TRUTH, **OPTIONS)
    assert lone.skce.isnull().all()
    assert "nan" in repr(lone)


def test_parts_of_a_summary_print_as_datasets():
    whole = ENSEMBLE.recal.summary(TRUTH, test="wild", block_length=2, **OPTIONS)
    whole = whole.drop_vars("pit_block_length")
    for name in whole.data_vars:
        assert "Data variables" in repr(whole.drop_vars(name))
    assert "Data variables" in repr(whole.mean("lat"))


def test_exchangeable_members_pass_with_observations_pooled():
    rng = np.random.default_rng(0)
    members = xr.DataArray(rng.normal(size=(400, 6)), dims=["time", "member"])
    truth = xr.DataArray(rng.normal(size=400), dims="time")
    issued = members.recal.summary(truth, **OPTIONS)
    assert issued.pit_p_value < 0.001
    exact = members.recal.summary(truth, augmented=True, **OPTIONS)
    assert exact.pit_p_value > 0.05
    assert exact.skce_p_value > 0.05
