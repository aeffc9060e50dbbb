"""Odd names, labels, attributes and arrays: results as with ordinary ones, or an error early on.

``ODD`` is the list. What is odd is in all inputs, unless said otherwise; results are compared with
those of the ordinary inputs, or the error is one that says what to type.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import dask.array
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.diagnostics.calls import EVIDENCE

METHODS = {
    "emos": xrecal.EMOS(),
    "ckme": xrecal.CKME(folds="block"),
    "pool": xrecal.LinearPool((xrecal.CKME(support="errors", folds="block"), xrecal.EMOS())),
    "climatology": xrecal.Climatology(),
}
N, M, NEW = 30, 4, 6


class Inputs(NamedTuple):
    hindcast: xr.DataArray
    truth: xr.DataArray
    new: xr.DataArray
    verified: xr.DataArray


@cache
def ordinary() -> Inputs:
    """Hindcast and observations of two places, and forecasts after them with what verified."""
    rng = np.random.default_rng(0)
    signal = 3 * rng.normal(size=(N + NEW, 2))
    truth = 280 + signal + rng.normal(size=signal.shape)
    members = 282 + signal[:, None] + 0.6 * rng.normal(size=(N + NEW, M, 2))
    dates = np.datetime64("2001-01-15", "ns") + np.arange(N + NEW) * np.timedelta64(30, "D")
    coords, attrs = {"time": dates, "place": ["a", "b"]}, {"units": "K"}
    hindcast = xr.DataArray(members, coords, ["time", "member", "place"], "t2m", attrs)
    observed = xr.DataArray(truth, coords, ["time", "place"], "t2m", attrs)
    return Inputs(hindcast[:N], observed[:N], hindcast[N:], observed[N:])


Change = Callable[[Inputs], Inputs]


def everywhere(change: Callable[[xr.DataArray], xr.DataArray]) -> Change:
    return lambda inputs: Inputs(*(change(array.copy()) for array in inputs))


def in_forecasts(change: Callable[[xr.DataArray], xr.DataArray]) -> Change:
    return lambda given: given._replace(
        hindcast=change(given.hindcast.copy()), new=change(given.new.copy())
    )


def in_observations(change: Callable[[xr.DataArray], xr.DataArray]) -> Change:
    return lambda given: given._replace(
        truth=change(given.truth.copy()), verified=change(given.verified.copy())
    )


def in_hindcast(change: Callable[[xr.DataArray], xr.DataArray]) -> Change:
    return lambda given: given._replace(hindcast=change(given.hindcast.copy()))


def renamed(old: str, new: Any) -> Change:
    return everywhere(
        lambda a: a.drop_vars(old, errors="ignore").rename({old: new}) if old in a.dims else a
    )


def named(name: Any) -> Change:
    return everywhere(lambda a: a.rename(name))


def attribute(name: Any, value: Any, of: str | None = None) -> Change:
    def change(array: xr.DataArray) -> xr.DataArray:
        described = array if of is None else array[of].copy()
        described.attrs[name] = value
        return array if of is None else array.assign_coords({of: described})

    return everywhere(change)


def scalars(**coords: Any) -> Change:
    return everywhere(lambda a: a.assign_coords(coords))


def places(labels: Any) -> Change:
    return everywhere(lambda a: a.assign_coords(place=labels))


def dates(change: Callable[[Any], Any]) -> Change:
    return everywhere(lambda a: a.assign_coords(time=change(a["time"].to_numpy().copy())))


def put(labels: Any, value: Any) -> Any:
    labels[3] = value
    return labels


def levels(dim: str, values: Any) -> Change:
    """Members as quantiles: of equal masses, so that both are one distribution."""

    def change(array: xr.DataArray) -> xr.DataArray:
        ordered = array.copy(data=np.sort(array, axis=1))
        return ordered.rename(member=dim).assign_coords({dim: values})

    return in_forecasts(change)


def of_dtype(dtype: Any) -> Callable[[xr.DataArray], xr.DataArray]:
    return lambda array: array.astype(dtype)


def stored_as(change: Callable[[Any], Any]) -> Change:
    """The same values in another kind of array."""
    return everywhere(
        lambda a: xr.DataArray(change(a.to_numpy()), a.coords, a.dims, a.name, a.attrs)
    )


def read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


def strided(values: Any) -> Any:
    return np.repeat(values, 2, axis=-1)[..., ::2]


def of_unknown_length(array: xr.DataArray) -> xr.DataArray:
    lazy = dask.array.from_array(array.to_numpy(), chunks=(10, *array.shape[1:]))
    known = dask.array.from_array(np.ones(len(array), bool), chunks=10)
    return xr.DataArray(lazy[known], dims=array.dims, name=array.name, attrs=array.attrs)


def several_levels(array: xr.DataArray, dim: str, **of: Any) -> xr.DataArray:
    index = pd.MultiIndex.from_arrays(list(of.values()), names=list(of))
    labels = xr.Coordinates.from_pandas_multiindex(index, dim)
    return array.drop_vars(dim, errors="ignore").assign_coords(labels)


def runs_of_members(array: xr.DataArray) -> xr.DataArray:
    if "member" not in array.dims:
        return array
    runs = np.arange(array.sizes["time"] * M).reshape(-1, M)
    return array.assign_coords(run=(("time", "member"), runs))


def no_places(inputs: Inputs) -> Inputs:
    return Inputs(*(array.isel(place=slice(0)) for array in inputs))


SHUFFLED = np.random.default_rng(1).permutation(N)
NOT_TEXT = r"which is not text; use hindcast.rename\("
USED = "has a name that xrecal uses; rename it"
NUMBERS = r"needs float32 or float64: hindcast.astype\('float64'\)"

ODD: dict[str, tuple[Change, str | None]] = {
    # names of the variable
    "variable member": (named("member"), r"rename\('forecast'\)"),
    "variable time": (named("time"), r"rename\('forecast'\)"),
    "variable place": (named("place"), r"rename\('forecast'\)"),
    "variable of a coordinate": (scalars(t2m=3.0), r"rename\('forecast'\)"),
    "variable None": (named(None), None),
    "variable 5": (named(5), None),
    "variable tuple": (named(("a", 1)), None),
    "variable status": (named("status"), None),
    "variable ridge": (named("ridge"), None),
    "variable calibration": (named("calibration"), None),
    # names of dimensions
    "place 0": (renamed("place", 0), NOT_TEXT),
    "place tuple": (renamed("place", ("a", "b")), NOT_TEXT),
    "place None": (renamed("place", None), NOT_TEXT),
    "time 3": (renamed("time", 3), NOT_TEXT),
    "time tuple": (renamed("time", ("a", 0)), NOT_TEXT),
    "member 1": (renamed("member", 1), NOT_TEXT),
    "member tuple": (renamed("member", ("a", 0)), NOT_TEXT),
    "member status": (renamed("member", "status"), None),
    "member calibration": (renamed("member", "calibration"), None),
    "time calibration": (renamed("time", "calibration"), USED),
    "time observations": (renamed("time", "observations"), USED),
    # levels
    "percentile 0-1": (
        levels("percentile", [0.125, 0.375, 0.625, 0.875]),
        r"rename\(percentile='quantile'\)",
    ),
    "quantile 0-100": (
        levels("quantile", [12.5, 37.5, 62.5, 87.5]),
        r"rename\(quantile='percentile'\)",
    ),
    "percentile of texts": (levels("percentile", list("abcd")), "different numbers from 0 to 100"),
    "quantile twice": (levels("quantile", [0.1, 0.1, 0.5, 0.9]), "different numbers from 0 to 1"),
    # units and other attributes
    "units 1": (attribute("units", 1), None),
    "units list": (attribute("units", ["K"]), None),
    "units array": (attribute("units", np.array(["K", "degC"])), None),
    "units NaN": (attribute("units", np.nan), None),
    "units None": (attribute("units", None), None),
    "units 1 of places": (attribute("units", 1, of="place"), None),
    "units 1 of observations alone": (
        in_observations(lambda a: a.assign_attrs(units=1)),
        "hindcast is in K but observations are in 1; convert",
    ),
    "attribute 4": (attribute(4, "x"), None),
    "attribute None": (attribute(None, "x"), None),
    "attribute tuple": (attribute((1, 2), "x"), None),
    "attribute without letters": (attribute("", "x"), None),
    "attribute 4 of places": (attribute(4, "x", of="place"), None),
    "attribute tuple of places": (attribute((1, 2), "x", of="place"), None),
    "attribute _FillValue": (attribute("_FillValue", 5.0), None),
    "attribute scale_factor": (attribute("scale_factor", 0.1), None),
    "attribute dict": (attribute("about", {"a": 1}), None),
    "long_name array": (attribute("long_name", np.array(["a", "b"])), None),
    "history array": (attribute("history", np.arange(3)), None),
    "table as attribute": (attribute("flags", np.ones((2, 2))), None),
    "standard_name array of dates": (attribute("standard_name", np.arange(2), of="time"), None),
    "standard_name list of places": (attribute("standard_name", ["a", "b"], of="place"), None),
    "standard_name array of places": (attribute("standard_name", np.arange(2), of="place"), None),
    "ancillary_variables array": (attribute("ancillary_variables", np.array(["a", "b"])), None),
    "period array": (attribute("circular_period", np.array([360.0])), "positive number"),
    # lengths
    "no hindcast": (
        lambda given: given._replace(hindcast=given.hindcast[:0]),
        "no label along 'time' is common to hindcast",
    ),
    "no member": (in_forecasts(lambda a: a[:, :0]), "'member' has length 0"),
    "no lead": (in_forecasts(lambda a: a.expand_dims(step=[])), r"step.attrs\[\"units\"\]"),
    "hindcast of unknown length": (in_hindcast(of_unknown_length), "compute_chunk_sizes"),
    "observations of unknown length": (
        in_observations(of_unknown_length),
        r"use observations.copy\(data=observations.data.compute_chunk_sizes\(\)\)",
    ),
    # labels of places
    "places alike": (places(["a", "a"]), None),
    "place NaN": (places([1.0, np.nan]), None),
    "places NaN": (places([np.nan, np.nan]), None),
    "place NaT": (places(np.array(["2000-01-01", "NaT"], "M8[ns]")), None),
    "places of truth": (places([True, False]), None),
    "places of float16": (places(np.array([1, 2], "f2")), None),
    "places of big-endian numbers": (
        places(np.array([1, 2], ">f8")),
        r"assign_coords\(place=hindcast\['place'\].astype\('float64'\)\)",
    ),
    "places of categories": (places(pd.CategoricalIndex(["a", "b"])), None),
    "places of several levels": (
        everywhere(lambda a: several_levels(a, "place", lat=[1.0, 2.0], lon=[3.0, 4.0])),
        None,
    ),
    # labels of cases
    "dates alike": (dates(lambda t: put(t, t[2])), r"drop_duplicates\('time'\)"),
    "date NaT": (dates(lambda t: put(t, "NaT")), r"isel\(\{'time': hindcast\['time'\].notnull"),
    "case NaN": (dates(lambda t: put(np.arange(t.size) + 0.5, np.nan)), "1 of 30 labels"),
    "dates as text": (dates(lambda t: t.astype("M8[D]").astype(str)), None),
    "dates in seconds": (dates(lambda t: t.astype("M8[s]")), None),
    "dates out of order": (in_hindcast(lambda a: a.isel(time=SHUFFLED)), None),
    "dates in another order observed": (in_observations(lambda a: a[::-1]), None),
    "cases of big-endian numbers": (
        dates(lambda t: np.arange(t.size).astype(">i4")),
        r"assign_coords\(time=hindcast\['time'\].astype\('int32'\)\)",
    ),
    # values
    "members whole": (in_forecasts(of_dtype(int)), NUMBERS),
    "members of truth": (in_forecasts(lambda a: a > 280), NUMBERS),
    "members of float16": (in_forecasts(of_dtype(np.float16)), NUMBERS),
    "members as objects": (in_forecasts(of_dtype(object)), NUMBERS),
    "members complex": (in_forecasts(of_dtype(complex)), NUMBERS),
    "members as text": (in_forecasts(of_dtype(str)), NUMBERS),
    "members big-endian": (in_forecasts(of_dtype(">f8")), NUMBERS),
    "observations whole": (in_observations(of_dtype(int)), r"observations.astype\('float64'\)"),
    "observations as objects": (in_observations(of_dtype(object)), "float64"),
    "observations big-endian": (in_observations(of_dtype(">f8")), "float64"),
    "read-only": (stored_as(read_only), None),
    "not contiguous": (stored_as(strided), None),
    "in Fortran's order": (stored_as(np.asfortranarray), None),
    "from the end": (stored_as(lambda values: values[::-1].copy()[::-1]), None),
    "masked": (stored_as(np.ma.masked_array), None),
    # coordinates
    "members with runs by case": (everywhere(runs_of_members), None),
    "members as letters": (in_forecasts(lambda a: a.assign_coords(member=list("abcd"))), None),
    "members alike": (in_forecasts(lambda a: a.assign_coords(member=[0, 0, 1, 1])), None),
    "member NaN": (in_forecasts(lambda a: a.assign_coords(member=[0, np.nan, 1, 2])), None),
    "other members": (
        lambda given: given._replace(
            hindcast=given.hindcast.assign_coords(member=range(M)),
            new=given.new.assign_coords(member=range(7, 7 + M)),
        ),
        None,
    ),
    "members of several levels": (
        in_forecasts(lambda a: several_levels(a, "member", p=[0, 0, 1, 1], q=[0, 1, 0, 1])),
        None,
    ),
    "scalar quantile": (scalars(quantile=0.5), None),
    "scalar percentile": (scalars(percentile=50), None),
    "scalar threshold": (scalars(threshold=3.0), None),
    "scalar calibration": (scalars(calibration=3), None),
    "scalar init": (scalars(init=np.datetime64("2000-01-01", "ns")), None),
    "scalar 1": (everywhere(lambda a: a.assign_coords({1: 3})), NOT_TEXT),
    "scalar tuple": (everywhere(lambda a: a.assign_coords({("a", 1): 3})), NOT_TEXT),
    "places with status": (everywhere(lambda a: a.assign_coords(status=("place", [1, 2]))), None),
    "dates with loc": (
        everywhere(lambda a: a.assign_coords(loc=("time", np.arange(len(a))))),
        None,
    ),
    "dates with NaT": (
        everywhere(lambda a: a.assign_coords(valid_time=a["time"].where(a["time"].isnull()))),
        None,
    ),
}

PRODUCTS = {
    "apply": lambda model, given: model.apply(given.new),
    "quantile": lambda model, given: model.quantile(given.new, [0.1, 0.9]),
    "exceedance": lambda model, given: model.exceedance(given.new, [280.0, 283.0]),
    "crps": lambda model, given: model.crps(given.new, given.verified),
}


def fitted(given: Inputs, method: str) -> xrecal.Recalibrator:
    roles = {"dim": given.truth.dims[0], "member_dim": given.hindcast.dims[-2]}
    return given.hindcast.recal.fit(given.truth, METHODS[method], min_samples=10, **roles)


@cache
def expected(method: str, product: str) -> Any:
    return PRODUCTS[product](fitted(ordinary(), method), ordinary())


def same(found: Any, wanted: Any) -> None:
    """The same values, along dimensions in the same order, whatever all names are."""
    found, wanted = (
        list(result.values()) if isinstance(result, xr.Dataset) else [result]
        for result in (found, wanted)
    )
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a.to_numpy(), b.to_numpy())


def stored(model: xrecal.Recalibrator, path: Any) -> xrecal.Recalibrator:
    model.save(path)
    return xrecal.open_recalibrator(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("odd", ODD)
def test_odd_inputs(odd):
    """By a method each, in turn; a slow test has all of them, and all products."""
    method = list(METHODS)[list(ODD).index(odd) % len(METHODS)]
    change, message = ODD[odd]
    given = change(ordinary())
    if message is not None:
        with pytest.raises((ValueError, TypeError), match=message):
            fitted(given, method)
        return
    model = fitted(given, method)
    for product in ("apply", "quantile"):
        same(PRODUCTS[product](model, given), expected(method, product))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", [odd for odd, (_, message) in ODD.items() if message is None])
def test_odd_inputs_by_each_method(odd, method, tmp_path):
    given = ODD[odd][0](ordinary())
    model = fitted(given, method)
    assert model._repr_html_()
    for product, make in PRODUCTS.items():
        same(make(model, given), expected(method, product))
    for path in (tmp_path / "model.nc", tmp_path / "model.zarr"):
        same(PRODUCTS["quantile"](stored(model, path), given), expected(method, "quantile"))


# what is odd in the new forecasts alone, or when models are stored --------------------------------

ODD_FORECASTS = {
    "whole": (of_dtype(int), r"forecast.astype\('float64'\)"),
    "big-endian": (of_dtype(">f8"), r"forecast.astype\('float64'\)"),
    "of unknown length": (of_unknown_length, r"copy\(data=forecast.data.compute_chunk_sizes\(\)\)"),
    "scalar component": (
        lambda a: a.assign_coords(component="x"),
        r"rename it: forecast.rename\(component=...\)",
    ),
    "scalar calibration_time": (
        lambda a: a.assign_coords(calibration_time=3),
        r"rename it: forecast.rename\(calibration_time=...\)",
    ),
    "scalar t2m_weight": (
        lambda a: a.assign_coords(t2m_weight=3),
        r"rename it: forecast.rename\(t2m_weight=...\)",
    ),
    "variable component": (lambda a: a.rename("component"), "name of a coordinate of the result"),
}


@pytest.mark.parametrize("odd", ODD_FORECASTS)
def test_odd_forecasts(odd):
    change, message = ODD_FORECASTS[odd]
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(ordinary(), "pool").apply(change(ordinary().new))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["a", None], object), "use numbers, dates or text"),
        (pd.interval_range(0, 2), "use numbers, dates"),
    ],
)
def test_labels_that_no_file_holds(labels, message, tmp_path):
    """Results are as with other labels; storing names what to use."""
    given = places(labels)(ordinary())
    model = fitted(given, "climatology")
    same(PRODUCTS["quantile"](model, given), expected("climatology", "quantile"))
    with pytest.raises(TypeError, match=f"'place'.*{message}"):
        model.save(tmp_path / "model.nc")


def test_nowhere():
    given = Inputs(*(array.isel(place=slice(0)) for array in ordinary()))
    for method in METHODS:
        model = fitted(given, method)
        assert "place 0" in repr(model)
        assert PRODUCTS["quantile"](model, given).shape == (NEW, 2, 0)


# names that are ours ------------------------------------------------------------------------------

NAMES = (
    *("loc", "scale", "weight", "weights", "status", "n_cases", "ridge", "observations", "novelty"),
    *("case", "calibration", "component", "coefficient", "slot", "new_member", "level", "support"),
)
"""Of locations; a slow test has all names that there are in states and results."""


def outcome(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call returns, or the message of its error."""
    try:
        return call(), ""
    except ValueError as error:
        return None, str(error)


