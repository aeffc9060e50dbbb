import numpy as np
import pytest

from xrecal.arrays import Forecasts, fit_ckme, fit_ckme_family
from xrecal.arrays.ckme import search
from xrecal.arrays.ckme.ckme import HALF_LIVES
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.held_out_losses import TO_TRY, Judge
from xrecal.arrays.ckme.ridges import ridge_losses
from xrecal.arrays.ckme.search import TRIED
from xrecal.arrays.status import RIDGE_EDGE

from .reference import GRID, SUPPORTS, Choice, blocks_in_time
from .test_ckme import as_embedding, make_cases, with_covariates

KERNELS = ((1.0, 0.0), (1.0, 1.0), (4.0, 0.25))
WIDTHS = ((1.0, 0.0), (4.0, 0.0))


@pytest.mark.parametrize("supports", [SUPPORTS[:1], SUPPORTS], ids=len)
def test_kernel_support_and_ridge_with_the_smallest_loss(rng, supports):
    x, y = make_cases(rng, 1, 40)
    of, _ = with_covariates(rng, 1, 40)
    y[0] += 1.5 * of.values[0, :, 0]  # so that covariates count
    found = fit_ckme(Forecasts(x), y, Settings(supports=supports, kernels=KERNELS), features=of)
    embedding, slot = as_embedding(x, y, of=of)
    fold = blocks_in_time(slot.size)
    losses = np.array(
        [
            [
                [
                    embedding.mean_loss(fold, slot, 0, Choice(r, support, widening, strength))
                    for r in GRID
                ]
                for widening, strength in KERNELS
            ]
            for support in supports
        ]
    )
    s, g, r = np.unravel_index(losses.argmin(), losses.shape)
    assert found.loss[0] == pytest.approx(losses.min(), rel=1e-7)
    assert found.support[0] == SUPPORTS.index(supports[s])
    assert found.strength[0] == KERNELS[g][1]
    assert found.bandwidth[0] == pytest.approx(KERNELS[g][0] * embedding.bandwidth)
    assert 0 < r < GRID.size - 1
    assert GRID[r - 1] < found.ridge[0] < GRID[r + 1]
    refined = Choice(found.ridge[0], supports[s], *KERNELS[g])
    assert embedding.mean_loss(fold, slot, 0, refined) <= losses.min() * (1 + 1e-9)


def test_a_given_ridge_is_kept_while_the_rest_is_chosen(rng):
    x, y = make_cases(rng, 1, 40)
    of, _ = with_covariates(rng, 1, 40)
    found = fit_ckme(Forecasts(x), y, Settings(ridge=0.02, kernels=KERNELS), features=of)
    embedding, slot = as_embedding(x, y, of=of)
    fold = blocks_in_time(slot.size)
    losses = [embedding.mean_loss(fold, slot, 0, Choice(0.02, "observations", *k)) for k in KERNELS]
    assert found.loss[0] == pytest.approx(min(losses))
    assert found.strength[0] == KERNELS[int(np.argmin(losses))][1]
    assert found.ridge[0] == pytest.approx(0.02)
    assert found.status[0] == 0


