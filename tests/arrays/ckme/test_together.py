import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.ckme.embedding import Choices
from xrecal.arrays.ckme.ridge_rules import GRID, GRID_STEP
from xrecal.arrays.ckme.together import SLACK, together, with_own

KERNELS = [(1.0, 0.0), (4.0, 0.0), (4.0, 1.0)]
SUPPORTS = ["observations", "mean", "standardised"]
CODES = {"observations": 0, "mean": 1, "standardised": 3}


def place(losses, n=40.0, ridge=0.1, half_life=np.inf):
    """Choices of one place with a table (G, S, R) of losses, or (G, S) for all ridges alike."""
    if np.ndim(losses) == 2:
        losses = np.repeat(losses[..., np.newaxis], GRID.size, axis=-1)
    return Choices(0, 1.0, 0.0, ridge, half_life, 1.0, cases=n, losses=np.ravel(losses))


def of_places(*places, slack=SLACK):
    return together(Choices.joined(places, 9 * GRID.size), KERNELS, SUPPORTS, slack)


def random_places(seed, n_places=7):
    """Losses (L, G, S, R) that curve around other ridges of each place, and numbers of cases."""
    rng = np.random.default_rng(seed)
    best = rng.uniform(-4, 0, (n_places, 3, 3, 1))
    losses = rng.uniform(1.0, 1.5, best.shape) + rng.uniform(0.01, 0.05) * (GRID - best) ** 2
    return losses * rng.uniform(0.1, 100, (n_places, 1, 1, 1)), rng.uniform(100.0, 200.0)


def relative(losses):
    return np.minimum(losses / losses.min((1, 2, 3), keepdims=True), 2.0)


def nearly_lowest(curve, n, slack=SLACK):
    """Smallest loss on a parabola through its neighbours, and the largest ridge near it."""
    i = np.clip(curve.argmin(), 1, GRID.size - 2)
    parabola = np.polynomial.Polynomial.fit(GRID[i - 1 : i + 2], curve[i - 1 : i + 2], 2)
    fine = np.linspace(GRID[0], GRID[-1], 60001)
    near = (fine >= GRID[i - 1]) & (fine <= GRID[i + 1])
    losses = np.where(near, parabola(fine), np.interp(fine, GRID, curve))
    return losses.min(), fine[losses <= losses.min() + slack / n].max()


@given(st.integers(0, 1000), st.sampled_from([0.0, SLACK, 2.0]))
def test_kernel_and_support_have_the_smallest_mean_of_relative_losses(seed, slack):
    """From the formula: the largest ridge whose mean is within the slack of the smallest one."""
    losses, n = random_places(seed)
    found = of_places(*(place(one, n) for one in losses), slack=slack)
    mean = relative(losses).mean(0)
    each = np.array([[nearly_lowest(curve, n, slack) for curve in of_kernel] for of_kernel in mean])
    g, s = np.unravel_index(each[..., 0].argmin(), (3, 3))
    assert (found.widening[0], found.strength[0]) == KERNELS[g]
    assert found.support[0] == CODES[SUPPORTS[s]]
    assert found.cases[0] == pytest.approx(n)
    assert np.log10(found.ridge[0]) == pytest.approx(each[g, s, 1], abs=3e-4)


@pytest.mark.parametrize("steps", [-2, -1, 0, 1])
def test_places_share_the_product_of_ridge_and_cases(steps):
    """A place with more cases, whose best ridge is smaller by the same factor, changes nothing."""
    n, best = 40.0, -2.2
    more, curve = n * 10 ** (steps * GRID_STEP), 1 + 0.05 * (GRID - best) ** 2
    moved = 1 + 0.05 * (GRID - best + steps * GRID_STEP) ** 2
    alone, both = (
        of_places(*(place(np.broadcast_to(c, (3, 3, GRID.size)), size) for c, size in some))
        for some in ([(curve, n)], [(curve, n), (moved, more)])
    )
    assert both.cases[0] == pytest.approx(np.sqrt(n * more))
    slack = np.sqrt(SLACK / 0.05)  # on the parabola
    expected = (best + slack / np.sqrt(one) for one in (n, both.cases[0]))
    products = (np.log10(one.ridge * one.cases / n)[0] for one in (alone, both))
    np.testing.assert_allclose(list(products), list(expected), atol=0.05)  # lines, not curves


def test_ridges_that_were_not_tried_lose_at_least_as_much_as_the_last_ones():
    curve = 1 + 0.05 * (GRID + 2.2) ** 2
    known = (GRID >= -4) & (GRID <= -1)
    found, expected = (
        of_places(place(np.broadcast_to(c, (3, 3, GRID.size)), 1000.0))
        for c in (np.where(known, curve, np.nan), curve)
    )
    assert found.ridge[0] == pytest.approx(expected.ridge[0])
    losses = found.losses.reshape(9, -1)
    first, last = np.flatnonzero(known)[[0, -1]]
    assert (np.diff(losses[:, : first + 1]) <= 0).all()
    assert (np.diff(losses[:, last:]) >= 0).all()


