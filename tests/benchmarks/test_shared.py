"""The synthetic network of the benchmark of shared fits: its truth is the law of what is drawn."""

import numpy as np
import pytest

from benchmarks.shared.network import UNEXPLAINED, draw_dates, draw_network, errors_of, truth

SEED = 3


def moments(law):
    """Mean and variance of mixtures."""
    mean = (law.weights * law.loc).sum(-1)
    return mean, (law.weights * (law.scale**2 + law.loc**2)).sum(-1) - mean**2


def uniform_if_true(law, observations):
    """Values of the truth's CDF at the observations, by their moments against 1/2 and 1/12."""
    from scipy.stats import norm

    u = (law.weights * norm.cdf((observations[..., None] - law.loc) / law.scale)).sum(-1)
    return u.mean(), u.var()


@pytest.mark.parametrize("known", [True, False])
def test_observations_follow_the_truth(known):
    network = draw_network(1500, SEED)
    members, observations = draw_dates(network, 0, 60, 20, SEED)
    law = truth(network, members, known=known)
    np.testing.assert_allclose(law.weights.sum(-1), 1, rtol=1e-12)
    mean, variance = uniform_if_true(law, observations)
    assert abs(mean - 0.5) < 0.05  # three standard errors, as errors of one date are alike
    assert abs(variance - 1 / 12) < 0.008


def test_the_truth_of_a_place_without_record_integrates_over_what_is_unexplained():
    place = draw_network(1, SEED)
    members, _ = draw_dates(place, 0, 1, 20, SEED)
    rng = np.random.default_rng(0)
    many = place.take(np.zeros(40_000, int))._replace(
        **{name: UNEXPLAINED * rng.normal(size=40_000) for name in ("offset", "stretch")}
    )
    drawn = truth(many, np.repeat(members, 40_000, axis=1), known=True)
    mean, variance = moments(drawn)
    whole_mean, whole_variance = moments(truth(place, members, known=False))
    np.testing.assert_allclose(whole_mean[0, 0], mean.mean(), atol=0.02)
    np.testing.assert_allclose(
        whole_variance[0, 0], (variance + mean**2).mean() - mean.mean() ** 2, rtol=0.02
    )


def test_errors_have_mean_zero_and_the_spread_that_the_ensemble_says():
    members = np.random.default_rng(1).gamma(2.0, size=(50, 20))
    mean, variance = moments(errors_of(members))
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(variance, (members.std(-1) / 1.3) ** 1.4, rtol=1e-12)


def test_a_date_is_the_same_in_whatever_pieces_dates_come():
    network = draw_network(5, SEED)
    whole = draw_dates(network, 0, 4, 6, SEED)
    pieces = [draw_dates(network, first, 2, 6, SEED) for first in (0, 2)]
    for i, part in enumerate(whole):
        np.testing.assert_array_equal(part, np.concatenate([piece[i] for piece in pieces]))
