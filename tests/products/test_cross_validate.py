import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import xrecal
from tests.marks import DATA, requires_data
from tests.strategies import FORMS, PAPER, ensemble_and_truth
from xrecal.arrays.splitting import splits as split_cases
from xrecal.fit import held_out
from xrecal.inputs.dates import case_axis

HINDCAST, TRUTH = ensemble_and_truth(n=72)  # a month apart, six years
METHODS = {
    "climatology": xrecal.Climatology(),
    "EMOS": xrecal.EMOS(condition_on="season"),
    "IDR": xrecal.IDR(),
    "PIT": xrecal.PITRecalibration(),
    "CKME": xrecal.CKME(support="observations"),
    "lowrank": xrecal.CKME(support="observations", solver="lowrank"),
    "errors": xrecal.CKME(support="errors", half_life="cv", condition_on="season"),
    "shapes": xrecal.CKME(support="errors", compare="shapes"),
}
SPLITS = {
    "year": {"by": "year", "gap": 2},
    "block": {"by": "block", "blocks": 4},
    "retrospective": {"by": "retrospective", "blocks": 3, "gap": np.timedelta64(40, "D")},
    "rolling": {"by": "rolling", "window": 30, "every": 20},
}


def splits(hindcast, **options):
    axis = case_axis(hindcast, "time")
    return split_cases(
        hindcast.sizes["time"], options.pop("by"), year=axis.year, days=axis.days, **options
    )


def by_hand(hindcast, truth, method, options, **settings):
    """Each split fitted on its training cases by the user, and scored on its test cases."""
    scores = xr.full_like(truth, np.nan)
    for train, test in splits(hindcast, **options):
        model = hindcast.isel(time=train).recal.fit(truth, method, **settings)
        scores[{"time": test}] = model.crps(hindcast.isel(time=test), truth)
    return scores


@pytest.mark.parametrize("form", ["ensemble", "weighted", "mixture"])
def test_distances_reused_are_those_of_each_split(form, monkeypatch):
    method = xrecal.CKME(support="auto", bandwidth="cv")
    hindcast = FORMS[form](HINDCAST.where(HINDCAST.member < 3 + HINDCAST.lat - 45))
    reused = hindcast.recal.cross_validate(TRUTH, method, by="block", blocks=3)
    task = held_out.LoopTask

    def without(*args):
        made = task(*args)
        assert made.reuse_distances
        return replace(made, reuse_distances=False)

    monkeypatch.setattr(held_out, "LoopTask", without)
    again = hindcast.recal.cross_validate(TRUTH, method, by="block", blocks=3)
    xr.testing.assert_allclose(reused, again, rtol=1e-7)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.*splits leave fewer")
@pytest.mark.parametrize("by", ["retrospective", "rolling"])
@pytest.mark.parametrize("method", METHODS)
def test_the_past_never_sees_the_future(method, by):
    tests = [test for _, test in splits(HINDCAST, **SPLITS[by])]
    options = SPLITS[by] | {"condition_on": "season"}
    here = [array.isel(lat=[0], lon=[0]) for array in (HINDCAST, TRUTH)]
    before = here[0].recal.cross_validate(here[1], METHODS[method], **options)
    for last in (tests[0], tests[1]):
        after = np.flatnonzero(last)[-1] + 1
        hindcast, truth = (array.copy(deep=True) for array in here)
        hindcast[after:] = 1e4 * np.random.default_rng(0).normal(size=hindcast[after:].shape)
        truth[np.flatnonzero(last)[0] :] = 1e5  # more would be a fill value
        found = hindcast.recal.cross_validate(truth, METHODS[method], **options)[:after]
        assert found.notnull().any()
        np.testing.assert_array_equal(found, before[:after])


@pytest.mark.parametrize("by", ["year", "block"])
def test_a_test_never_sees_its_observations_nor_the_gap(by):
    options = {"by": by, "gap": 3}
    hindcast, truth = (array.isel(lon=[0]) for array in (HINDCAST, TRUTH))
    expected = hindcast.recal.cross_validate(truth, **options)
    for train, test in splits(HINDCAST, **options)[1:3]:
        hidden = truth.where(xr.DataArray(train, dims="time"), 1e5)
        found = hindcast.recal.cross_validate(hidden, **options)
        np.testing.assert_array_equal(found[test], expected[test])


