"""Tricks of hostile models and data: each is refused by its message, and nothing runs."""

import json
import pickle
import re

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import xrecal
from tests.storage.mutations import heard, read_files, write_files
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.runs.files import Source
from xrecal.storage.storage import CHUNKS, seal
from xrecal.storage.stored import MODEL
from xrecal.storage.untrusted import DATA, LIMIT_DEPTH, open_known, read_json, require_known

HINDCAST, TRUTH = (a.isel(lat=[0]) for a in ensemble_and_truth())
NEW = new_cases()[0].isel(lat=[0])
FILES = {"nc": {}, "zarr 2": {"zarr_format": 2}, "zarr 3": {"zarr_format": 3}}
HUGE = 10**15


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Files of a model in each format."""
    folder = tmp_path_factory.mktemp("models")
    model = HINDCAST.recal.fit(TRUTH)
    paths = {name: folder / f"{name[-1]}.{name[:4].strip()}" for name in FILES}
    for name, path in paths.items():
        model.save(path, **FILES[name])
    return {name: read_files(path) for name, path in paths.items()}


@pytest.fixture(params=FILES)
def path(request, stored, tmp_path):
    """Of a model that may be changed."""
    place = tmp_path / f"model.{request.param[:4].strip()}"
    write_files(stored[request.param], place)
    return place


def only(kind):
    return pytest.mark.parametrize("path", [kind], indirect=True)


def assert_refused(path, told):
    """Opening says why, with the path, and neither runs anything nor ends otherwise."""
    with (
        heard() as run,
        pytest.raises(ValueError, match=f"{re.escape(str(path))} .*{told}"),
    ):
        xrecal.open_recalibrator(path)
    assert not run


def change(file, **changes):
    """Change a file of metadata."""
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | changes))


def change_header(path, changed):
    """Change the settings of a model, given and returned as JSON."""
    if path.suffix == ".nc":
        with netCDF4.Dataset(path, "a") as dataset:
            dataset.setncattr(MODEL, changed(dataset.getncattr(MODEL)))
    else:
        group = zarr.open_group(path, mode="r+", use_consolidated=False)
        group.attrs[MODEL] = changed(group.attrs[MODEL])


def change_numbers(path, name, value):
    """Set all numbers of an array."""
    if path.suffix == ".nc":
        with netCDF4.Dataset(path, "a") as dataset:
            dataset[name][:] = value
    else:
        zarr.open_group(path, mode="r+", use_consolidated=False)[name][:] = value
        seal(path)  # chunks of nothing but zeros are no files


class Trap:
    def __reduce__(self):
        import os

        return os.system, ("echo trapped",)


def test_a_pickled_chunk_runs_without_the_check(tmp_path):
    """Else what follows would prove nothing."""
    file = tmp_path / "chunk"
    file.write_bytes(pickle.dumps(Trap()))
    with heard() as run:
        pickle.loads(file.read_bytes())
    assert any("os.system" in one for one in run)


@only("zarr 2")
@pytest.mark.parametrize("place", ["ridge", "calibration_time", "observations"])
@pytest.mark.parametrize("how", ["filters", "compressor"])
def test_pickles_are_refused_in_stores_of_version_2(path, place, how):
    codec = {"id": "pickle", "protocol": 5}
    change(path / place / ".zarray", **{how: [codec] if how == "filters" else codec})
    for chunk in (path / place).glob("[0-9]*"):
        chunk.write_bytes(pickle.dumps(Trap()))
    assert_refused(path, f"the array '{place}' is decoded by 'pickle', which is not a codec .* run")


@only("zarr 2")
def test_pickles_are_refused_in_gathered_metadata(path):
    gathered = json.loads((path / ".zmetadata").read_text())
    gathered["metadata"]["ridge/.zarray"]["filters"] = [{"id": "pickle"}]
    (path / ".zmetadata").write_text(json.dumps(gathered))
    assert_refused(path, "the array 'ridge/.zarray' is decoded by 'pickle'")


@only("zarr 2")
def test_names_of_both_versions_are_read(path):
    change(path / "ridge" / ".zarray", compressor={"id": "pickle", "name": "zstd"})
    assert_refused(path, "decoded by 'pickle'")


@only("zarr 2")
def test_objects_that_are_no_text_are_refused(path):
    change(path / "ridge" / ".zarray", dtype="|O", filters=[{"id": "msgpack2"}])
    assert_refused(path, "holds objects coded by 'msgpack2', not text")
    change(path / "ridge" / ".zarray", dtype=[["a", "<f8"]], filters=None)
    assert_refused(path, r"is of the type \[\['a', '<f8'\]\], which is not known")


@only("zarr 3")
@pytest.mark.parametrize("name", ["pickle", "numcodecs.pickle", "some.plugin"])
def test_unknown_codecs_are_refused_in_stores_of_version_3(path, name):
    codec = {"name": name, "configuration": {}}
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    change(path / "ridge" / "zarr.json", codecs=[bytes_codec, codec])
    assert_refused(path, f"the array 'ridge' is decoded by '{name}'")
    shards = {"chunk_shape": [1, 2], "codecs": [codec], "index_codecs": [bytes_codec]}
    sharded = {"name": "sharding_indexed", "configuration": shards}
    change(path / "ridge" / "zarr.json", codecs=[sharded])
    assert_refused(path, f"the array 'ridge' is decoded by '{name}'")
    shards |= {"codecs": [bytes_codec], "index_codecs": [codec]}
    change(path / "ridge" / "zarr.json", codecs=[sharded])
    assert_refused(path, f"the array 'ridge' is decoded by '{name}'")


@only("zarr 3")
def test_unknown_codecs_are_refused_in_gathered_metadata_of_version_3(path):
    root = json.loads((path / "zarr.json").read_text())
    ridge = root["consolidated_metadata"]["metadata"]["ridge"]
    ridge["codecs"] = [{"name": "numcodecs.pickle"}]
    (path / "zarr.json").write_text(json.dumps(root))
    assert_refused(path, "the array 'ridge' is decoded by 'numcodecs.pickle'")
    del ridge["node_type"]
    (path / "zarr.json").write_text(json.dumps(root))
    assert_refused(path, "the array 'ridge' is decoded by 'numcodecs.pickle'")


@only("zarr 3")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data_type": "r64"}, "of the type r64, which is not known"),
        ({"data_type": "complex128"}, "type that xrecal does not read, of kind 'c'"),
        ({"data_type": {"name": "structured", "configuration": {}}}, "of the type structured"),
        ({"storage_transformers": [{"name": "x"}]}, "storage transformers, which are not known"),
        ({"chunk_grid": {"name": "mine"}}, "the grid of chunks 'mine', which is not known"),
        ({"shape": [HUGE, 2]}, rf"claims {HUGE * 16} bytes, more than"),
        ({"shape": [10**9, 2]}, r"claims \d+ chunks, more than 1048576"),
        ({"shape": [-1, 2]}, "-1 instead of a whole number of at least 0"),
        ({"shape": [1.5, 2]}, "1.5 instead of a whole number of at least 0"),
        ({"shape": [2]}, r"the shape \[2\], but chunks of the shape \["),
        ({"shape": None}, "the metadata of 'ridge' are incomplete: TypeError"),
        ({"codecs": {}}, "codecs"),
    ],
)
def test_absurd_metadata_are_refused(path, changes, told):
    change(path / "ridge" / "zarr.json", **changes)
    if changes != {"codecs": {}}:
        assert_refused(path, told)
    else:  # Zarr itself says so, in its own words
        assert_refused(path, "")


@pytest.mark.parametrize("file", [".zarray", "zarr.json"])
def test_chunks_that_no_memory_holds_are_refused(stored, tmp_path, file):
    write_files(stored["zarr 2" if file == ".zarray" else "zarr 3"], tmp_path / "model.zarr")
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 10**11]}}
    changes = {"chunks": [1, 10**11]} if file == ".zarray" else {"chunk_grid": grid}
    change(tmp_path / "model.zarr" / "ridge" / file, **changes)
    assert_refused(tmp_path / "model.zarr", "has chunks of 800000000000 bytes, more than")


def test_deep_nesting_is_refused(path):
    change_header(path, lambda _: "[" * 200 + "]" * 200)
    assert_refused(path, f"nested more than {LIMIT_DEPTH} levels deep")
    if path.suffix == ".nc":
        change_header(path, lambda _: "[" * 100_000)
        assert_refused(path, f"nested more than {LIMIT_DEPTH} levels deep")
        return
    name = "zarr.json" if (path / "zarr.json").exists() else ".zattrs"
    (path / name).write_text('{"a":' * 100_000)
    assert_refused(path, f"{name} cannot be read: JSON is nested more than")


def test_json_is_read_up_to_limits(monkeypatch):
    assert read_json("3") == 3
    assert read_json("[" * LIMIT_DEPTH + "]" * LIMIT_DEPTH) is not None
    with pytest.raises(ValueError, match="nested more than"):
        read_json("[" * (LIMIT_DEPTH + 1) + "]" * (LIMIT_DEPTH + 1))
    monkeypatch.setattr("xrecal.storage.untrusted.LIMIT_JSON", 10)
    with pytest.raises(ValueError, match="has 11 characters, more than 10"):
        read_json('"' + 9 * "a" + '"')


def replaced(old, new):
    """A change of text, which is there."""

    def changed(text):
        assert old in text
        return text.replace(old, new)

    return changed


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"class": "CKME"', '"class": "os.system"', "the class 'os.system' is not known; known"),
        ('"ridge": "cv"', '"ridge": -1', "ridge must be 'cv' or a positive number, got -1"),
        ('"kind": "ensemble"', '"kind": "x"', "kind is 'x', not of the type Kind"),
        ('"n_matched": 48', '"n_matched": -1', "-1, 0, 20. do not belong to 48 f"),
        ('"n_matched": 48', '"n_matched": 49', "49, 0, 20. do not belong to 48 f"),
        ('"n_matched": 48', '"n_matched": "48"', "n_matched is '48', not of the type"),
        ('"note": null', '"note": 3', "note is 3, not of the type str"),
        ('"pool": null', '"pool": 3', "pool is 3, not of the type Pool"),
        ('"leads": null', '"leads": [3]', "leads is .*, not of the type Mat"),
        ('"periods": {"dict": []}', '"periods": {"dict": [["a", -3]]}', "has the period -3"),
        ('"condition_on": null', '"condition_on": "a"', "needs other covariates than"),
        ('"solver": "auto"', '"solver": "exact"', "'landmark' is not an array that CKME"),
    ],
)
def test_settings_that_no_fit_leaves_are_refused(path, old, new, told):
    change_header(path, replaced(old, new))
    assert_refused(path, told)


def test_a_model_of_nothing_is_refused(path):
    change_header(path, lambda _: '{"method": 3, "variables": []}')
    assert_refused(path, "there is no method, or no variable")


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ridge", -1.0, r"'ridge' contains -1.0, but a fit stores 2\.\d+e-308 to"),
        ("ridge", np.inf, "'ridge' contains inf"),
        ("landmark", 48, "'landmark' contains 48, but a fit stores -1 to 47"),
        ("landmark", -2, "'landmark' contains -2"),
        ("n_cases", 49, "'n_cases' contains 49, but a fit stores 0 to 48"),
        ("n_cases", -1, "'n_cases' contains -1"),
        ("status", 128, "'status' contains 128"),
        ("support", 100, "'support' contains 100"),
        ("centre", np.inf, "'centre' contains inf"),
        ("observations", -np.inf, "'observations' contains -inf"),
        ("date_season", 1.5, "the dates 'season' are not fractions of a year"),
        ("date_days", np.nan, "the dates 'days' are not 48 finite numbers"),
    ],
)
def test_numbers_that_no_fit_leaves_are_refused(path, name, value, told):
    change_numbers(path, name, value)
    assert_refused(path, told)


def test_bounds_in_the_wrong_order_are_refused(path):
    change_numbers(path, "lower", 3.0)
    change_numbers(path, "upper", 2.0)
    assert_refused(path, "a lower bound is above 'upper'")


def test_pools_that_do_not_belong_are_refused(tmp_path):
    path = tmp_path / "model.nc"
    HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), pool="lon").save(path)
    change_header(path, replaced('"taken": [0, 1]', '"taken": [0, 2]'))
    assert_refused(path, r"the pool Pool\(.* does not belong to the state")
    change_header(path, replaced('"taken": [0, 2]', '"taken": [0, 1]'))
    change_numbers(path, "date_step", np.arange(96)[::-1])
    assert_refused(path, "the dates 'step' descend")


def test_counts_of_other_leads_are_refused(tmp_path):
    path = tmp_path / "model.nc"
    shape = {"dims": ["init", "lead"], "coords": {"init": TRUTH.time.values, "lead": [1, 2]}}
    observed = xr.DataArray(TRUTH.values[:, 0], **shape)
    members = HINDCAST.values[:, :, 0].transpose(0, 2, 1)
    hindcast = xr.DataArray(members, dims=["init", "lead", "member"], coords=shape["coords"])
    hindcast.rename("t2m").recal.fit(observed, xrecal.EMOS()).save(path)
    change_header(path, replaced('"n_matched": [48, 48]', '"n_matched": [48]'))
    assert_refused(path, r"MatchedLeads\(.* has counts of other leads than those of the state")


@pytest.mark.parametrize(("old", "new"), [('"own": 0', '"own": 7'), ('"own": 0', '"own": -1')])
def test_vectors_of_other_variables_are_refused(tmp_path, old, new):
    path = tmp_path / "model.nc"
    pairs = [xr.Dataset({"t2m": a, "dew": a + 1}) for a in (HINDCAST, TRUTH)]
    pairs[0].recal.fit(pairs[1], jointly=("t2m", "dew")).save(path)
    change_header(path, replaced(old, new))
    assert_refused(path, r"the vectors of VectorCKME\(.* are not valid for several variables")


def test_labels_of_other_components_are_refused(tmp_path):
    path = tmp_path / "model.nc"
    pool = xrecal.LinearPool(methods=(xrecal.EMOS(), xrecal.Climatology()))
    HINDCAST.recal.fit(TRUTH, pool).save(path)
    with netCDF4.Dataset(path, "a") as dataset:
        dataset["component"][0] = "raw"
    assert_refused(path, "'component' has other labels than emos, climatology")


def test_what_was_recorded_of_variables_is_checked(path):
    def set_record(old, new):
        if path.suffix == ".nc":
            with netCDF4.Dataset(path, "a") as dataset:
                text = dataset.getncattr("xrecal_variables")
                dataset.setncattr("xrecal_variables", replaced(old, new)(text))
        else:
            group = zarr.open_group(path, mode="r+", use_consolidated=False)
            group.attrs["xrecal_variables"] = replaced(old, new)(group.attrs["xrecal_variables"])

    set_record('"kind": "datetime64[ns]"', '"kind": "<U999999999"')
    assert_refused(path, "cannot be restored: the type '<U999999999' is not known")
    set_record('"kind": "<U999999999"', '"kind": "float32"')
    assert_refused(path, "cannot be restored: it holds int64 in place of float32")


def test_types_that_a_netcdf_file_defines_are_refused(tmp_path):
    path = tmp_path / "model.nc"
    HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).save(path)
    with netCDF4.Dataset(path, "a") as dataset:
        numbers = dataset.createVLType(np.int32, "numbers")
        dataset.createVariable("odd", numbers, ("lat",))
    assert_refused(path, "the variable 'odd' is of a type that the file defines itself")


@pytest.mark.parametrize(
    ("dims", "told"),
    [
        ((HUGE,), f"the variable 'odd' claims {8 * HUGE} bytes, more than"),
        ((10**6, 10**6), r"its variables claim \d+ bytes, but the file has"),
    ],
)
def test_sizes_that_a_netcdf_file_cannot_have_are_refused(tmp_path, dims, told):
    path = tmp_path / "model.nc"
    HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).save(path)
    with netCDF4.Dataset(path, "a") as dataset:
        for i, size in enumerate(dims):
            dataset.createDimension(f"odd{i}", size)
        names = tuple(f"odd{i}" for i in range(len(dims)))
        dataset.createVariable("odd", "f8", names, chunksizes=(1000,) * len(dims))
    assert_refused(path, told)


def test_what_stays_lazy_is_checked_as_it_is_read(tmp_path):
    """Of large stores; a number that is wrong, and a chunk that cannot be decoded."""
    path = tmp_path / "model.zarr"
    cut = HINDCAST.chunk(lon=1).recal.fit(TRUTH, xrecal.EMOS())
    cut.save(path)
    change_numbers(path, "upper", -np.inf)
    change_numbers(path, "lower", np.inf)
    change_numbers(path, "intercept", np.inf)
    model = xrecal.open_recalibrator(path)
    with pytest.raises(ValueError, match=r"model.zarr is damaged: 'intercept' contains inf"):
        model.quantile(NEW, 0.5).compute()
    change_numbers(path, "intercept", 0.0)
    chunk = next(p for p in (path / "slope").rglob("*") if p.is_file() and p.name in "01")
    chunk.write_bytes(b"not compressed")
    with pytest.raises(ValueError, match=r"model.zarr is damaged: "):
        xrecal.open_recalibrator(path).compute()


@only("zarr 3")
@pytest.mark.parametrize("counts", [3, {"none": 3}, {"ridge": "x"}, "[["])
def test_wrong_numbers_of_chunks_are_told(path, counts):
    change(path / CHUNKS / "zarr.json", attributes=counts)
    assert_refused(path, "damaged: ")


def _attributes(path):
    return json.loads((path / "zarr.json").read_text())["attributes"]


@pytest.mark.parametrize("version", [2, 3])
def test_data_that_run_code_are_refused(tmp_path, version):
    path = tmp_path / "today.zarr"
    NEW.to_dataset().to_zarr(path, zarr_format=version, consolidated=False)
    place = path / "time" / (".zarray" if version == 2 else "zarr.json")
    codec = {"id": "pickle"} if version == 2 else {"name": "numcodecs.pickle"}
    change(place, **({"compressor": codec} if version == 2 else {"codecs": [codec]}))
    with (
        heard() as run,
        pytest.raises(ValueError, match=r"forecast .*today.zarr cannot be read: .*pickle', which"),
    ):
        Source(path, "forecast").open()
    assert not run


def test_data_may_be_packed_by_filters_of_numbers(tmp_path):
    from numcodecs import Delta, FixedScaleOffset

    path = tmp_path / "today.zarr"
    filters = [FixedScaleOffset(offset=280, scale=1000, dtype="<f8", astype="<i4"), Delta("<i4")]
    encoding = {"t2m": {"filters": filters}}
    days = NEW.assign_coords(source=("time", ["a"] * NEW.sizes["time"]))
    days.to_dataset().to_zarr(path, zarr_format=2, encoding=encoding)
    opened = Source(path, "forecast").open()
    np.testing.assert_allclose(opened.t2m, NEW, atol=1e-3)
    assert opened.source[0] == "a"
    change(path / "t2m" / ".zarray", filters=[{"id": "astype", "decode_dtype": "<U4"}])
    with pytest.raises(ValueError, match="'t2m' is decoded to '<U4', which are not numbers"):
        require_known(path, DATA)


def test_data_of_types_of_their_own_are_refused(tmp_path):
    path = tmp_path / "today.nc"
    NEW.to_dataset().to_netcdf(path)
    with netCDF4.Dataset(path, "a") as dataset:
        pair = dataset.createCompoundType(np.dtype([("a", "f8"), ("b", "f8")]), "pair")
        dataset.createVariable("odd", pair, ("lat",))
    with pytest.raises(ValueError, match="'odd' is of a type that the file defines itself"):
        Source(path, "forecast").open()


def test_text_of_a_fixed_length_opens_without_a_warning(tmp_path):
    names = xr.DataArray(np.array(["Oslo", "Bergen"]), dims="station")
    with pytest.warns(match="does not have a Zarr V3 specification"):  # where it is written
        xr.Dataset({"v": ("station", [1.0, 2.0])}, {"station": names}).to_zarr(
            tmp_path / "v.zarr", consolidated=False, zarr_format=3
        )
    assert open_known(tmp_path / "v.zarr", DATA)["station"].values.tolist() == ["Oslo", "Bergen"]
