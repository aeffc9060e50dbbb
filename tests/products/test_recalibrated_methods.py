"""What methods issue whose forecasts have members of their own, against the array functions."""

from functools import cache

import cftime
import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.pairs import pairwise
from tests.strategies import FORMS, PAPER, close, ensemble_and_truth, fraction, new_cases, points
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.chunks.blockwise import one_blas_thread

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
OWN = {
    "errors": xrecal.CKME(support="errors", tails=None),
    "auto": xrecal.CKME(tails=None),
    "keeps": xrecal.CKME(tails=None, novelty=None),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
}
ON_CASES = [name for name in OWN if name != "conformal"]


@cache
def model_of(name):
    """A model that no test changes."""
    return HINDCAST.recal.fit(TRUTH, OWN.get(name, PAPER))


# references of one point: members (n, m), truth (n,), new (T, m) to members and weights (T, k) ----


def ckme_point(supports, members, truth, new):
    cases, observed, given = Forecasts(members[None]), truth[None], Forecasts(new[None])
    stored = Forecasts(np.sort(cases.loc, axis=-1))  # as in a model
    with one_blas_thread():
        fitted = arrays.fit_ckme(cases, observed, arrays.Settings(supports=supports))
        found = arrays.ckme_weights(given, stored, observed, fitted, own_members=True)
    return [part[0] for part in found]


def giving_way_point(members, truth, new):
    cases, observed, given = Forecasts(members[None]), truth[None], Forecasts(new[None])
    stored = Forecasts(np.sort(cases.loc, axis=-1))
    with one_blas_thread():
        settings = arrays.Settings(supports=("observations", *ERRORS))
        fitted = arrays.fit_ckme(cases, observed, settings)
        found = arrays.ckme_weights_of_both(given, stored, observed, fitted)
        errors, mass, past, novelty = (part[0] for part in found)
    inside = (errors >= np.nanmin(truth)) & (errors <= np.nanmax(truth))
    share = np.minimum((mass * inside).sum(-1) / mass.sum(-1), 1 - novelty)[:, None]
    gets = (1 - share * (fitted.beside > 0)) / mass.sum(-1, keepdims=True)
    both = np.concatenate([np.broadcast_to(truth, errors.shape), errors], axis=-1)
    return both, np.concatenate([past * share, mass * gets], axis=-1)


def pit_point(members, truth):
    uniform = arrays.hash_uniform(0, np.zeros(1, np.int64), truth.size)
    return arrays.pit_values(Forecasts(members[None]), truth[None], uniform)


def recalibrated_point(members, truth, new):
    found = arrays.recalibrated_members(Forecasts(new[None]), pit_point(members, truth))[0]
    known = np.isfinite(truth)
    return found, np.broadcast_to(known / known.sum(), found.shape)


def interval_point(members, truth, new):
    levels = np.array([[0.05, 0.95 + 1e-9]])
    (low, high), found = (
        arrays.recalibrated_members(Forecasts(x[None]), levels)[0].T for x in (members, new)
    )
    below, above = (arrays.conformal_margins(m[None], 0.05) for m in (low - truth, truth - high))
    return np.stack([found[0] - below, found[1] + above], -1), np.full(found.T.shape, 0.5)


ERRORS = ("mean", "regression", "standardised", "ratio")
REFERENCES = {
    "errors": lambda *point: ckme_point(ERRORS, *point),
    "auto": giving_way_point,
    "keeps": lambda *point: ckme_point(("observations", *ERRORS), *point),
    "pit": recalibrated_point,
    "conformal": interval_point,
}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "dims", "chunks"),
    pairwise(
        OWN,
        [NEW.dims, ("lon", "member", "time", "lat")],
        [None, {"lat": 1}, {"lat": 1, "lon": 1}],
    ),
)
def test_issued_forecasts_are_those_of_the_arrays_at_each_point(name, dims, chunks):
    truth = TRUTH.copy()
    truth[3:6, 0, 1] = np.nan
    hindcast, new = HINDCAST.transpose(*dims), NEW.transpose(*dims)
    if chunks is not None:
        hindcast, new = hindcast.chunk(chunks), new.chunk(chunks)
    issued = hindcast.recal.fit(truth, OWN[name], choose="each").apply(new)
    assert issued.t2m.dims == issued.t2m_weight.dims == dims
    assert (issued.t2m.chunks is not None) == (chunks is not None)
    issued = issued.compute().transpose("time", "member", ...)
    for point in points(TRUTH):
        given = [a.isel(point).to_numpy() for a in (HINDCAST, truth, NEW)]
        members, weights = REFERENCES[name](*given)
        np.testing.assert_array_equal(issued.t2m.isel(point), members)
        np.testing.assert_array_equal(issued.t2m_weight.isel(point), weights)
        if name in ON_CASES:
            unused = np.resize(np.isnan(given[1]), members.shape[1])
            assert np.isnan(members[:, unused]).all()
            assert (weights[:, unused] == 0).all()
    np.testing.assert_allclose(issued.t2m_weight.sum("member"), 1, rtol=1e-12)


