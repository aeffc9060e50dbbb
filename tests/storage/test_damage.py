"""Whatever happens to a stored model, opening it ends in one of two ways, and runs nothing.

It issues forecasts, or a ValueError names its path. A model whose names or labels have become
others, which is no damage that a file can show, may not fit the forecast: that is a ValueError too.
"""

import gzip
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
from tests.stored import make
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.storage.stored import SCHEMA

HINDCAST, TRUTH = (a.isel(lat=[0]) for a in ensemble_and_truth())
NEW = new_cases()[0].isel(lat=[0])
FORMATS = {"nc": {}, "zarr2": {"zarr_format": 2}, "zarr3": {"zarr_format": 3}}
SAVED = {
    "ckme": xrecal.CKME(),
    "emos": xrecal.EMOS(),
    "pool": xrecal.LinearPool(
        methods=(xrecal.CKME(condition_on="season"), xrecal.EMOS(), xrecal.Climatology())
    ),
}
N_SLOW = 40
"""Mutants of each model and format in the slow set: 1920 of the 16 samples, 360 of the others."""


@cache
def fitted(name):
    return HINDCAST.recal.fit(TRUTH, SAVED[name])


@pytest.fixture
def sample(tmp_path):
    """A stored sample of the present layout, and the forecasts that it is applied to."""

    def unpack(name):
        paths = [tmp_path / f"{name}{what}.nc" for what in ("", "_issued")]
        for path in paths:
            packed = make.HERE / f"schema{SCHEMA}_{path.stem}.nc.gz"
            path.write_bytes(gzip.decompress(packed.read_bytes()))
        with xr.open_dataset(paths[1], decode_timedelta=True) as dataset:
            every = dataset.load()
        return xrecal.open_recalibrator(paths[0]), every[
            [v for v in every if not v.startswith(("quantile_", "mean_"))]
        ].drop_vars("quantile", errors="ignore")

    return unpack


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


def survive(model, forecast, form, folder, n):
    """Issue, or refuse, ``n`` mutants of a model; returns how many were refused."""
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
    assert 0.5 * n < survive(fitted("emos"), NEW, form, tmp_path, n) <= n


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [*itertools.product(make.MODELS, FORMATS)])
def test_mutants_of_the_stored_samples_issue_or_are_refused(tmp_path, sample, name, form):
    assert 0 < survive(*sample(name), form, tmp_path, N_SLOW) <= N_SLOW


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [*itertools.product(SAVED, FORMATS)])
def test_many_mutants_issue_or_are_refused(tmp_path, name, form):
    assert 0 < survive(fitted(name), NEW, form, tmp_path, N_SLOW) <= N_SLOW


@pytest.mark.parametrize("form", FORMATS)
def test_stores_that_are_cut_anywhere_are_refused(tmp_path, form):
    path = tmp_path / f"model.{form[:4].rstrip('23')}"
    fitted("emos").save(path, **FORMATS[form])
    files = read_files(path)
    name = {"nc": "", "zarr2": "slope/.zarray", "zarr3": "slope/zarr.json"}[form]
    for share in (0, 0.1, 0.5, 0.9):
        (path / name if name else path).write_bytes(files[name][: int(share * len(files[name]))])
        with pytest.raises(ValueError, match=f"{path.name} cannot be read as a"):
            xrecal.open_recalibrator(path)
