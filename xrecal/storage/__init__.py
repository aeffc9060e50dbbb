"""Models on disk: one Dataset of names and numbers, in netCDF or Zarr, and back."""