@pytest.mark.slow
def test_blocks_judge_serially_dependent_cases_honestly_and_a_shuffle_does_not():
    """What verifies has errors that last for weeks, which the forecast does not know.

    Neighbours have similar forecasts and similar errors: where they may be learned from, they give
    the answer away.
    """
    n, places = 300, 12
    rng = np.random.default_rng(3)

    def lasting(length, memory=0.95):
        noise = rng.normal(size=(length, places))
        for t in range(1, length):
            noise[t] = memory * noise[t - 1] + np.sqrt(1 - memory**2) * noise[t]
        return noise

    signal = 2 * lasting(3 * n)
    truth = xr.DataArray(
        signal + lasting(3 * n), dims=["time", "place"], coords={"time": np.arange(3 * n)}
    )
    members = signal[..., np.newaxis] + 0.1 * rng.normal(size=(3 * n, places, 5))
    members = xr.DataArray(members, dims=["time", "place", "member"], coords=truth.coords)
    past, later = members[:n], members[n + 60 :]
    real = past.recal.fit(truth, PAPER).crps(later, truth).mean().item()
    options = {"by": "block", "output": "crps"}
    blocked = past.recal.cross_validate(truth, PAPER, gap=30, **options).mean().item()
    order = rng.permutation(n)
    shuffled = past.assign_coords(time=order)
    shuffled = shuffled.recal.cross_validate(truth[:n].assign_coords(time=order), PAPER, **options)
    assert shuffled.mean().item() < 0.75 * real
    assert blocked == pytest.approx(real, rel=0.1)


def test_missing_data_leave_the_rest_alone():
    hindcast, truth = HINDCAST.copy(deep=True), TRUTH.copy(deep=True)
    hindcast[5], hindcast[20, 2], truth[7, 0], truth[:, 1, 1] = np.nan, np.nan, np.nan, np.nan
    found = hindcast.recal.cross_validate(truth)
    assert found[5].isnull().all()
    assert found[:, :, 1, 1].isnull().all()
    assert found[7, :, 0].notnull().all()  # predicted, though never observed
    assert found[20].sel(lat=45).notnull().all()
    scores = hindcast.recal.cross_validate(truth, PAPER, output="crps")
    np.testing.assert_allclose(scores, by_hand(hindcast, truth, PAPER, {"by": "year"}), 1e-6)
    pit = hindcast.recal.cross_validate(truth, PAPER, output="pit")
    np.testing.assert_array_equal(pit.isnull(), scores.isnull())


def test_types_units_and_attributes():
    hindcast = HINDCAST.astype(np.float32).assign_attrs(history="made")
    hindcast = hindcast.assign_coords(month=hindcast.time.dt.month, height=2.0)
    found = hindcast.recal.cross_validate(TRUTH.astype(np.float32), xrecal.EMOS(), by="block")
    assert found.dtype == np.float32
    assert found.name == "t2m"
    assert set(found.coords) == {"time", "month", "lat", "lon", "quantile", "height"}
    assert found.attrs["units"] == "K"
    assert found.attrs["cross_validation"] == "by='block', gap=0, blocks=5"
    first, second = found.attrs["history"].split("\n")
    assert first == "made"
    assert "EMOS" in second
    assert "by='block'" in second
    single = hindcast.recal.cross_validate(TRUTH, xrecal.EMOS(), q=0.5, by="block")
    xr.testing.assert_allclose(single, found.sel(quantile=0.5))
    for output, units in (("crps", "K"), ("pit", "1")):
        scores = hindcast.recal.cross_validate(TRUTH, xrecal.EMOS(), output=output)
        assert scores.dtype == np.float32
        assert scores.name == output
        assert scores.attrs["units"] == units
    assert "history" not in HINDCAST.attrs


@pytest.mark.parametrize("method", [xrecal.EMOS(), xrecal.CKME(support="errors")])
def test_pit_of_calibrated_forecasts_is_uniform(method):
    hindcast, truth = ensemble_and_truth(n=120, n_lat=5, n_lon=4)
    pit = hindcast.recal.cross_validate(truth, method, output="pit", by="block", blocks=3)
    pit = pit.to_numpy().ravel()
    assert scipy.stats.kstest(pit, "uniform").statistic < 0.05


def test_pit_is_drawn_within_jumps():
    hindcast, truth = ensemble_and_truth(n=120, n_lat=5, n_lon=4)
    hindcast, truth = (np.maximum(array - 281, 0) for array in (hindcast, truth))  # dry and wet
    options = {"output": "pit", "by": "block", "blocks": 3, "choose": "lon"}
    for method in (xrecal.EMOS(), xrecal.CKME(support="observations")):
        pit = hindcast.recal.cross_validate(truth, method, **options)
        dry = pit.to_numpy()[truth.to_numpy() == 0]
        assert np.unique(dry).size > 0.9 * dry.size
        assert scipy.stats.kstest(pit.to_numpy().ravel(), "uniform").statistic < 0.1
        part = hindcast[:, :, 2:3].recal.cross_validate(truth[:, 2:3], method, **options)
        np.testing.assert_array_equal(part, pit[:, 2:3])


def test_remarks_are_made_once():
    with pytest.warns(UserWarning, match="season learned") as told:
        HINDCAST[:24].recal.cross_validate(
            TRUTH, xrecal.EMOS(condition_on="season"), by="block", blocks=2, min_samples=10
        )
    assert len(told) == 1
    assert "(in 2 of 2 splits)" in str(told[0].message)


