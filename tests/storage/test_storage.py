"""Models that come back from files make the same forecasts, bit by bit."""

import json
from functools import cache

import cftime
import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from tests.strategies import FORMS, METHODS, ensemble_and_truth, new_cases
from xrecal.storage.storage import block_sizes
from xrecal.storage.stored import MODEL, from_dataset

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
ALL = METHODS | {
    "raw": xrecal.Raw(),
    "laplace": xrecal.CKME(
        support="observations", kernel="laplace", loss="laplace", projection="energy", folds="year"
    ),
    "wide": xrecal.CKME(support="auto", bandwidth="cv", half_life="cv", condition_on="season"),
    "bounded": xrecal.CKME(support="errors", bounds=(0, None), gap=1, folds="block", ridge=0.5),
    "emos season": xrecal.EMOS(condition_on="season", vary_spread=True, bounds=None),
    "pit season": xrecal.PITRecalibration(condition_on="season"),
    "mixed": xrecal.LinearPool(methods=(xrecal.IDR(), xrecal.Climatology(window=90))),
}
FILES = {"nc": {}, "zarr 2": {"zarr_format": 2}, "zarr 3": {"zarr_format": 3}}


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    """A path, and the options to save to it."""
    return tmp_path / f"model.{request.param[:4].strip()}", FILES[request.param]


@pytest.fixture
def files(tmp_path):
    """Paths of all formats, and the options to save to them."""
    names = {name: f"{name.replace(' ', '')}.{name[:4].strip()}" for name in FILES}
    return [(tmp_path / names[name], options) for name, options in FILES.items()]


def assert_comes_back(model, *files, new=NEW, **covariates):
    """Settings, state, text and forecasts of a model are the same after a round trip."""
    expected = model.compute()
    made = expected.apply(new, **covariates).compute()
    return [compare_stored(expected, made, file, new, covariates) for file in files]


def compare_stored(expected, made, file, new, covariates):
    path, options = file
    expected.save(path, **options)
    opened = xrecal.open_recalibrator(path)
    assert opened.is_computed == (path.suffix == ".nc")
    loaded = opened.compute()
    assert repr(loaded) == repr(expected)
    assert loaded.method == expected.method
    assert list(loaded.variables) == list(expected.variables)
    for name, fitted in expected.variables.items():
        found = loaded.variables[name]
        xr.testing.assert_identical(found.state, fitted.state)
        assert found.state.dtypes == fitted.state.dtypes
        for own in ("kind", "dim", "member_dim", "attrs", "method", "periods", "pool", "note",
                    "n_matched", "n_forecasts", "min_samples", "n_added"):  # fmt: skip
            assert repr(getattr(found, own)) == repr(getattr(fitted, own)), own
        for own in ("year", "season", "days", "step"):
            a, b = getattr(found.axis, own), getattr(fitted.axis, own)
            assert (a is None) == (b is None), own
            np.testing.assert_array_equal(a, b)
    for one in {id(one): one for one in (opened, loaded)}.values():
        xr.testing.assert_identical(one.apply(new, **covariates).compute(), made)
    return opened


@cache
def model_of(method, form="ensemble"):
    """A fitted model, which no test changes."""
    return FORMS[form](HINDCAST).recal.fit(TRUTH, ALL[method])


@cache
def of_memory(method):
    """Quantiles and scores of a model that was never stored."""
    model = model_of(method)
    return model.quantile(NEW, [0.1, 0.5, 0.9]), model.crps(NEW, VERIFIED)


def alternately(names):
    """Each in a file of one format, in turn; in those of the others in the slow set."""
    return [
        pytest.param(n, f, marks=() if i % len(FILES) == j else pytest.mark.slow)
        for i, n in enumerate(names)
        for j, f in enumerate(FILES)
    ]


@pytest.mark.parametrize(("method", "file"), alternately(ALL), indirect=["file"])
def test_every_method_comes_back(method, file):
    (opened,) = assert_comes_back(model_of(method), file)
    found = dask.compute(opened.quantile(NEW, [0.1, 0.5, 0.9]), opened.crps(NEW, VERIFIED))
    for one, expected in zip(found, of_memory(method), strict=True):
        assert one.identical(expected)


@pytest.mark.parametrize(("form", "file"), alternately(FORMS), indirect=["file"])
def test_every_form_comes_back(form, file):
    assert_comes_back(model_of("errors", form), file, new=FORMS[form](NEW))