@pytest.mark.parametrize("at", [3, 7, 11])
def test_a_small_change_of_losses_changes_the_ridge_little(at):
    """Where two ridges of the grid are equally good, either may be the smallest."""
    ridges = []
    for tilt in (-1e-9, 1e-9):
        curve = 1 + 0.05 * (GRID - GRID[at] - GRID_STEP / 2) ** 2 + tilt * GRID
        ridges.append(of_places(place(np.broadcast_to(curve, (3, 3, GRID.size)), 1e5)).ridge[0])
    assert ridges[0] == pytest.approx(ridges[1], rel=1e-6)


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-17, SLACK]))
def test_a_ridge_of_the_grid_is_taken_where_losses_are_alike_but_for_rounding(seed, slack):
    rounding = 1e-16 * np.random.default_rng(seed).integers(-3, 4, (3, 3, 3, GRID.size))
    found = of_places(*(place(1.0 + some) for some in rounding), slack=slack)
    assert GRID[0] <= np.log10(found.ridge[0]) <= GRID[-1] + 1e-12
    alike = of_places(place(np.ones((3, 3))), slack=slack)
    assert np.log10(alike.ridge[0]) == pytest.approx(GRID[-1])


@given(st.integers(0, 1000), st.permutations(range(7)))
def test_neither_order_nor_units_of_places_matter(seed, order):
    losses, n = random_places(seed)
    cases = n * np.linspace(0.7, 1.3, 7)
    found = of_places(*map(place, losses, cases))
    unit = 10.0 ** np.arange(-3, 4)[:, np.newaxis, np.newaxis, np.newaxis]
    moved = of_places(*map(place, (unit * losses)[order], cases[order]))
    for name, a, b in zip(Choices._fields, moved, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=name)


def test_a_candidate_that_fails_at_one_place_is_not_out_of_the_question():
    good, bad = np.full((3, 3), 2.0), np.full((3, 3), 2.0)
    good[1, 1], bad[1, 1], bad[0, 0], good[0, 0] = 1.0, np.inf, 1.0, 1.9
    found = of_places(*[place(good)] * 9, place(bad))
    assert found.widening[0] == 4.0
    assert found.support[0] == CODES["mean"]


def test_where_past_observations_are_chosen_errors_stand_beside():
    losses = np.full((3, 3), 2.0)
    losses[2, 0], losses[0, 2], losses[0, 1] = 1.0, 1.2, 1.5
    found = of_places(place(losses))
    assert found.support[0] == CODES["observations"]
    assert found.beside[0] == CODES["standardised"]


@given(st.integers(0, 1000), st.floats(0.0, 1.0))
def test_own_evidence_counts_by_its_share(seed, share):
    """From the formula: means of relative losses."""
    losses, n = random_places(seed)
    every = Choices.joined([*(place(one, n) for one in losses), Choices(0)], 9 * GRID.size)
    one = together(every, KERNELS, SUPPORTS)
    of_all = Choices(*(np.repeat(a, 8, axis=0) for a in one))
    found = with_own(of_all, every, np.full(8, share), KERNELS, SUPPORTS)
    own = relative(losses)
    for i in range(7):
        both = (1 - share) * own.mean(0) + share * own[i]
        each = np.array([[nearly_lowest(curve, n) for curve in of_kernel] for of_kernel in both])
        g, s = np.unravel_index(each[..., 0].argmin(), (3, 3))
        assert (found.widening[i], found.strength[i]) == KERNELS[g]
        assert found.support[i] == CODES[SUPPORTS[s]]
        assert np.log10(found.ridge[i]) == pytest.approx(each[g, s, 1], abs=3e-4)
    assert found.ridge[7] == pytest.approx(one.ridge[0])  # that place has no evidence


def test_places_without_a_choice_have_no_say():
    losses, n = random_places(3)
    nothing, places = Choices(0), [place(one, n) for one in losses]
    found, expected = of_places(nothing, *places, nothing), of_places(*places)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_any_choice_there_is_none():
    assert np.isnan(of_places(Choices(0), Choices(0)).ridge)


def test_a_ridge_that_is_given_is_that_of_all():
    places = [place(np.ones((3, 3)), np.nan, ridge=0.25) for _ in range(3)]
    found = of_places(*places)
    assert found.ridge[0] == 0.25
    assert np.isnan(found.cases[0])
    assert found.at(0).ridge_for(1000) == 0.25


@pytest.mark.parametrize("n", [10, 40, 1000])
def test_a_fit_to_other_cases_keeps_the_product_of_ridge_and_number(n):
    one = Choices(0, 1.0, 0.0, 0.1, np.inf, cases=40.0)
    assert one.ridge_for(n) == pytest.approx(4.0 / n, rel=1e-15)
