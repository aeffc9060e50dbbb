"""Models that earlier versions have stored make the forecasts that those versions made."""

import gzip
import itertools
import json
import re

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.stored import make
from xrecal.storage.stored import MODEL, SCHEMA, SCHEMA_ATTR, _as_fitted

NAMES = sorted(path.name.removesuffix(".nc.gz") for path in make.HERE.glob("schema*_*"))
EVERY = [name for name in NAMES if not name.endswith("_issued")]
REFUSED = ["schema8_online_pool"]
MODELS = [name for name in EVERY if name not in REFUSED]
EACH = pytest.mark.parametrize(("schema", "model"), [name.split("_", 1) for name in MODELS])
TOLERANCE = 1e-10
"""Relative. Weights and factors are made anew from what is stored, and another NumPy, compiler or
processor adds in another order: that costs some 1e-14 here, as no quantile hangs on it. A parameter
that is half as large again costs 1e-6 and more."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Path of the netCDF file that a packed one holds."""
    folder = tmp_path_factory.mktemp("stored")

    def unpack(name):
        path = folder / f"{name}.nc"
        path.write_bytes(gzip.decompress((make.HERE / f"{name}.nc.gz").read_bytes()))
        return path

    return unpack


@pytest.fixture
def issued(unpacked):
    """Forecasts of a model and what its version made of them, by variable: three Datasets."""

    def read(name):
        with xr.open_dataset(unpacked(f"{name}_issued"), decode_timedelta=True) as dataset:
            every = dataset.load()
        made = {
            what: [v for v in every if v.startswith(f"{what}_")] for what in ("quantile", "mean")
        }
        forecast = every.drop_vars([*itertools.chain(*made.values()), "quantile"])
        return forecast, *(
            every[names].rename({v: v.removeprefix(f"{what}_") for v in names})
            for what, names in made.items()
        )

    return read


def assert_as_issued(model, issued):
    forecast, quantiles, means = issued
    lazy = model.quantile(forecast, list(make.LEVELS)), model.mean(forecast)
    for found, expected in zip(dask.compute(*lazy), (quantiles, means), strict=True):
        xr.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=0)
        for variable in expected:
            assert found[variable].dims == expected[variable].dims
            assert found[variable].dtype == expected[variable].dtype
            assert found[variable].units == expected[variable].units


@pytest.mark.parametrize("name", MODELS)
def test_stored_models_make_the_same_forecasts(name, unpacked, issued):
    model = xrecal.open_recalibrator(unpacked(name))
    assert model.is_computed
    assert_as_issued(model, issued(name))


@pytest.mark.each_value
@EACH
def test_lazily_opened_they_do_too(schema, model, unpacked, issued):
    name = f"{schema}_{model}"
    with forbid_compute():
        opened = xrecal.open_recalibrator(unpacked(name), chunks={})
    assert not opened.is_computed
    assert_as_issued(opened, issued(name))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_to_be_fitted_anew_is_refused_with_what_to_type(name, unpacked):
    told = (
        r"OnlinePool of the layout 8, whose experts were fewer .* fit it anew, .*: "
        r"hindcast\.recal\.fit\(observations, xrecal\.OnlinePool\(methods=\(CKME\(\), IDR\(\)\), "
    )
    with pytest.raises(ValueError, match=told):
        xrecal.open_recalibrator(unpacked(name))


@pytest.mark.parametrize("name", EVERY)
def test_files_are_of_the_layout_that_their_names_say(name, unpacked):
    with xr.open_dataset(unpacked(name), decode_cf=False) as stored:
        assert stored.attrs[SCHEMA_ATTR] == int(re.match(r"schema(\d+)_", name)[1])
        assert json.loads(stored.attrs[MODEL])["variables"]


@pytest.mark.each_value
@EACH
def test_no_quantile_hangs_on_rounding(schema, model, unpacked, issued):
    """Else a step of the CDF would be taken on one machine and not on another."""
    name = f"{schema}_{model}"
    opened, (forecast, quantiles, _) = xrecal.open_recalibrator(unpacked(name)), issued(name)
    for shift in (-1e-9, 1e-9):
        found = opened.quantile(forecast, np.array(make.LEVELS) + shift)
        found = found.assign_coords(quantile=quantiles["quantile"])
        xr.testing.assert_allclose(found, quantiles, rtol=0, atol=1e-6)


def test_a_pool_without_a_season_mixes_what_it_did_before_layout_7():
    """That of the samples has one."""
    labels = [
        *(f"ckme_{s}" for s in ("observations", "mean", "regression", "standardised", "ratio")),
        "ckme_shapes_standardised", "ckme_shapes_ratio", "emos", "idr", "climatology", "raw",
    ]  # fmt: skip
    state = xr.Dataset({"pool_weight": ("component", np.ones(11))}, {"component": labels})
    pool = xrecal.LinearPool(condition_on=(), average=None, gap=2, bounds=(0, None))
    mixed = _as_fitted(pool, state)
    assert [component.label for component in mixed.components] == labels
    assert {m.bounds for m in mixed.mixed if hasattr(m, "bounds")} == {(0, None)}
    assert [m.gap for m in mixed.mixed if isinstance(m, xrecal.CKME)] == [2, 2]
    assert mixed.average is None


def test_there_is_a_set_of_every_layout_complete():
    """If not: python -m tests.stored.make."""
    schemas = {int(re.match(r"schema(\d+)_", name)[1]) for name in NAMES}
    assert schemas == set(range(1, SCHEMA + 1))
    assert sorted(NAMES) == sorted([*EVERY, *(f"{name}_issued" for name in EVERY)])


def test_missing_values_are_among_what_is_compared(issued):
    _, quantiles, _ = issued("schema1_ckme")
    missing = quantiles.t2m.isnull()
    assert missing.sel(station="Rom").all()
    assert missing.sel(station="Ötz").all("quantile").sum() == 1
    assert not missing.sel(station="Gap").any()


def test_a_set_is_made_once_and_never_again(tmp_path):
    written = make.make(tmp_path)
    assert {path.name for path in written} == {
        f"schema{SCHEMA}_{name}{what}.nc.gz" for name in make.MODELS for what in ("", "_issued")
    }
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == set(written)
    with pytest.raises(FileExistsError, match=rf"schema{SCHEMA}_ckme.nc.gz exists; the set of a"):
        make.make(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert list(make.HERE.glob(f"schema{SCHEMA}_*")), "python -m tests.stored.make, and commit"
    with pytest.raises(FileExistsError, match="never make an old set anew"):
        make.make()
