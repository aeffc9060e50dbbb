"""Hindcasts with observations for the tutorials: real data if available, or synthetic twins."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from xrecal.inputs.libraries import require_library

from . import twins

_FOLDER_VARIABLE = "XRECAL_DATA"
_CLIMPRED_DATA = "https://raw.githubusercontent.com/pangeo-data/climpred-data"
_NO_OBSERVATION = 999.0  # the source marks missing values by 999 and 1e36
_DAY = np.timedelta64(1, "D")


class RemoteFile(NamedTuple):
    """A file of a public repository at one commit, with the checksum that the repository gives."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        """Last part of the address; the downloaded file has this name."""
        return self.url.rsplit("/", 1)[-1]


class Download(NamedTuple):
    """The two files of a data set, and the function that reads them."""

    forecast: RemoteFile
    observation: RemoteFile
    read: Callable[[xr.Dataset, xr.Dataset], xr.Dataset]
    attrs: dict[str, str]


class Tutorial(NamedTuple):
    """A data set, the function that makes its twin, and its files."""

    title: str
    file: str
    """Path of the data set in the folder that ``XRECAL_DATA`` names."""
    twin: Callable[[np.random.Generator], xr.Dataset]
    download: Download | None = None
    prefix: str = ""
    """Text at the beginning of the names of the variables in the file."""


def open_tutorial(name: str, *, twin: bool = False) -> xr.Dataset:
    """Open a real hindcast with its observations, or a synthetic twin of it.

    Parameters
    ----------
    name : str
        Name of the data set; see Notes.
    twin : bool
        If True, return the twin even if the real data are available.

    Returns
    -------
    Dataset
        ``forecast`` and ``observation`` with units, in memory. The attribute ``title`` names the
        data; the title of a twin begins with "Synthetic twin".

    Raises
    ------
    ValueError
        If there is no data set of this name, or a downloaded file does not have the checksum that
        its repository publishes, or does not have the expected variables.
    ImportError
        If pooch or netCDF4 is needed, but not installed.
    ConnectionError
        If a file is missing and cannot be downloaded; the message has the path of the file.

    Notes
    -----
    The environment variable ``XRECAL_DATA`` may name a folder with real data. If this folder holds
    the file in brackets below, the function reads this file. Otherwise the function downloads
    ``"mjo_rmm1"``, and makes twins of all other data sets, because nobody publishes these data in a
    form that xrecal can read. A twin has the names, dimensions, sizes and units of the real data,
    and similar errors. Each call makes the same twin.

    - ``"innsbruck_temperature"`` (innsbruck_gefs.nc): night temperatures at an airport in the
      Alps and the GEFS reforecast, ``forecast(time, member)``, degree_Celsius.
    - ``"frankfurt_rain"`` (frankfurt_rain.nc): daily rain at an airport and the ECMWF ensemble,
      ``forecast(time, member)``, mm.
    - ``"mediterranean_temperature"`` (seas5_mediterranean_t2m.nc): monthly temperatures of ERA5
      and SEAS5, ``forecast(init, lead, member, lat, lon)``, K.
    - ``"mjo_rmm1"`` (gmao_mjo_rmm1.nc): first component of the real-time multivariate index (RMM1)
      of the Madden-Julian oscillation, ``forecast(init, lead, member)``, dimensionless, about -5
      to 4.
    - ``"influenza_admissions"`` (flusight_admissions.nc): admissions to hospital by state of the
      USA and the ensemble of the FluSight hub, ``forecast(time, location, lead, quantile)``.
    - ``"german_prices"`` (epex_de.nc): day-ahead prices of electricity and four forecasts,
      ``forecast(time, hour, member)``, EUR/MWh.
    - ``"bicycle_hire"`` (uci/bike_sharing_hour.csv.gz): bicycles hired in an hour, ``cnt(case)``,
      and the calendar and weather of that hour, without a forecast.

    The files of ``"mjo_rmm1"`` hold forecasts of GMAO GEOS-S2S V2p1 in SubX [1]_: 510 starts from
    1999 to 2015, 45 daily leads, 4 members, float32. They also hold the observed index [2]_, which
    contains interannual variability. Lead times in the files are the middles of days (0.5, 1.5, ...
    days); the function rounds them down to 0, 1, ... days. Each forecast gets the observed index of
    its day ``init + lead``. If a date occurs twice in the observations, the first observation
    counts. The result is NaN for a day that the observations lack. It is also NaN if the
    observation has an absolute value of 999 or more, which marks a missing value. The files belong
    to the repository climpred-data, MIT licence [3]_. pooch downloads the files to the folder
    ``tutorial`` of the user's cache, or of ``XRECAL_CACHE_DIR``. Every call checks the MD5 sums of
    the files, and downloads a file again only if its sum differs.

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
    >>> data = xrecal.datasets.open_tutorial("mjo_rmm1", twin=True)
    >>> data.forecast.dims, data.observation.dims
    (('init', 'lead', 'member'), ('init', 'lead'))
    """
    if name not in TUTORIALS:
        names = ", ".join(repr(one) for one in TUTORIALS)
        raise ValueError(f"there is no tutorial data set {name!r}; give one of: {names}")
    tutorial = TUTORIALS[name]
    folder = os.environ.get(_FOLDER_VARIABLE)
    if not twin and folder and (Path(folder) / tutorial.file).exists():
        return _read_own(Path(folder) / tutorial.file, tutorial)
    if not twin and tutorial.download:
        return load(tutorial.download)
    made = tutorial.twin(np.random.default_rng(0))
    return made.assign_attrs(title=f"Synthetic twin of: {tutorial.title}")


def _read_own(path: Path, tutorial: Tutorial) -> xr.Dataset:
    """Read, from the user's file, the variables that the twin has."""
    names = list(tutorial.twin(np.random.default_rng(0)).data_vars)
    if ".csv" in path.suffixes:
        import pandas as pd

        table = pd.read_csv(path).rename_axis("case")[names]
        dataset = xr.Dataset.from_dataframe(table).drop_vars("case")
    else:
        require_library("netcdf")
        dataset = xr.load_dataset(path, decode_timedelta=False)
        dataset = dataset.rename({f"{tutorial.prefix}{name}": name for name in names})[names]
    return dataset.assign_attrs({"title": tutorial.title, **dataset.attrs})