def test_kernels_on_covariates_need_covariates(rng):
    x, y = make_cases(rng, 1, 40)
    plain = fit_ckme(Forecasts(x), y)
    found = fit_ckme(Forecasts(x), y, Settings(kernels=KERNELS))
    assert found.strength[0] == 0
    for part, expected in zip(found, plain, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_of_equal_losses_the_largest_ridge(rng):
    n = 40
    target = rng.normal(size=(1, n))
    far = Forecasts(1e6 * np.arange(n, dtype=float)[np.newaxis, :, np.newaxis])
    # No two forecasts alike: climatology for every ridge.
    found = fit_ckme(far, target, Settings(bandwidth=1.0))
    assert found.ridge[0] == 1.0
    assert found.status[0] == RIDGE_EDGE


def test_ridge_on_the_lower_edge_is_told(rng):
    n = 40
    target = rng.permutation(np.linspace(-2, 2, n))[np.newaxis]
    exact = Forecasts(target[..., np.newaxis].copy())  # a forecast that knows the observation
    settings = Settings(bandwidth=4.0, projection="energy")
    found = fit_ckme(exact, target, settings, groups=np.arange(n) % 5, blocks=0)
    assert found.ridge[0] == pytest.approx(1e-6)
    assert found.status[0] == RIDGE_EDGE


def test_nothing_to_train_on_means_the_largest_ridge(rng):
    x, y = make_cases(rng, 1, 30)
    found = fit_ckme(Forecasts(x), y, Settings(gap=100))
    assert found.ridge[0] == 1.0
    assert found.status[0] == RIDGE_EDGE


# half-life ---------------------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize(("support", "seed"), [(0, 3), (0, 8), (0, 14), (1, 3), (1, 15), (1, 27)])
def test_groups_must_agree_that_a_ridge_is_better_than_the_largest(solver, support, seed):
    """Forecasts and observations of a year are alike, and know nothing of each other."""
    rng, years = np.random.default_rng(seed), np.arange(48) // 8
    x = rng.normal(size=(1, 6, 1)).repeat(8, axis=1) + 0.3 * rng.normal(size=(1, 48, 5))
    y = rng.normal(size=(1, 6)).repeat(8, axis=1) + 0.4 * rng.normal(size=(1, 48))
    settings = Settings(supports=(SUPPORTS[support],), solver=solver)
    given = {"groups": years, "blocks": 0}
    found = fit_ckme(Forecasts(x), y, settings, **given)
    losses = ridge_losses(Forecasts(x), y, settings, **given).loss[0]
    best = GRID[losses.argmin()]
    assert best < 1
    embedding, slot = as_embedding(x, y)
    own, smooth = (
        [embedding.mean_loss(years, slot, 0, choice, only=year) for year in range(6)]
        for choice in (Choice(best, SUPPORTS[support]), Choice(1.0, SUPPORTS[support]))
    )
    gain = np.subtract(smooth, own)
    if gain.mean() < gain.std(ddof=1) / np.sqrt(6):
        assert (found.ridge[0], found.status[0]) == (1, 0)
        assert found.loss[0] == pytest.approx(np.mean(smooth), rel=1e-3)
    else:
        assert found.ridge[0] < 1
        assert (support, seed) == (1, 3)


def test_years_of_one_case_need_not_agree():
    """Their cases err on their own, and many places tell together what one cannot."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 40, 5))
    y = x.mean(-1) + rng.normal(size=(8, 40))
    found = fit_ckme(Forecasts(x), y, groups=np.arange(40), blocks=0)
    losses = ridge_losses(Forecasts(x), y, groups=np.arange(40), blocks=0).loss
    np.testing.assert_allclose(found.loss, losses.min(-1))
    pairs = fit_ckme(Forecasts(x), y, groups=np.arange(40) // 2, blocks=0)
    assert (pairs.ridge == 1).sum() > (found.ridge == 1).sum()


def test_blocks_of_cases_need_not_agree(rng):
    x, y = make_cases(rng, 1, 48, missing=False)
    y = rng.normal(size=y.shape)
    apart = fit_ckme(Forecasts(x), y, groups=np.arange(48) // 8, blocks=6)
    losses = ridge_losses(Forecasts(x), y, groups=np.arange(48) // 8, blocks=6)
    assert apart.loss[0] == pytest.approx(np.nanmin(losses.loss))


def drifting(rng, n=48):
    """Cases whose bias jumps after two thirds, and their dates."""
    x, y = make_cases(rng, 2, n, missing=False)
    y[0, 2 * n // 3 :] += 8
    return x, y, 7.0 * np.arange(n)


@pytest.mark.parametrize("ridge", [None, 0.05])
def test_half_life_is_chosen_by_what_the_past_says_of_what_follows(rng, ridge):
    x, y, days = drifting(rng)
    settings = Settings(ridge=ridge)
    found = fit_ckme(Forecasts(x), y, settings, days=days, half_life="cv")
    lives = np.array(HALF_LIVES) * np.ptp(days)
    for cell in range(2):
        losses = []
        for life in lives:
            embedding, slot = as_embedding(x, y, cell, days=days, half_life=life)
            fold = blocks_in_time(48)
            losses.append(
                min(
                    embedding.mean_loss(fold, slot, 0, Choice(r), forward=True)
                    for r in (GRID if ridge is None else [ridge])
                )
            )
        assert found.half_life[cell] == lives[int(np.argmin(losses))]
    assert np.isfinite(found.half_life[0])
    settled = fit_ckme(
        Forecasts(x[:1]), y[:1], settings, days=days, half_life=float(found.half_life[0])
    )
    for part, expected in zip(found, settled, strict=True):
        np.testing.assert_array_equal(part[:1], expected)


def test_folds_are_forward_ones_whatever_is_asked_for_the_ridge(rng):
    x, y, days = drifting(rng)
    blocks = fit_ckme(Forecasts(x), y, days=days, half_life="cv")
    random = fit_ckme(Forecasts(x), y, days=days, half_life="cv", groups=rng.permutation(48))
    np.testing.assert_array_equal(blocks.half_life, random.half_life)


@pytest.mark.parametrize(("n", "width", "noise"), [(200, 0.5, 0.05), (200, 0.25, 0.02)])
def test_a_support_that_needs_a_small_ridge_is_followed_down(rng, n, width, noise):
    """Steps, of which past observations are right once ridges are small, and errors are not."""
    x = rng.uniform(-4.0, 4.0, (1, n))
    cases = Forecasts(x[..., np.newaxis] + noise * rng.normal(size=(1, n, 8)))
    y = np.floor(x / width) * width
    alone = [
        fit_ckme(cases, y, Settings(supports=(support,), solver="lowrank"))
        for support in SUPPORTS[:2]
    ]
    assert alone[0].loss < 0.6 * alone[1].loss
    together = fit_ckme(cases, y, Settings(supports=SUPPORTS[:2], solver="lowrank"))
    assert together.support[0] == 0
    assert together.loss == pytest.approx(alone[0].loss)
    assert together.ridge < 1e-4


def test_a_support_far_from_the_others_changes_none(rng, monkeypatch):
    """Ratios to means near zero, which need a bound there otherwise, are wide of the truth."""
    monkeypatch.setattr(search, "usable_supports", lambda supports, _: np.arange(supports.size))
    monkeypatch.setattr(search, "TRIED", 200)
    x, y = make_cases(rng, 1, 300, missing=False)
    cases = Forecasts(x - x.mean())
    found = {}
    for supports in (("mean", "standardised"), ("mean", "standardised", "ratio")):
        settings = Settings(supports=supports, solver="lowrank", kernels=WIDTHS)
        found[len(supports)] = fit_ckme_family(cases, y - x.mean(), settings, n_quantiles=20)
    (few, of_few), (all_, of_all) = found[2], found[3]
    assert all_[2].loss[0] > 1.1 * min(fit.loss[0] for fit in few)
    assert np.isfinite(of_all[:, 0, 2]).all()
    assert np.isfinite(all_[2].ridge[0])
    np.testing.assert_array_equal(of_all[:, :, :2], of_few)
    for one, other in zip(few, all_[:2], strict=True):
        for part, expected in zip(other, one, strict=True):
            np.testing.assert_array_equal(part, expected)


def valley(lowest_tried, lowest_compared):
    """Losses that are smallest at one ridge for some cases, at another for all."""

    def losses(self, solver, exponent, supports, folds, slack, tried=None):
        lowest = lowest_tried if folds == TO_TRY else lowest_compared
        return np.array([1 + 0.1 * (exponent - lowest) ** 2]), None

    return losses


@pytest.mark.parametrize("tried", [-3.0, -1.0, 0.0])
@pytest.mark.parametrize("compared", [-0.5, -1.75, -2.9])
def test_the_ridge_that_suits_all_cases_is_found_from_one_that_suits_some(
    rng, monkeypatch, tried, compared
):
    n = TRIED + 100
    x, y = make_cases(rng, 1, n, missing=False)
    monkeypatch.setattr(Judge, "losses", valley(tried, compared))
    settings = Settings(solver="lowrank", kernels=WIDTHS)
    found = fit_ckme(Forecasts(x), y, settings)
    assert np.log10(found.ridge[0]) == pytest.approx(compared)
    assert found.status[0] == 0


@pytest.mark.parametrize("supports", [SUPPORTS[:1], SUPPORTS], ids=len)
@pytest.mark.parametrize(
    "given", [{"blocks": 4}, {"blocks": 0, "groups": np.arange(TRIED + 100) // 60}]
)
def test_a_comparison_that_uses_the_tries_chooses_as_one_that_repeats_them(
    rng, monkeypatch, supports, given
):
    x, y = make_cases(rng, 1, TRIED + 100)
    settings = Settings(solver="lowrank", kernels=WIDTHS, supports=supports)

    def fit(forecast):
        counted.clear()
        monkeypatch.setattr(Judge, "record", forecast)
        return fit_ckme(Forecasts(x), y, settings, **given)

    def count(self, solver, exponent, supports, folds, slack, tried=None):
        counted.append(tried is not None)
        return record(self, solver, exponent, supports, folds, slack, tried)

    def repeat(self, solver, exponent, supports, folds, slack, tried=None):
        return record(self, solver, exponent, supports, folds, slack)

    record, counted = Judge.record, []
    repeated, found = fit(repeat), fit(count)
    assert any(counted) == (given["blocks"] > 0)  # ten groups are joined to try ridges
    assert found.loss[0] == pytest.approx(repeated.loss[0], rel=1e-12)
    assert found.ridge[0] == pytest.approx(repeated.ridge[0], rel=1e-9)
    assert found.support[0] == repeated.support[0]
    assert found.bandwidth[0] == repeated.bandwidth[0]