@pytest.mark.each_value
@pytest.mark.parametrize("pool", ["lat", ("lon", "lat"), {"lat": 1, "lon": 1}])
def test_pools_come_back(pool, file):
    assert_comes_back(
        HINDCAST.recal.fit(TRUTH, xrecal.CKME(support="observations"), pool=pool), file
    )


@pytest.mark.each_value
@pytest.mark.parametrize("labels", ["noleap", "years", "text", "none"])
def test_labels_of_all_kinds_come_back(labels, file):
    n = TRUTH.sizes["time"]
    given = {
        "noleap": [cftime.DatetimeNoLeap(2001 + i // 12, 1 + i % 12, 15) for i in range(n)],
        "years": np.arange(1900, 1900 + n),
        "text": [f"case {i:02}" for i in range(n)],
    }.get(labels)
    pair = [a.drop_vars("time") for a in (HINDCAST, TRUTH)]
    if given is not None:
        pair = [a.assign_coords(time=given) for a in pair]
    assert_comes_back(pair[0].recal.fit(pair[1]), file, new=NEW.drop_vars("time"))


@pytest.mark.filterwarnings("ignore:.*are unlike all that the model:UserWarning")
def test_covariates_come_back(files):
    n = TRUTH.sizes["time"]
    wind = xr.DataArray(np.linspace(0, 700, n) % 360, {"time": TRUTH.time}, attrs={"period": 360})
    moist = random("time", "lat", sizes={"time": n, "lat": 2}, time=None).assign_coords(
        lat=TRUTH.lat, time=TRUTH.time
    )
    given = {"wind": wind, "moist": moist}
    model = HINDCAST.recal.fit(
        TRUTH, xrecal.CKME(support="auto"), condition_on=tuple(given), covariates=given
    )
    new = {"wind": wind[:7].assign_coords(time=NEW.time), "moist": moist[:7].assign_coords(
        time=NEW.time)}  # fmt: skip
    assert_comes_back(model, *files, covariates=new)


def test_several_variables_come_back(files):
    def two(ensemble):
        return xr.Dataset({"t2m": ensemble, "dew": ensemble - 3})

    truth = xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2})
    model = two(HINDCAST).recal.fit(truth, xrecal.CKME(support="observations"))
    assert {"t2m.ridge", "dew.ridge", "t2m.lat"} <= set(model.to_dataset().variables)
    expected = model["dew"].quantile(two(NEW)[["dew"]], 0.5)
    for opened in assert_comes_back(model, *files, new=two(NEW)):
        found = opened["dew"].quantile(two(NEW)[["dew"]], 0.5).compute()
        assert found.identical(expected)


def test_updated_models_come_back_and_can_be_updated(files):
    first, last = slice(0, 30), slice(30, None)
    model = HINDCAST.isel(time=first).recal.fit(
        TRUTH.isel(time=first), xrecal.CKME(support="observations", ridge=0.1)
    )
    later = HINDCAST.isel(time=last), TRUTH.isel(time=last)
    expected = model.update(*later)
    issued = expected.apply(NEW)
    for opened in assert_comes_back(model, *files):
        assert opened.update(*later).apply(NEW).compute().identical(issued)
    others = [(path.with_name(f"b{path.name}"), options) for path, options in files]
    for updated in assert_comes_back(expected, *others):
        assert updated.variables["t2m"].n_added == 18


def test_locations_of_all_kinds_come_back(file):
    def stations(array):
        return array.stack(point=["lat", "lon"]).reset_index("point", drop=True).assign_coords(
            point=["Gap", "Ötz", "Rom", "Bern"], height=("point", [1.0, 2, 3, 4])
        )  # fmt: skip

    model = stations(HINDCAST).recal.fit(stations(TRUTH))
    assert_comes_back(model, file, new=stations(NEW))


def test_a_location_with_levels_comes_back(files):
    arrays = [a.stack(point=["lat", "lon"]) for a in (HINDCAST, TRUTH, NEW)]
    assert_comes_back(arrays[0].recal.fit(arrays[1]), *files, new=arrays[2])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_attributes_and_types_come_back(dtype, file):
    odd = {"valid_range": np.array([0, 400], "i2"), "flag": True, "none": None, "_FillValue": 9e9}
    hindcast = HINDCAST.astype(dtype).assign_attrs(odd)
    truth = TRUTH.astype(dtype)
    truth[:, 0, 0] = np.nan  # a location without a fit
    assert_comes_back(hindcast.recal.fit(truth), file)


