"""All folds in one call against one call for each; values are compared in test_search.py."""

import numpy as np
import pytest

from xrecal.arrays.ckme.centre import SUPPORTS, Sample, rank_errors
from xrecal.arrays.ckme.folds import trained_on_few
from xrecal.arrays.ckme.held_out_losses import LOSSES, RECORDERS, Verified
from xrecal.arrays.ckme.lowrank import FINE
from xrecal.arrays.ckme.simplex import PROJECTIONS
from xrecal.arrays.ckme.solvers import Exact

from .test_lowrank import location
from .test_solvers import folds

CODES = np.arange(len(SUPPORTS))


def recorded_by(record, projection):
    """Losses (S, n) of folds that a function records, with their location."""
    ours = location(np.random.default_rng(0), low_rank=False, weights=True)
    some = folds(forward=True)
    features, bounds = np.ascontiguousarray(ours.features), (-np.inf, np.inf)
    sample = Sample(ours.mean, ours.variance, features, ours.target, *bounds)
    targets = rank_errors(some, CODES, sample)
    out = np.full((CODES.size, ours.target.size, 1), np.nan)
    verified = Verified(ours.target, ours.root, *bounds, np.zeros((1, 1)), CODES)
    code = RECORDERS[projection, LOSSES["crps"]]
    record(code, Exact(ours, ours.median, 1.0), some, (targets, verified, out))
    return out[..., 0]


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_all_folds_at_once(projection):
    def at_once(code, solver, some, known):
        code.folds(solver.eigen, 0.01, some, *known)
        left.extend(trained_on_few(some))
        for f in left:
            code.fold(solver.signed(some, f, 0.01, FINE), some, f, *known)

    def one_by_one(code, solver, some, known):
        for f in range(some.n_out.size):
            code.fold(solver.signed(some, f, 0.01, FINE), some, f, *known)

    left = []
    found = recorded_by(at_once, projection)
    np.testing.assert_array_equal(found, recorded_by(one_by_one, projection))
    assert 0 < len(left) < folds(forward=True).n_out.size
    assert np.isfinite(found).any(axis=1).all()
