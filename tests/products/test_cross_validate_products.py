"""Products of held-out distributions: those of a model that was fitted on the training cases."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.pairs import pairwise
from tests.strategies import ensemble_and_truth
from xrecal.arrays.splitting import splits

HINDCAST, TRUTH = ensemble_and_truth(n=48)
WARM = (TRUTH.mean("time") + xr.DataArray([0.0, 1.0], dims="warm")).assign_attrs(units="K")
DATED = TRUTH.isel(lat=0, drop=True).assign_attrs(units="K") + 0.5
METHODS = {
    "CKME": xrecal.CKME(),
    "errors": xrecal.CKME(support="errors"),
    "EMOS": xrecal.EMOS(),
    "climatology": xrecal.Climatology(),
}
PRODUCTS = {
    "members": ("members", {"n": 5, "seed": 3}),
    "exceedance": ("exceedance", {"threshold": 280.5}),
    "thresholds": ("exceedance", {"threshold": [280.0, 281.0]}),
    "by place": ("exceedance", {"threshold": WARM}),
    "by date": ("exceedance", {"threshold": DATED}),
    "categories": ("categories", {"q": (0.2, 0.5, 0.7)}),
    "mean": ("mean", {}),
    "std": ("std", {}),
    "cdf": ("cdf", {"threshold": WARM}),
}
SCORES = {
    "crps": {},
    "quantile_weighted_crps": {},
    "log_score": {},
    "wis": {},
    "error_spread": {},
    "quantile_score": {"q": [0.2, 0.7]},
    "brier_score": {"threshold": WARM},
    "rps": {"threshold": [280.0, 281.0]},
}
POOLS = {"none": None, "all": ("lat", "lon"), "rows": "lon", "windows": {"lon": 1, "lat": 1}}


def held_out(output, options, method, pool, hindcast=HINDCAST, truth=TRUTH):
    return hindcast.recal.cross_validate(
        truth, METHODS[method], by="block", blocks=3, gap=1, output=output, pool=pool, **options
    )


@cache
def models(method, pool):
    """For each split the cases left out, and the model of the others, which no test changes."""
    return [
        (
            np.flatnonzero(split.test),
            HINDCAST.isel(time=split.train).recal.fit(TRUTH, METHODS[method], pool=POOLS[pool]),
        )
        for split in splits(HINDCAST.sizes["time"], "block", blocks=3, gap=1)
    ]


def by_hand(output, options, method, pool):
    """For each split the cases left out, of what its model makes of the hindcast."""
    for test, model in models(method, pool):
        yield test, getattr(model, output)(HINDCAST, **options).isel(time=test)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:the edges of the categories are those of all positions")
@pytest.mark.parametrize(("method", "product", "pool"), pairwise(METHODS, PRODUCTS, POOLS))
def test_equal_to_the_loop_of_fit_and_product(method, product, pool):
    found = held_out(*PRODUCTS[product], method, POOLS[pool])
    n_tested = 0
    for test, expected in by_hand(*PRODUCTS[product], method, pool):
        part = found.isel(time=test)
        assert part.dims == expected.dims
        np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-9)
        assert {*part.coords} == {*expected.coords}
        for name in {"lower_edge", "upper_edge"} & {*part.coords}:
            edges, wanted = xr.broadcast(part[name], expected[name])
            np.testing.assert_allclose(edges, wanted.transpose(*edges.dims), rtol=1e-12)
        kept = {k: v for k, v in expected.attrs.items() if k != "history"}
        assert kept.items() <= part.attrs.items()
        assert found.name == expected.name
        n_tested += test.size
    assert n_tested == HINDCAST.sizes["time"]
    assert "by='block', gap=1, blocks=3" in found.attrs["cross_validation"]


def test_all_scores_by_case_are_outputs():
    table = xrecal.diagnostics.SCORES
    assert {*SCORES} == {name for name, score in table.items() if score.by_case}


def score_of(name, forecast, model):
    """The score of forecasts as a model recalibrates them, by its verb if it has one."""
    options = {"edges" if (name, k) == ("rps", "threshold") else k: v
               for k, v in SCORES[name].items()}  # fmt: skip
    if hasattr(model, name):
        return getattr(model, name)(forecast, TRUTH, **options)
    return getattr(forecast.recal.apply(model).recal, name)({"t2m": TRUTH}, **options)["t2m"]


@pytest.mark.each_value
@pytest.mark.parametrize(("method", "name", "pool"), pairwise(METHODS, SCORES, POOLS))
def test_scores_equal_the_loop_of_fit_and_score(method, name, pool):
    found = held_out(name, SCORES[name], method, POOLS[pool])
    assert found.attrs["cross_validation"].startswith("by='block'")
    for test, model in models(method, pool):
        expected = score_of(name, HINDCAST, model).isel(time=test)
        np.testing.assert_allclose(found.isel(time=test), expected, rtol=1e-6, atol=1e-9)
        kept = {k: v for k, v in expected.attrs.items() if k != "history"}
        assert kept.items() <= found.attrs.items()
    assert found.name == name


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_lazy_and_those_of_each_variable(name):
    both = xr.Dataset({"t2m": HINDCAST, "other": HINDCAST + 1}).chunk(lat=1)
    with forbid_compute():
        lazy = held_out(name, SCORES[name], "EMOS", None, both, {"t2m": TRUTH, "other": TRUTH})
    alone = held_out(name, SCORES[name], "EMOS", None)
    np.testing.assert_array_equal(lazy["t2m"], alone)


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [{"lat": 1}, {"lon": 1}])
@pytest.mark.parametrize("product", PRODUCTS)
def test_lazy_and_equal_to_numpy(product, chunks):
    expected = held_out(*PRODUCTS[product], "CKME", None)
    with forbid_compute():
        lazy = held_out(*PRODUCTS[product], "CKME", None, HINDCAST.chunk(chunks), TRUTH.chunk())
    assert lazy.chunks is not None
    xr.testing.assert_identical(lazy.compute(), expected)


def test_pooled_and_lazy():
    options = "members", {"n": 4}, "CKME", {"lon": 1}
    lazy = held_out(*options, HINDCAST.chunk(lat=1), TRUTH)
    xr.testing.assert_identical(lazy.compute(), held_out(*options))


@pytest.mark.parametrize("product", PRODUCTS)
def test_unsorted_cases_have_their_own(product):
    """Members are in the order that the place of the case in the hindcast gives."""
    output, options = PRODUCTS[product]
    order = np.random.default_rng(0).permutation(HINDCAST.sizes["time"])
    found = held_out(output, options, "EMOS", None, HINDCAST.isel(time=order), TRUTH)
    expected = held_out(output, options, "EMOS", None).isel(time=order)
    if output == "members":
        assert (found != expected).any()
        axis = found.get_axis_num("member")
        np.testing.assert_array_equal(np.sort(found, axis), np.sort(expected, axis))
    else:
        xr.testing.assert_identical(found, expected)


def test_edges_are_those_of_each_fold_and_terciles_by_default():
    found = held_out("categories", {}, "climatology", None)
    assert list(found.category.values) == ["below_normal", "near_normal", "above_normal"]
    assert found.name == "categories"
    np.testing.assert_allclose(found.sum("category"), 1)
    assert np.unique(found.lower_edge.isel(lat=0, lon=0, category=1)).size == 3


def test_precision_is_that_of_a_model():
    hindcast = HINDCAST.astype("float32")
    found = held_out("categories", {}, "CKME", None, hindcast)
    expected = hindcast.recal.fit(TRUTH).categories(hindcast)
    assert found.dtype == expected.dtype == np.float32
    assert found.lower_edge.dtype == expected.lower_edge.dtype


def test_a_dataset_has_edges_of_each_variable():
    both = xr.Dataset({"t2m": HINDCAST, "other": HINDCAST + 1})
    truth = {"t2m": TRUTH, "other": TRUTH}
    found = held_out("categories", {}, "EMOS", None, both, truth)
    assert {"t2m_lower_edge", "other_upper_edge"} <= {*found.coords}
    alone = held_out("categories", {}, "EMOS", None)
    np.testing.assert_array_equal(found.t2m, alone)


WRONG = {
    "n": ({"n": 5}, "n belongs to output='members', but output is 'quantile'; leave it out"),
    "seed": (
        {"seed": 1, "output": "pit"},
        "seed belongs to output='members', but output is 'pit'",
    ),
    "threshold": (
        {"threshold": 1.0, "output": "members", "n": 3},
        "threshold belongs to output='exceedance' or 'cdf' or 'brier_score' or 'rps', but output "
        "is 'members'; leave it out",
    ),
    "no n": ({"output": "members"}, "n must be a whole number of members, 1 or more, got None"),
    "no threshold": ({"output": "exceedance"}, "output='exceedance' needs a threshold"),
    "levels": ({"output": "categories", "q": (0.5, 0.2)}, "increas"),
    "output": ({"output": "median"}, "output is 'median'; give one of"),
    "no edges": ({"output": "rps"}, "output='rps' needs a threshold"),
    "whole fields": ({"output": "energy_score"}, "output is 'energy_score'; give one of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parameters_that_do_not_belong(case):
    options, message = WRONG[case]
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        HINDCAST.recal.cross_validate(TRUTH, xrecal.EMOS(), **options)