def load(source: Download) -> xr.Dataset:
    """Read both files of a data set; download a file that is missing or has a wrong checksum."""
    require_library("netcdf")
    files = source.forecast, source.observation
    forecast, observation = (_read_file(path) for path in _fetch(files))
    dataset = source.read(forecast, observation)
    addresses = ", ".join(file.url for file in files)
    return dataset.assign_attrs({"Conventions": "CF-1.8", **source.attrs, "source": addresses})


def _fetch(files: Sequence[RemoteFile]) -> list[Path]:
    try:
        import pooch
        from requests.exceptions import RequestException
    except ImportError as error:
        raise ImportError(
            "this data set needs pooch, which is not installed; use "
            "pip install 'xrecal[tutorial]', or open_tutorial(..., twin=True)"
        ) from error
    from xrecal.arrays.compiled_files import folder

    store = pooch.create(
        path=folder().with_name("tutorial"),
        base_url="",
        registry={file.name: f"md5:{file.md5}" for file in files},
        urls={file.name: file.url for file in files},
    )
    paths = []
    for file in files:
        try:
            paths.append(Path(store.fetch(file.name)))
        except RequestException as error:
            raise ConnectionError(
                f"{file.url} could not be downloaded ({error}); without internet, put this file "
                f"(MD5 sum {file.md5}) at {store.abspath / file.name}, or make a synthetic twin "
                "of the data: open_tutorial(..., twin=True)"
            ) from error
    return paths


