import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import Forecasts, crps, fit_ckme_family, weighted_quantile
from xrecal.arrays.ckme import search
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.folds import (
    TRAINED_ON,
    arrange_folds,
    assign_folds,
    by_rank,
    count_near,
    gap_axis,
    merge,
    not_held_out,
    same_training_cases,
    thin_out,
)
from xrecal.arrays.ckme.search import LATER_PARTS

from .reference import SUPPORTS, Choice, blocks_in_time, train_on
from .test_ckme import as_embedding, make_cases

N_QUANTILES = 7


masks = st.integers(1, 40).flatmap(lambda n: arrays(bool, (3, n)))


@given(st.data())
def test_years_are_folds(data):
    usable = data.draw(masks)
    n = usable.shape[1]
    years = data.draw(arrays(np.int64, n, elements=st.integers(1990, 1996)))
    fold = assign_folds(years, usable, 0)
    for of_location, counted in zip(fold, usable, strict=True):
        sizes = np.unique(years[counted], return_counts=True)[1]
        if sizes.size and 2 * sizes.max() <= sizes.sum():
            same_fold = np.equal.outer(of_location[counted], of_location[counted])
            same_year = np.equal.outer(years[counted], years[counted])
            np.testing.assert_array_equal(same_fold, same_year)


@given(masks)
def test_one_year_falls_back_to_blocks_in_time(usable):
    n = usable.shape[1]
    expected = assign_folds(np.arange(n), usable, 5)
    np.testing.assert_array_equal(assign_folds(np.full(n, 2001), usable, 0), expected)
    step = np.arange(n) // 7
    in_steps = assign_folds(np.full(n, 2001), usable, 0, step)
    np.testing.assert_array_equal(in_steps, assign_folds(step, usable, 5))


@given(masks, st.integers(2, 6), st.integers(1, 9), st.randoms(use_true_random=False))
def test_blocks_never_cut_through_a_group(usable, blocks, size, random):
    n = usable.shape[1]
    step = np.arange(n) // size
    names = random.sample(range(n), n)
    for groups in (step, np.array(names)[step]):
        fold = assign_folds(groups, usable, blocks)
        np.testing.assert_array_equal(fold >= 0, usable)
        assert fold.max() < blocks
        for of_location, counted in zip(fold, usable, strict=True):
            used = of_location[counted]
            for group in np.unique(groups[counted]):
                assert np.unique(used[groups[counted] == group]).size == 1
            in_order = used[np.argsort(groups[counted], kind="stable")]
            assert (np.diff(in_order) >= 0).all()
            sizes = np.bincount(used, minlength=blocks)
            if used.size:  # no block is longer than its share and one group
                assert sizes.max() <= used.size / blocks + size
            if size == 1:
                assert np.ptp(sizes) <= 1


def test_a_location_with_one_year_left_gets_blocks_the_others_years():
    years = np.repeat([2001, 2002], 5)
    usable = np.ones((2, 10), bool)
    usable[1, 5:] = False
    fold = assign_folds(years, usable, 0)
    np.testing.assert_array_equal(fold[0], np.repeat([0, 1], 5))
    np.testing.assert_array_equal(fold[1], [0, 1, 2, 3, 4, -1, -1, -1, -1, -1])


@st.composite
def folded_cases(draw):
    """Folds and steps in time of cases; those of one step are in the same fold."""
    n = draw(st.integers(2, 30))
    step = np.sort(draw(st.lists(st.integers(0, 40), min_size=n, max_size=n)))
    number = np.unique(step, return_inverse=True)[1]
    if draw(st.booleans()):
        fold = number * draw(st.integers(2, 6)) // (number[-1] + 1)
    else:
        fold = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))[number]
    return fold.astype(np.int64), step.astype(np.int64)


@given(folded_cases(), st.integers(0, 3), st.booleans(), st.integers(1, 6))
def test_merged_folds_hold_out_neighbours_together(cases, gap, forward, most):
    folds = arrange_folds(*cases, gap, forward)
    found, n = merge(folds, most), folds.cases.shape[1]
    parts = np.array_split(np.arange(folds.n_out.size), most)
    sets = [
        [
            (set(one.cases[f, :held]), set(one.cases[f, :out]))
            for f, (held, out) in enumerate(zip(one.n_held, one.n_out, strict=True))
        ]
        for one in (folds, found)
    ]
    together = [
        tuple(set().union(*(sets[0][f][kind] for f in part)) for kind in range(2)) for part in parts
    ]
    trained = [n - len(out) for _, out in together]
    kept = folds.n_out.size <= most or any(
        size < max(TRAINED_ON * (n - folds.n_out[part]).max(), 2)
        for size, part in zip(trained, parts, strict=True)
    )
    assert sets[1] == (sets[0] if kept else together)
    np.testing.assert_array_equal(
        np.sort(found.cases, axis=1), np.tile(np.arange(n), (len(sets[1]), 1))
    )