def test_what_cannot_be_split():
    def validate(n=72, **options):
        HINDCAST[:n].recal.cross_validate(TRUTH, **options)

    with pytest.raises(ValueError, match="output is 'crsp'; give one of"):
        validate(output="crsp")
    with pytest.raises(ValueError, match="by is 'month'; give one of"):
        validate(by="month")
    with pytest.raises(ValueError, match="by='rolling' needs every"):
        validate(by="rolling", window=20)
    with pytest.raises(ValueError, match="every split leaves fewer than min_samples=20 cases"):
        validate(by="rolling", window=10, every=5)
    with pytest.raises(ValueError, match=r"all cases are from 2002; .* to predict cases 0 to 11\)"):
        validate(24, method=xrecal.CKME(support="observations", folds="year"), min_samples=10)
    with pytest.raises(TypeError, match=r"method must be settings such as xrecal\.EMOS"):
        validate(method=xrecal.EMOS)
    with pytest.raises(ValueError, match=r"hindcast has 'time' in 2 chunks"):
        HINDCAST.chunk({"time": 36}).recal.cross_validate(TRUTH)
    bare = HINDCAST.drop_vars("time")
    with pytest.raises(ValueError, match="no dates are known; use by='block'"):
        bare.recal.cross_validate(TRUTH.drop_vars("time"))
    with pytest.warns(UserWarning, match="1 of 3 splits leave fewer than min_samples=20"):
        found = HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), by="retrospective", blocks=4)
    assert found[:36].isnull().all()
    assert found[36:].notnull().all()


def daily(first, n):
    """The cases on other dates, which follow each other."""
    time = np.datetime64(first, "ns") + np.arange(n) * np.timedelta64(1, "D")
    one = {"time": slice(n), "lat": 0, "lon": 0}
    return (array.isel(one).assign_coords(time=time) for array in (HINDCAST, TRUTH))


def test_years_may_begin_on_any_date():
    hindcast, truth = daily("2000-06-01", 72)  # to 11 August
    options = {"method": xrecal.EMOS(), "output": "crps", "min_samples": 10, "gap": "1D"}
    found = hindcast.recal.cross_validate(truth, year_start=7, **options)
    assert found.attrs["cross_validation"] == "by='year', gap='1D', year_start=7"
    for train, test in ((slice(31, 72), slice(0, 30)), (slice(0, 29), slice(30, 72))):
        model = hindcast[train].recal.fit(truth, xrecal.EMOS(), min_samples=10)
        expected = model.crps(hindcast[test], truth)
        np.testing.assert_allclose(found[test], expected, rtol=1e-9)
    with pytest.raises(ValueError, match="year_start belongs to by='year', but by is 'block'"):
        hindcast.recal.cross_validate(truth, xrecal.EMOS(), by="block", year_start=7)
    with pytest.raises(ValueError, match="year_start needs dates along the calibration dimension"):
        hindcast.drop_vars("time").recal.cross_validate(
            truth.drop_vars("time"), xrecal.EMOS(), year_start=7
        )
    with pytest.raises(ValueError, match="year_start must be a date such as '07-01' or a month"):
        hindcast.recal.cross_validate(truth, xrecal.EMOS(), year_start="July")
    with pytest.raises(
        ValueError, match="gap is '5', which is not a length of time; give a number"
    ):
        hindcast.recal.cross_validate(truth, xrecal.EMOS(), year_start=7, gap="5")


def test_a_winter_is_no_two_years():
    hindcast, truth = daily("2000-12-01", 72)
    with pytest.raises(
        ValueError,
        match=r"all cases are of 2001, as years begin in the longest time .* use by='block'",
    ):
        hindcast.recal.cross_validate(truth, xrecal.EMOS())


@pytest.mark.parametrize("gap", [0, "5D"])
def test_neighbours_in_time_that_are_learned_from_are_told(gap):
    hindcast, truth = daily("2001-01-01", 72)
    options = {"by": "block", "blocks": 2, "gap": gap, "min_samples": 10}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hindcast.recal.cross_validate(truth, xrecal.EMOS(), **options)
    texts = [str(one.message) for one in told]
    assert bool(texts) == (gap == 0)
    if texts:
        (text,) = texts
        assert text.startswith("14 of 72 cases are predicted by fits that have learned from a nei")
        assert "use gap=..., such as gap='7D'" in text


@requires_data("innsbruck_gefs.nc")
def test_innsbruck_the_season_pays():
    """A station in a valley: crosswise over years about as on the years that follow."""
    with xr.open_dataset(DATA / "innsbruck_gefs.nc") as data:
        hindcast, truth = data.tmin_forecast.load(), data.tmin_observation.load()
    validate = functools.partial(
        hindcast.recal.cross_validate, truth, xrecal.EMOS(), gap=3, output="crps"
    )
    assert validate().mean().item() == pytest.approx(1.662, abs=0.002)
    assert validate(condition_on="season").mean().item() == pytest.approx(1.235, abs=0.01)
