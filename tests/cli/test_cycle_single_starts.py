"""A cycle of files that each hold one start, one lead or one place, told by scalar coordinates."""

import numpy as np
import pytest
import xarray as xr

import xrecal

from .days import LEARNED, STARTS, first_fit, truth_and_forecasts, write
from .files import run

TRUTH, FORECASTS = truth_and_forecasts()
SOIL = ("init", np.random.default_rng(5).normal(size=STARTS.size))
VALID = (("init", "lead"), (FORECASTS["init"] + FORECASTS["lead"].astype("timedelta64[D]")).data)
NEW = slice(LEARNED, LEARNED + 2)
KNOWN = TRUTH.sel(time=slice(None, STARTS[LEARNED - 1]))


def morning(folder, model, given, truth=(TRUTH,)):
    """What a cycle issues from files, and what it prints."""
    days = first_fit(folder)
    model.save(days.model, overwrite=True)
    args = [x for x in days.args(STARTS[45]) if x not in (days.forecasts, days.observations)]
    args = [x for x in args if x not in ("--forecasts", "--observations")]
    for option, arrays in {"--forecasts": given, "--observations": truth}.items():
        for i, array in enumerate(arrays):
            path = folder / f"{option[2:]}{i}.nc"
            write(array, path)
            args += [option, path]
    done = run(*args)
    issued = sorted((days.output / "forecasts").glob("*.nc"))
    return done, [xr.load_dataset(path, decode_timedelta=False)["t2m"].values for path in issued]


@pytest.mark.parametrize("truth", [TRUTH, KNOWN], ids=["learned", "nothing learned"])
def test_each_start_has_its_own_covariate(tmp_path, truth):
    given = FORECASTS.assign_coords(soil=SOIL)
    model = given[:LEARNED].recal.fit(KNOWN, xrecal.EMOS(), condition_on="soil")
    results = []
    for name, parts in {"one": [given[NEW]], "each": list(given[NEW])}.items():
        (tmp_path / name).mkdir()
        done, issued = morning(tmp_path / name, model, parts, [truth])
        assert done.code == 0, done.err
        assert len(issued) == 2
        results.append(issued)
    np.testing.assert_array_equal(*results)


def test_each_start_has_its_own_valid_times(tmp_path):
    bare = FORECASTS.assign_coords(valid_time=VALID, lead=[1, 3])  # the leads have no unit
    model = bare[:LEARNED].recal.fit(KNOWN, xrecal.EMOS())
    done, issued = morning(tmp_path, model, list(bare[NEW]), [TRUTH[:44]])
    assert (done.code, done.err) == (0, "")
    assert len(issued) == 2
    assert done.data["scored"] == 6  # one lead has not verified at two places


@pytest.mark.parametrize("dim", ["lead", "place"])
def test_files_of_several_places_do_not_become_one(tmp_path, dim):
    at = [FORECASTS.isel({dim: i}) for i in (0, 1)]
    own = KNOWN.isel(place=0) if dim == "place" else KNOWN
    model = at[0][:LEARNED].recal.fit(own, xrecal.EMOS())
    truth = [TRUTH.isel(place=0)] if dim == "place" else [TRUTH]
    done, issued = morning(tmp_path, model, [at[0][40], at[1][41]], truth)
    assert (done.code, issued) == (3, [])
    first, other = (f"{tmp_path}/forecasts{i}.nc" for i in (0, 1))
    assert f"{other} does not match {first}: {other} has the {dim} " in done.err


def test_observations_of_another_place_do_not_replace_those_of_a_place(tmp_path):
    model = FORECASTS[:LEARNED, :, 0].recal.fit(KNOWN[:, 0], xrecal.EMOS())
    truth = [TRUTH[:, 0], TRUTH[:, 1]]
    done, issued = morning(tmp_path, model, [FORECASTS[NEW, :, 0]], truth)
    assert (done.code, issued) == (3, [])
    assert "has the place 1, and " in done.err
    assert "has 0; put both along 'place' in one file" in done.err
