"""The embedding for many locations at once, written for any array library.

CuPy arrays are computed here; see :mod:`xrecal.arrays.dispatch`. The first axis counts locations.
Functions use only the part that NumPy, CuPy and the array API standard share, with a few additions
in :mod:`.namespace`. The comparison of ensembles is a CUDA kernel. All functions compute in float64
and return the same floating type as the functions for NumPy.

``distance`` and ``ensembles`` compare ensembles, ``cases`` puts the cases of a location in order,
``choosing`` tries the whole grid of ridges at once, ``ckme`` fits and ``weights`` predicts. The
location with the most cases determines the shapes; unused entries of other locations have no
weight.
"""
