"""Real hindcasts with observations, downloaded once from the public repositories that keep them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from xrecal.inputs.libraries import require_library

_CACHE_VARIABLE = "XRECAL_TUTORIAL_DATA"
_CLIMPRED_DATA = "https://raw.githubusercontent.com/pangeo-data/climpred-data"
_NO_OBSERVATION = 999.0  # and 1e36: marks of missing values at the source
_DAY = np.timedelta64(1, "D")


class RemoteFile(NamedTuple):
    """A file of a public repository at one commit, and the checksum published beside it."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        """Last part of the address, under which the file is kept."""
        return self.url.rsplit("/", 1)[-1]


class Tutorial(NamedTuple):
    """Source of a data set, and the reader of its two files."""

    forecast: RemoteFile
    observation: RemoteFile
    read: Callable[[xr.Dataset, xr.Dataset], xr.Dataset]
    attrs: dict[str, str]


def open_tutorial(name: str) -> xr.Dataset:
    """Real hindcast with its observations, downloaded in the first call.

    Parameters
    ----------
    name : {"mjo_rmm1"}
        Name of the data set; see Notes.

    Returns
    -------
    Dataset
        ``forecast(init, lead, member)`` and ``observation(init, lead)`` with units, in memory;
        coordinate ``valid_time(init, lead)``; source, licence and references in the attributes.

    Raises
    ------
    ValueError
        If there is no such data set, or a downloaded file has another checksum than its
        repository publishes, or another layout than the one described here.
    ImportError
        If pooch or netCDF4 is not installed.
    ConnectionError
        If a file can be neither found nor downloaded; the message names the folder to put it in.

    Notes
    -----
    ``"mjo_rmm1"``: first component of the real-time multivariate index (RMM1) of the Madden-Julian
    oscillation, dimensionless, about -5 to 4. Forecasts of GMAO GEOS-S2S V2p1 in SubX [1]_, 510
    starts of 1999 to 2015, 45 days, 4 members, float32; the observed index [2]_ retains
    interannual variability. Changes from the files: lead times, which are the middles of days (0.5,
    1.5, ... days), become the whole days 0, 1, ... before them; each forecast has the observed
    index of its day ``init + lead``; if a date occurs twice in the observations, the first counts;
    a day without an observation, or with a missing one (999 or more), is NaN. Repository
    climpred-data, MIT licence [3]_.

    Files come through pooch and are kept in ``pooch.os_cache("xrecal")``, or in the directory that
    the environment variable ``XRECAL_TUTORIAL_DATA`` names. They are checked by their MD5 sums in
    every call and downloaded again only if these differ.

    References
    ----------
    .. [1] Pegion, K., et al. (2019): The Subseasonal Experiment (SubX): a multimodel subseasonal
       prediction experiment. Bulletin of the American Meteorological Society 100, 2043-2060.
       doi:10.1175/BAMS-D-18-0270.1; data doi:10.7916/D8PG249H
    .. [2] Wheeler, M. C., Hendon, H. H. (2004): An all-season real-time multivariate MJO index:
       development of an index for monitoring and prediction. Monthly Weather Review 132,
       1917-1932.
    .. [3] https://github.com/pangeo-data/climpred-data

    Examples
    --------
    >>> data = xrecal.datasets.open_tutorial("mjo_rmm1")  # doctest: +SKIP
    >>> data.forecast.dims, data.observation.dims  # doctest: +SKIP
    (('init', 'lead', 'member'), ('init', 'lead'))
    """
    if name not in TUTORIALS:
        names = ", ".join(repr(one) for one in TUTORIALS)
        raise ValueError(f"there is no tutorial data set {name!r}; give one of: {names}")
    return load(TUTORIALS[name])


def load(tutorial: Tutorial) -> xr.Dataset:
    """Fetch both files of a data set, unless they are there, and read them."""
    require_library("netcdf")
    files = tutorial.forecast, tutorial.observation
    forecast, observation = (_read_file(path) for path in _fetch(files))
    dataset = tutorial.read(forecast, observation)
    source = ", ".join(file.url for file in files)
    return dataset.assign_attrs({"Conventions": "CF-1.8", **tutorial.attrs, "source": source})


def _fetch(files: tuple[RemoteFile, ...]) -> list[Path]:
    try:
        import pooch
        from requests.exceptions import RequestException
    except ImportError as error:
        raise ImportError(
            "tutorial data sets need pooch, which is not installed; use "
            "pip install 'xrecal[tutorial]'"
        ) from error
    store = pooch.create(
        path=pooch.os_cache("xrecal"),
        base_url="",
        env=_CACHE_VARIABLE,
        registry={file.name: f"md5:{file.md5}" for file in files},
        urls={file.name: file.url for file in files},
    )
    paths = []
    for file in files:
        try:
            paths.append(Path(store.fetch(file.name)))
        except RequestException as error:
            raise ConnectionError(
                f"{file.url} could not be downloaded ({error}); without internet, put that file, "
                f"of MD5 sum {file.md5}, at {store.abspath / file.name}, or set "
                f"{_CACHE_VARIABLE} to the directory where it is"
            ) from error
    return paths


def _read_file(path: Path) -> xr.Dataset:
    # Leads have the unit "days": decoded, they would be durations.
    with xr.open_dataset(path, decode_timedelta=False) as dataset:
        return dataset.load().assign_attrs(file=path.name)


def _read_rmm1(hindcast: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """RMM1(S, M, L) of SubX and rmm1(time), joined by valid time."""
    forecast = _variable(hindcast, "RMM1", ("S", "M", "L")).transpose("S", "L", "M")
    index = _variable(observed, "rmm1", ("time",)).drop_duplicates("time")
    lead = np.floor(forecast["L"].values).astype(np.int64)
    if not np.array_equal(forecast["L"].values, lead + 0.5):
        raise ValueError(
            f"{hindcast.attrs['file']}: L holds {forecast['L'].values.tolist()} instead of the "
            "middles of days 0.5, 1.5, ...; this release of xrecal cannot read it"
        )
    index = index.where(np.abs(index) < _NO_OBSERVATION)
    init = forecast["S"].values.astype("datetime64[ns]")
    valid = xr.Variable(("init", "lead"), init[:, np.newaxis] + lead * _DAY)
    valid.attrs["standard_name"] = "time"
    matched = index.reindex(time=np.unique(valid.values)).sel(time=valid)
    return xr.Dataset(
        {
            "forecast": (
                ("init", "lead", "member"),
                forecast.values,
                {"units": "1", "long_name": "forecast of the MJO index RMM1"},
            ),
            "observation": (
                ("init", "lead"),
                matched.values,
                {"units": "1", "long_name": "observed MJO index RMM1 of the valid time"},
            ),
        },
        coords={
            "init": ("init", init, {"standard_name": "forecast_reference_time"}),
            "lead": ("lead", lead, {"units": "days", "standard_name": "forecast_period"}),
            "member": (
                "member",
                forecast["M"].values.astype(np.int64),
                {"units": "1", "standard_name": "realization"},
            ),
            "valid_time": valid,
        },
    )


def _variable(dataset: xr.Dataset, name: str, dims: tuple[str, ...]) -> xr.DataArray:
    """A variable over exactly these dimensions, each with coordinates."""
    wanted = f"{name}({', '.join(dims)})"
    if name in dataset and set(dataset[name].dims) == set(dims) == set(dataset[name].indexes):
        return dataset[name]
    present = [f"{key}({', '.join(map(str, one.dims))})" for key, one in dataset.variables.items()]
    raise ValueError(
        f"{dataset.attrs['file']} holds {', '.join(present)} instead of {wanted} with its "
        "coordinates; this release of xrecal cannot read it"
    )


_RMM1_ATTRS = {
    "title": "Hindcasts of the MJO index RMM1 by GMAO GEOS-S2S V2p1 (SubX) with observations",
    "license": "MIT (repository climpred-data, copyright 2019 Riley Brady)",
    "references": "Pegion et al. (2019), doi:10.1175/BAMS-D-18-0270.1; SubX data, "
    "doi:10.7916/D8PG249H; Wheeler and Hendon (2004), Monthly Weather Review 132, 1917-1932",
    "comment": "Leads are the whole days before the middles of days in the file; observations "
    "are those of valid_time = init + lead",
}

TUTORIALS = {
    "mjo_rmm1": Tutorial(
        forecast=RemoteFile(
            f"{_CLIMPRED_DATA}/14ee1046dc9ec32753db85ad15ce8a2e428238d9/GMAO-GEOS-V2p1.RMM1.nc",
            "86db3e8658537ce7d24657779bb38974",
        ),
        # Another commit, which has the file under this name.
        observation=RemoteFile(
            f"{_CLIMPRED_DATA}/32f481ea204216b284395f5229c485641cb9493d/rmmint1979-Present.nc",
            "41053e6d9158d7200fb14bc1acf329a9",
        ),
        read=_read_rmm1,
        attrs=_RMM1_ATTRS,
    ),
}
