"""Variables of forecasts and observations: by name, one DataArray, a dict; swapped arguments."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from xrecal.inputs.pairing import pair_variables

ENS, OBS = random("time", "member"), random("time", seed=1, name="obs")
TWO = xr.Dataset({"t2m": ENS, "rain": ENS + 1, "orography": random("lat")})


def paired(hindcast, observations, member_dim=None):
    found = pair_variables(hindcast, observations, member_dim, name="hindcast")
    return {name: observed.name for name, (_, observed) in found.items()}


def test_names_of_data_arrays_are_ignored():
    assert paired(ENS, OBS) == {"t2m": "obs"}
    assert paired(ENS.rename(None), OBS.rename(None)) == {None: None}
    assert paired(ENS, OBS.to_dataset()) == {"t2m": "obs"}
    assert paired(ENS, {"anything": OBS}) == {"t2m": "obs"}


def test_datasets_pair_by_name():
    observed = xr.Dataset({"rain": OBS, "t2m": OBS})
    assert paired(TWO, observed) == {"t2m": "t2m", "rain": "rain"}
    assert paired(TWO[["t2m"]], OBS) == {"t2m": "obs"}
    assert paired(TWO[["t2m", "orography"]], OBS) == {"t2m": "obs"}
    assert paired(TWO, {"rain": OBS, "t2m": OBS}) == {"t2m": "obs", "rain": "obs"}
    normal = xrecal.gaussian(random("time"), abs(random("time")))
    assert paired(normal, {"t2m": OBS}) == {"t2m": "obs"}


def test_weights_need_no_observation():
    assert paired(xrecal.weighted(ENS, abs(ENS)), OBS.to_dataset(name="t2m")) == {"t2m": "t2m"}


@pytest.mark.parametrize(
    ("hindcast", "observations", "message"),
    [
        (TWO, OBS, r"several forecast variables, \['t2m', 'rain'\], but .* a dict, {'t2m': obser"),
        (TWO, xr.Dataset({"t2m": OBS}), r"no partner of the same name: rain \(forecast\); select"),
        (TWO[["t2m"]], {"t2m": OBS, "u": OBS, "v": OBS}, r"u \(observation\), v \(observation\);"),
        (TWO[["rain"]], {"t2m": OBS}, r"rain \(forecast\), t2m \(observation\); .*or pass a dict"),
        (ENS, {"u": OBS, "v": OBS}, r"t2m \(forecast\), u \(observation\), v \(observation\)"),
    ],
)
def test_variables_left_over_are_listed(hindcast, observations, message):
    with pytest.raises(ValueError, match=message):
        paired(hindcast, observations)


@pytest.mark.parametrize("observations", [np.zeros(30), [OBS], None])
def test_other_containers(observations):
    with pytest.raises(
        TypeError, match="observations must be a DataArray, a Dataset or a dict from"
    ):
        paired(ENS, observations)


def cf(da):
    return da.rename(member="x").assign_coords(
        x=("x", np.arange(5), {"standard_name": "realization"})
    )


FORECASTS = {
    "ensemble": ENS,
    "by standard name": cf(ENS),
    "quantiles": random("time", "quantile", quantile=[0.1, 0.2, 0.5, 0.9]),
    "normal": xrecal.gaussian(random("time"), abs(random("time"))),
    "weighted": xrecal.weighted(ENS, abs(ENS)),
    "dataset": TWO,
}


@pytest.mark.parametrize("hindcast", FORECASTS.values(), ids=FORECASTS)
@pytest.mark.parametrize(
    "observations", [OBS, OBS.to_dataset(name="t2m")], ids=["array", "dataset"]
)
def test_swapped_arguments_are_recognised(hindcast, observations):
    message = (
        r"observations are an ensemble or a distribution and {} is not: are the two swapped\? "
        r"Forecasts come first: hindcast.recal.fit\(observations\)"
    )
    with pytest.raises(ValueError, match=message.format("hindcast")):
        observations.recal.fit(hindcast)
    with pytest.raises(ValueError, match=message.format("forecast")):
        observations.recal.crps(hindcast)


def test_swapped_arguments_with_a_named_member_dimension():
    with pytest.raises(ValueError, match="swapped"):
        OBS.recal.fit(random("time", "x"), member_dim="x")
    with pytest.raises(ValueError, match="swapped"):
        OBS.recal.fit({"t2m": ENS})


def test_two_ensembles_are_not_swapped():
    with pytest.raises(
        ValueError, match="observations have the member dimension 'member' of hindcast"
    ):
        ENS.recal.fit(ENS)
    with pytest.raises(ValueError, match=r"dimensions \['member'\] that hindcast lacks"):
        FORECASTS["quantiles"].recal.fit(ENS)


def test_pairing_computes_nothing():
    with forbid_compute():
        assert paired(TWO.chunk(time=7), {"t2m": OBS.chunk(time=5), "rain": OBS}) == {
            "t2m": "obs",
            "rain": "obs",
        }
