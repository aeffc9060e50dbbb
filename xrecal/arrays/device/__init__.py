"""The CKME for many locations at once, for arrays on a GPU.

:mod:`xrecal.arrays.dispatch` calls these functions for CuPy arrays. The first axis of arrays counts
locations. Functions use only operations that NumPy, CuPy and the array API standard have in common.
Only the distances between ensembles come from a CUDA kernel. All functions compute in float64. They
return the same floating type as the functions for NumPy.

``distance_cuda`` and ``ensembles`` compute distances between ensembles. ``cases`` sorts the cases
of each location, ``choosing`` tries all ridges at once, ``ckme`` fits, and ``weights`` computes
forecasts. Arrays have the same shape at all locations. So a location with fewer usable cases has
unused entries, which get the weight 0.
"""
