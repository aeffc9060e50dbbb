import pickle
import subprocess
import sys

import numpy as np
import pytest

import xrecal.arrays
from tests.device import stand_in
from xrecal.arrays import Features, Forecasts, dispatch

device = stand_in.module.asarray


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    """The stand-in, under the name by which arrays are told apart."""
    monkeypatch.setitem(sys.modules, "cupy", stand_in.module)
    monkeypatch.setitem(dispatch.DISTANCES, "cupy", "tests.device.naive")


def test_importing_xrecal_loads_no_cupy():
    code = (
        "import sys; sys.modules['cupy'] = None\n"
        "import numpy as np, xrecal, xrecal.arrays as arrays\n"
        "import xrecal.arrays.device.ckme, xrecal.arrays.device.weights\n"
        "arrays.crps(np.zeros(2), np.ones((2, 3)))\n"
        "print([name for name in sys.modules if name.startswith(('cupy', 'numba.cuda'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['cupy']"  # which would fail if it were imported


@pytest.mark.parametrize("name", sorted(dispatch.ON_DEVICE))
def test_every_entry_of_the_table_is_a_function_of_that_name(name):
    function = dispatch.device_function(name)
    assert function.__name__ == name
    assert function.__module__ == f"xrecal.arrays.{dispatch.ON_DEVICE[name]}"


def test_numpy_goes_to_the_function_itself(rng):
    from xrecal.arrays.distributions import distance

    x = rng.normal(size=(4, 3))
    assert xrecal.arrays.squared_energy_distance.__wrapped__ is distance.squared_energy_distance
    found = xrecal.arrays.squared_energy_distance(x)
    np.testing.assert_array_equal(found, distance.squared_energy_distance(x))


def test_functions_are_one_object_that_pickles():
    function = xrecal.arrays.crps
    assert function is xrecal.arrays.crps
    assert pickle.loads(pickle.dumps(function)) is function


def test_device_in_device_out(rng):
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(2, 5))
    found = xrecal.arrays.squared_energy_distance(device(x), device(y))
    assert isinstance(found, stand_in.ndarray)
    expected = xrecal.arrays.squared_energy_distance(x, y)
    np.testing.assert_allclose(found.get(), expected, atol=1e-13)


def test_fits_and_forecasts_on_a_device(rng):
    members, observed = rng.normal(size=(2, 30, 4)), rng.normal(size=(2, 30))
    cases = Forecasts(device(members))
    days = np.arange(30.0)
    fitted = xrecal.arrays.fit_ckme(cases, device(observed), days=days, half_life=20.0)
    assert {type(part) for part in fitted} == {stand_in.ndarray}
    points, weights = xrecal.arrays.ckme_weights(cases, cases, device(observed), fitted, days=days)
    assert isinstance(points, stand_in.ndarray)
    assert isinstance(weights, stand_in.ndarray)


def test_mixtures_are_refused(rng):
    x = rng.normal(size=(4, 3))
    message = r"crps got arrays of NumPy \(members\) and of CuPy.*cupy.asarray\(members\)"
    with pytest.raises(TypeError, match=message):
        xrecal.arrays.crps(device(x[:, 0]), x)
    features = Features(np.zeros((1, 4, 1)), np.zeros(1, bool))
    with pytest.raises(TypeError, match=r"fit_ckme got arrays of NumPy \(values\)"):
        xrecal.arrays.fit_ckme(Forecasts(device(x[None])), device(x[None, :, 0]), features=features)


def test_what_has_no_device_version_says_what_to_copy(rng):
    x = device(rng.normal(size=(4, 3)))
    message = r"fair_crps has no implementation for CuPy arrays; .*cupy.asnumpy\(x\).*as_numpy\(\)"
    with pytest.raises(TypeError, match=message):
        xrecal.arrays.fair_crps(x[:, 0], x)
    with pytest.raises(TypeError, match="normal_crps has no implementation for CuPy arrays"):
        xrecal.arrays.normal_crps(x, x, x)


def test_copies_to_the_host_are_explicit():
    x = device(np.arange(3.0))
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(x)
    np.testing.assert_array_equal(dispatch.to_host(x), np.arange(3.0))
    assert dispatch.as_array(x) is x
    assert isinstance(dispatch.as_array([1.0]), np.ndarray)


def test_classes_are_left_as_they_are():
    assert xrecal.arrays.Forecasts is Forecasts
    assert isinstance(Forecasts(np.zeros(1)), tuple)
