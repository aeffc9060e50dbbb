"""What a comparison says of a method that has the best CRPS and is not calibrated."""

import numpy as np
import pytest
import xarray as xr

import xrecal

LABELS = ["raw", "climatology", "EMOS"]


def table(p_of_pit, p_of_skce, *, mean=0.5, variance=1.0, crps=(2.0, 3.0, 1.0)):
    """Foot of the table of a comparison of three methods, the last the best."""
    n_places = np.shape(p_of_pit)[1] if np.ndim(p_of_pit) > 1 else None
    dims = ["method"] if n_places is None else ["method", "place"]
    shape = (3,) if n_places is None else (3, n_places)
    every = {
        "crps": np.array(crps).reshape(3, *[1] * (len(shape) - 1)) * np.ones(shape),
        "pit_p_value": np.asarray(p_of_pit, float),
        "skce_p_value": np.asarray(p_of_skce, float),
        "pit_mean": np.full(shape, mean),
        "pit_variance": np.full(shape, variance),
    }
    variables = {name: (dims, values) for name, values in every.items()}
    variables["n_cases"] = (dims[1:], np.full(shape[1:], 100))
    return repr(xrecal.diagnostics.comparison.Comparison(variables, {"method": LABELS}))


@pytest.mark.parametrize(
    ("mean", "variance", "told"),
    [
        (0.4, 1.0, "forecasts are too high (mean PIT 0.40, not 0.5)"),
        (0.6, 1.0, "forecasts are too low (mean PIT 0.60, not 0.5)"),
        (0.5, 1.5, "forecasts are too narrow (PIT varies 1.50 times as much as it should)"),
        (0.5, 0.6, "forecasts are too wide (PIT varies 0.60 times as much as it should)"),
        (0.4, 1.5, "too high (mean PIT 0.40, not 0.5) and too narrow (PIT varies 1.50 times"),
        (0.52, 1.1, "forecasts are of another shape than the observations"),
    ],
)
def test_a_pit_that_is_not_flat_has_a_reason(mean, variance, told):
    text = table([0.5, 0.5, 0.001], [0.5] * 3, mean=mean, variance=variance)
    assert "EMOS has the best CRPS, but PIT rejects it (p = 0.001): forecasts are" in text
    assert told in text
    assert text.endswith("; raw, which neither test rejects, has a CRPS 100.0% higher")


def test_the_skce_says_that_it_depends_on_the_forecast():
    text = table([0.5] * 3, [0.5, 0.001, 0.0001])
    assert "SKCE rejects it (p <0.001): calibrated on average, but not given the forecast" in text


def test_no_remark_where_both_tests_accept_the_best():
    assert "but" not in table([0.001, 0.001, 0.5], [0.001, 0.001, 0.5], mean=0.4)
    assert "but" not in table([np.nan] * 3, [np.nan] * 3, crps=[np.nan] * 3)


def test_climatology_without_the_held_out_cases_is_explained():
    rng = np.random.default_rng(3)
    years = xr.date_range("1981-01-15", periods=30, freq="YS")
    truth = xr.DataArray(rng.normal(size=(30, 12)), {"time": years}, ["time", "place"])
    noise = xr.DataArray(rng.normal(size=(30, 12, 9)), truth.coords, ["time", "place", "member"])
    found = xrecal.compare(noise, truth, [xrecal.Raw()], by="year")
    assert int((found.sel(method="climatology")["skce_p_value"] < 0.05).sum()) > 6
    assert "climatology has the best CRPS; tests may reject it only because" in repr(found)
    assert "neither test rejects" not in repr(found)
    rolling = found.assign_attrs(cross_validation="by='rolling', every=1")
    assert "tests may reject it" not in repr(rolling)
    assert "climatology has the best CRPS, but SKCE rejects it" in repr(rolling)


def test_no_other_is_named_where_all_are_rejected():
    text = table([0.001] * 3, [0.5] * 3)
    assert "EMOS has the best CRPS, but PIT rejects it" in text
    assert "neither" not in text


def test_over_several_locations_rejections_are_counted():
    pits = [[0.5] * 4, [0.5] * 4, [0.001, 0.001, 0.5, 0.5]]
    text = table(pits, np.full((3, 4), 0.5), variance=1.4)
    assert "PIT rejects it (at 2 of 4 locations): forecasts are too narrow" in text


def test_moments_are_those_of_the_transforms():
    rng = np.random.default_rng(0)
    truth = xr.DataArray(3 * rng.normal(size=200), {"time": np.arange(200)}, ["time"])
    spread = 0.4 * rng.normal(size=(200, 20))
    narrow = xr.DataArray(
        truth.values[:, np.newaxis] + 0.5 * rng.normal(size=(200, 1)) + spread - 1,
        {"time": np.arange(200)},
        ["time", "member"],
    )
    found = xrecal.compare(narrow, truth, {"Raw": xrecal.Raw()}, blocks=3)
    pit = narrow.recal.pit(truth)
    raw = found.sel(method="raw")
    np.testing.assert_allclose(raw["pit_mean"], pit.mean(), rtol=1e-12)
    np.testing.assert_allclose(raw["pit_variance"], 12 * ((pit - 0.5) ** 2).mean(), rtol=1e-12)
    assert "too low" in repr(found)
    assert "<p>" in found._repr_html_()
