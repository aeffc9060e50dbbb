"""What methods issue whose forecasts have members of their own, and what is conditioned on."""

import cftime
import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal import arrays
from xrecal.arrays.distributions import moments
from xrecal.arrays.forms import Forecasts
from xrecal.parallel import one_blas_thread

from .marks import forbid_compute
from .strategies import FORMS, LEVELS, close, ensemble_and_truth, new_cases, points

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
OWN = {
    "errors": xrecal.CKME(support="errors"),
    "auto": xrecal.CKME(support="auto"),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
}
ON_CASES = [name for name in OWN if name != "conformal"]


# references of one point: members (n, m), truth (n,), new (T, m) to members and weights (T, k) ----


def ckme_point(supports, members, truth, new):
    cases, observed, given = Forecasts(members[None]), truth[None], Forecasts(new[None])
    stored = Forecasts(np.sort(cases.loc, axis=-1))  # as in a model
    with one_blas_thread():
        fitted = arrays.fit_ckme(cases, observed, arrays.Settings(supports=supports))
        found = arrays.ckme_weights(given, stored, observed, fitted, own_members=True)
    return [part[0] for part in found]


def pit_point(members, truth):
    uniform = arrays.hash_uniform(0, np.zeros(1, np.int64), truth.size)
    return arrays.pit_values(Forecasts(members[None]), truth[None], uniform)


def recalibrated_point(members, truth, new):
    found = arrays.recalibrated_members(Forecasts(new[None]), pit_point(members, truth))[0]
    known = np.isfinite(truth)
    return found, np.broadcast_to(known / known.sum(), found.shape)


def interval_point(members, truth, new):
    levels = arrays.conformal_levels(pit_point(members, truth), 0.1)
    found = arrays.recalibrated_members(Forecasts(new[None]), levels)[0]
    return found, np.full(found.shape, 0.5)


ERRORS = ("mean", "regression", "standardised", "ratio")
REFERENCES = {
    "errors": lambda *point: ckme_point(ERRORS, *point),
    "auto": lambda *point: ckme_point(("observations", *ERRORS), *point),
    "pit": recalibrated_point,
    "conformal": interval_point,
}


@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"lat": 1, "lon": 1}])
@pytest.mark.parametrize("dims", [NEW.dims, ("lon", "member", "time", "lat")])
@pytest.mark.parametrize("name", OWN)
def test_issued_forecasts_are_those_of_the_arrays_at_each_point(name, dims, chunks):
    truth = TRUTH.copy()
    truth[3:6, 0, 1] = np.nan
    hindcast, new = HINDCAST.transpose(*dims), NEW.transpose(*dims)
    if chunks is not None:
        hindcast, new = hindcast.chunk(chunks), new.chunk(chunks)
    issued = hindcast.recal.fit(truth, OWN[name]).apply(new)
    assert issued.t2m.dims == issued.t2m_weight.dims == dims
    assert (issued.t2m.chunks is not None) == (chunks is not None)
    issued = issued.compute().transpose("time", "member", ...)
    for point in points(TRUTH):
        given = [a.isel(point).to_numpy() for a in (HINDCAST, truth, NEW)]
        members, weights = REFERENCES[name](*given)
        np.testing.assert_array_equal(issued.t2m.isel(point), members)
        np.testing.assert_array_equal(issued.t2m_weight.isel(point), weights)
        if name in ON_CASES:
            unused = np.isnan(given[1])
            assert np.isnan(members[:, unused]).all()
            assert (weights[:, unused] == 0).all()
    np.testing.assert_allclose(issued.t2m_weight.sum("member"), 1, rtol=1e-12)


@pytest.mark.parametrize("name", OWN)
def test_schedulers_and_chunks_are_bit_equal(name):
    expected = HINDCAST.recal.fit(TRUTH, OWN[name]).apply(NEW)
    with forbid_compute():
        lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, OWN[name]).apply(NEW.chunk(lon=1))
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            xr.testing.assert_identical(lazy.compute(), expected)
    assert lazy.dtypes == expected.dtypes


