import dask
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import (
    FORMS,
    METHODS,
    PAPER,
    close,
    ensemble_and_truth,
    model_of,
    new_cases,
    points,
)
from xrecal import arrays

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
SHARED = ("ckme", "climatology", "window", "idr")
"""Methods whose members are past observations."""
CHUNKS = [{"lat": 1}, {"lon": 1}, {"lat": 1, "lon": 1}]
LEVELS = (np.arange(5) + 0.5) / 5


@pytest.fixture(scope="module")
def model():
    return model_of("ckme")


def make(model, forecast, coherence, **kwargs):
    n = None if coherence == "ecc" else 5
    return model.members(forecast, n, coherence=coherence, **kwargs)


@pytest.fixture(scope="module")
def smooth():
    """Without equal quantiles, whose ranks would be tied."""
    return HINDCAST.recal.fit(TRUTH, xrecal.EMOS())


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


def last(result, dim="member"):
    return result.transpose("time", "lat", "lon", dim).to_numpy()


def ranks(values):
    return stats.rankdata(values, axis=-1)


# law: as a loop over points with the array functions ----------------------------------------------


def test_ecc_at_each_point(model):
    found, quantiles = model.members(NEW, coherence="ecc", seed=4), model.quantile(NEW, LEVELS)
    assert found.dims == NEW.dims
    for point in points(TRUTH):
        raw = NEW.isel(point).transpose("time", "member").to_numpy()
        values = quantiles.isel(point).transpose("time", "quantile").to_numpy()
        expected = arrays.reordered_members(values, raw, 4, np.arange(7))
        here = found.isel(point).transpose("time", "member").to_numpy()
        np.testing.assert_array_equal(here, expected)


def test_ecc_keeps_the_ranks_of_raw_members(smooth):
    found = smooth.members(NEW, coherence="ecc")
    np.testing.assert_array_equal(ranks(last(found)), ranks(last(NEW)))


@pytest.mark.parametrize("method", METHODS)
def test_distributions_stay_and_ranks_are_those_of_the_raw_members(method):
    model = model_of(method)
    expected = np.sort(last(model.members(NEW, 5)))
    found, by_dates = (last(make(model, NEW, coherence)) for coherence in ("ecc", "schaake"))
    for members in (found, by_dates):
        np.testing.assert_array_equal(np.sort(members), expected)
    assert (np.diff(np.take_along_axis(found, np.argsort(last(NEW)), -1)) >= 0).all()


def test_schaake_follows_the_dates_given(model):
    dates = HINDCAST.time.to_numpy()[[40, 3, 17, 8, 25]]
    found = model.members(NEW, coherence="schaake", template=dates)
    np.testing.assert_array_equal(found.calibration_time, dates)
    past = TRUTH.sel(time=dates).transpose("lat", "lon", "time").to_numpy()
    quantiles = np.sort(last(model.quantile(NEW, LEVELS), "quantile"))
    expected = np.take_along_axis(quantiles, np.broadcast_to(ranks(past) - 1, found.transpose(
        "time", "lat", "lon", "member").shape).astype(int), -1)  # fmt: skip
    np.testing.assert_array_equal(last(found), expected)
    as_text = [str(date)[:10] for date in dates]
    for same in (as_text, list(dates.astype("datetime64[D]")), TRUTH.time.sel(time=dates)):
        again = model.members(NEW, 5, coherence="schaake", template=same)
        xr.testing.assert_identical(again, found)


def test_schaake_takes_the_nearest_dates_of_the_year():
    """Of equally near ones the latest; season over the turn of the year."""
    dates = np.array([f"{y}-{m}-01" for y in (2001, 2002, 2003, 2004, 2005) for m in (
        "01", "03", "06", "12")], dtype="datetime64[ns]")  # fmt: skip
    past = HINDCAST.isel(time=slice(20)).assign_coords(time=dates)
    model = past.recal.fit(TRUTH.isel(time=slice(20)).assign_coords(time=dates), PAPER)
    new = NEW.isel(time=[0]).assign_coords(time=np.array(["2010-12-24"], "datetime64[ns]"))
    found = model.members(new, 7, coherence="schaake").calibration_time
    assert found.dims == ("time", "member")
    told = [str(date)[:7] for date in found.to_numpy()[0]]
    assert told == ["2001-01", "2002-01", "2003-01", "2004-01", "2004-12", "2005-01", "2005-12"]
    single = model.members(new.isel(time=0), 7, coherence="schaake")
    np.testing.assert_array_equal(single.calibration_time, found[0])
    assert single.dims == ("member", "lat", "lon")


