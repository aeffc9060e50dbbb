"""Text of settings: what is not the default."""

from datetime import timedelta

import pytest

import xrecal
from tests.strategies import ensemble_and_truth

HINDCAST, TRUTH = ensemble_and_truth()
CLASSES = [
    xrecal.CKME,
    xrecal.Climatology,
    xrecal.ConformalPrediction,
    xrecal.EMOS,
    xrecal.IDR,
    xrecal.LinearPool,
    xrecal.PITRecalibration,
    xrecal.Raw,
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_defaults_are_not_told(kind):
    assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (xrecal.CKME(support="auto", gap=3), "CKME(gap=3, support='auto')"),
        (xrecal.CKME(bandwidth="median", bounds=None), "CKME(bounds=None)"),
        (xrecal.CKME(half_life=timedelta(days=90)), "CKME(half_life=90.0)"),
        (xrecal.EMOS(condition_on=("season", "wind")), "EMOS(condition_on=('season', 'wind'))"),
        (
            xrecal.LinearPool((xrecal.CKME(), xrecal.IDR(condition_on="lead"))),
            "LinearPool(methods=(CKME(), IDR(condition_on='lead')))",
        ),
        (xrecal.LinearPool(condition_on=()), "LinearPool(condition_on=())"),
    ],
)
def test_what_differs_is_told_in_the_order_of_the_signature(method, text):
    assert repr(method) == str(method) == text


def test_models_and_history_tell_the_same():
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(ridge=0.1))
    assert "\n  method           CKME(ridge=0.1)\n" in repr(model)
    assert "method: <b>CKME(ridge=0.1)</b>" in model._repr_html_()
    issued = model.quantile(HINDCAST, 0.5)
    assert issued.attrs["history"].endswith("quantiles after recalibration by CKME(ridge=0.1)")
