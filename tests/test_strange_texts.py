"""Names, units, labels and attributes of strangers reach a terminal without control characters."""

import json
import warnings

import pytest
import xarray as xr

import xrecal
from xrecal import diagnostics
from xrecal.chunks.texts import quoted

from .cli.files import run
from .strategies import ensemble_and_truth, new_cases

ODD = "\x1b]0;taken\x07\x1b[2J\r\x9b31m\u202e\x7f\x00"
"""Title of a window, bell, cleared screen, return, colour (C1), direction of writing, delete."""
SAFE = ODD.replace("\x00", "")  # which no file takes
HINDCAST, TRUTH = ensemble_and_truth()
NEW, _ = new_cases()
PARTS = ("name", "units", "label", "attribute", "coordinate", "dimension")


def strange(array, part, text=ODD):
    """Data with a text of a stranger in one of their parts, or in several."""
    if part == "most":
        for one in ("name", "units", "label", "coordinate"):
            array = strange(array, one, text)
        return array
    if part == "name":
        return array.rename(f"t2m{text}")
    if part in ("units", "attribute"):
        return array.assign_attrs({"units" if part == "units" else "standard_name": f"K{text}"})
    if part == "label":
        return array.assign_coords(lat=[f"{i}{text}" for i in range(array.sizes["lat"])])
    if part == "coordinate":
        return array.assign_coords({f"at{text}": f"here{text}"})
    return array.rename(lat=f"lat{text}")


def require_plain(text):
    odd = sorted({c for c in text if not c.isprintable() and c not in "\n\t"})
    assert not odd, (odd, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("K", "K"), ("°C", "°C"), ("\x1b[2J", "\\x1b[2J"), ("a\nb\x85", "a\\nb\\x85"), (3, "3")],
)
def test_quoted(text, shown):
    assert quoted(text) == shown
    assert quoted(shown) == shown


def calls(odd, plain, observations):
    """Calls on data of which some are odd, by names: some fail, some warn, some print."""

    def model():
        return odd.recal.fit(observations, xrecal.EMOS())

    return {
        "fit": lambda: repr(model()),
        "fitted variable": lambda: repr(next(iter(model().variables.values()))),
        "part": lambda: repr(odd.recal.summary(observations, n_resamples=20)[["crps"]]),
        "fit to others": lambda: odd.recal.fit(TRUTH.isel(lat=[0]), xrecal.EMOS()),
        "fit by other dimension": lambda: odd.recal.fit(observations, dim=f"no{ODD}"),
        "fit on few": lambda: odd[:6].recal.fit(observations, xrecal.EMOS()),
        "fit given a covariate": lambda: odd.recal.fit(observations, condition_on=f"no{ODD}"),
        "fit of parts": lambda: odd.chunk(time=7).recal.fit(observations),
        "fit of a Dataset": lambda: odd.to_dataset(name=f"a{ODD}").recal.fit({f"b{ODD}": TRUTH}),
        "apply to plain": lambda: model().apply(plain),
        "apply to odd": lambda: plain.recal.fit(observations, xrecal.EMOS()).apply(odd + 900),
        "apply to another unit": lambda: model().apply(odd.assign_attrs(units=f"m{ODD}")),
        "wrong call": lambda: model().apply(odd, **{f"no{ODD}": 1}),
        "crps": lambda: odd.recal.crps(TRUTH.isel(time=slice(0, 2)).rename(time="t")),
        "pit": lambda: diagnostics.pit(odd, TRUTH.rename(lat="y")),
        "summary": lambda: repr(odd.recal.summary(observations, n_resamples=20)),
        "compare": lambda: repr(xrecal.compare(odd, observations, [xrecal.EMOS(), xrecal.Raw()])),
        "plan": lambda: repr(xrecal.plan(odd, probe=False)),
        "threshold": lambda: odd.recal.exceedance(xr.DataArray([1.0], dims=f"x{ODD}")),
        "accessor": lambda: repr(odd.recal),
    }  # fmt: skip


NAMES = list(calls(HINDCAST, NEW, TRUTH))


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("part", PARTS)
def test_texts_of_python(part):
    odd, printed, raised = strange(HINDCAST, part), 0, 0
    for observations in (TRUTH, strange(TRUTH, part)):
        for name, call in calls(odd, NEW, observations).items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    found = call()
                    if isinstance(found, str):
                        require_plain(found)
                        printed += 1
                except Exception as error:
                    require_plain(f"{name}: {error}")
                    raised += 1
            for one in told:
                require_plain(str(one.message))
    assert printed
    assert raised


COMMANDS = (
    "fit hindcast truth model.nc --method emos",
    "fit hindcast plain model.zarr --method emos --overwrite",
    "fit hindcast truth model.zarr --method emos --dry-run",
    "apply model.zarr new out.nc --members 3",
    "apply model.zarr other out.nc --members 3 --variable no",
    "apply plain_model new out.nc --members 3",
    "score hindcast truth --summary",
    "score hindcast plain",
    "score hindcast truth --threshold 0 --score roc --json",
    "compare hindcast truth --method emos",
    "compare hindcast plain --method emos --dry-run",
    "monitor hindcast truth seen.nc --dim no",
    "monitor hindcast truth seen.nc --dry-run",
    "update model.zarr hindcast truth updated.zarr --dry-run",
    "cycle model.zarr --forecasts new --observations truth --output days --members 3",
    "cycle model.nc --forecasts n*w.nc --observations truth --output days --members 3",
)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    "part", ["most", *(pytest.param(one, marks=pytest.mark.slow) for one in PARTS)]
)
def test_texts_of_commands(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = {"hindcast": HINDCAST, "truth": TRUTH, "new": NEW}
    files = {name: strange(array, part, SAFE) for name, array in data.items()}
    files |= {"plain": TRUTH, "other": NEW}
    for name, array in files.items():
        named = array if array.name is not None else array.rename("t2m")
        for label, coordinate in named.coords.items():
            if coordinate.dtype.kind == "U":
                named = named.assign_coords({label: coordinate.astype(object)})
        named.to_dataset().to_zarr(f"{name}.zarr", consolidated=False)
    run("fit", "hindcast.zarr", "truth.zarr", "model.zarr", "--method", "emos")
    run("fit", "other.zarr", "plain.zarr", "plain_model.zarr", "--method", "emos")
    codes = set()
    for command in COMMANDS:
        words = [f"{word}.zarr" if word in files else word for word in command.split()]
        done = run(*("plain_model.zarr" if word == "plain_model" else word for word in words))
        require_plain(done.out + done.err)
        codes.add(done.code)
        if "--json" in words:
            json.loads(done.out)
    assert 3 in codes


def test_line_ends_of_strangers_make_no_lines():
    odd = {"units": "K\nwarning: all is well"}
    array = HINDCAST.rename("t2m\nwarning: all is well").assign_attrs(odd)
    model = array.recal.fit(TRUTH.assign_attrs(odd), xrecal.EMOS())
    assert "\nwarning" not in repr(model)
    assert "t2m\\nwarning" in repr(model)
    kept = array.recal.fit(TRUTH.assign_attrs(odd), xrecal.CKME())
    with pytest.warns(UserWarning, match="far from the hindcast") as told:
        kept.quantile(NEW.rename(array.name).assign_attrs(odd) + 9000, [0.5])
    with pytest.raises(ValueError, match=r"K\\nwarning: all is well but") as refused:
        array.recal.fit(TRUTH, xrecal.EMOS())
    assert not any("\n" in str(one.message) for one in told)
    assert "\n" not in str(refused.value)