def works_or_is_refused(name: str, method: str, products: Any) -> None:
    given = renamed("place", name)(ordinary())
    model, message = outcome(lambda: fitted(given, method))
    if name == given.hindcast.name:
        assert f"hindcast has the name {name!r}, which is one of its dimensions" in message
        return
    if message:
        assert f"dimension {name!r} has a name that xrecal uses; rename it" in message
        return
    for product in products:
        found, message = outcome(lambda product=product: PRODUCTS[product](model, given))
        if message:
            assert f"rename it: forecast.rename({name}=...)" in message
        else:
            same(found, expected(method, product))


@pytest.mark.parametrize("name", NAMES)
def test_locations_with_names_of_ours(name):
    for method in ("emos", "ckme"):
        works_or_is_refused(name, method, ["apply"])


@cache
def names_of_ours() -> list[str]:
    """All names in states, products and evidence."""
    names: set[Any] = set(NAMES)
    given = ordinary()
    for method in METHODS:
        model = fitted(given, method)
        for result in (model.to_dataset(), *(expected(method, product) for product in PRODUCTS)):
            names |= {*result.dims, *result.coords, *getattr(result, "data_vars", ())}
    for judge in EVIDENCE.values():
        result = judge(given.hindcast, given.truth)
        names |= {*result.dims, *result.variables}
    return sorted(names - {*given.hindcast.dims})


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_locations_with_any_name_of_ours(method):
    names = names_of_ours()
    assert len(names) > 100
    for name in names:
        works_or_is_refused(name, method, PRODUCTS)