def test_schaake_without_dates_takes_the_latest_cases():
    bare = HINDCAST.drop_vars("time"), TRUTH.drop_vars("time")
    model = bare[0].recal.fit(bare[1], xrecal.EMOS())
    found = model.members(NEW.drop_vars("time"), 5, coherence="schaake")
    assert "calibration_time" not in found.coords
    by_year = [a.assign_coords(time=np.arange(1950, 1998)) for a in bare]
    new = NEW.assign_coords(time=np.arange(2000, 2007))
    model = by_year[0].recal.fit(by_year[1], xrecal.EMOS())
    dated = model.members(new, 5, coherence="schaake")
    np.testing.assert_array_equal(dated.calibration_time, [[1993, 1994, 1995, 1996, 1997]] * 7)
    np.testing.assert_array_equal(found, dated)
    past = TRUTH[-5:].transpose("lat", "lon", "time").to_numpy()
    for case in last(found):
        np.testing.assert_array_equal(ranks(case), ranks(past))


@pytest.mark.parametrize("method", SHARED)
def test_dates_at_each_point(method):
    model = model_of(method)
    found = model.members(NEW, 6, coherence="dates", seed=2)
    weights = model.apply(NEW).t2m_weight.transpose("time", "lat", "lon", "member").to_numpy()
    totals = arrays.whole_weights(weights).sum((1, 2))
    slots = arrays.systematic_draws(totals, 6, 2, np.arange(7))
    drawn = HINDCAST.time.to_numpy()[slots]
    np.testing.assert_array_equal(found.calibration_time.transpose("time", "member"), drawn)
    for case in range(7):
        expected = TRUTH.sel(time=drawn[case]).rename(time="member")
        np.testing.assert_array_equal(
            found[case].transpose("member", "lat", "lon"),
            expected.transpose("member", "lat", "lon"),
        )


def test_dates_at_a_single_place():
    at, method = {"lat": 0, "lon": 1}, METHODS["ckme"]
    one = HINDCAST.isel(at, drop=True).recal.fit(TRUTH.isel(at, drop=True), method)
    found = one.members(NEW.isel(at, drop=True), 6, coherence="dates")
    observed = TRUTH.isel(at, drop=True)
    for case in range(7):
        expected = observed.sel(time=found.calibration_time.isel(time=case))
        np.testing.assert_array_equal(found.isel(time=case), expected)


# law: chunks, order of dimensions, seeds, forms ---------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_every_form_lazily_and_bit_equal(form, chunks):
    hindcast, forecast = FORMS[form](HINDCAST), FORMS[form](NEW)
    model, ways = model_of("ckme", form), ["schaake", "dates", *["ecc"] * (form == "ensemble")]
    expected = [make(model, forecast, way, seed=3) for way in ways]
    assert all(array(members).notnull().all() for members in expected)
    with forbid_compute():
        lazy_model = hindcast.chunk(chunks).recal.fit(TRUTH, PAPER)
        lazy = [make(lazy_model, forecast.chunk(lat=1), way, seed=3) for way in ways]
    assert all(array(members).chunks is not None for members in lazy)
    for found, whole in zip(dask.compute(*lazy), expected, strict=True):
        xr.testing.assert_identical(found, whole)
    for way, whole in zip(ways, expected, strict=True):
        close(make(model, forecast.chunk(time=3), way, seed=3).compute(), whole)


@pytest.mark.parametrize("coherence", ["ecc", "schaake", "dates"])
def test_order_of_dimensions_type_and_inputs(model, coherence):
    expected = make(model, NEW, coherence)
    found = make(model, freeze(NEW.transpose("lon", "member", "time", "lat")), coherence)
    assert found.dims == ("lon", "member", "time", "lat")
    np.testing.assert_array_equal(last(found), last(expected))
    single = [a.astype("float32") for a in (HINDCAST, TRUTH, NEW)]
    small = make(single[0].recal.fit(single[1], PAPER), single[2], coherence)
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, expected, rtol=1e-5)
    assert expected.attrs["units"] == "K"
    assert expected.name == "t2m"


