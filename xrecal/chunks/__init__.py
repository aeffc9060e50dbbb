"""Work on chunks: the one wrapper of Dask, BLAS threads, devices, warnings that are told once."""
