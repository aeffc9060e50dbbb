"""What cannot be saved or opened, and what a failure leaves behind."""

import json
import os
import shutil

import pytest
import xarray as xr
import zarr
from packaging.requirements import Requirement

import xrecal
from tests.minimum import PROJECT
from tests.strategies import ensemble_and_truth
from xrecal.inputs.libraries import CRASHING
from xrecal.storage.stored import MODEL, SCHEMA, SCHEMA_ATTR, UNFINISHED

HINDCAST, TRUTH = ensemble_and_truth()
FILES = {"nc": {}, "zarr 2": {"zarr_format": 2}, "zarr 3": {"zarr_format": 3}}


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    """A path, and the options to save to it."""
    return tmp_path / f"model.{request.param[:4].strip()}", FILES[request.param]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same model in each format, by ending and options, which no test changes."""
    model = HINDCAST.chunk(lat=1).recal.fit(TRUTH)
    paths = {}
    for name, options in FILES.items():
        paths[name] = tmp_path_factory.mktemp("stored") / f"model.{name[:4].strip()}"
        model.save(paths[name], **options)
    return paths


@pytest.fixture(params=FILES)
def saved(request, stored, tmp_path):
    """A copy of a stored model."""
    of = stored[request.param]
    copy = shutil.copytree if of.is_dir() else shutil.copy
    return copy(of, tmp_path / of.name)


def change_attrs(path, **attrs):
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r+")
        group.attrs.put({**group.attrs, **attrs})
    else:
        with xr.open_dataset(path, decode_cf=False) as dataset:
            dataset.load()
        dataset.assign_attrs(attrs).to_netcdf(path)


def test_existing_paths_are_kept(saved):
    other = HINDCAST.recal.fit(TRUTH, xrecal.EMOS())
    with pytest.raises(FileExistsError, match=r"model.* exists; use overwrite=True to replace"):
        other.save(saved)
    assert xrecal.open_recalibrator(saved).method == xrecal.CKME()
    other.save(saved, overwrite=True)
    assert xrecal.open_recalibrator(saved).method == xrecal.EMOS()
    assert os.listdir(saved.parent) == [saved.name]


def test_what_fails_leaves_nothing(file, monkeypatch):
    path, options = file
    HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).save(path, **options)
    lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH)

    def fail(*_):
        raise RuntimeError("no more")

    monkeypatch.setattr(xrecal.CKME, "fit_locations", fail)
    with pytest.raises(RuntimeError, match="no more"):
        lazy.save(path, overwrite=True, **options)
    assert os.listdir(path.parent) == [path.name]
    assert xrecal.open_recalibrator(path).method == xrecal.EMOS()


@pytest.mark.each_value
@pytest.mark.parametrize("layout", [SCHEMA + 1, SCHEMA - 1, "x"])
def test_other_layouts_are_refused(saved, layout):
    change_attrs(saved, **{SCHEMA_ATTR: layout, "source": "xrecal 99.0"})
    told = (
        rf"has the layout {layout}, written by xrecal 99.0, but this xrecal .* reads only the "
        rf"layout {SCHEMA}; fit and save the model again, hindcast.* or install the version of"
    )
    with pytest.raises(ValueError, match=told):
        xrecal.open_recalibrator(saved)


def test_unfinished_stores_are_refused(saved):
    change_attrs(saved, **{UNFINISHED: "xrecal fit"})
    with pytest.raises(ValueError, match=r"unfinished: xrecal fit was interrupted.* --resume"):
        xrecal.open_recalibrator(saved)


def test_other_files_are_refused(file):
    path, options = file
    if path.suffix == ".nc":
        TRUTH.to_dataset(name="t2m").to_netcdf(path)
    else:
        TRUTH.to_dataset(name="t2m").to_zarr(path, consolidated=False, **options)
    with pytest.raises(
        ValueError, match=r"model.* is not a model of xrecal: it holds t2m; open a file"
    ):
        xrecal.open_recalibrator(path)


def test_damage_is_told(saved):
    text = "this is no JSON"
    change_attrs(saved, **{MODEL: text})
    with pytest.raises(ValueError, match=r"is damaged: Expecting value.*; restore it, or fit and"):
        xrecal.open_recalibrator(saved)
    change_attrs(saved, **{MODEL: json.dumps({"variables": []})})
    with pytest.raises(ValueError, match="is damaged: 'method' is missing; restore it"):
        xrecal.open_recalibrator(saved)


def test_lost_variables_are_told(saved):
    if saved.suffix == ".zarr":
        shutil.rmtree(saved / "ridge")
    else:
        with xr.open_dataset(saved, decode_cf=False) as dataset:
            dataset.load()
        dataset.drop_vars("ridge").to_netcdf(saved)
    with pytest.raises(ValueError, match=r"is damaged: the variables \['ridge'\] are missing"):
        xrecal.open_recalibrator(saved)


def test_lost_chunks_are_told(saved):
    if saved.suffix == ".nc":
        with saved.open("r+b") as stream:
            stream.truncate(saved.stat().st_size // 2)
        told = "cannot be read as a netCDF file, as it is of another kind or damaged"
    else:
        chunks = [p for p in (saved / "ridge").rglob("*") if p.is_file() and p.name[0] in "01"]
        chunks[0].unlink()
        told = "is damaged: 1 of 2 chunks of 'ridge' are missing"
    with pytest.raises(ValueError, match=told):
        xrecal.open_recalibrator(saved)


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_no_store_is_told(tmp_path, is_folder):
    path = tmp_path / "model.zarr"
    path.mkdir() if is_folder else path.write_text("text")
    kind = "Zarr store" if is_folder else "netCDF file"
    with pytest.raises(
        ValueError, match=f"model.zarr cannot be read as a {kind}, as it is of another kind"
    ):
        xrecal.open_recalibrator(path)


def test_missing_paths_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*model\.zarr$"):
        xrecal.open_recalibrator(tmp_path / "model.zarr")
    (tmp_path / "model.zarr.partial").mkdir()
    with pytest.raises(FileNotFoundError, match=r"only .*partial of an interrupted run.*--resume"):
        xrecal.open_recalibrator(tmp_path / "model.zarr")


@pytest.mark.parametrize(
    ("path", "options", "error", "told"),
    [
        ("model.txt", {}, ValueError, r"'model.txt' must end in .zarr .* or .nc"),
        ("no/model.nc", {}, FileNotFoundError, "there is no folder .*no to write model.nc to"),
        ("model.nc", {"zarr_format": 2}, ValueError, "zarr_format=2 is for Zarr stores"),
        ("s3://a/model.zarr", {}, ValueError, "path must be a path on this machine, got 's3:"),
    ],
)
def test_other_paths_are_refused(tmp_path, path, options, error, told):
    where = path if "://" in path else tmp_path / path
    with pytest.raises(error, match=told):
        HINDCAST.recal.fit(TRUTH).save(where, **options)


def test_missing_libraries_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("xrecal.inputs.libraries.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"zarr files need zarr.* pip install 'xrecal\[io\]'"):
        HINDCAST.recal.fit(TRUTH).save(tmp_path / "model.zarr")


def test_crashing_libraries_are_refused_and_excluded(tmp_path, monkeypatch):
    HINDCAST.recal.fit(TRUTH).save(tmp_path / "model.nc")
    monkeypatch.setattr("xrecal.inputs.libraries.version", lambda name: "1.7.4.post1")
    with pytest.raises(ImportError, match=r"netCDF4 1.7.4.post1 crashes .* use pip install"):
        xrecal.open_recalibrator(tmp_path / "model.nc")
    extras = PROJECT["optional-dependencies"].values()
    stated = [Requirement(one) for extra in extras for one in extra if one.startswith("netcdf4")]
    assert len(stated) == 2
    for version in (f"{one}{more}" for one in CRASHING for more in ("", ".post1", ".1.post1")):
        assert not any(one.specifier.contains(version) for one in stated)


def test_own_methods_cannot_be_stored(tmp_path):
    class Mine(xrecal.CKME):
        pass

    with pytest.raises(
        TypeError, match=r"method of the model holds .* of the type Mine, which cannot be"
    ):
        HINDCAST.recal.fit(TRUTH, Mine()).save(tmp_path / "model.nc")