@pytest.mark.parametrize("method", METHODS)
def test_scalars_with_any_name_of_ours(method):
    """Coordinates of the forecasts stay where the result has no such name."""
    given = ordinary()
    names = [*(n for n in NAMES if n != "component"), *fitted(given, method).state.variables]
    taken = {"component", "calibration_time", *given.hindcast.coords}
    odd = scalars(**{str(name): 1.0 for name in names if name not in taken})(given)
    model = fitted(odd, method)
    found = model.apply(odd.new)
    same(found, expected(method, "apply"))
    assert found.coords["status"] == 1


@pytest.mark.parametrize("judge", EVIDENCE)
def test_evidence_at_locations_with_names_of_its_own(judge):
    """Each name of a result: refused as a dimension, and no obstacle as a coordinate."""
    given = ordinary()
    plain = EVIDENCE[judge](given.hindcast, given.truth)
    own = [*plain.dims, *plain.data_vars]
    for name in own:
        if name in (*given.hindcast.dims, "quantile"):  # which would be another role
            continue
        odd = renamed("place", name)(given)
        with pytest.raises(ValueError, match=rf"rename it: forecast.rename\({name}=...\)"):
            EVIDENCE[judge](odd.hindcast, odd.truth)
    named = {str(name): 1.0 for name in plain.data_vars}
    same(EVIDENCE[judge](given.hindcast.assign_coords(named), given.truth), plain)


# little memory ------------------------------------------------------------------------------------


FIT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
import numpy as np
import xarray as xr
import xrecal
truth = 280 + 3 * np.random.default_rng(0).normal(size=60)
hindcast = xr.DataArray(truth[:, None] + [-1.0, 0.5, 2.0], dims=["time", "member"])
observed = xr.DataArray(truth, dims="time")
for method in (xrecal.EMOS(), xrecal.CKME()):
    print(hindcast.recal.fit(observed, method).crps(hindcast, observed).mean().item())
"""


@pytest.mark.slow
def test_a_fit_in_four_gigabytes_of_addresses():
    """As clusters limit them; libraries reserve many more than they use."""
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(0 < float(score) < 2 for score in done.stdout.split())
