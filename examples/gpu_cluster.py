"""Recalibrate on the GPUs of this machine, with one Dask worker for each GPU.

    python examples/gpu_cluster.py

The script needs the extra ``gpu`` and a CUDA device. If one is missing, it prints which.
"""

import sys

import xarray as xr

import xrecal


def what_is_missing() -> str | None:
    """Return the reason why this script cannot run here, or None if it can."""
    try:
        import cupy
        import dask_cuda  # noqa: F401
        import numba.cuda  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed: pip install 'xrecal[gpu]'"
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA reports {error}"
    return None if n_devices else "there is no CUDA device"


def to_device(array: xr.DataArray) -> xr.DataArray:
    """Return a lazy array whose chunks are on the device."""
    import cupy

    return array.copy(data=array.data.map_blocks(cupy.asarray))


def main() -> xr.DataArray | None:
    """Return the CRPS of forecasts that GPUs recalibrated, by lead; None without a GPU."""
    missing = what_is_missing()
    if missing is not None:
        print(f"not run: {missing}")
        return None
    from dask_cuda import LocalCUDACluster
    from distributed import Client

    data = xrecal.datasets.lorenz96()
    past, new = data.isel(init=slice(None, 250)), data.isel(init=slice(250, None))
    with LocalCUDACluster() as cluster, Client(cluster):
        hindcast, forecast, seen = (
            to_device(array.chunk({"location": 4}))
            for array in (past.forecast, new.forecast, past.observation)
        )
        model = hindcast.recal.fit(seen).persist()
        issued = forecast.recal.apply(model).compute().as_numpy()
    found = issued.recal.crps(new.observation, dim=["init", "location"])
    host = past.forecast.recal.fit(past.observation)
    expected = host.crps(new.forecast, new.observation, dim=["init", "location"])
    for lead in found.lead.to_numpy():
        one, other = (float(score.sel(lead=lead)) for score in (found, expected))
        print(f"lead {lead:2d} d: CRPS {one:.4f} on the devices, {other:.4f} on the CPU")
    return found


if __name__ == "__main__":
    main()
    sys.exit(0)