@pytest.mark.parametrize("coherence", ["ecc", "schaake", "dates"])
def test_single_forecasts(model, coherence):
    found = make(model, NEW.isel(time=0), coherence)
    assert found.dims == ("member", "lat", "lon")
    np.testing.assert_allclose(found, make(model, NEW, coherence)[0], rtol=1e-12)


def test_seeds(model):
    dates = [model.members(NEW, 5, coherence="dates", seed=seed) for seed in (0, 0, 1)]
    assert dates[0].identical(dates[1])
    assert not dates[0].equals(dates[2])
    dry = NEW * 0 + 280
    tied = [model.members(dry, coherence="ecc", seed=seed) for seed in (0, 0, 1)]
    assert tied[0].identical(tied[1])
    assert not tied[0].equals(tied[2])
    np.testing.assert_array_equal(  # nothing is drawn where there are no ties
        model.members(NEW, coherence="ecc"), model.members(NEW, coherence="ecc", seed=1)
    )
    order = ranks(last(tied[0]))
    np.testing.assert_array_equal(order, np.broadcast_to(order[:, :1, :1], order.shape))


def test_lead_times_and_other_dimension_names():
    """A member is one field over leads too; ``number`` stays the name of its dimension."""

    def renamed(a):
        return a.rename(
            {"time": "init", "lat": "lead"} | ({"member": "number"} if a.ndim == 4 else {})
        )

    model = renamed(HINDCAST).recal.fit(renamed(TRUTH), PAPER)
    found = model.members(renamed(NEW), 6, coherence="dates")
    assert found.dims == ("init", "number", "lead", "lon")
    assert found.calibration_init.dims == ("init", "number")
    expected = HINDCAST.recal.fit(TRUTH, PAPER).members(NEW, 6, coherence="dates")
    np.testing.assert_array_equal(found, expected)


# variables ----------------------------------------------------------------------------------------


def two_variables():
    """A second variable with a signal of its own, of 48 and of 7 cases."""
    dew, dew_truth = ensemble_and_truth(seed=8)
    return (
        xr.Dataset({"t2m": HINDCAST, "dew": dew}),
        xr.Dataset({"t2m": TRUTH, "dew": dew_truth}),
        xr.Dataset({"t2m": NEW, "dew": new_cases(seed=9)[0]}),
    )


@pytest.mark.parametrize("coherence", ["ecc", "schaake", "dates"])
def test_variables_belong_together(coherence):
    hindcast, truth, forecast = two_variables()
    model = hindcast.recal.fit(truth, PAPER)
    found = make(model, forecast, coherence)
    with forbid_compute():
        lazy = make(hindcast.chunk(lon=1).recal.fit(truth, PAPER), forecast.chunk(lat=1), coherence)
    xr.testing.assert_identical(lazy.compute(), found)
    alone = {name: make(model[name], forecast[name], coherence) for name in ("t2m", "dew")}
    if coherence != "dates":
        xr.testing.assert_equal(found, xr.Dataset(alone))
        return
    for case in range(7):
        dates = found.calibration_time[case].to_numpy()
        for name in ("t2m", "dew"):
            observed = truth[name].sel(time=dates).to_numpy()
            here = found[name][case].transpose("member", "lat", "lon")
            np.testing.assert_array_equal(here, observed)
    assert not any(found[name].equals(alone[name]) for name in alone)  # both have a say


def test_variables_with_other_dates_are_no_field():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST.rename(time="init", lat="y", lon="x")})
    truth = {"t2m": TRUTH, "dew": TRUTH.rename(time="init", lat="y", lon="x")}
    model = hindcast.recal.fit(truth, PAPER, dim=None)
    with pytest.raises(ValueError, match=r"than 't2m'; draw members of each variable alone: mod"):
        model.members(hindcast, 5, coherence="dates")


