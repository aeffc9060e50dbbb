"""What reductions make of distributions (L, T): arrays (L, T, ...), for every kind of them."""

import pickle
from functools import partial

import numpy as np
import pytest

from xrecal import arrays
from xrecal.arrays.distributions.forms import Censored, Empirical, Normal
from xrecal.diagnostics.probability_scores import quantile_scores_of
from xrecal.diagnostics.ranks import rank_of
from xrecal.diagnostics.scores import quantile_crps_of
from xrecal.products import log_score, members, probabilities, scores, statistics

RNG = np.random.default_rng(0)
LOC, SCALE, WEIGHTS = (
    RNG.normal(size=(2, 3, 4)),
    RNG.uniform(1, 2, (2, 3, 4)),
    RNG.random((2, 3, 4)),
)
OBSERVED = RNG.normal(size=(2, 3))
LOW, HIGH = OBSERVED - 1, OBSERVED + 0.5
CASES, PLACES = np.tile(np.arange(3), (2, 1)), [np.array([[0] * 3, [5] * 3])]
THRESHOLDS, LEVELS = RNG.normal(size=(2, 3, 2)), np.array([0.2, 0.7])
DISTRIBUTIONS = {
    "plain": Empirical(LOC),
    "weighted": Empirical(LOC, WEIGHTS),
    "shared": Empirical(LOC[:, 0], WEIGHTS),
    "normal": Normal(LOC[..., :1], SCALE[..., :1]),
    "mixture": Normal(LOC, SCALE, WEIGHTS),
    "censored": Censored(LOC[..., :1], SCALE[..., :1], LOC[..., :1] - 1, LOC[..., :1] + 1),
}
REDUCTIONS = {
    "mean": (statistics.mean_of, [], ()),
    "std": (statistics.std_of, [], ()),
    "quantile": (partial(statistics.quantiles_of, levels=LEVELS), [], (2,)),
    "exceedance": (probabilities.exceedance_of, [THRESHOLDS], (2,)),
    "members": (partial(members.members_of, levels=LEVELS, seed=1), [CASES, *PLACES], (2,)),
    "crps": (scores.crps_of, [OBSERVED], ()),
    "crps_between": (scores.crps_between, [OBSERVED, LOW, HIGH], ()),
    "quantile_scores": (
        partial(quantile_scores_of, levels=LEVELS),
        [OBSERVED],
        (2,),
    ),
    "brier": (partial(scores.brier_of, fair=False), [OBSERVED, THRESHOLDS], (2,)),
    "log_score": (log_score.log_score_of, [LOC[..., 0] + 0.1], ()),
    "pit": (partial(scores.pit_of, seed=1), [OBSERVED, CASES, *PLACES], ()),
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_distribution_is_reduced_to_one_array_and_survives_the_way_to_a_worker(
    reduction, distribution
):
    function, args, core = REDUCTIONS[reduction]
    (found,) = function(DISTRIBUTIONS[distribution], *args)
    assert found.shape == (2, 3, *core)
    assert np.isfinite(found).all()
    (again,) = pickle.loads(pickle.dumps(function))(DISTRIBUTIONS[distribution], *args)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_levels_may_have_weights(distribution):
    (found,) = partial(quantile_crps_of, emphasis="upper")(DISTRIBUTIONS[distribution], OBSERVED)
    ensemble = DISTRIBUTIONS[distribution].as_members()
    expected = arrays.quantile_weighted_crps(OBSERVED, *ensemble, weighting="upper")
    np.testing.assert_array_equal(found, expected)


def test_fair_scores_count_the_members_of_each_case():
    members = LOC.copy()
    members[0, 1, 2:] = np.nan
    (found,) = scores.fair_crps_of(Empirical(members), OBSERVED)
    np.testing.assert_array_equal(found, arrays.fair_crps(OBSERVED, members))
    (brier,) = scores.brier_of(Empirical(members), OBSERVED, THRESHOLDS, fair=True)
    p = arrays.weighted_exceedance(members, THRESHOLDS)
    expected = arrays.brier_score(OBSERVED, p, THRESHOLDS, [[4, 2, 4], [4, 4, 4]])
    np.testing.assert_array_equal(brier, expected)


def test_random_numbers_are_those_of_the_place_and_the_case():
    tied = Empirical(np.zeros((2, 3, 4)))
    zeros = np.zeros((2, 3))
    pit = partial(scores.pit_of, seed=3)(tied, zeros, CASES, *PLACES)[0]
    np.testing.assert_array_equal(pit, arrays.hash_uniform(3, np.array([0, 5]), 3))
    split = [PLACES[0] - 2, np.full((2, 3), 2)]
    np.testing.assert_array_equal(pit, scores.pit_of(tied, zeros, CASES, *split, seed=3)[0])
    (rank,) = rank_of(tied, zeros, CASES, *PLACES, seed=3)
    np.testing.assert_array_equal(rank, np.floor(5 * pit))