@pytest.mark.parametrize("name", OWN)
def test_time_may_be_in_chunks_or_missing(name):
    model = HINDCAST.recal.fit(TRUTH, OWN[name])
    whole = model.apply(NEW)
    for chunks in ({"time": 3}, {"time": (1, 4, 2), "lat": 1}):
        close(model.apply(NEW.chunk(chunks)).compute(), whole)
    for drop in (False, True):
        single = model.apply(NEW.isel(time=2, drop=drop))
        assert single.t2m.dims == ("member", "lat", "lon")
        close(single, whole.isel(time=2, drop=drop))
    station = {"lat": 1, "lon": 0}
    alone = HINDCAST.isel(station).recal.fit(TRUTH.isel(station), OWN[name])
    today = alone.apply(NEW.isel(station).isel(time=2))
    assert today.t2m.dims == ("member",)
    close(today, whole.isel(station).isel(time=2))


@pytest.mark.parametrize("name", OWN)
def test_members_say_which_case_they_come_from(name):
    issued = HINDCAST.recal.fit(TRUTH, OWN[name]).apply(NEW)
    cases = issued.calibration_time
    assert cases.dims == ("member",)
    assert cases.dtype.kind == "M"
    if name in ON_CASES:
        np.testing.assert_array_equal(cases, TRUTH.time)
    else:  # ends of an interval come from no single case
        assert issued.sizes["member"] == 2
        assert cases.isnull().all()
    assert "member" not in issued.indexes
    assert issued.t2m.attrs == HINDCAST.attrs | {"ancillary_variables": "t2m_weight"}
    assert issued.t2m_weight.attrs["role"] == "member_weight"


