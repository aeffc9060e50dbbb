import numpy as np
import pytest

from xrecal.arrays import similarity, squared_energy_distance
from xrecal.arrays.cases import assign_folds
from xrecal.arrays.simplex import PROJECTIONS
from xrecal.arrays.tuning import LOSSES, _held_out_loss, choose_ridge

from .test_simplex import isotonic_projection, sorted_projection

PLAIN = PROJECTIONS["euclidean"], *LOSSES["crps"]
GRID = 10.0 ** np.arange(-6, 0.1, 0.5)


def laplace_loss(weights, support, y, theta):
    """``l(y,y) - 2 sum w l(y_i,y) + w'Lw`` with the dense matrix L."""
    L = np.exp(-np.abs(np.subtract.outer(support, support)) / theta)
    return 1 - 2 * weights @ np.exp(-np.abs(support - y) / theta) + weights @ L @ weights


def crps_loss(weights, support, y):
    """``sum w |y_i - y| - sum w w |y_i - y_j| / 2``."""
    spread = np.abs(np.subtract.outer(support, support))
    return weights @ np.abs(support - y) - weights @ spread @ weights / 2


def held_out_loss(gram, target, fold, slot, gap, ridge, loss, projection):
    """Mean loss over cases, each fold predicted by its own solve; cases in any order."""
    apart = np.abs(np.subtract.outer(target, target))
    theta = np.median(apart[apart > 0]) if (apart > 0).any() else 1.0
    losses = []
    for f in np.unique(fold):
        held = np.flatnonzero(fold == f)
        distance = np.abs(slot[:, np.newaxis] - slot[held]).min(1)
        train = np.flatnonzero((fold != f) & (distance > gap))
        if train.size < 2:
            continue
        penalised = gram[np.ix_(train, train)] + ridge * train.size * np.eye(train.size)
        for case in held:
            beta = np.linalg.solve(penalised, gram[train, case])
            beta += (1 - beta.sum()) / train.size
            if projection == "energy":
                weights = isotonic_projection(beta, target[train])
            else:
                weights = sorted_projection(beta)
            if loss == "laplace":
                losses.append(laplace_loss(weights, target[train], target[case], theta))
            else:
                losses.append(crps_loss(weights, target[train], target[case]))
    return np.mean(losses) if losses else np.inf


def make_problem(rng, n, grouping, ties=False):
    """Gram matrix, ascending targets, folds and slots; the forecast knows much of the target."""
    time = np.sort(rng.choice(n + 7, n, replace=False))
    centre = 2 * np.sin(2 * np.pi * time / 23)
    target = centre + 0.5 * rng.normal(size=n)
    if ties:
        target = np.round(target)
    order = np.argsort(target)
    ensembles = (centre[:, np.newaxis] + rng.normal(size=(n, 6)))[order]
    slot, target = time[order], target[order]
    groups = {
        "block": slot,
        "year": 2000 + slot // 9,
        "random": rng.permutation(n),
    }[grouping]
    fold = assign_folds(groups, np.ones((1, n), bool), 0 if grouping == "year" else 5)[0]
    d = squared_energy_distance(ensembles)
    return similarity(d, np.median(d[d > 0])), target, fold, slot


# loss --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["crps", "laplace"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
@pytest.mark.parametrize("grouping", ["block", "year", "random"])
@pytest.mark.parametrize("gap", [0, 3])
def test_ridge_is_the_brute_force_minimum(rng, loss, projection, grouping, gap):
    n = 90 if gap and grouping == "random" else 36  # a gap around random cases leaves few
    gram, target, fold, slot = make_problem(rng, n, grouping)
    between, loss_at = LOSSES[loss]
    project = PROJECTIONS[projection]
    eigen = np.linalg.eigh(gram)

    def expected(ridge):
        return held_out_loss(gram, target, fold, slot, gap, ridge, loss, projection)

    on_grid = np.array([expected(ridge) for ridge in GRID])
    found = [
        _held_out_loss(*eigen, target, between(target), fold, slot, gap, ridge, project, loss_at)
        for ridge in GRID
    ]
    np.testing.assert_allclose(found, on_grid, rtol=1e-6)

    ridge, on_edge = choose_ridge(gram, target, fold, slot, gap, project, between, loss_at)
    best = on_grid.argmin()
    assert on_edge == (best in (0, GRID.size - 1))
    assert expected(ridge) <= on_grid.min() * (1 + 1e-9)
    if on_edge:
        assert ridge == pytest.approx(GRID[best])
    else:
        assert GRID[best - 1] < ridge < GRID[best + 1]


@pytest.mark.parametrize("loss", ["crps", "laplace"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_loss_with_tied_targets(rng, loss, projection):
    gram, target, fold, slot = make_problem(rng, 40, "block", ties=True)
    between, loss_at = LOSSES[loss]
    eigen, steps = np.linalg.eigh(gram), between(target)
    for ridge in (1e-4, 1e-2, 1.0):
        found = _held_out_loss(
            *eigen, target, steps, fold, slot, 1, ridge, PROJECTIONS[projection], loss_at
        )
        expected = held_out_loss(gram, target, fold, slot, 1, ridge, loss, projection)
        assert found == pytest.approx(expected, rel=1e-8)


def test_golden_section_comes_close_to_the_minimum(rng):
    gram, target, fold, slot = make_problem(rng, 60, "block")
    ridge, on_edge = choose_ridge(gram, target, fold, slot, 0, *PLAIN)
    assert not on_edge
    fine = 10.0 ** np.arange(np.log10(ridge) - 1, np.log10(ridge) + 1, 0.02)
    losses = [
        held_out_loss(gram, target, fold, slot, 0, r, "crps", "euclidean") for r in [*fine, ridge]
    ]
    assert losses[-1] <= 1.001 * min(losses)


def test_ridge_on_the_edge_is_told(rng):
    n = 40
    target, slot = np.sort(rng.normal(size=n)), rng.permutation(n)
    fold = assign_folds(slot, np.ones((1, n), bool), 5)[0]
    # No two forecasts alike: climatology for every ridge, and of equal ones the largest.
    assert choose_ridge(np.eye(n), target, fold, slot, 0, *PLAIN) == (1.0, True)
    fold = slot % 5  # random folds, and a forecast that knows the target
    exact = np.exp(-2 * np.abs(np.subtract.outer(target, target)))
    ridge, on_edge = choose_ridge(
        exact, target, fold, slot, 0, PROJECTIONS["energy"], *LOSSES["crps"]
    )
    assert ridge == pytest.approx(1e-6)
    assert on_edge


def test_nothing_to_train_on_means_the_largest_ridge(rng):
    gram, target, fold, slot = make_problem(rng, 20, "block")
    assert choose_ridge(gram, target, fold, slot, 100, *PLAIN) == (1.0, True)


def test_inputs_stay_unchanged(rng):
    given_arrays = make_problem(rng, 25, "block")
    before = [array.copy() for array in given_arrays]
    choose_ridge(*given_arrays, 2, PROJECTIONS["energy"], *LOSSES["laplace"])
    for array, copy in zip(given_arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
