"""What every array function over locations promises, checked on any of them."""

import numpy as np


def flat(result):
    """Arrays of a result, whether it is one or a tuple of them, nested or not."""
    if isinstance(result, tuple):
        return [array for part in result for array in flat(part)]
    return [np.asarray(result)]


def check_locations(function, *arrays, monkeypatch):
    """Leading axes equal one by one, at any size of a block; inputs are read only."""
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    found = flat(function(*arrays))
    monkeypatch.setattr("xrecal.arrays.rows.WORKSPACE", 1)
    in_blocks = flat(function(*arrays))
    for place in np.ndindex(arrays[0].shape[:2]):
        single = flat(function(*(array[place] for array in arrays)))
        for part, block, one in zip(found, in_blocks, single, strict=True):
            np.testing.assert_array_equal(part[place], one)
            np.testing.assert_array_equal(block[place], one)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    empty = flat(function(*(array[:0] for array in arrays)))
    for part, none in zip(found, empty, strict=True):
        assert none.shape == (0, *part.shape[1:])
        assert none.dtype == part.dtype in (np.float64, np.int64)
    reversed_axes = [np.asfortranarray(array) for array in arrays]
    for part, other in zip(found, flat(function(*reversed_axes)), strict=True):
        np.testing.assert_array_equal(part, other)
