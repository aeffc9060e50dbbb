"""Predictions of a model that is updated in between fits: the loop that a user would write."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import FORMS, ensemble_and_truth
from xrecal.arrays.splitting import Rolling, replay
from xrecal.inputs.verification import case_that_knows

HINDCAST, TRUTH = ensemble_and_truth(n=24, n_lat=2, n_lon=1)  # a month apart
HINDCAST = HINDCAST.isel(lon=0, drop=True).astype(float)
TRUTH = TRUTH.isel(lon=0, drop=True).astype(float)
ROLLING = {"by": "rolling", "blocks": 2, "every": 3, "refit": 6, "min_samples": 5}
Q = (0.25, 0.5)
METHODS = {
    "EMOS": xrecal.EMOS(condition_on="season"),
    "CKME": xrecal.CKME(support="errors"),
    "pool": xrecal.LinearPool((xrecal.EMOS(), xrecal.Climatology())),
}


def predicted(product, whole, hindcast, truth, method, *, first=12, every=3, refit=6, **options):
    """The loop: fit, apply, update; ``product`` makes what is compared, of cases of a model."""
    dim = options.get("dim", "time")
    n, model, parts = hindcast.sizes[dim], None, []
    for i in range(first, n, every):
        if (i - first) // refit > (i - every - first) // refit or i == first:
            past = slice(0, i)
            model = hindcast.isel({dim: past}).recal.fit(truth, method, min_samples=5, **options)
        else:
            new = slice(i - every, i)
            model = model.update(hindcast.isel({dim: new}), truth.isel({dim: new}))
        parts.append(product(model, hindcast.isel({dim: slice(i, i + every)})))
    return xr.concat(parts, dim, coords="different", compat="equals").transpose(*whole.dims)


@pytest.mark.filterwarnings("ignore:season learned")
@pytest.mark.parametrize(
    ("method", "every", "refit"), [("EMOS", 1, 5), ("CKME", 2, 6), ("pool", 4, 4)]
)
def test_it_is_the_loop_of_fit_apply_and_update(method, every, refit):
    given = {**ROLLING, "every": every, "refit": refit}
    found = HINDCAST.recal.cross_validate(TRUTH, METHODS[method], output="crps", **given)

    def crps(model, new):
        return model.crps(new, TRUTH)

    args = HINDCAST, TRUTH, METHODS[method]
    expected = predicted(crps, found, *args, every=every, refit=refit)
    np.testing.assert_array_equal(found[12:], expected)
    assert found[:12].isnull().all()


PRODUCTS = {
    "quantile": ({"q": Q}, lambda model, new: model.quantile(new, Q)),
    "exceedance": ({"threshold": 283.0}, lambda model, new: model.exceedance(new, 283.0)),
    "crps": ({}, lambda model, new: model.crps(new, TRUTH)),
}


@pytest.mark.parametrize(
    ("output", "form"),
    [
        *((output, "ensemble") for output in PRODUCTS),
        *(("crps", f) for f in ("shared", "mixture")),
    ],
)
def test_products_of_every_form_by_chunk_too(output, form):
    options, product = PRODUCTS[output]
    hindcast, method = FORMS[form](HINDCAST), xrecal.CKME(support="observations")
    validate = partial(hindcast.recal.cross_validate, TRUTH, method, output=output, **options)
    found = validate(**ROLLING)
    one = found if isinstance(found, xr.DataArray) else found["t2m"]
    expected = predicted(product, one, hindcast, TRUTH, method)
    expected = expected if isinstance(expected, xr.DataArray) else expected["t2m"]
    np.testing.assert_array_equal(one[{"time": slice(12, None)}], expected)
    assert one.attrs.get("units") == expected.attrs.get("units")
    with forbid_compute():
        lazy = hindcast.chunk(lat=1).recal.cross_validate(
            TRUTH.chunk(lat=1), method, output=output, **options, **ROLLING
        )
    xr.testing.assert_identical(lazy.compute(), found)


def test_members_and_categories_have_what_the_model_knew():
    method = xrecal.EMOS()
    found = HINDCAST.recal.cross_validate(TRUTH, method, output="categories", **ROLLING)
    expected = predicted(lambda m, new: m.categories(new), found, HINDCAST, TRUTH, method)
    np.testing.assert_array_equal(found[12:], expected)
    members = HINDCAST.recal.cross_validate(TRUTH, method, output="members", n=7, **ROLLING)
    levels = (np.arange(7) + 0.5) / 7
    quantiles = HINDCAST.recal.cross_validate(TRUTH, method, q=levels, **ROLLING)
    np.testing.assert_array_equal(np.sort(members, 1)[12:], quantiles[12:])
    pit = HINDCAST.recal.cross_validate(TRUTH, method, output="pit", **ROLLING)
    assert ((pit[12:] > 0) & (pit[12:] < 1)).all()


START = xr.date_range("2000-01-01", periods=20, freq="5D", use_cftime=False)
LEADS = HINDCAST[:20].rename(time="init", lat="lead").assign_coords(init=START, lead=[3, 12])
LEADS["lead"].attrs["units"] = "days"
OF_LEADS = (
    TRUTH[:20]
    .rename(time="init", lat="lead")
    .assign_coords(LEADS.drop_vars("member", errors="ignore").coords)
)


OF_DAYS = {"by": "rolling", "blocks": 2, "every": 1, "refit": 4, "min_samples": 5}


def loop_over_leads(method, **options):
    """Each start knows the observations whose valid time is not after it."""
    valid = LEADS["init"] + LEADS["lead"].astype("timedelta64[D]")
    found = []
    for i in range(10, 20):
        seen = OF_LEADS.where(valid <= LEADS["init"][i])
        if (i - 10) % 4 == 0:
            model = LEADS[:i].recal.fit(seen[:i], method, min_samples=5, **options)
        else:  # the last three starts, of which each lead verifies at its time
            model = model.update(LEADS[i - 3 : i], seen[i - 3 : i])
        found.append(model.crps(LEADS[i : i + 1], OF_LEADS))
    return xr.concat(found, "init")


@pytest.mark.parametrize(
    ("method", "pool"),
    [(xrecal.EMOS(), None), (xrecal.CKME(support="errors"), None), (xrecal.EMOS(), "lead")],
    ids=["EMOS", "CKME", "pooled"],
)
def test_each_lead_is_learned_when_it_verifies(method, pool):
    given = {**OF_DAYS, "pool": pool}
    found = LEADS.recal.cross_validate(OF_LEADS, method, output="crps", **given)
    expected = loop_over_leads(method, pool=pool).transpose(*found.dims)
    np.testing.assert_array_equal(found[10:], expected)
    assert (
        "gap=the delay of each lead, blocks=2, every=1, refit=4" in found.attrs["cross_validation"]
    )
    if pool is None:
        lazy = LEADS.chunk(lead=1).recal.cross_validate(OF_LEADS, method, output="crps", **given)
        xr.testing.assert_identical(lazy.compute(), found)


def test_what_has_not_verified_is_not_known():
    valid = LEADS["init"] + LEADS["lead"].astype("timedelta64[D]")
    method = xrecal.PITRecalibration()
    whole = LEADS.recal.cross_validate(OF_LEADS, method, **OF_DAYS)
    later = OF_LEADS.where(valid <= START[13], 1e4)
    found = LEADS.recal.cross_validate(later, method, **OF_DAYS)
    np.testing.assert_array_equal(found[:14], whole[:14])
    assert whole[10:].notnull().all()
    assert (found[15:] != whole[15:]).any("quantile").all()


def test_the_case_that_knows():
    np.testing.assert_array_equal(case_that_knows(LEADS[:6], "init")[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(case_that_knows(LEADS[:6], "init")[:, 1], [3, 4, 5, 6, 6, 6])
    one = LEADS[:4].isel(lead=1)
    assert case_that_knows(one, "init").dims == ("init",)
    np.testing.assert_array_equal(case_that_knows(one, "init"), [3, 4, 4, 4])
    told = (
        LEADS[:4]
        .isel(lead=1, drop=True)
        .assign_coords(valid_time=("init", START[:4] + np.timedelta64(12, "D")))
    )
    np.testing.assert_array_equal(case_that_knows(told, "init"), [3, 4, 4, 4])
    plain = LEADS[:4].assign_coords(lead=[0, 2])
    np.testing.assert_array_equal(case_that_knows(plain, "init"), [[1, 2], [2, 3], [3, 4], [4, 5]])
    bare = LEADS[:3].drop_vars("lead").isel(lead=0)
    np.testing.assert_array_equal(case_that_knows(bare, "init"), [1, 2, 3])


def slow_steps(known, first, every, refit, window):
    """The steps from the words that describe them."""
    steps, last_fit, begins = [], None, 0
    for i in range(first, len(known), every):
        turn = (i - first) // refit
        if last_fit is None or turn > last_fit:
            begins = 0 if window is None else max(i - window, 0)
            learn = [c for c in range(begins, len(known)) if known[c].min() <= i]
            steps.append((True, learn, i))
            last_fit = turn
        else:
            fresh = [
                c for c in range(begins, len(known)) if any(i - every < k <= i for k in known[c])
            ]
            steps.append((False, fresh, i))
    return steps


@pytest.mark.parametrize("window", [None, 8])
@pytest.mark.parametrize(("every", "refit"), [(1, 4), (2, 5), (3, 3)])
def test_steps(window, every, refit):
    known = np.arange(1, 25)[:, np.newaxis] + np.array([0, 3])
    first = 8 if window == 8 else 12
    steps = replay(known, Rolling(every, refit, window, 2))
    found = [(bool(s.fits), s.learn.tolist(), int(s.test[0])) for s in steps]
    assert found == slow_steps(known, first, every, refit, window)
    np.testing.assert_array_equal(np.concatenate([s.test for s in steps]), np.arange(first, 24))


def test_a_fit_waits_for_cases():
    known = np.arange(1, 13) + 4
    steps = replay(known, Rolling(1, 20, blocks=4), least=3)
    assert [s.fits for s in steps] == [False] * 4 + [True] + [False] * 4
    assert [s.learn.tolist() for s in steps] == [[], [], [], [], [0, 1, 2], [3], [4], [5], [6]]
    with pytest.warns(UserWarning, match="the first 4 cases to predict are NaN, as fewer than min"):
        found = HINDCAST[:12].recal.cross_validate(
            TRUTH,
            xrecal.EMOS(),
            **{**ROLLING, "blocks": 4, "min_samples": 3, "every": 1},
            gap=4,
            output="crps",
        )
    assert found[:7].isnull().all()
    assert found[7:].notnull().all()


def test_lengths_of_time():
    found = HINDCAST.recal.cross_validate(
        TRUTH, xrecal.EMOS(), by="rolling", every="90D", refit="200D", window="400D", gap="20D",
        output="crps", min_samples=5,
    )  # fmt: skip
    text = "by='rolling', gap='20D', window='400D', every='90D', refit='200D'"
    assert found.attrs["cross_validation"] == text
    assert found.notnull().all("lat").sum() == 24 - 14


OWN = {"by": "rolling", "blocks": 2, "every": 4, "min_samples": 5, "output": "crps"}


@dataclass(frozen=True)
class Refitting(xrecal.EMOS):
    refit: int = 30


def test_a_method_with_its_own_refit():
    own = HINDCAST.recal.cross_validate(TRUTH, Refitting(), **OWN)
    once = HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **OWN, refit=1000)
    np.testing.assert_array_equal(own, once)
    with pytest.raises(ValueError, match="Refitting refits itself, with its own refit=30; leave"):
        HINDCAST.recal.cross_validate(TRUTH, Refitting(), **ROLLING)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "block", "refit": 3}, "refit belongs to by='rolling', but by is 'block'"),
        ({"by": "rolling", "refit": 3}, "by='rolling' needs every"),
        ({"by": "rolling", "every": 1, "refit": 0}, "refit is 0; give a whole number of cases"),
        (
            {"by": "rolling", "every": 1, "refit": "x"},
            "refit is 'x', which is not a length of time",
        ),
        ({**ROLLING, "min_samples": 23}, "no fit has min_samples=23 training cases"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **options)


def test_cases_in_any_order_and_inputs_stay():
    order = np.random.default_rng(0).permutation(24)
    hindcast, truth = freeze(HINDCAST[order]), freeze(TRUTH[order])
    method = xrecal.EMOS()
    found = hindcast.recal.cross_validate(truth, method, **ROLLING)
    expected = HINDCAST.recal.cross_validate(TRUTH, method, **ROLLING)
    xr.testing.assert_equal(found, expected[order])