@pytest.mark.parametrize("coherence", ["schaake", "dates"])
def test_variables_with_member_dimensions_of_their_own(coherence):
    hindcast, truth, forecast = two_variables()
    hindcast["dew"], forecast["dew"] = (
        x["dew"].rename(member="number") for x in (hindcast, forecast)
    )
    model = hindcast.recal.fit(truth, xrecal.Climatology())
    match = r"are along 'number', those of 't2m' along 'member'; rename one"
    with pytest.raises(ValueError, match=match):
        make(model, forecast, coherence)
    found = model.members(forecast, coherence="ecc")
    assert found.dew.dims == ("time", "number", "lat", "lon")


# missing values -----------------------------------------------------------------------------------


def test_missing_raw_members_take_a_rank_at_random(smooth):
    gap = NEW.where((NEW.lat > 45) | (NEW.member != 2))
    found = smooth.members(gap, coherence="ecc")
    np.testing.assert_array_equal(np.sort(last(found)), np.sort(last(smooth.members(gap, 5))))
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(ranks(last(found)[..., others]), ranks(last(NEW)[..., others]))
    order = ranks(last(found))[:, 0, :, 2]
    np.testing.assert_array_equal(order[:, 0], order[:, 1])


@pytest.mark.parametrize("coherence", ["ecc", "schaake", "dates"])
def test_missing_forecasts_and_fits_are_missing(coherence):
    hindcast = HINDCAST.where((HINDCAST.lat > 45) | (HINDCAST.lon > 0))
    model = hindcast.recal.fit(TRUTH, PAPER)
    found = make(model, NEW.where(NEW.time != NEW.time[2]), coherence)
    missing = last(found.isnull())
    assert missing[2].all()
    assert missing[:, 0, 0].all()
    assert missing.sum() == 5 * (7 + 3)
    assert found.calibration_time.isnull().sum() == 5 if coherence == "dates" else True


def test_template_dates_without_an_observation_have_a_rank_at_random():
    gone = TRUTH.time[[3, 20, 30, 40, 41]]
    truth = TRUTH.where((TRUTH.lat > 45) | ~TRUTH.time.isin(gone))
    model = HINDCAST.recal.fit(truth, xrecal.EMOS())
    found = model.members(NEW, coherence="schaake", template=gone)
    np.testing.assert_array_equal(np.sort(last(found)), np.sort(last(model.members(NEW, 5))))
    order = ranks(last(found))[:, 0]  # nothing is known there, so both cells have one order
    np.testing.assert_array_equal(order[:, 0], order[:, 1])


def test_drawn_dates_without_an_observation_have_no_value_there():
    gone = TRUTH.time[[3, 20, 30, 40, 41]]
    truth = TRUTH.where((TRUTH.lat > 45) | ~TRUTH.time.isin(gone))
    found = HINDCAST.recal.fit(truth, PAPER).members(NEW, 40, coherence="dates")
    expected = found.calibration_time.isin(gone) & (found.lat < 45.5) & found.lon.notnull()
    assert expected.any()
    np.testing.assert_array_equal(last(found.isnull()), last(expected))


# what coherence is for ----------------------------------------------------------------------------


def test_fields_score_better_than_places():
    rng = np.random.default_rng(3)
    common = rng.normal(size=(90, 6, 1))
    cells = xr.DataArray(common + 0.2 * rng.normal(size=(90, 6, 5)), dims=["time", "member", "x"])
    cells = cells.assign_coords(time=np.arange(1900, 1990))
    truth, hindcast = cells.isel(member=0, drop=True), 1 + 0.5 * cells.isel(member=slice(1, 6))
    model = hindcast[:70].recal.fit(truth, PAPER)
    score = {
        coherence: float(members.recal.variogram_score(truth, dim="time"))
        for coherence in (None, "ecc", "schaake", "dates")
        for members in [model.members(hindcast[70:], 5, coherence=coherence)]
    }
    for coherence in ("ecc", "schaake", "dates"):
        assert score[coherence] < 0.5 * score[None]


# names and errors ---------------------------------------------------------------------------------


def test_history(model):
    told = make(model, NEW, "ecc", seed=8).attrs["history"]
    assert told.startswith("xrecal: 5 equally likely members, in the order of the raw members")
    assert "seed 8, after recalibration by CKME" in told