@given(folded_cases(), st.integers(0, 3), st.booleans(), st.integers(0, 20), st.integers(0, 20))
def test_untried_cases_are_those_that_only_the_larger_set_holds_out(
    cases, gap, forward, size, larger
):
    folds = arrange_folds(*cases, gap, forward)
    some, more = thin_out(folds, size), thin_out(folds, max(size, larger))
    found = not_held_out(more, some)
    assert same_training_cases(found, folds)
    np.testing.assert_array_equal(found.n_held, more.n_held - some.n_held)
    for f, (n_held, n_out) in enumerate(zip(found.n_held, found.n_out, strict=True)):
        held = set(found.cases[f, :n_held])
        assert held == set(more.cases[f, : more.n_held[f]]) - set(some.cases[f, : some.n_held[f]])
        assert set(found.cases[f, :n_out]) == set(folds.cases[f, :n_out])


@given(folded_cases(), st.booleans(), st.randoms())
def test_ranks_reorder_the_training_cases_alone(cases, forward, random):
    folds = arrange_folds(*cases, 0, forward)
    n = folds.cases.shape[1]
    sizes = (n - folds.n_out).tolist()
    ranked = [[*random.sample(range(k), k), *range(k, n)] for k in sizes]
    found = by_rank(folds, np.array(ranked, np.int64).reshape(-1, n))
    for f, (n_out, k) in enumerate(zip(folds.n_out, sizes, strict=True)):
        np.testing.assert_array_equal(found.cases[f, :n_out], folds.cases[f, :n_out])
        expected = [folds.cases[f, n_out + rank] for rank in ranked[f][:k]]
        assert found.cases[f, n_out:].tolist() == expected


def test_years_are_merged_and_later_parts_are_not():
    fold, step = np.repeat(np.arange(10), 30), np.arange(300)
    years = merge(arrange_folds(fold, step, 2, False), 5)
    assert years.n_held.tolist() == [60] * 5
    later = arrange_folds(fold, step, 2, True)
    assert merge(later, 5) is later


@given(folded_cases(), st.integers(0, 6), st.booleans())
def test_folds_equal_the_reference(cases, gap, forward):
    fold, step = cases
    found = arrange_folds(fold, step, gap, forward)
    row = 0
    for f in range(fold.max() + 1):
        held = np.flatnonzero(fold == f)
        train = train_on(fold, step, held, gap, forward) if held.size else held
        if train.size < 2:
            continue
        n_held, n_out = found.n_held[row], found.n_out[row]
        np.testing.assert_array_equal(found.cases[row, :n_held], held)
        np.testing.assert_array_equal(found.cases[row, n_out:], train)
        np.testing.assert_array_equal(np.sort(found.cases[row]), np.arange(fold.size))
        row += 1
    assert row == len(found.cases)


