"""Cross-validation with and without a pool: each split is ``fit`` on its dates, then a product."""

import functools

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from tests.pairs import pairwise
from tests.strategies import FORMS
from xrecal.arrays import rows as cases
from xrecal.arrays.splitting import splits as split_cases
from xrecal.inputs.dates import case_axis, years_of_cases

N, LAT, LON, LEAD = 12, [40.0, 41.0, 42.0], [5.0, 6.0, 7.0], [1, 2]
LEVELS = [0.1, 0.5, 0.9]
METHODS = {
    "CKME": xrecal.CKME(),
    "errors": xrecal.CKME(support="errors", half_life="cv", gap=1),
    "shapes": xrecal.CKME(support="errors", compare="shapes"),
    "lowrank": xrecal.CKME(support="auto", solver="lowrank"),
    "season": xrecal.EMOS(condition_on="season"),
    "IDR": xrecal.IDR(),
    "climatology": xrecal.Climatology(),
    "PIT": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(alpha=0.4),
    "mixture": xrecal.LinearPool((xrecal.CKME(support="errors"), xrecal.EMOS(), xrecal.Raw())),
}
POOLS = {
    "alone": None,
    "positions": ("lat", "lon"),
    "lead": "lead",
    "windows": {"lon": 3, "lat": 1},
}
SPLITS = {
    "block": {"by": "block", "blocks": 3},
    "year": {"by": "year", "gap": 1},
    "retrospective": {"by": "retrospective", "blocks": 3, "gap": np.timedelta64(30, "D")},
    "rolling": {"by": "rolling", "window": 6, "every": 4},
}
TOLERANCE = dict.fromkeys(POOLS, 1e-12) | {"alone": 1e-6}
"""Distances of cases that no other place shares are computed for all splits at once."""
SOON = pytest.mark.filterwarnings("ignore:season learned", "ignore:.*splits leave fewer")


def sample(n=N, seed=0):
    """Hindcast over dates of several years, leads and places, and a truth that it is biased to."""
    sizes = {"time": n, "lead": 2, "lat": 3, "lon": 3, "member": 4}
    freq = "200D" if n < 100 else "20D"
    time = xr.date_range("2000-01-01", periods=n, freq=freq, use_cftime=False)
    forecasts = random(
        *sizes, seed=seed, sizes=sizes, lat=LAT, lon=LON, lead=LEAD, time=time
    ).assign_attrs(units="K")
    noise = random("time", "lead", "lat", "lon", seed=seed + 1, sizes=sizes, time=None)
    return forecasts, (forecasts.mean("member") + noise.values + 1).assign_attrs(units="K")


HINDCAST, TRUTH = map(freeze, sample())
HOLES = TRUTH.copy(deep=True)
HOLES[3, 0, 1], HOLES[:, 1, 0, 2], HOLES[7], HOLES[5:, 0, 2, 2] = [np.nan] * 4
BROKEN = HINDCAST.copy(deep=True)
BROKEN[2, 1, 0], BROKEN[4, 0, 1, 1, 2:], BROKEN[9] = [np.nan] * 3


def by_hand(hindcast, truth, method, pool, options, product="crps", **settings):
    """Each split fitted on its dates by the user, and a product of the dates it tests."""
    axis = case_axis(hindcast, "time")
    options = dict(options)
    by = options.pop("by")
    found = xr.full_like(hindcast.isel(member=0, drop=True), np.nan)
    if product == "quantile":
        found = found.expand_dims(quantile=LEVELS).copy()
    for train, test in split_cases(
        hindcast.sizes["time"], by, year=years_of_cases(axis), days=axis.days, **options
    ):
        if pool is None and train.sum() < settings.get("min_samples", 20):
            continue  # too few to learn from: these cases are missing
        model = hindcast.isel(time=train).recal.fit(truth, method, pool=pool, **settings)
        new = hindcast.isel(time=test)
        made = model.quantile(new, LEVELS) if product == "quantile" else model.crps(new, truth)
        found[{"time": test}] = made.transpose(*found.dims)
    return found


def validate(hindcast, truth, method, pool, options=None, output="crps", **settings):
    options = {"by": "block", "blocks": 3} if options is None else options
    q = {"q": LEVELS} if output == "quantile" else {}
    return hindcast.recal.cross_validate(
        truth, method, pool=pool, output=output, min_samples=5, **options, **q, **settings
    )


