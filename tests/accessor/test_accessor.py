import pytest

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal import diagnostics

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


def test_two_calls():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), min_samples=30)
    assert isinstance(model, xrecal.Recalibrator)
    assert NEW.recal.apply(model).identical(model.apply(NEW))
    as_dataset = HINDCAST.to_dataset().recal.fit({"t2m": TRUTH}, xrecal.EMOS(), min_samples=30)
    assert NEW.to_dataset().recal.apply(as_dataset).equals(model.apply(NEW))
    assert NEW.recal.crps(VERIFIED).identical(diagnostics.crps(NEW, VERIFIED))


def test_apply_needs_a_model():
    with pytest.raises(TypeError, match=r"apply takes a fitted model, from .*, got EMOS"):
        NEW.recal.apply(xrecal.EMOS())