def test_errors_of_arguments(model):
    with pytest.raises(ValueError, match=r"coherence is 'copula'; give one of \['ecc', 'schaake'"):
        model.members(NEW, 5, coherence="copula")
    with pytest.raises(
        ValueError, match="'t2m' has 5 members, but n=7; leave n out, or take coherence='schaake'"
    ):
        model.members(NEW, 7, coherence="ecc")
    for coherence in ("schaake", "dates"):
        with pytest.raises(ValueError, match=rf"'{coherence}' needs the number of members: n=50"):
            model.members(NEW, coherence=coherence)
        with pytest.raises(
            ValueError, match="n must be a whole number of members, 1 or more, got 0"
        ):
            model.members(NEW, 0, coherence=coherence)
    with pytest.raises(ValueError, match="number of members, 1 or more, got None"):
        model.members(NEW)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        model.members(NEW, coherence="ecc", seed=0.5)
    with pytest.raises(ValueError, match=r"template names the dates .* add coherence='schaake'"):
        model.members(NEW, 5, template=["2001-01-15"])
    with pytest.raises(ValueError, match="but coherence is 'ecc'; leave template out"):
        model.members(NEW, coherence="ecc", template=["2001-01-15"])


def test_errors_of_templates(model):
    def schaake(template=None, n=None, model=model):
        return model.members(NEW, n, coherence="schaake", template=template)

    with pytest.raises(
        ValueError, match=r"2001-01-16 00:00:00, 1999-05-01 .* knows 48 from 2001-01"
    ):
        schaake(["2001-01-15", "2001-01-16", "1999-05-01"])
    with pytest.raises(ValueError, match=r"template names 2001-01-15 .* more than once"):
        schaake(["2001-01-15", "2001-01-15"])
    with pytest.raises(
        ValueError, match="template holds 'warm', which is not a date; the calibration"
    ):
        schaake(["warm"])
    for bad in ([], "2001-01-15", 3):
        with pytest.raises(ValueError, match="template must list labels of the calibration cases"):
            schaake(bad)
    with pytest.raises(ValueError, match="template has 1 dates, one for each member, but n=3"):
        schaake(["2001-01-15"], 3)
    with pytest.raises(ValueError, match="n=49 and the model has 48 calibration cases; take n=48"):
        schaake(n=49)
    bare = HINDCAST.drop_vars("time").recal.fit(TRUTH.drop_vars("time"), PAPER)
    with pytest.raises(ValueError, match="the hindcast had no labels along 'time'; leave template"):
        schaake([3], model=bare)


@pytest.mark.parametrize("form", ["weighted", "quantile", "normal"])
def test_forms_without_raw_members(form):
    model = model_of("ckme", form)
    with pytest.raises(
        ValueError, match=f"of the form '{form}', which has no members; take coherence"
    ):
        model.members(FORMS[form](NEW), coherence="ecc")


@pytest.mark.parametrize("method", sorted(set(METHODS) - {*SHARED, "lowrank", "season"}))
def test_methods_without_past_observations(method):
    model = model_of(method)
    with pytest.raises(
        ValueError, match=r"draws past observations, but .*issues other values; take"
    ):
        model.members(NEW, 5, coherence="dates")


def test_pooled_models_have_raw_orders_alone():
    model = HINDCAST.recal.fit(TRUTH, PAPER, pool=("lat", "lon"))
    found = model.members(NEW, coherence="ecc")
    np.testing.assert_array_equal(ranks(last(found)), ranks(last(NEW)))
    close(model.members(NEW.chunk(lat=1, time=2), coherence="ecc").compute(), found)
    for coherence in ("schaake", "dates"):
        with pytest.raises(
            ValueError, match="but the model is pooled over lat, lon; take coherence"
        ):
            model.members(NEW, 5, coherence=coherence)


def test_covariates_reach_members():
    bias = xr.DataArray(np.linspace(0, 1, 48), dims="time", coords={"time": HINDCAST.time})
    now = xr.DataArray(np.linspace(0, 1, 7), dims="time", coords={"time": NEW.time})
    settings = xrecal.CKME(support="observations", condition_on="extra")
    model = HINDCAST.recal.fit(TRUTH, settings, covariates={"extra": bias})
    for coherence in ("ecc", "schaake", "dates"):
        found = make(model, NEW, coherence, covariates={"extra": now})
        assert found.notnull().all()
        with pytest.raises(ValueError, match="the covariate 'extra' is not known for forecast"):
            make(model, NEW, coherence)