@pytest.mark.each_value
@SOON
@pytest.mark.parametrize(
    ("method", "pool", "by"),
    [  # all methods and splits without a pool, all methods and pools, all pools and splits
        *((method, "alone", by) for method in METHODS for by in SPLITS),
        *(
            (method, pool, list(SPLITS)[(i + j) % len(SPLITS)])
            for i, method in enumerate(METHODS)
            for j, pool in enumerate([pool for pool in POOLS if pool != "alone"])
        ),
    ],
)
def test_every_split_is_the_fit_of_its_dates(method, pool, by):
    given = (HINDCAST.isel(lat=[0, 2]), TRUTH.isel(lat=[0, 2]), METHODS[method], POOLS[pool])
    found = validate(*given, SPLITS[by])
    expected = by_hand(*given, SPLITS[by], min_samples=5)
    assert expected.notnull().any()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[pool])


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("method", "pool", "product"),
    pairwise(["CKME", "lowrank", "climatology", "mixture", "PIT"], POOLS, ["crps", "quantile"]),
)
def test_missing_values_at_some_places(method, pool, product):
    found = validate(BROKEN, HOLES, METHODS[method], POOLS[pool], SPLITS["block"], product)
    expected = by_hand(
        BROKEN, HOLES, METHODS[method], POOLS[pool], SPLITS["block"], product, min_samples=5
    )
    np.testing.assert_allclose(found.transpose(*expected.dims), expected, rtol=TOLERANCE[pool])
    assert found.isel(time=9).isnull().all()
    known = HOLES.notnull() & BROKEN.notnull().any("member") if product == "crps" else True
    predicted = found.notnull().where(known, True).isel(time=[0, 3, 7, 11])
    if pool in ("positions", "lead"):  # each place has what verified at others
        assert predicted.all()


