import numba
import numpy as np
import pytest
import xarray as xr

from xrecal import datasets

compiled = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="takes minutes where Numba compiles nothing"
)


@pytest.fixture(scope="module")
def hindcast():
    return datasets.lorenz96(n_inits=60, n_members=12, n_locations=8, lead_days=(1, 3, 5), seed=3)


@compiled
def test_lorenz96_form(hindcast):
    assert hindcast.forecast.dims == ("init", "lead", "member", "location")
    assert hindcast.observation.dims == ("init", "lead", "location")
    assert hindcast.forecast.shape == (60, 3, 12, 8)
    for name in ("forecast", "observation"):
        assert hindcast[name].dtype == np.float64
        assert hindcast[name].attrs["units"] == "1"
        assert hindcast[name].attrs["long_name"]
        assert np.isfinite(hindcast[name]).all()
        assert hindcast[name].values.flags.c_contiguous


@compiled
def test_lorenz96_coordinates(hindcast):
    assert hindcast.init.dtype == np.dtype("datetime64[ns]")
    assert hindcast.init.values[0] == np.datetime64("2000-01-01")
    assert (hindcast.init.diff("init") == np.timedelta64(10, "D")).all()
    assert hindcast.lead.values.tolist() == [1, 3, 5]
    assert hindcast.lead.dtype == np.int64
    assert hindcast.lead.attrs == {"units": "days", "standard_name": "forecast_period"}
    assert hindcast.member.values.tolist() == list(range(1, 13))
    assert hindcast.member.attrs["standard_name"] == "realization"
    assert hindcast.location.values.tolist() == list(range(8))
    assert hindcast.valid_time.dims == ("init", "lead")
    assert hindcast.valid_time.dtype == np.dtype("datetime64[ns]")
    expected = hindcast.init + hindcast.lead * np.timedelta64(1, "D")
    np.testing.assert_array_equal(hindcast.valid_time, expected)


@compiled
def test_lorenz96_attributes(hindcast):
    assert hindcast.attrs["Conventions"] == "CF-1.8"
    assert "10.1256/qj.04.03" in hindcast.attrs["references"]
    assert hindcast.attrs["title"]
    assert hindcast.attrs["forcing"] == 20.0
    assert hindcast.attrs["seed"] == 3
    # Wilks (2005) fits 0.262 + 1.45 X - 0.0121 X^2 - 0.00713 X^3 + 0.000296 X^4 to this system.
    fitted = np.polynomial.Polynomial(hindcast.attrs["subgrid_polynomial"])
    published = np.polynomial.Polynomial([0.262, 1.45, -0.0121, -0.00713, 0.000296])
    X = np.linspace(-5.0, 12.0, 50)
    np.testing.assert_allclose(fitted(X), published(X), atol=1.5)


@compiled
def test_lorenz96_is_a_law_of_its_seed(hindcast):
    settings = {"n_inits": 5, "n_members": 3, "lead_days": (1, 2)}
    first = datasets.lorenz96(**settings, seed=1)
    xr.testing.assert_identical(first, datasets.lorenz96(**settings, seed=1))
    other = datasets.lorenz96(**settings, seed=2)
    assert (first.observation != other.observation).all()
    assert (first.forecast != other.forecast).all()
    more = datasets.lorenz96(**{**settings, "n_members": 4}, seed=1)
    xr.testing.assert_identical(first.observation, more.observation)


@compiled
def test_lorenz96_observations_agree_where_valid_times_do():
    ds = datasets.lorenz96(n_inits=3, n_members=1, n_locations=4, lead_days=(5, 15))
    np.testing.assert_array_equal(ds.observation[1:, 0], ds.observation[:-1, 1])


@compiled
def test_lorenz96_ensemble_is_skilful_but_too_narrow(hindcast):
    mean = hindcast.forecast.mean("member")
    rmse = np.sqrt(((mean - hindcast.observation) ** 2).mean(["init", "location"]))
    spread = np.sqrt(hindcast.forecast.var("member", ddof=1).mean(["init", "location"]))
    assert (spread < 0.9 * rmse).all()
    assert (rmse < 0.7 * hindcast.observation.std()).all()
    assert (rmse.diff("lead") > 0).all()
    rank = (hindcast.forecast < hindcast.observation).sum("member")
    outside = ((rank == 0) | (rank == 12)).mean(["init", "location"])
    assert (outside > 1.2 * 2 / 13).all()


@compiled
def test_lorenz96_model_stays_bounded_beyond_its_training_range():
    # With 6 locations, without the limits of the fit, this forecast diverges.
    ds = datasets.lorenz96(n_inits=20, n_members=5, n_locations=6, lead_days=(1, 60), seed=1)
    assert abs(ds.forecast).max() < 30.0


