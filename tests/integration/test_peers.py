"""What xrecal makes goes as it is into other packages that score, which find the same."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
LEVELS = [0.1, 0.5, 0.9]


@pytest.fixture(scope="module")
def model():
    return HINDCAST.recal.fit(TRUTH, xrecal.EMOS())


@pytest.fixture(scope="module")
def members(model):
    return model.members(NEW, 20)


def same(found, expected):
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12, atol=1e-13)


def test_members_and_quantiles_in_scores(model, members):
    from scores.continuous import quantile_score
    from scores.probability import crps_for_ensemble

    crps = crps_for_ensemble(members, VERIFIED, "member", preserve_dims="all")
    same(crps, members.recal.crps(VERIFIED))
    fair = crps_for_ensemble(members, VERIFIED, "member", method="fair", preserve_dims="all")
    same(fair, members.recal.crps(VERIFIED, fair=True))
    ours = members.recal.quantile_score(VERIFIED, LEVELS)
    for level in LEVELS:
        quantile = members.recal.quantile(level).drop_vars("quantile")
        score = quantile_score(quantile, VERIFIED, level, preserve_dims="all")
        same(score, ours.sel(quantile=level))
    quantiles = model.quantile(NEW, LEVELS)
    assert list(quantiles["quantile"]) == LEVELS


def test_probabilities_in_scores(model):
    from scores.probability import brier_score

    probability = model.exceedance(NEW, 281.0)
    happened = (VERIFIED > 281.0).astype(float)
    theirs = brier_score(probability, happened, preserve_dims="all")
    same(theirs, model.apply(NEW).recal.brier_score(VERIFIED, 281.0))


def test_members_in_xskillscore(members):
    import xskillscore as xs

    same(
        xs.crps_ensemble(VERIFIED, members, member_dim="member", dim=[]),
        members.recal.crps(VERIFIED),
    )
    same(
        xs.threshold_brier_score(VERIFIED, members, 281.0, member_dim="member", dim=[]),
        members.recal.brier_score(VERIFIED, 281.0),
    )


def test_categories_in_xskillscore(model, members):
    import xskillscore as xs

    edges = TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="category_edge")
    theirs = xs.rps(VERIFIED, members, edges, member_dim="member", dim=[])
    same(theirs, members.recal.ranked_probability_score(VERIFIED, edges))
    found = model.categories(NEW)
    happened = (found.lower_edge < VERIFIED) & (found.upper_edge >= VERIFIED)
    cumulated = [x.astype(float).cumsum("category") for x in (happened, found)]
    cumulated = [x.drop_vars(["lower_edge", "upper_edge"], errors="ignore") for x in cumulated]
    theirs = xs.rps(*cumulated, category_edges=None, input_distributions="c", dim=[])
    edges = found.upper_edge.isel(category=slice(-1))
    same(theirs, model.apply(NEW).recal.ranked_probability_score(VERIFIED, edges))


def test_lazy_members_in_peers(model):
    from scores.probability import crps_for_ensemble

    lazy = model.members(NEW.chunk(lat=1), 20)
    theirs = crps_for_ensemble(lazy, VERIFIED, "member", preserve_dims="all")
    assert isinstance(theirs, xr.DataArray)
    same(theirs.compute(), lazy.recal.crps(VERIFIED).compute())
