import numpy as np
import pytest

from xrecal.arrays.rows import (
    as_rows,
    check_level,
    check_probability,
    digest,
    mean_of_known,
    whole_number,
)


def test_rows():
    (a, b), shape = as_rows(a=np.arange(24).reshape(2, 3, 4), b=np.zeros((2, 3, 4)))
    assert (a.shape, b.shape, shape) == ((6, 4), (6, 4), (2, 3))
    np.testing.assert_array_equal(a[4], [16, 17, 18, 19])
    (a,), shape = as_rows(a=np.empty((0, 3, 0)))
    assert (a.shape, shape) == ((0, 0), (0, 3))


def test_means():
    values = np.array([[1.0, np.nan, 4.0], [2.0, np.nan, np.nan]])
    np.testing.assert_array_equal(mean_of_known(values, ~np.isnan(values)), [2.5, np.nan])


def test_probabilities_may_be_rounded():
    check_probability("p", np.array([-1e-7, np.float32(1) + np.float32(1e-7), np.nan]))
    with pytest.raises(ValueError, match=r"found -0\.001"):
        check_probability("p", np.array([-1e-3, 1.0]))


def test_errors():
    with pytest.raises(ValueError, match=r"need the same shape .*got low \(2,\), high \(3,\)"):
        as_rows(low=np.zeros(2), high=np.zeros(3))
    with pytest.raises(ValueError, match=r"low has no axis of cases; give an array of shape"):
        as_rows(low=1.0)
    with pytest.raises(ValueError, match="rain must lie between 0 and 1, found 30; divide by 100"):
        check_probability("rain", np.array([0.1, 30.0]))
    with pytest.raises(ValueError, match="found -inf"):
        check_probability("rain", np.array([-np.inf]))
    for level in (0.0, 1, 90, np.nan, np.array([0.5])):
        with pytest.raises(ValueError, match=r"level is .*; give a number between 0 and 1"):
            check_level(level)
    for number in (0, 2.5, "many"):
        with pytest.raises(ValueError, match=r"bins is .*; give a whole number from 1$"):
            whole_number("bins", number, 1)
    with pytest.raises(ValueError, match="give a whole number from 1 to 3"):
        whole_number("bins", 4, 1, 3)
    assert whole_number("bins", np.int32(3), 1, 3) == 3


def test_contents_differ_by_values_types_shapes_and_places():
    one = np.arange(4.0)
    contents = [(one,), (one.astype(np.float32),), (one.reshape(2, 2),), (one + 1,), (one, None)]
    contents += [(None, one), ("a", one), (one, "a")]
    assert len({digest(each) for each in contents}) == len(contents)
    assert digest((one[::-1],)) == digest((one[::-1].copy(),))