def test_valid_times_end_with_the_calendar():
    last = (np.datetime64("2262-04-11") - np.datetime64("2000-01-01")).astype(int)
    with pytest.raises(ValueError, match=r"2262-04-12, is beyond .*; give fewer than n_inits=1 or"):
        datasets.lorenz96(n_inits=1, lead_days=(last + 1,))


@pytest.mark.parametrize(
    ("name", "value", "minimum"),
    [
        ("n_inits", 0, 1),
        ("n_members", 0, 1),
        ("n_members", 2.0, 1),
        ("n_members", True, 1),
        ("n_locations", 3, 4),
        ("seed", -1, 0),
        ("seed", None, 0),
    ],
)
def test_lorenz96_integer_errors(name, value, minimum):
    with pytest.raises(
        ValueError, match=f"{name} is {value}; give an integer of at least {minimum}"
    ):
        datasets.lorenz96(**{name: value})


@pytest.mark.parametrize(
    ("lead_days", "wanted"),
    [
        *[(wrong, "whole days such as") for wrong in ((), 5, (1.5, 2.0), ((1, 2),))],
        *[(wrong, "strictly increasing days") for wrong in ((0, 1), (1, 1), (3, 2))],
    ],
)
def test_lead_days_must_be_whole_and_increase(lead_days, wanted):
    with pytest.raises(ValueError, match=f"lead_days is .*; give {wanted}"):
        datasets.lorenz96(lead_days=lead_days)


def test_sinus_form():
    ds = datasets.sinus(n_cases=50, seed=4)
    names = ["feature", "observation", "forecast_loc", "forecast_scale"]
    assert list(ds.data_vars) == names
    for name in names:
        assert ds[name].dims == ("case",)
        assert ds[name].dtype == np.float64
        assert ds[name].attrs["units"] == "1"
        assert ds[name].attrs["long_name"]
    assert ds.attrs["Conventions"] == "CF-1.8"
    assert ds.attrs["title"]
    assert ds.attrs["references"]
    xr.testing.assert_identical(ds, datasets.sinus(n_cases=50, seed=4))
    assert (ds.observation != datasets.sinus(n_cases=50, seed=5).observation).all()
    assert datasets.sinus().sizes == {"case": 20_000}


def test_sinus_has_the_exact_moments():
    n = 200_000
    ds = datasets.sinus(n_cases=n)
    x = ds.feature.values
    assert x.min() >= -1.0
    assert x.max() <= 1.0
    assert x.mean() == pytest.approx(0.0, abs=4.0 * np.sqrt(1 / 3 / n))
    assert x.var() == pytest.approx(1 / 3, rel=0.01)
    # Given x, the deviation is s z + 0.1 e with z a sign: its moments, averaged over U[-1, 1] with
    # E s^2 = 1/2 - sin(0.3) / 0.6 and E s^4 by Gauss-Legendre quadrature.
    deviation = ds.observation.values - x
    nodes, weights = np.polynomial.legendre.leggauss(40)
    fourth = weights @ np.sin(3 * nodes / 20) ** 4 / 2
    second = 0.5 - np.sin(0.3) / 0.6
    expected = 0.01 + second
    kurtosis = fourth + 6 * second * 0.01 + 3 * 0.01**2
    assert deviation.mean() == pytest.approx(0.0, abs=4.0 * np.sqrt(expected / n))
    assert (deviation**2).mean() == pytest.approx(expected, rel=0.02)
    assert (deviation**4).mean() == pytest.approx(kurtosis, rel=0.04)


def test_sinus_forecast_matches_two_moments_but_not_the_shape():
    ds = datasets.sinus(n_cases=200_000)
    np.testing.assert_array_equal(ds.forecast_loc, ds.feature)
    z = ((ds.observation - ds.forecast_loc) / ds.forecast_scale).values
    assert z.mean() == pytest.approx(0.0, abs=0.01)
    for low, high in ((-1.0, -0.6), (-0.2, 0.2), (0.6, 1.0)):
        part = z[(ds.feature.values >= low) & (ds.feature.values < high)]
        assert part.var() == pytest.approx(1.0, rel=0.03)
    edge = z[np.abs(ds.feature.values) > 0.9]
    assert (edge**4).mean() < 2.5  # 3 for a Gaussian


def test_sinus_errors():
    with pytest.raises(ValueError, match="n_cases is 0; give an integer of at least 1"):
        datasets.sinus(n_cases=0)
    with pytest.raises(ValueError, match="seed is -1; give an integer of at least 0"):
        datasets.sinus(seed=-1)
