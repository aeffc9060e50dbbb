"""Laws of every public array function.

A call gives the same numbers for any layout, byte order and precision of its arrays, changes none
of them, treats each place alone, and refuses arrays of different numbers of places.
"""

from itertools import count

import numpy as np
import pytest

from tests.arrays.calls import CALLS, L, N
from xrecal import arrays
from xrecal.arrays.dispatch import HOME


def strided(array):
    """With gaps, and backwards along the last axis."""
    return np.repeat(array[..., ::-1], 2, -1)[..., ::-2]


def unaligned(array):
    """As in a file or message, after a byte of something else."""
    room = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    room[...] = array
    return room


def read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "first axis last": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0) if a.ndim else a,
    "strided": strided,
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim > 1 else a,
    "read only": read_only,
    "unaligned": unaligned,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "single": lambda a: a.astype(np.float32) if a.dtype == np.float64 else a.astype(np.int32)
    if a.dtype == np.int64 else a,
}  # fmt: skip


def each(change, given):
    """Arguments with another layout of each array in them, and of each that is computed."""
    if callable(given):
        given = given()
    if isinstance(given, np.ndarray):
        return change(given)
    if isinstance(given, dict):
        return {name: each(change, part) for name, part in given.items()}
    if isinstance(given, (tuple, list)):
        parts = [each(change, part) for part in given]
        return given._make(parts) if hasattr(given, "_make") else type(given)(parts)
    return given


def plain_arrays(given):
    """Contiguous arrays of the same numbers."""
    wide = {"f": np.float64, "i": np.int64}
    return each(lambda a: np.array(a, wide.get(a.dtype.kind, a.dtype), order="C"), given)


def numbers_of(result):
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in numbers_of(part)]
    return [np.asarray(result)]


def arrays_in(given):
    found = []
    each(found.append, given)
    return found


def located(change):
    """The change for arrays over places only."""
    return lambda array: change(array) if array.ndim and array.shape[0] == L else array


def n_located(given):
    return sum(array.ndim > 0 and array.shape[0] == L for array in arrays_in(given))


def missing_first(array):
    """An array without numbers at the first place."""
    return np.where(np.arange(L).reshape(L, *[1] * (array.ndim - 1)) == 0, np.nan, array)


def made(name, given):
    args, named = given
    return numbers_of(getattr(arrays, name)(*args, **named))


# every function ----------------------------------------------------------------------------------

AS_PRECISE = {
    "ckme_weights", "ckme_weights_of_both", "idr_weights", "in_window", "recalibrated_members",
    "vector_ckme_weights",
}  # fmt: skip
"""Functions whose float32 arguments give float32; all others compute in float64."""


def test_every_function_is_called():
    functions = {name for name in arrays.__all__ if not isinstance(getattr(arrays, name), type)}
    assert set(CALLS) == functions


@pytest.mark.parametrize("name", CALLS)
def test_layouts_change_no_number_and_a_call_changes_no_argument(name):
    for given in map(plain_arrays, CALLS[name]):
        whole = made(name, given)
        for layout, change in LAYOUTS.items():
            changed = each(change, given)
            expected = made(name, plain_arrays(changed)) if layout == "repeated" else whole
            close = 1e-4 if layout == "single" else 1e-9
            before = [array.copy() for array in arrays_in(changed)]
            for one, other in zip(made(name, changed), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=close, atol=close, err_msg=layout)
                assert one.dtype == other.dtype or name in AS_PRECISE, layout
            for array, copy in zip(arrays_in(changed), before, strict=True):
                np.testing.assert_array_equal(array, copy, err_msg=layout)


# functions over places ---------------------------------------------------------------------------

NOT_OVER_PLACES = {"adjusted_p_values", "features", "on_circle"}
"""Functions whose first axis is no axis of places, or does not stay the first one."""
NEED_A_PLACE = {
    "economic_value", "fit_vector_ckme", "half_squared_distance", "roc_curve",
    "weighted_exceedance",
}  # fmt: skip
"""Functions that fail on arrays of no places."""
UNCHECKED = {"climatology_weights", "conformal_margins", "pool_weights", "systematic_draws"}
"""Functions that, as those of CKME, rely on their callers for arrays that fit each other."""
KNOWN_WITHOUT_NUMBERS = {"find_bounds", "fit_vector_ckme", "hash_uniform", "uniform_at"}
"""Functions with a result for a place without numbers."""

