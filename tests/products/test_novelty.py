"""The novelty of forecasts to a model."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import FORMS, ensemble_and_truth, model_of, new_cases
from xrecal import arrays
from xrecal.arrays import Forecasts

HINDCAST, TRUTH = ensemble_and_truth()
NEW, _ = new_cases()
FAR = (NEW + 60).assign_attrs(NEW.attrs)


@pytest.fixture(scope="module")
def model():
    return model_of("ckme")


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 3}])
@pytest.mark.parametrize("dims", [NEW.dims, ("lat", "member", "lon", "time")])
def test_it_is_that_of_the_array_function_at_each_place(model, dims, chunks):
    forecast = NEW.transpose(*dims)
    forecast = forecast if chunks is None else forecast.chunk(chunks)
    novelty = model.novelty(forecast)
    assert novelty.dims == tuple(d for d in dims if d != "member")
    assert (novelty.chunks is not None) == (chunks is not None)
    assert novelty.name == "novelty"
    assert novelty.attrs["units"] == "1"
    for lat, lon in np.ndindex(2, 2):
        at = {"lat": slice(lat, lat + 1), "lon": slice(lon, lon + 1)}
        past, truth, new = (a.isel(at).stack(p=("lat", "lon")) for a in (HINDCAST, TRUTH, NEW))
        cases = Forecasts(past.transpose("p", "time", "member").to_numpy())
        y = truth.transpose("p", "time").to_numpy()
        expected = arrays.ckme_novelty(
            Forecasts(new.transpose("p", "time", "member").to_numpy()),
            cases,
            y,
            arrays.fit_ckme(cases, y),
        )
        np.testing.assert_allclose(
            novelty.isel(lat=lat, lon=lon).transpose("time").to_numpy(), expected[0], atol=1e-9
        )


def test_methods_that_compare_nothing_have_none():
    model = model_of("emos")
    with pytest.raises(TypeError, match="EMOS\\(\\) does not compare forecasts with past ones"):
        model.novelty(NEW)
    pool = xrecal.LinearPool((xrecal.EMOS(), xrecal.IDR()), condition_on=())
    with pytest.raises(TypeError, match="has no novelty; use CKME, or a LinearPool with a CKME"):
        HINDCAST.recal.fit(TRUTH, pool).novelty(NEW)


def test_an_online_pool_has_that_of_what_it_was_fitted_to():
    methods = xrecal.CKME(support="observations"), xrecal.EMOS()
    model = HINDCAST.recal.fit(TRUTH, xrecal.OnlinePool(methods, refit=1000))
    found = model.novelty(NEW)
    with (
        pytest.warns(UserWarning, match="far from the hindcast"),
        pytest.warns(UserWarning, match="28 of 28 forecasts of 't2m' are unlike all"),
    ):
        far = model.novelty(FAR)
    assert ((found >= 0) & (found < far.min()) & (far <= 1)).all()


def test_vectors_have_none():
    both = {"t2m": HINDCAST, "rain": HINDCAST + 1}
    model = xr.Dataset(both).recal.fit(
        xr.Dataset({"t2m": TRUTH, "rain": TRUTH + 1}),
        xrecal.CKME(support="observations"),
        jointly=("t2m", "rain"),
    )
    with pytest.raises(TypeError, match="not 't2m' and 'rain' as vectors; fit without jointly="):
        model.novelty(xr.Dataset({"t2m": NEW, "rain": NEW + 1}))


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
def test_novel_forecasts_in_memory_are_told(model):
    told = r"28 of 28 forecasts of 't2m' are unlike all that the model has learned from"
    with pytest.warns(UserWarning, match=told):
        novelty = model.novelty(FAR)
    assert (novelty > 0.9).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.novelty(NEW)
        model.novelty(FAR.chunk({"lat": 1}))


def test_a_pool_has_that_of_its_ckme(model):
    pool = xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME()), condition_on=())
    pooled = HINDCAST.recal.fit(TRUTH, pool)
    xr.testing.assert_allclose(pooled.novelty(NEW), model.novelty(NEW))


def test_missing_forecasts_have_none(model):
    missing = NEW.where(NEW.time != NEW.time[2])
    novelty = model.novelty(missing)
    assert novelty.isel(time=2).isnull().all()
    assert novelty.drop_isel(time=2).notnull().all()


@pytest.mark.parametrize("form", FORMS)
def test_apply_gives_it_for_every_form(form):
    model, forecast = model_of("ckme", form), FORMS[form](NEW)
    issued, expected = model.apply(forecast), model.novelty(forecast)
    expected = expected if form in ("ensemble", "quantile", "percentile") else expected.t2m
    xr.testing.assert_allclose(issued.t2m_novelty, expected, rtol=0, atol=1e-12)
    assert issued.t2m_novelty.attrs.items() <= expected.attrs.items()
    assert issued.t2m_novelty.attrs["role"] == "novelty"


@pytest.mark.each_value
@pytest.mark.parametrize("method", ["errors", "shapes", "season", "lowrank", "pool"])
@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 3}])
def test_apply_gives_it_for_every_method_that_knows_it(method, chunks):
    model = model_of(method)
    forecast = NEW if chunks is None else NEW.chunk(chunks)
    found = model.apply(forecast).t2m_novelty
    assert (found.chunks is not None) == (chunks is not None)
    assert found.dims == ("time", "lat", "lon")
    xr.testing.assert_allclose(found.compute(), model.novelty(NEW), rtol=0, atol=1e-12)
    one = model.apply(NEW[0]).t2m_novelty
    xr.testing.assert_allclose(one, model.novelty(NEW)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["emos", "climatology", "idr", "pit"])
def test_apply_gives_none_for_others(method):
    assert not [name for name in model_of(method).apply(NEW) if "novelty" in str(name)]


def test_members_that_many_forecasts_share_do_not_depend_on_it(model):
    issued = model.apply(NEW)
    bare = issued.drop_vars("t2m_novelty")
    truth = new_cases()[1]
    for call in (
        lambda one: one.recal.crps(truth),
        lambda one: one.recal.quantile([0.1, 0.9]),
        lambda one: one.recal.skce(truth),
        lambda one: one.recal.members(3),
    ):
        xr.testing.assert_identical(call(issued), call(bare))
    with pytest.raises(ValueError, match=r"without their weights, t2m_weight"):
        issued.t2m.recal.mean()


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
@pytest.mark.filterwarnings("ignore:.* outside the observed range:UserWarning")
@pytest.mark.parametrize("method", ["ckme", "pool"])
def test_apply_tells_novel_forecasts_in_memory_and_names_the_first(method):
    model = model_of(method)
    some = NEW.where(NEW.time <= NEW.time[3], FAR)
    told = "12 of 28 forecasts of 't2m' .* the first at time 2011-05-15, lat 45.0, lon 0.0: their"
    with pytest.warns(UserWarning, match=told):
        model.apply(some)
    with pytest.warns(UserWarning, match=r"1 of 1 forecasts of 't2m' .* up to 1\): their rec"):
        model.apply(FAR[0, :, :1, :1].squeeze())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.apply(FAR.chunk({"lat": 1}))
        model.apply(NEW)


@pytest.mark.parametrize("n", [30, 100])
def test_ordinary_forecasts_are_rarely_told(n):
    data = xrecal.datasets.lorenz96(n_inits=n + 40, n_members=8, n_locations=8, lead_days=[5])
    data = data.squeeze("lead", drop=True)
    model = data.forecast[:n].recal.fit(data.observation)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        novelty = model.apply(data.forecast[n:])["forecast_novelty"]
    assert not told
    assert float((novelty > 0.5).mean()) < 0.05


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
def test_a_single_one_that_is_like_none_of_the_past_is_told(model):
    many = xr.concat([NEW] * 5, "time").assign_coords(time=np.arange(5 * NEW.sizes["time"]))
    model.novelty(many)
    many[17, :, 1, 0] += 60
    with pytest.warns(UserWarning, match=r"1 of 140 forecasts .*, the first at time 17, lat"):
        model.novelty(many)