LABELS = {
    "dates": [cftime.DatetimeNoLeap(2001 + i // 12, 1 + i % 12, 15) for i in range(48)],
    "years": list(range(1960, 2008)),
    "names": [f"case {i:02}" for i in range(48)],
}


@pytest.mark.parametrize("labels", LABELS)
def test_cases_may_have_other_labels_or_none(labels):
    hindcast, truth = (a.assign_coords(time=LABELS[labels]) for a in (HINDCAST, TRUTH))
    new = NEW.drop_vars("time")
    issued = hindcast.recal.fit(truth, OWN["pit"]).apply(new)
    assert issued.calibration_time.to_numpy().tolist() == LABELS[labels]
    assert hindcast.recal.fit(truth, OWN["conformal"]).apply(new).calibration_time.isnull().all()
    bare = (a.drop_vars("time") for a in (HINDCAST, TRUTH))
    assert "calibration_time" not in next(bare).recal.fit(next(bare), OWN["pit"]).apply(new).coords


@pytest.mark.parametrize("form", ["quantile", "percentile", "normal", "mixture"])
@pytest.mark.parametrize("name", OWN)
def test_own_members_are_neither_quantiles_nor_components(name, form):
    model = FORMS[form](HINDCAST).recal.fit(TRUTH, OWN[name])
    issued = model.apply(FORMS[form](NEW))
    assert set(issued.t2m.dims) == {"time", "member", "lat", "lon"}
    scores = model.crps(FORMS[form](NEW), VERIFIED)
    found = issued.recal.crps(VERIFIED)
    xr.testing.assert_allclose(found, scores.drop_vars("quantile", errors="ignore"), rtol=1e-12)


@pytest.mark.parametrize("as_dataset", [False, True])
@pytest.mark.parametrize("dim", ["number", "m"])
@pytest.mark.parametrize("name", OWN)
def test_the_member_dimension_is_the_users(name, dim, as_dataset):
    arrays_ = [a.rename(member=dim) for a in (HINDCAST, NEW)] + [TRUTH.rename("t2m")]
    hindcast, new, truth = [a.to_dataset() for a in arrays_] if as_dataset else arrays_
    issued = hindcast.recal.fit(truth, OWN[name], member_dim=dim).apply(new)
    assert issued.t2m.dims == issued.t2m_weight.dims == ("time", dim, "lat", "lon")
    expected = HINDCAST.recal.fit(TRUTH, OWN[name]).apply(NEW).rename(member=dim)
    xr.testing.assert_equal(issued, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", OWN)
def test_missing_forecasts_have_no_members(name, value):
    new = NEW.copy()
    new[3, :, 0, 1] = value
    model = HINDCAST.recal.fit(TRUTH, OWN[name])
    issued, whole = model.apply(new), model.apply(NEW)
    for part in ("t2m", "t2m_weight"):
        found = issued[part].transpose("time", "lat", "lon", "member")
        expected = whole[part].transpose("time", "lat", "lon", "member")
        assert np.isnan(found[3, 0, 1]).all()
        assert int(found.isnull().sum()) == found.sizes["member"]
        close(found.where(found.notnull(), expected), expected)


@pytest.mark.parametrize("name", OWN)
def test_float32(name):
    hindcast, truth = ensemble_and_truth(dtype=np.float32)
    new, _ = new_cases(dtype=np.float32)
    issued = hindcast.recal.fit(truth, OWN[name]).apply(new)
    assert set(issued.dtypes.values()) == {np.dtype("f4")}
    np.testing.assert_allclose(issued.t2m_weight.sum("member"), 1, rtol=1e-5)
    lazy = hindcast.chunk(lat=1).recal.fit(truth, OWN[name]).apply(new.chunk(lon=1))
    xr.testing.assert_identical(lazy.compute(), issued)


# other methods against the array functions --------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
def test_isotonic_regression_at_each_point(chunks):
    new = NEW if chunks is None else NEW.chunk(chunks)
    issued = HINDCAST.recal.fit(TRUTH, xrecal.IDR()).apply(new).compute()
    for point in points(TRUTH):
        members, truth, given = (a.isel(point).to_numpy() for a in (HINDCAST, TRUTH, NEW))
        means = (moments(Forecasts(a[None]))[0] for a in (given, members))
        weights = arrays.idr_weights(*means, truth[None])[0]
        found = issued.t2m_weight.isel(point).transpose("time", "member")
        np.testing.assert_array_equal(found, weights)
        np.testing.assert_array_equal(issued.t2m.isel(point), truth)


@pytest.mark.parametrize("vary_spread", [False, True])
@pytest.mark.parametrize("season", [False, True])
def test_emos_at_each_point(season, vary_spread):
    condition_on = "season" if season else None
    method = xrecal.EMOS(bounds=None, condition_on=condition_on, vary_spread=vary_spread)
    issued = HINDCAST.recal.fit(TRUTH, method).apply(NEW)
    assert set(issued) == {"t2m_loc", "t2m_scale"}
    past, later = (fraction(a.time)[None, :, None] for a in (TRUTH, NEW))
    periods = (1.0,) if season else ()
    past, later = (arrays.features(v[..., : len(periods)], periods).values for v in (past, later))
    for point in points(TRUTH):
        members, truth, given = (a.isel(point).to_numpy()[None] for a in (HINDCAST, TRUTH, NEW))
        given_past = *moments(Forecasts(members)), truth, past
        fitted = arrays.fit_emos(*given_past, in_spread=vary_spread)[0]
        loc, scale = arrays.predict_emos(fitted, *moments(Forecasts(given)), later)
        np.testing.assert_array_equal(issued.t2m_loc.isel(point), loc[0])
        np.testing.assert_array_equal(issued.t2m_scale.isel(point), scale[0])


# covariates ---------------------------------------------------------------------------------------


def fraction(time):
    """Part of the year that has passed, from the calendar."""
    start = time.to_numpy().astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[ns]") - start.astype("datetime64[ns]")
    return (time.to_numpy() - start.astype("datetime64[ns]")) / length


def in_summer(array):
    """What is added in summer and taken off in winter."""
    return array - 4 * np.cos(2 * np.pi * xr.DataArray(fraction(array.time), dims="time"))


CONDITIONED = {
    "ckme": xrecal.CKME(),
    "errors": xrecal.CKME(support="errors"),
    "emos": xrecal.EMOS(),
    "idr": xrecal.IDR(),
    "climatology": xrecal.Climatology(),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
}


@pytest.mark.parametrize("name", CONDITIONED)
def test_condition_on_fills_the_field_of_the_method(name):
    method = CONDITIONED[name]
    filled = HINDCAST.recal.fit(TRUTH, method, condition_on="season")
    assert filled.method == type(method)(
        **{k: getattr(method, k) for k in ("support",) if hasattr(method, k)}, condition_on="season"
    )
    direct = HINDCAST.recal.fit(TRUTH, filled.method)
    assert direct.state.identical(filled.state)
    assert direct.crps(NEW, VERIFIED).identical(filled.crps(NEW, VERIFIED))
    assert method.condition_on is None


def test_condition_on_leaves_what_is_set_and_what_has_no_such_field():
    given = xrecal.EMOS(condition_on="season")
    lead = HINDCAST.assign_coords(lead=("time", np.arange(48.0)))
    assert lead.recal.fit(TRUTH, given, condition_on="lead").method == given
    raw, expected = (
        HINDCAST.recal.fit(TRUTH, xrecal.Raw(), condition_on=names) for names in ("season", None)
    )
    assert raw.crps(NEW, VERIFIED).equals(expected.crps(NEW, VERIFIED))


@pytest.mark.parametrize("name", ["ckme", "errors", "emos", "idr"])
def test_the_season_pays_where_errors_have_one(name):
    hindcast, truth = ensemble_and_truth(n=144, n_lat=1)
    new, verified = new_cases(n=60, n_lat=1)
    truth, verified = in_summer(truth), in_summer(verified)
    alike = hindcast.recal.fit(truth, CONDITIONED[name]).crps(new, verified).mean()
    model = hindcast.recal.fit(truth, CONDITIONED[name], condition_on="season")
    assert model.crps(new, verified).mean() < 0.75 * alike


@pytest.mark.parametrize("name", CONDITIONED)
def test_products_of_conditioned_methods_agree_and_chunks_make_no_difference(name):
    model = HINDCAST.recal.fit(TRUTH, CONDITIONED[name], condition_on="season")
    lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, CONDITIONED[name], condition_on="season")
    issued = model.apply(NEW)
    xr.testing.assert_identical(lazy.apply(NEW.chunk(lon=1)).compute(), issued)
    scores = model.crps(NEW, VERIFIED)
    assert scores.notnull().all()
    xr.testing.assert_allclose(issued.recal.crps(VERIFIED), scores, rtol=1e-12)
    quantiles = model.quantile(NEW, LEVELS)
    own = issued.recal.quantile(LEVELS)["t2m"].transpose(*quantiles.dims)
    xr.testing.assert_allclose(own, quantiles, rtol=1e-12)
    close(model.crps(NEW.chunk(time=3), VERIFIED).compute(), scores)
    close(model.crps(NEW.isel(time=2), VERIFIED.isel(time=2)), scores.isel(time=2))


def dated(array, kind):
    """The same cases with dates of another kind."""
    if kind == "calendar":  # one date a month, as far as the year has passed
        dates = [
            cftime.datetime(y, 1 + int(12 * f), 1 + int(12 * f % 1 * 28), calendar="360_day")
            for y, f in zip(array.time.dt.year.to_numpy(), fraction(array.time), strict=True)
        ]
        return array.assign_coords(time=dates)
    months = array.time - np.timedelta64(90, "D")
    if kind == "valid_time":  # issued a season before
        return array.assign_coords(valid_time=("time", array.time.to_numpy()), time=months)
    return array


@pytest.mark.parametrize("kind", ["calendar", "valid_time"])
def test_season_of_other_dates(kind):
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), condition_on="season")
    hindcast, truth, new, verified = (dated(a, kind) for a in (HINDCAST, TRUTH, NEW, VERIFIED))
    model = hindcast.recal.fit(truth.drop_vars("valid_time", errors="ignore"), expected.method)
    rounding = 0.01 if kind == "calendar" else 0.0  # its year has 360 days
    known, found = (m.state.covariate_season.to_numpy() for m in (expected, model))
    assert (abs(known - found) <= rounding).all()
    if kind == "valid_time":
        np.testing.assert_array_equal(model.crps(new, verified), expected.crps(NEW, VERIFIED))
    single = {"time": 2}
    scores = model.crps(new.isel(single), verified.isel(single))
    close(scores, model.crps(new, verified).isel(single))