def _read_file(path: Path) -> xr.Dataset:
    # Leads have the unit "days": decoded, they would be durations.
    with xr.open_dataset(path, decode_timedelta=False) as dataset:
        return dataset.load().assign_attrs(file=path.name)


def _read_rmm1(hindcast: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """Join the forecasts RMM1(S, M, L) of SubX and the observations rmm1(time) by valid time."""
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
    """Return a variable; raise ValueError unless it has these dimensions, each with labels."""
    wanted = f"{name}({', '.join(dims)})"
    if name in dataset and set(dataset[name].dims) == set(dims) == set(dataset[name].indexes):
        return dataset[name]
    present = [f"{key}({', '.join(map(str, one.dims))})" for key, one in dataset.variables.items()]
    raise ValueError(
        f"{dataset.attrs['file']} holds {', '.join(present)} instead of {wanted} with its "
        "coordinates; this release of xrecal cannot read it"
    )


_RMM1_TITLE = "Hindcasts of the MJO index RMM1 by GMAO GEOS-S2S V2p1 (SubX) with observations"
_RMM1_ATTRS = {
    "title": _RMM1_TITLE,
    "license": "MIT (repository climpred-data, copyright 2019 Riley Brady)",
    "references": "Pegion et al. (2019), doi:10.1175/BAMS-D-18-0270.1; SubX data, "
    "doi:10.7916/D8PG249H; Wheeler and Hendon (2004), Monthly Weather Review 132, 1917-1932",
    "comment": "Leads are the lead times in the file, rounded down to whole days; observations "
    "are those of valid_time = init + lead",
}
_RMM1 = Download(
    forecast=RemoteFile(
        f"{_CLIMPRED_DATA}/14ee1046dc9ec32753db85ad15ce8a2e428238d9/GMAO-GEOS-V2p1.RMM1.nc",
        "86db3e8658537ce7d24657779bb38974",
    ),
    # This file has another commit, which is known to hold it under this name.
    observation=RemoteFile(
        f"{_CLIMPRED_DATA}/32f481ea204216b284395f5229c485641cb9493d/rmmint1979-Present.nc",
        "41053e6d9158d7200fb14bc1acf329a9",
    ),
    read=_read_rmm1,
    attrs=_RMM1_ATTRS,
)

TUTORIALS = {
    "innsbruck_temperature": Tutorial(
        "Night temperature at Innsbruck airport, GEFS reforecasts 2000 to 2016",
        "innsbruck_gefs.nc",
        twins.innsbruck_temperature,
        prefix="tmin_",
    ),
    "frankfurt_rain": Tutorial(
        "Daily rain at Frankfurt airport, ECMWF ensemble 2007 to 2016",
        "frankfurt_rain.nc",
        twins.frankfurt_rain,
    ),
    "mediterranean_temperature": Tutorial(
        "Monthly temperature of the Mediterranean, SEAS5 and ERA5, November starts 2000 to 2005",
        "seas5_mediterranean_t2m.nc",
        twins.mediterranean_temperature,
    ),
    "mjo_rmm1": Tutorial(_RMM1_TITLE, "gmao_mjo_rmm1.nc", twins.mjo_rmm1, _RMM1),
    "influenza_admissions": Tutorial(
        "Weekly hospital admissions with influenza by state, FluSight hub ensemble 2023 to 2026",
        "flusight_admissions.nc",
        twins.influenza_admissions,
    ),
    "german_prices": Tutorial(
        "Day-ahead prices of electricity in Germany, 2018 to 2023, four forecasts each",
        "epex_de.nc",
        twins.german_prices,
    ),
    "bicycle_hire": Tutorial(
        "Bicycles hired in each hour of 2011 and 2012, with calendar and weather",
        "uci/bike_sharing_hour.csv.gz",
        twins.bicycle_hire,
    ),
}
