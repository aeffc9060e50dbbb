"""The table of one fit for many places: a row of a set, the verdict and the file."""

import numpy as np
import pytest
import xarray as xr

from benchmarks.shared.network import draw_dates, draw_network
from benchmarks.skill import places
from benchmarks.skill.sets import Set
from xrecal.inputs import pool as pooling

P, DATES, TRAINED = 6, 60, 45


def network(least):
    members, observed = draw_dates(draw_network(P, 3), 0, DATES, 4, 3)
    time = np.datetime64("2001-01-01", "ns") + np.arange(DATES) * np.timedelta64(1, "D")
    dims = ("time", "place", "member")
    forecasts = xr.DataArray(members.astype(float), {"time": time}, dims)
    truth = xr.DataArray(observed.astype(float), {"time": time}, dims[:2])
    parts = forecasts[DATES - 15 - least : DATES - 15], forecasts[DATES - 15 :]
    return Set("Network", *parts, truth, season=False, pool=("place",))


@pytest.mark.parametrize("trained", [TRAINED, 8])
def test_a_row_has_the_scores_of_all_methods_on_the_same_cases(trained, monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", 4 * trained)
    one = network(trained)
    row = places.score_set(one, "somewhere")
    assert (row["places"], row["cases"], row["scored"]) == (P, trained, 15 * P)
    raw = float(one.forecast.recal.crps(one.observations).mean())
    assert row["raw"] == pytest.approx(raw)
    model = one.hindcast.recal.fit(one.observations, pool="place", min_samples=4)
    assert row["shared"] == pytest.approx(
        float(model.crps(one.forecast, one.observations).mean()), rel=1e-6
    )
    if trained < places.LEAST:  # places have what is shared alone
        assert np.isnan(row["LinearPool"])
        assert row["weight"] == 1
        assert row["with shared"] == pytest.approx(row["shared"], rel=1e-3)
    else:
        assert 0 < row["weight"] < 1
        assert places.gain(row) == row["with shared"] / row["LinearPool"]