def test_season_needs_dates():
    bare = [array.drop_vars("time") for array in (HINDCAST, TRUTH)]
    with pytest.raises(ValueError, match="EMOS: condition_on='season' needs dates"):
        bare[0].recal.fit(bare[1], xrecal.EMOS(), condition_on="season")
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), condition_on="season")
    with pytest.raises(ValueError, match=r"the season needs the dates of forecast: .*along 'time'"):
        model.apply(NEW.drop_vars("time"))


@pytest.mark.parametrize("along", ["lat", "lon"])
def test_covariates_are_coordinates_or_given(along):
    height = xr.DataArray([100.0, 2000.0], {along: TRUTH[along]}, [along])
    index = xr.DataArray(np.random.default_rng(1).normal(size=48), {"time": TRUTH.time}, ["time"])
    later = xr.DataArray(np.linspace(-1, 1, 7), {"time": NEW.time}, ["time"])
    wide = index + height / 1e3
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(condition_on="nao"), covariates={"nao": index})
    scores = expected.crps(NEW, VERIFIED, covariates={"nao": later})
    with_coordinates = HINDCAST.assign_coords(nao=index).recal.fit(
        TRUTH, xrecal.EMOS(), condition_on="nao"
    )
    found = with_coordinates.crps(NEW.assign_coords(nao=later), VERIFIED)
    assert found.drop_vars("nao").identical(scores)
    assert with_coordinates.state.covariate_nao.identical(expected.state.covariate_nao)
    assert NEW.recal.apply(expected, covariates={"nao": later}).equals(
        expected.apply(NEW, covariates={"nao": later})
    )
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(condition_on="x"), covariates={"x": wide})
    given = {"x": later + height / 1e3}
    for point in points(TRUTH):  # the covariate has one of the two location dimensions
        at = {along: point[along]}
        alone = HINDCAST.isel(point).recal.fit(
            TRUTH.isel(point), model.method, covariates={"x": wide.isel(at)}
        )
        own_given = {"x": given["x"].isel(at)}
        own = alone.crps(NEW.isel(point), VERIFIED.isel(point), covariates=own_given)
        np.testing.assert_array_equal(model.crps(NEW, VERIFIED, covariates=given).isel(point), own)


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_a_missing_covariate_leaves_the_case_out(missing):
    index = xr.DataArray(np.arange(48.0) % 7, {"time": TRUTH.time}, ["time"])
    gap = index.copy()
    gap[4] = missing
    later = xr.DataArray(np.arange(7.0), {"time": NEW.time}, ["time"])
    later[3] = missing
    truth = TRUTH.copy()
    truth[4] = np.nan
    for name in ("ckme", "errors", "emos", "idr", "climatology", "pit", "conformal"):
        method = CONDITIONED[name]
        model = HINDCAST.recal.fit(TRUTH, method, condition_on="x", covariates={"x": gap})
        expected = HINDCAST.recal.fit(truth, method, condition_on="x", covariates={"x": index})
        assert (model.state.n_cases == 47).all()
        scores = model.crps(NEW, VERIFIED, covariates={"x": later})
        assert scores[3].isnull().all()
        whole = expected.crps(NEW, VERIFIED, covariates={"x": later.fillna(3.0).clip(max=6)})
        rest = np.arange(7) != 3
        np.testing.assert_array_equal(scores[rest], whole[rest])