@pytest.mark.each_value
@pytest.mark.parametrize("pool", [None, "lat"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, pool):
    hindcast, truth = (array.isel(lon=[0]) for array in (HINDCAST, TRUTH))
    hindcast = hindcast.transpose("time", "member", ...)
    if form == "percentile":
        hindcast = xr.concat([hindcast, hindcast.isel(member=[0])], "member").sortby("lat")
    hindcast = FORMS[form](hindcast)
    found = validate(hindcast, truth, xrecal.CKME(), pool)
    found = found if isinstance(found, xr.DataArray) else found["t2m"]
    for split in split_cases(N, "block", blocks=3):
        model = hindcast.isel(time=split.train).recal.fit(truth, pool=pool, min_samples=5)
        expected = model.crps(hindcast.isel(time=split.test), truth)
        expected = expected if isinstance(expected, xr.DataArray) else expected["t2m"]
        held_out = found.isel(time=split.test).transpose(*expected.dims)
        np.testing.assert_allclose(held_out, expected, rtol=1e-12 if pool else 1e-6)


@pytest.mark.each_value
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("output", ["quantile", "crps", "pit"])
def test_lazy_and_equal_to_numpy_whatever_the_chunks_and_dimensions(output, pool):
    pool, method = POOLS[pool], xrecal.CKME(support="errors", half_life=900.0, gap=1, ridge=0.1)
    data, truth = (array.isel(lat=[0, 2]) for array in (HINDCAST, TRUTH))
    expected = validate(data, truth, method, pool, output=output)
    pooled = () if isinstance(pool, dict) else np.atleast_1d(pool)
    cut = {d: 1 for d in ("lead", "lat", "lon") if d not in pooled}
    turned = data.transpose("lon", "member", "time", "lat", "lead")
    for hindcast, scheduler in ((data, "threads"), (turned, "sync")):
        with forbid_compute():
            lazy = validate(
                hindcast.chunk(cut), truth.chunk(cut).transpose("lon", ...), method, pool,
                output=output,
            )  # fmt: skip
        assert lazy.chunks is not None
        found = lazy.compute(scheduler=scheduler).transpose(*expected.dims)
        xr.testing.assert_identical(found, expected)
    new = ["quantile"] if output == "quantile" else []
    assert list(lazy.dims) == ["lon", *new, "time", "lat", "lead"]


def test_labels_and_attributes_are_those_of_the_hindcast():
    height = xr.DataArray([[1.0] * 3] * 3, dims=["lat", "lon"])
    hindcast = HINDCAST.assign_coords(height=height, area=("lat", list("abc")), model="x")
    hindcast["lat"].attrs["units"] = "degrees_north"
    found = validate(hindcast, TRUTH, xrecal.EMOS(), ("lat", "lon"), output="quantile")
    assert set(found.coords) == set(hindcast.coords) - {"member"} | {"quantile"}
    for name in set(hindcast.coords) - {"member"}:
        xr.testing.assert_identical(found[name].variable, hindcast[name].variable)
    assert found.attrs["cross_validation"] == "by='block', gap=0, blocks=3, pool=('lat', 'lon')"
    assert found.attrs["units"] == "K"
    window = validate(HINDCAST, TRUTH, xrecal.EMOS(), {"lat": 3})
    assert window.attrs["cross_validation"].endswith("pool={'lat': 3}")
    single = HINDCAST.astype(np.float32), TRUTH.astype(np.float32)
    assert validate(*single, METHODS["CKME"], "lat").dtype == np.float32


def test_bare_dimensions_and_observations_that_lack_one():
    bare = HINDCAST.drop_vars(["lat", "lon", "lead"])
    found = validate(bare, TRUTH.drop_vars(["lat", "lon", "lead"]), METHODS["CKME"], "lon")
    np.testing.assert_array_equal(found, validate(HINDCAST, TRUTH, METHODS["CKME"], "lon"))
    one = TRUTH.isel(lat=1, drop=True)
    for pool in (None, "lat", "lon"):
        found = validate(HINDCAST, one, METHODS["CKME"], pool)
        whole = one.expand_dims(lat=LAT).transpose(*TRUTH.dims)
        xr.testing.assert_identical(found, validate(HINDCAST, whole, METHODS["CKME"], pool))


@pytest.mark.parametrize("pool", [None, ("lat", "lon")], ids=str)
def test_unsorted_dates_are_split_in_order_of_time(pool):
    hindcast, truth = (array.isel(lead=[0]) for array in (HINDCAST, TRUTH))
    order = np.random.default_rng(0).permutation(N)
    for output in ("quantile", "pit"):
        options = {"method": METHODS["CKME"], "pool": pool, "output": output}
        expected = validate(hindcast, truth, **options)
        found = validate(hindcast.isel(time=order), truth, **options)
        xr.testing.assert_identical(found, expected.isel(time=order))


def test_cases_in_excess_of_what_is_compared_count_by_split():
    hindcast, truth = sample(n=800)
    hindcast, truth = hindcast.isel(lead=0, lat=0), truth.isel(lead=0, lat=0)
    recent = {"by": "rolling", "window": 30, "every": 200}
    found = validate(hindcast, truth, xrecal.EMOS(), "lon", recent)
    assert found.isel(time=slice(30, None)).notnull().all()
    expected = by_hand(hindcast, truth, xrecal.EMOS(), "lon", recent)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    message = r"a comparison that windows need; use narrower .*\(learning from 760 cases to predict"
    with pytest.raises(ValueError, match=message):
        validate(hindcast, truth, METHODS["errors"], {"lon": 3}, {"by": "block", "blocks": 20})


@pytest.mark.parametrize(
    ("pool", "method"), [(("lat", "lon"), "errors"), ({"lat": 3, "lon": 3}, "CKME")], ids=str
)
def test_a_date_held_out_is_unknown_at_all_places(pool, method):
    expected = validate(HINDCAST, TRUTH, METHODS[method], pool, output="quantile")
    truth = TRUTH.copy(deep=True)
    truth[:4] = 900  # the first block, everywhere; more would be a fill value
    found = validate(HINDCAST, truth, METHODS[method], pool, output="quantile")
    np.testing.assert_array_equal(found.isel(time=slice(4)), expected.isel(time=slice(4)))
    truth = TRUTH.copy(deep=True)
    truth[6, :, 0, 0] += 5.0  # learned from for other blocks, at other places
    found = validate(HINDCAST, truth, METHODS["climatology"], pool, output="quantile")
    plain = validate(HINDCAST, TRUTH, METHODS["climatology"], pool, output="quantile")
    differs = (found != plain).any(["quantile", "lead"])
    assert not differs.isel(time=slice(4, 8)).any()
    assert differs.isel(lat=1, lon=1, time=slice(4)).all()


@pytest.mark.each_value
@pytest.mark.parametrize("pool", [("lat", "lon"), {"lat": 3}], ids=str)
@pytest.mark.parametrize("method", ["CKME", "mixture"])
def test_small_blocks_change_nothing(method, pool, monkeypatch):
    given = BROKEN[..., 1:, :], HOLES[..., 1:]
    run = functools.partial(validate, *given, METHODS[method], pool, output="quantile")
    expected = run()
    monkeypatch.setattr(cases, "WORKSPACE", 3000)
    np.testing.assert_allclose(run(), expected, rtol=1e-12, atol=1e-12)


def test_pit_is_drawn_at_the_same_place_within_jumps_at_every_location():
    hindcast, truth = (np.maximum(array, 1.0) for array in (HINDCAST, TRUTH))
    alike = xr.concat([a.isel(lon=0) for a in [hindcast] * 2], "lon").assign_coords(lon=[0.0, 1.0])
    known = xr.concat([truth.isel(lon=0)] * 2, "lon").assign_coords(lon=[0.0, 1.0])
    pit = validate(alike, known, METHODS["CKME"], "lon", output="pit")
    np.testing.assert_array_equal(pit.isel(lon=0), pit.isel(lon=1))
    dry = pit.values[(known == 1).transpose(*pit.dims).values]
    assert np.unique(dry).size > dry.size // 4
    continuous = validate(HINDCAST, TRUTH, xrecal.EMOS(), "lon", output="pit")
    model = HINDCAST.isel(time=slice(4, None)).recal.fit(TRUTH, xrecal.EMOS(), pool="lon")
    expected = model.pit(HINDCAST.isel(time=slice(4)), TRUTH)
    np.testing.assert_allclose(continuous.isel(time=slice(4)), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:covariates of forecast:UserWarning")
@pytest.mark.parametrize("pool", [None, "lead"])
def test_covariates_follow_their_cases(pool):
    """A case whose covariate is missing stays."""
    wind = random("time", seed=9, sizes={"time": N}, time=HINDCAST["time"].values)
    wind[2] = np.nan
    given = {"covariates": {"wind": wind}, "condition_on": ("lead", "wind") if pool else "wind"}
    found = validate(HINDCAST, TRUTH, xrecal.EMOS(), pool, **given)
    for split in split_cases(N, "block", blocks=3):
        model = HINDCAST.isel(time=split.train).recal.fit(
            TRUTH, xrecal.EMOS(), pool=pool, min_samples=5, **given
        )
        new = HINDCAST.isel(time=split.test)
        expected = model.crps(new, TRUTH, covariates={"wind": wind})
        np.testing.assert_allclose(found.isel(time=split.test), expected, rtol=1e-12)
    there = TRUTH.isel(time=2).notnull()
    assert found.isel(time=2).notnull().where(there, True).all()


@pytest.mark.parametrize("pool", [None, ("lat", "lon")], ids=str)
def test_several_variables(pool):
    variables = {"a": HINDCAST, "b": HINDCAST.isel(lead=0) + 1}
    hindcast = xr.Dataset(variables, attrs={"title": "two"})
    truth = xr.Dataset({"a": TRUTH, "b": TRUTH.isel(lead=0)})
    found = validate(hindcast, truth, METHODS["CKME"], pool)
    assert list(found) == ["a", "b"]
    assert found.attrs["title"] == "two"
    assert found.attrs["cross_validation"].startswith("by='block', gap=0, blocks=3")
    for name in "ab":
        one = validate(hindcast[name], truth[name], METHODS["CKME"], pool)
        np.testing.assert_array_equal(found[name], one)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("depth", r"no location dimension 'depth'; it has \['lead', 'lat', 'lon'\]"),
        ("time", "names the calibration dimension 'time'"),
        (("lat", "member"), "names the member dimension 'member'"),
        ({"lat": 2}, "odd whole number.*got 2"),
        ({"lon": 5}, "window 5 along 'lon' is larger than its 3 positions; use pool='lon'"),
    ],
)
def test_what_cannot_be_pooled_is_refused(pool, message):
    for call in (HINDCAST.recal.fit, HINDCAST.recal.cross_validate):
        with pytest.raises(ValueError, match=message):
            call(TRUTH, pool=pool)


def test_chunks_and_few_cases_are_told():
    with pytest.raises(ValueError, match=r"hindcast.chunk\(\{'lat': -1\}\)"):
        HINDCAST.chunk(lat=2).recal.cross_validate(TRUTH, pool="lat")
    with pytest.raises(ValueError, match=r"observations.chunk\(\{'lat': -1\}\)"):
        HINDCAST.recal.cross_validate(TRUTH.chunk(lat=2), pool="lat")
    options = {"pool": ("lat", "lon"), "by": "retrospective", "blocks": 3, "output": "crps"}
    with pytest.raises(ValueError, match=r"at 9 pooled positions each, have .*=109"):
        HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **options, min_samples=109)
    with pytest.raises(ValueError, match=r"than min_samples=100 cases to learn from, 72 at most"):
        HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **options, min_samples=100)
    with pytest.warns(UserWarning, match="1 of 2 splits leave fewer than min_samples=40"):
        found = HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **options, min_samples=40)
    assert found.isel(time=slice(8)).isnull().all()
    assert found.isel(time=slice(8, None)).notnull().all()
