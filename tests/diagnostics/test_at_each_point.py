"""Scores of members are those of the array functions at each location."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

from tests.strategies import FORMS, LEVELS, points
from xrecal import arrays

from .calls import hindcast

ENSEMBLE, TRUTH = hindcast(n=9, step=0.25)
GAPS = ENSEMBLE.where((ENSEMBLE.member != 1) | (ENSEMBLE.lat > 45))
THRESHOLDS = [279.0, 280.5, 281.5]
BY_PLACE = xr.DataArray(
    [[279.0, 280.0], [281.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)
TERCILES = TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="tercile")


def brier(at, y, x, w, fair=False):
    """Brier scores (n, k) at thresholds, which may differ by place."""
    t = at if isinstance(at, list) else np.atleast_1d(at.to_numpy())
    m = (~np.isnan(x)).sum(-1) if fair else None
    return arrays.brier_score(y, arrays.weighted_exceedance(x, t, w), t, m)


def quantile_score(_, y, x, w):
    return arrays.quantile_score(y, arrays.weighted_quantile(x, LEVELS, w), LEVELS)


def error_spread(_, y, x, w):
    moments = arrays.weighted_mean, arrays.weighted_std, arrays.weighted_skewness
    return arrays.error_spread(y, *(moment(x, w) for moment in moments))


SCORES = {
    "crps": ("crps", {}, lambda _, y, x, w: arrays.crps(y, x, w)),
    "log_score": ("log_score", {}, lambda _, y, x, w: arrays.log_score(y, x, w)),
    "error_spread": ("error_spread", {}, error_spread),
    "quantile_score": ("quantile_score", {"q": LEVELS}, quantile_score),
    "brier_score": ("brier_score", {"threshold": THRESHOLDS}, brier),
    "brier_score by place": ("brier_score", {"threshold": BY_PLACE}, brier),
    "rps": ("rps", {"edges": THRESHOLDS}, lambda *a: brier(*a).sum(-1)),
    "rps by place": ("rps", {"edges": TERCILES}, lambda *a: brier(*a).sum(-1)),
    **{
        f"levels, {emphasis}": (
            "quantile_weighted_crps",
            {"emphasis": emphasis},
            lambda _, y, x, w, emphasis=emphasis: arrays.quantile_weighted_crps(
                y, x, w, weighting=emphasis
            ),
        )
        for emphasis in ("center", "tails", "upper", "lower")
    },
}
FAIR = {
    "crps": ("crps", {"fair": True}, lambda _, y, x, w: arrays.fair_crps(y, x)),
    "brier_score": ("brier_score", {"threshold": THRESHOLDS, "fair": True}, partial(brier, fair=1)),
    "brier_score by place": (
        "brier_score", {"threshold": BY_PLACE, "fair": True}, partial(brier, fair=1)
    ),
    "rps": (
        "rps", {"edges": TERCILES, "fair": True}, lambda *a: brier(*a, fair=True).sum(-1)
    ),
}  # fmt: skip


def require_those_of_arrays(score, forecast):
    """Scores of a forecast are those of its members and weights at each point."""
    name, options, expected_of = score
    found = getattr(forecast.recal, name)(TRUTH, **options)
    assert {*found.dims} >= {*TRUTH.dims}
    assert {*TRUTH.coords} <= {*found.coords}
    parts = forecast if isinstance(forecast, xr.Dataset) else forecast.to_dataset()
    given = next((v for k, v in options.items() if k in ("threshold", "edges")), None)
    for point in points(TRUTH):
        here = parts.isel(point).transpose("time", "member", missing_dims="ignore")
        weights = here.t2m_weight.to_numpy() if "t2m_weight" in here else None
        x = here.t2m.to_numpy()
        x = x if weights is None else np.broadcast_to(x, weights.shape)
        at = given.isel(point) if isinstance(given, xr.DataArray) else given
        expected = np.squeeze(expected_of(at, TRUTH.isel(point).to_numpy(), x, weights))
        np.testing.assert_allclose(
            found.isel(point).transpose("time", ...), expected, rtol=1e-12, atol=1e-14
        )
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("form", ["ensemble", "weighted", "shared"])
@pytest.mark.parametrize("name", SCORES)
def test_scores_of_members(name, form):
    for ensemble in (ENSEMBLE, GAPS) if form == "ensemble" else (ENSEMBLE,):
        found = require_those_of_arrays(SCORES[name], FORMS[form](ensemble))
    if name.startswith("levels"):
        assert found.attrs["estimator"] == f"weight on levels: {name.partition(', ')[2]}"


@pytest.mark.parametrize("name", FAIR)
def test_fair_scores_of_plain_ensembles(name):
    for ensemble in (ENSEMBLE, GAPS):
        found = require_those_of_arrays(FAIR[name], ensemble)
    assert "infinite ensemble" in found.attrs["estimator"]
