"""Work on chunks: the wrapper of Dask, BLAS threads, devices, warnings once per call."""