@given(folded_cases(), st.integers(0, 6), st.booleans())
def test_a_gap_in_time_counts_days(cases, gap, forward):
    fold, step = cases
    days = 100.25 + 2.0 * step  # every other day
    position, length = gap_axis(np.timedelta64(24 * gap, "h"), step, days)
    found = arrange_folds(fold, position, length, forward)
    expected = arrange_folds(fold, *gap_axis(gap // 2, step, None), forward)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_gap_in_time_needs_dates_in_order():
    with pytest.raises(ValueError, match="gap is a length of time, but the dates of the cases are"):
        gap_axis(np.timedelta64(5, "D"), np.arange(3), None)
    with pytest.raises(ValueError, match="days must be finite and not descend"):
        gap_axis(np.timedelta64(5, "D"), np.arange(3), np.array([0.0, 2.0, 1.0]))


@given(
    arrays(np.float64, st.integers(2, 20), elements=st.integers(0, 60)),
    st.data(),
    st.integers(0, 10),
)
def test_cases_near_others_are_counted(days, data, within):
    tested = np.array(data.draw(st.lists(st.booleans(), min_size=days.size, max_size=days.size)))
    a, b = np.flatnonzero(tested), np.flatnonzero(~tested)
    expected = sum(any(abs(days[i] - days[j]) <= within for j in b) for i in a)
    assert count_near(days, a, b, within) == expected


# held-out forecasts, through their quantiles -----------------------------------------------------


def family(x, y, settings, squared, **arguments):
    """Quantiles (L, 2, S, n, q), with distances known already."""
    return fit_ckme_family(
        Forecasts(x), y, settings, n_quantiles=N_QUANTILES, squared=squared, **arguments
    )


@pytest.mark.parametrize("gap", [0, 2])
def test_held_out_quantiles_equal_the_reference(rng, gap, monkeypatch):
    monkeypatch.setattr(search, "usable_supports", lambda supports, _: np.arange(supports.size))
    x, y = make_cases(rng, 1, 40)
    embedding, slot = as_embedding(x, y)
    squared = np.full((1, 40, 40), np.nan)
    squared[np.ix_([0], slot, slot)] = embedding.d
    settings = Settings(supports=SUPPORTS, gap=gap)
    fitted, quantiles = family(x, y, settings, squared)
    assert quantiles.shape == (1, 2, len(SUPPORTS), 40, N_QUANTILES)
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    n = slot.size
    for s, support in enumerate(SUPPORTS):
        assert fitted[s].support[0] == s
        choice = Choice(fitted[s].ridge[0], support)
        assert np.log10(choice.ridge) * 2 == pytest.approx(round(np.log10(choice.ridge) * 2))
        whole = blocks_in_time(n), False
        later = blocks_in_time(n, LATER_PARTS), True
        for p, (fold, forward) in enumerate((whole, later)):
            expected, scores = np.full((40, N_QUANTILES), np.nan), []
            for i, points, weights in embedding.held_out(fold, slot, gap, choice, forward):
                expected[slot[i]] = weighted_quantile(points, levels, weights)
                scores.append(crps(embedding.y[i], points, weights))
            found = quantiles[0, p, s]
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
            if p == 0:
                assert fitted[s].loss[0] == pytest.approx(np.mean(scores), rel=1e-7)


@pytest.mark.parametrize("support", ["observations", "regression", "standardised"])
def test_what_verified_never_changes_its_own_forecast(rng, support):
    x, y = make_cases(rng, 1, 40, missing=False)
    squared = as_embedding(x, y)[0].d[np.newaxis]
    # Nothing is chosen from the cases: what is left is a leak.
    settings = Settings(supports=(support, "mean"), ridge=0.01, bounds=None)
    _, before = family(x, y, settings, squared)
    fold, later = blocks_in_time(40), blocks_in_time(40, LATER_PARTS)
    for f in (0, 3):
        other = y.copy()
        other[0, fold == f] += rng.normal(10, 50, (fold == f).sum())
        _, after = family(x, other, settings, squared)
        np.testing.assert_array_equal(after[0, 0, 0, fold == f], before[0, 0, 0, fold == f])
        assert (after[0, 0, 0, fold != f] != before[0, 0, 0, fold != f]).any()
    for part in (2, 5):
        future = later >= part
        other = y.copy()
        other[0, future] = rng.normal(10, 50, future.sum())
        _, after = family(x, other, settings, squared)
        known = later <= part
        np.testing.assert_array_equal(after[0, 1, 0, known], before[0, 1, 0, known])
        assert np.isnan(after[0, 1, 0, later == 0]).all()


def test_the_family_chooses_as_each_support_would_alone(rng):
    x, y = make_cases(rng, 2, 40, missing=False)
    squared = np.stack([as_embedding(x, y, cell)[0].d for cell in range(2)])
    fitted, quantiles = family(x, y, Settings(supports=SUPPORTS), squared)
    for s in (0, 2):
        (alone, *_), found = family(x, y, Settings(supports=(SUPPORTS[s], "mean")), squared)
        for name, value in alone._asdict().items():
            if name != "status":  # tells of the best support
                np.testing.assert_array_equal(getattr(fitted[s], name), value, err_msg=name)
        np.testing.assert_array_equal(found[:, :, 0], quantiles[:, :, s])


def test_pooled_cases_of_one_step_are_held_out_together(rng):
    x, y = make_cases(rng, 1, 40, missing=False)
    squared = as_embedding(x, y)[0].d[np.newaxis]
    step = np.arange(40) // 4  # four places a date
    settings = Settings(supports=("observations", "mean"), ridge=0.01, bounds=None)
    _, before = family(x, y, settings, squared, step=step)
    for date in (0, 5):
        other = y.copy()
        other[0, step == date] += 100
        _, after = family(x, other, settings, squared, step=step)
        np.testing.assert_array_equal(after[0, 0, 0, step == date], before[0, 0, 0, step == date])
