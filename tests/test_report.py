import numpy as np
import pytest

import xrecal

from .marks import forbid_compute
from .strategies import ensemble_and_truth

HINDCAST, TRUTH = ensemble_and_truth()


def lines(model):
    """Text behind each label of a repr."""
    head, *rest = repr(model).splitlines()
    assert head == "<xrecal.Recalibrator>"
    return {line[2:19].strip(): line[19:] for line in rest}


def test_computed_model():
    told = lines(HINDCAST.recal.fit(TRUTH[2:], min_samples=30))
    assert told["method"].startswith("CKME(")
    assert told["variable"] == "t2m (K), ensemble"
    assert told["cases"] == "46 of 48 matched along 'time', 2001-01-15 to 2004-11-25"
    assert told["locations"] == "4 (lat 2 x lon 2)"
    assert told["used"] == "46 cases"
    assert told["bandwidth"].endswith(" K")
    assert told["status"] == "ok: 4"
    assert "note" not in told


def test_lazy_model_computes_nothing():
    with forbid_compute():
        told = lines(HINDCAST.chunk(lat=1).recal.fit(TRUTH))
    assert told["state"] == "not computed: model.compute()"
    assert "status" not in told


def test_statuses_and_ranges():
    hindcast, truth = HINDCAST.copy(), TRUTH.copy()
    hindcast[:, :, 0] = np.nan
    truth[0, 1, 0] = np.nan
    told = lines(hindcast.recal.fit(truth, min_samples=30))
    assert told["used"] == "0 to 48 cases"
    assert told["status"] == "ok: 2, too_few_cases (< 30): 2"
    assert " to " in told["ridge"]
    nowhere = lines((hindcast * np.nan).recal.fit(truth, xrecal.EMOS()))
    assert nowhere["slope"] == "none"


def test_single_point_and_missing_units():
    hindcast, truth = HINDCAST[:, :, 0, 0].drop_attrs(), TRUTH[:, 0, 0]
    told = lines(hindcast.rename(None).recal.fit(truth))
    assert told["variable"] == "unnamed (K), ensemble"
    assert told["locations"] == "1"
    assert told["note"] == "units of hindcast not stated, taken as K"
    assert float(told["ridge"].split()[0]) > 0


@pytest.mark.parametrize("dim", ["lat", "lon"])
def test_one_location_dimension(dim):
    told = lines(HINDCAST.isel({dim: 0}).recal.fit(TRUTH.isel({dim: 0})))
    assert told["locations"] == {"lat": "lon 2", "lon": "lat 2"}[dim]
