"""Array libraries that the batched functions must run on alike."""

import numpy as np
import pytest


class Library:
    """To an array library and back."""

    def __init__(self, module):
        self.module = module

    def __call__(self, array):
        """An array of the library."""
        return self.module.asarray(array)

    def host(self, array):
        """The array of NumPy."""
        if self.module is not np:
            assert not isinstance(array, np.ndarray)
        return np.asarray(array)

    def tuple(self, parts):
        """A named tuple whose arrays are of the library."""
        return parts._make(None if part is None else self(part) for part in parts)


@pytest.fixture(params=["numpy", "array_api_strict"])
def library(request):
    """NumPy, and a library that has nothing but what the array API standard asks for."""
    return Library(pytest.importorskip(request.param))
