"""Whatever happens to a stored model, opening it ends in one of two ways, and runs nothing.

It issues forecasts, or a ValueError names its path. A model whose names or labels have become
others, which is no damage that a file can show, may not fit the forecast: that is a ValueError too.
"""

import itertools
import random
import shutil
import warnings
from functools import cache

import dask
import pytest
import xarray as xr

import xrecal
from tests.storage.mutations import heard, mutate, read_files, write_files
from tests.strategies import METHODS, ensemble_and_truth, new_cases

HINDCAST, TRUTH = (a.isel(lat=[0]) for a in ensemble_and_truth())
NEW = new_cases()[0].isel(lat=[0])
FORMATS = {"nc": {}, "zarr2": {"zarr_format": 2}, "zarr3": {"zarr_format": 3}}
METHODS = {**METHODS, "default": xrecal.CKME(), "pools": xrecal.LinearPool()}
N_SLOW = 40
"""Mutants of each model and format in the slow set."""


def pair(array):
    """Two variables."""
    return xr.Dataset({"t2m": array, "dew": array - 3})


def shared():
    """A fit that places share, half of whose cases came by an update."""
    first, rest = {"time": slice(30)}, {"time": slice(30, None)}
    model = HINDCAST.isel(first).recal.fit(TRUTH.isel(first), pool="lon")
    return model.update(HINDCAST.isel(rest), TRUTH.isel(rest)), NEW


def leads():
    """Starts and leads, with counts of their cases."""
    hindcast, truth, new = (
        a.isel(lat=0, drop=True).rename(time="init", lon="lead").assign_coords(lead=[1, 2])
        for a in (HINDCAST, TRUTH, NEW)
    )
    return hindcast.recal.fit(truth, xrecal.EMOS()), new


MODELS = {
    "jointly": lambda: (
        pair(HINDCAST).recal.fit(pair(TRUTH), jointly=("t2m", "dew")),
        pair(NEW),
    ),
    "shared": shared,
    "leads": leads,
    "window": lambda: (HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), pool={"lon": 1}), NEW),
}
"""Models beside those of each method alone, and the forecasts that they are applied to."""


@cache
def fitted(name):
    """A model, and the forecasts that it is applied to."""
    return MODELS[name]() if name in MODELS else (HINDCAST.recal.fit(TRUTH, METHODS[name]), NEW)


def outcome(path, forecast):
    """What a model issues, and what was heard of; or None if it is refused as it should be."""
    with heard() as events:
        try:
            model = xrecal.open_recalibrator(path).load()
        except ValueError as error:
            if str(path) not in str(error):
                raise
            return None, {*events}
        loaded = {*events}
        try:
            issued = model.quantile(forecast, [0.1, 0.5]).compute()
        except ValueError:  # of a model that is whole, but for other forecasts
            issued = None
        # Compiled code is read from the cache of the user at its first use.
        started = {event for event in events if not event.startswith(("pickle.find_class", "exec"))}
    return issued, loaded | started


def survive(name, form, folder, n):
    """Issue, or refuse, ``n`` mutants of a model; returns how many were refused."""
    model, forecast = fitted(name)
    path = folder / f"model.{form[:4].rstrip('23')}"
    with dask.config.set(scheduler="synchronous"):
        model.save(path, **FORMATS[form])
        files = read_files(path)
        issued, known = outcome(path, forecast)
        assert issued is not None
        refused = 0
        for number in range(n):
            rng = random.Random(f"{form} {number}")
            changed = mutate(files, rng, folder)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            write_files(changed, path)
            with warnings.catch_warnings():  # of odd numbers, and of forecasts that are unlike any
                warnings.simplefilter("ignore")
                issued, events = outcome(path, forecast)
            assert events <= known, (number, events - known)
            refused += issued is None
    return refused


@pytest.mark.parametrize(("form", "n"), [("nc", 200), ("zarr2", 25), ("zarr3", 25)])
def test_mutants_issue_or_are_refused(tmp_path, form, n):
    assert 0.5 * n < survive("emos", form, tmp_path, n) <= n


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [*itertools.product([*METHODS, *MODELS], FORMATS)])
def test_many_mutants_issue_or_are_refused(tmp_path, name, form):
    assert 0 < survive(name, form, tmp_path, N_SLOW) <= N_SLOW


@pytest.mark.parametrize("form", FORMATS)
def test_stores_that_are_cut_anywhere_are_refused(tmp_path, form):
    path = tmp_path / f"model.{form[:4].rstrip('23')}"
    fitted("emos")[0].save(path, **FORMATS[form])
    files = read_files(path)
    name = {"nc": "", "zarr2": "slope/.zarray", "zarr3": "slope/zarr.json"}[form]
    for share in (0, 0.1, 0.5, 0.9):
        (path / name if name else path).write_bytes(files[name][: int(share * len(files[name]))])
        with pytest.raises(ValueError, match=f"{path.name} cannot be read as a"):
            xrecal.open_recalibrator(path)
