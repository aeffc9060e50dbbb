"""Warnings of leads and places that a pooled fit has not learned from."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random

METHOD = xrecal.CKME(ridge=0.1, solver="exact")
MONTHS, DAYS = {"units": "months"}, {"units": "days"}


def over(name, labels, attrs=None):
    """Forecasts and observations at labels along a dimension."""
    coords = {name: (name, labels, attrs)}
    few = random("time", "lat", "member"), random("time", "lat", seed=1)
    both = [one.isel(lat=[0] * len(labels), time=slice(12)) for one in few]
    return [one.drop_vars("lat", errors="ignore").rename(lat=name).assign_coords(coords)
            for one in both]  # fmt: skip


def pooled(name, labels, attrs=None, **options):
    hindcast, truth = over(name, labels, attrs)
    return hindcast.recal.fit(truth, METHOD, pool=name, min_samples=2, **options), hindcast


HOURS = np.array([24, 48, 72], "timedelta64[h]").astype("timedelta64[ns]")
NEW = {
    "leads": (("lead", [0, 1, 2, 3], MONTHS), [1, 9], MONTHS, "9 months", "0, 1, 2, 3 months"),
    "without units": (("lead", [0, 1]), [1, 9], None, "9", "0, 1"),
    "other units": (("lead", [24, 48], {"units": "hours"}), [2, 3], DAYS, "3 days", "24, 48 hours"),
    "lengths": (("step", HOURS), [1, 4], DAYS, "4 days", "1 days, 2 days, 3 days"),
    "latitudes": (("lat", [10.0, 20.0]), [10.0, 20.5], None, "20.5", "10.0, 20.0"),
    "stations": (("station", ["a", "b"]), ["a", "c"], None, "c", "a, b"),
    "many": (
        ("station", list("abcdefgh")),
        ["a", "z"],
        None,
        "z",
        "a, b, c, d, e, f, ... (8 in all)",
    ),
}
KNOWN = {
    "some": (("lead", [0, 1, 2, 3], MONTHS), [2, 0], MONTHS),
    "leads between": (("lead", [0, 1, 3], MONTHS), [2], MONTHS),
    "leads between in other units": (("lead", [24, 72], {"units": "hours"}), [2], DAYS),
    "single precision": (("lat", [10.1, 20.2]), np.float32([20.2, 10.1]), None),
    "around the globe": (("lon", [0.0, 350.0]), [-10.0, 360.0], None),
    "unit": (("lead", [24, 48], {"units": "hours"}), [1, 2], DAYS),
    "calendar": (("lead", [1, 2], MONTHS), [30, 60], DAYS),
    "text and numbers": (("station", ["a", "b"]), [1, 2], None),
}


@pytest.mark.parametrize("case", NEW)
def test_labels_that_the_hindcast_did_not_have(case):
    given, labels, attrs, new, known = NEW[case]
    model, _ = pooled(*given)
    forecast, _ = over(given[0], labels, attrs)
    with pytest.warns(UserWarning, match="did not have") as caught:
        model.quantile(forecast, 0.5)
    assert [str(w.message) for w in caught] == [
        f"forecast has labels along {given[0]!r} that the hindcast of the model did not have, "
        f"{new}; it had {known}. As cases are pooled over {given[0]!r}, xrecal "
        "recalibrates these forecasts like all others. If the new labels differ from known ones, "
        "select known labels, or fit with a hindcast that has the new labels"
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("case", KNOWN)
def test_labels_that_it_had_or_that_cannot_be_compared(case):
    given, labels, attrs = KNOWN[case]
    model, _ = pooled(*given)
    with warnings.catch_warnings(record=True, action="always") as caught:
        median = model.quantile(over(given[0], labels, attrs)[0], 0.5)
    assert not caught
    assert median.notnull().all()


@pytest.mark.parametrize("name", ["lead", "lat"])
def test_a_single_label(name):
    model, hindcast = pooled(name, [0, 1])
    one = hindcast.isel({name: 0})
    model.mean(one if name == "lead" else one.expand_dims(name))
    with pytest.warns(UserWarning, match=f"labels along '{name}' .* did not have, 9; it had 0, 1"):
        model.mean(one.assign_coords({name: 9}).expand_dims(name))
    with pytest.warns(UserWarning, match="did not have, 9; it had 0, 1"):
        model.mean(one.assign_coords({name: 9}))


def test_no_labels_no_warning():
    hindcast, truth = (one.drop_vars("station") for one in over("station", ["a", "b"]))
    model = hindcast.recal.fit(truth, METHOD, pool="station", min_samples=2)
    other = pooled("station", ["a", "b"])[0]
    with warnings.catch_warnings(record=True, action="always") as caught:
        means = model.mean(over("station", ["y", "z"])[0]), other.mean(hindcast)
    assert not caught
    assert all(mean.notnull().all() for mean in means)


def test_several_variables_are_one_warning():
    hindcast, truth = over("lead", [0, 1])
    both = xr.Dataset({"a": hindcast, "b": hindcast})
    model = both.recal.fit(xr.Dataset({"a": truth, "b": truth}), METHOD, pool="lead", min_samples=2)
    with pytest.warns(UserWarning, match="did not have") as caught:
        model.mean(both.assign_coords(lead=[0, 7]))
    assert len(caught) == 1