# lazy ---------------------------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [{"lat": 1}, {"lat": (1, 1), "lon": 1}])
def test_lazy_models_are_saved_chunk_by_chunk(file, chunks, monkeypatch):
    seen = []
    fit = xrecal.CKME.fit_locations

    def watched(self, cases, min_samples, choices=None):
        seen.append(len(cases.observations))
        return fit(self, cases, min_samples, choices)

    monkeypatch.setattr(xrecal.CKME, "fit_locations", watched)
    lazy = HINDCAST.chunk(chunks).recal.fit(TRUTH)
    path, options = file
    with dask.config.set(scheduler="synchronous"):
        lazy.save(path, **options)
    assert sum(seen) == 4
    assert max(seen) == 2 if len(chunks) == 1 else 1
    opened = xrecal.open_recalibrator(path)
    assert opened.apply(NEW).compute().identical(HINDCAST.recal.fit(TRUTH).apply(NEW))
    if path.suffix == ".zarr":
        expected = dict.fromkeys(chunks, (1, 1))
        assert {d: opened.state.chunksizes[d] for d in chunks} == expected


def test_uneven_chunks_are_saved(file):
    hindcast, truth = ensemble_and_truth(n_lat=5)
    new, _ = new_cases(n_lat=5)
    lazy = hindcast.chunk(lat=(1, 3, 1)).recal.fit(truth)
    path, options = file
    lazy.save(path, **options)
    opened = xrecal.open_recalibrator(path)
    assert opened.apply(new).compute().identical(hindcast.recal.fit(truth).apply(new))


def test_opening_and_applying_stays_lazy(file):
    path, options = file
    HINDCAST.recal.fit(TRUTH).save(path, **options)
    expected = HINDCAST.recal.fit(TRUTH).quantile(NEW, 0.5)
    with forbid_compute():
        model = xrecal.open_recalibrator(path, chunks={"lon": 1})
        assert model.state.chunksizes["lon"] == (1, 1)
        assert all(c.chunks is None for c in model.state.coords.values())
        assert "not computed: model.compute()" in repr(model)
        lazy = model.quantile(NEW, 0.5)
    assert lazy.compute().identical(expected)


def test_chunks_are_those_of_locations(tmp_path):
    HINDCAST.recal.fit(TRUTH).save(tmp_path / "a.zarr")
    with pytest.raises(
        ValueError, match=r"chunks names 'calibration', but the locations .* \['lat', 'lon'\]"
    ):
        xrecal.open_recalibrator(tmp_path / "a.zarr", chunks={"calibration": 3})


def test_blocks_are_whole_along_the_last_dimensions():
    assert block_sizes({"lat": 10, "lon": 10}, 8, most=8 * 35) == {"lat": 3, "lon": 10}
    assert block_sizes({"lat": 10, "lon": 10}, 8, most=8 * 4) == {"lat": 1, "lon": 4}
    assert block_sizes({"lat": 10, "lon": 10}, 8, most=1) == {"lat": 1, "lon": 1}
    assert block_sizes({"lat": 2, "lon": 3}, 0) == {"lat": 2, "lon": 3}
    assert block_sizes({}, 8) == {}


# as a Dataset -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_the_dataset_is_the_whole_model(method):
    model = model_of(method)
    dataset = model.to_dataset()
    fitted = from_dataset(dataset)
    again = xrecal.Recalibrator(fitted.method, fitted.variables)
    xr.testing.assert_identical(again.apply(NEW), model.apply(NEW))
    assert dataset.attrs["calibration_period"].startswith("2001-01-15")
    assert f"numpy {np.__version__}, xarray {xr.__version__}" in dataset.attrs["source"]
    header = json.loads(dataset.attrs[MODEL])
    assert header["variables"][0]["fields"]["attrs"]["dict"][0] == ["units", "K"]


def test_the_dataset_of_a_lazy_model_is_lazy():
    with forbid_compute():
        assert HINDCAST.chunk(lat=1).recal.fit(TRUTH).to_dataset().ridge.chunks