OVER_PLACES = [
    name for name in CALLS if name not in NOT_OVER_PLACES and any(map(n_located, CALLS[name]))
]

CHECKED = [
    name for name in OVER_PLACES if name not in UNCHECKED and not HOME[name].startswith("ckme")
]


@pytest.mark.parametrize("name", OVER_PLACES)
def test_places_are_independent(name, monkeypatch):
    """Each place alone, in blocks of any size, in any order, beside missing ones, or none."""
    for given in map(plain_arrays, CALLS[name]):
        if not n_located(given):
            continue
        whole = made(name, given)
        for i in (0, L // 2, L - 1):
            alone = made(name, each(located(lambda array, i=i: array[i : i + 1]), given))
            for one, part in zip(alone, whole, strict=True):
                np.testing.assert_array_equal(one, part[i : i + 1])
        turned = made(name, each(located(lambda array: array[::-1]), given))
        for one, part in zip(turned, whole, strict=True):
            np.testing.assert_array_equal(one[::-1], part)
        gone = made(
            name, each(located(lambda a: missing_first(a) if a.dtype == float else a), given)
        )
        for one, part in zip(gone, whole, strict=True):
            np.testing.assert_array_equal(one[1:], part[1:])
            if one.dtype.kind == "f" and name not in KNOWN_WITHOUT_NUMBERS:
                assert np.isnan(one[0]).all()
        if name not in NEED_A_PLACE:
            none = made(name, each(located(lambda array: array[:0]), given))
            for one, part in zip(none, whole, strict=True):
                assert (one.shape, one.dtype) == ((0, *part.shape[1:]), part.dtype)
        with monkeypatch.context() as patch:
            patch.setattr("xrecal.arrays.rows.WORKSPACE", 1)
            for one, part in zip(made(name, given), whole, strict=True):
                np.testing.assert_array_equal(one, part)


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("axis", [0, 1])
def test_arrays_of_different_numbers_of_places_or_cases_are_refused(name, axis):
    for given in map(plain_arrays, CALLS[name]):
        shapes = [array.shape[: axis + 1] for array in arrays_in(given)]
        alike = [i for i, shape in enumerate(shapes) if shape == (L, N)[: axis + 1]]
        for which in alike if len(alike) > 1 else []:
            number = count()
            shorter = each(
                lambda a, which=which, number=number: (
                    np.delete(a, 0, axis) if next(number) == which else a
                ),
                given,
            )
            with pytest.raises(ValueError, match=rf"\b{(L, N)[axis] - 1}\b"):
                made(name, shorter)


# functions of all cases --------------------------------------------------------------------------

OF_ALL_CASES = [
    "anomaly_correlation", "conformal_levels", "conformal_margins", "corp", "decompose",
    "diebold_mariano", "economic_value", "fit_emos", "fit_index", "generalised_discrimination",
    "interval_coverage", "pit_counts", "quantile_reliability", "rank_counts", "roc_area",
    "roc_curve", "serial_uniform_test", "skce_locations", "skill_score", "spread_skill",
    "standard_error", "uniform_test",
]  # fmt: skip


@pytest.mark.parametrize("name", OF_ALL_CASES)
def test_a_case_that_misses_a_value_is_as_if_never_there(name):
    given = plain_arrays(CALLS[name][0])
    arrays_of_cases = [a.shape[:2] == (L, N) for a in arrays_in(given)]
    less = made(name, each(lambda a: np.delete(a, 3, 1) if a.shape[:2] == (L, N) else a, given))
    for which in np.flatnonzero(arrays_of_cases):
        number = count()

        def with_gap(array, which=which, number=number):
            array = array.copy()
            if next(number) == which and array.dtype == float:
                array[:, 3] = np.nan
            return array

        for one, other in zip(made(name, each(with_gap, given)), less, strict=True):
            if one.shape[:2] == (L, N):
                assert np.isnan(one[:, 3]).all()
                one = np.delete(one, 3, 1)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