@pytest.mark.parametrize("name", [*OWN, "observations"])
def test_schedulers_and_chunks_are_bit_equal(name):
    method = OWN.get(name, PAPER)
    expected = model_of(name).apply(NEW)
    with forbid_compute():
        lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, method).apply(NEW.chunk(lon=1))
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            xr.testing.assert_identical(lazy.compute(), expected)
    assert lazy.dtypes == expected.dtypes


@pytest.mark.parametrize("name", OWN)
def test_time_may_be_in_chunks_or_missing(name):
    model = model_of(name)
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
    each = HINDCAST.recal.fit(TRUTH, OWN[name], choose="each").apply(NEW)
    close(today, each.isel(station).isel(time=2))


@pytest.mark.parametrize("name", OWN)
def test_members_say_which_case_they_come_from(name):
    issued = model_of(name).apply(NEW)
    cases = issued.calibration_time
    assert cases.dims == ("member",)
    assert cases.dtype.kind == "M"
    if name in ON_CASES:
        np.testing.assert_array_equal(cases, np.resize(TRUTH.time, cases.size))
    else:  # ends of an interval come from no single case
        assert issued.sizes["member"] == 2
        assert cases.isnull().all()
    assert "member" not in issued.indexes
    beside = [n for n in ("t2m_weight", "t2m_novelty", "t2m_beyond") if n in issued]
    assert issued.t2m.attrs == HINDCAST.attrs | {"ancillary_variables": " ".join(beside)}
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


@pytest.mark.each_value
@pytest.mark.parametrize("form", ["quantile", "percentile", "normal", "mixture"])
@pytest.mark.parametrize("name", OWN)
def test_own_members_are_neither_quantiles_nor_components(name, form):
    model = FORMS[form](HINDCAST).recal.fit(TRUTH, OWN[name])
    issued = model.apply(FORMS[form](NEW))
    assert set(issued.t2m.dims) == {"time", "member", "lat", "lon"}
    scores = model.crps(FORMS[form](NEW), VERIFIED)
    found = issued.recal.crps(VERIFIED)
    xr.testing.assert_allclose(found, scores.drop_vars("quantile", errors="ignore"), rtol=1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("as_dataset", [False, True])
@pytest.mark.parametrize("dim", ["number", "m"])
@pytest.mark.parametrize("name", OWN)
def test_the_member_dimension_is_the_users(name, dim, as_dataset):
    arrays_ = [a.rename(member=dim) for a in (HINDCAST, NEW)] + [TRUTH.rename("t2m")]
    hindcast, new, truth = [a.to_dataset() for a in arrays_] if as_dataset else arrays_
    issued = hindcast.recal.fit(truth, OWN[name], member_dim=dim).apply(new)
    assert issued.t2m.dims == issued.t2m_weight.dims == ("time", dim, "lat", "lon")
    expected = model_of(name).apply(NEW).rename(member=dim)
    xr.testing.assert_equal(issued, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", OWN)
def test_missing_forecasts_have_no_members(name, value):
    new = NEW.copy()
    new[3, :, 0, 1] = value
    model = model_of(name)
    issued, whole = model.apply(new), model.apply(NEW)
    for part in ("t2m", "t2m_weight"):
        found = issued[part].transpose("time", "lat", "lon", "member")
        expected = whole[part].transpose("time", "lat", "lon", "member")
        assert np.isnan(found[3, 0, 1]).all()
        assert int(found.isnull().sum()) == found.sizes["member"]
        close(found.where(found.notnull(), expected), expected)


@pytest.mark.parametrize("name", OWN)
def test_float32(name):
    hindcast, truth = ensemble_and_truth(n=24, dtype=np.float32)
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
