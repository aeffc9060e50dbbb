"""Places that choose together: whose cases their settings come from, and what never matters."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from xrecal.fit.kinds import OF_A_KIND, SAMPLE
from xrecal.fit.together import OF_ALL

N = 40
ERRORS = xrecal.CKME(support="standardised")
POOL = xrecal.LinearPool((xrecal.CKME(tails=None), xrecal.EMOS(), xrecal.Raw()))
METHODS = {"ckme": xrecal.CKME(), "errors": ERRORS, "pool": POOL}
methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@cache
def network(n_places=20, n=N, seed=0):
    """Forecasts and observations of places that differ in how good forecasts are."""
    time = xr.date_range("2000-01-01", periods=n, freq="9D", use_cftime=False)
    names = np.array([f"place {i:03}" for i in range(n_places)])
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(n_places, n))
    members = signal[..., np.newaxis] + 0.7 * rng.normal(size=(n_places, n, 6))
    noise = rng.uniform(0.8, 1.5, (n_places, 1)) * rng.normal(size=(n_places, n))
    observed = 0.7 * signal + noise
    coords = {"station": names, "time": time}
    forecasts = xr.DataArray(members, coords, ("station", "time", "member"), "t2m")
    return forecasts, xr.DataArray(observed, coords, ("station", "time"), "t2m")


@cache
def fitted(method, choose="together", n_places=20):
    return network(n_places)[0].recal.fit(network(n_places)[1], method, choose=choose)


def equal_states(found, expected):
    """Assert that states are equal bit by bit at the same labels."""
    for name in expected.state.data_vars:
        a, b = found.state[name], expected.state[name]
        xr.testing.assert_identical(a.drop_attrs().transpose(*b.dims), b.drop_attrs())


@methods
def test_each_place_alone_is_a_fit_of_that_place(method):
    forecasts, observed = network()
    one = forecasts[[3]].recal.fit(observed[[3]], method)
    np.testing.assert_array_equal(one.state["chosen_from"], 1)
    alone = fitted(method, "each").state.isel(station=[3])
    for name in one.state.data_vars:
        np.testing.assert_array_equal(one.state[name], alone[name], name)


def test_weights_lie_between_the_mean_of_all_places_and_the_own_ones():
    pool = xrecal.LinearPool((xrecal.CKME(support="standardised", tails=None), xrecal.EMOS()))
    own = fitted(pool, "each").state["pool_weight"].to_numpy()
    share = N / (N + OF_ALL)
    expected = (1 - share) * own.mean(0) + share * own
    np.testing.assert_allclose(fitted(pool).state["pool_weight"], expected, atol=1e-12)


@methods
def test_the_model_says_from_how_many_places_it_chose(method):
    np.testing.assert_array_equal(fitted(method).state["chosen_from"], 20)
    assert "chosen_from      20" in repr(fitted(method))


@methods
def test_the_order_of_places_and_dimensions_changes_nothing(method):
    forecasts, observed = network()
    moved = forecasts.isel(station=slice(None, None, -1)).transpose("member", "time", "station")
    model = moved.recal.fit(observed.T, method)
    equal_states(model_at(model, forecasts["station"]), fitted(method))


def model_at(model, labels):
    """A model with the places of its state at labels."""
    (variable,) = model.variables.values()
    state = variable.state.sel(station=labels)

    class AtLabels:
        pass

    at = AtLabels()
    at.state = state
    return at


@methods
def test_chunks_change_nothing(method):
    forecasts, observed = (array.chunk(station=7) for array in network())
    model = forecasts.recal.fit(observed, method)
    assert not model.is_computed
    equal_states(model.compute(), fitted(method))


def test_a_lazy_fit_computes_nothing():
    forecasts, observed = (array.chunk(station=7) for array in network())
    with forbid_compute():
        forecasts.recal.fit(observed, POOL)
        forecasts.recal.cross_validate(observed, POOL, by="block")


def test_names_of_dimensions_change_nothing():
    forecasts, observed = (array.rename(station="site") for array in network())
    found = forecasts.recal.fit(observed, ERRORS).state["ridge"]
    np.testing.assert_array_equal(found, fitted(ERRORS).state["ridge"])


def test_beyond_the_sample_places_have_the_same_choices():
    model = fitted(ERRORS, n_places=80)
    np.testing.assert_array_equal(model.state["chosen_from"], SAMPLE)
    ridge = model.state["ridge"].to_numpy()
    np.testing.assert_allclose(ridge, ridge[0], rtol=1e-12)


def test_what_is_not_in_the_sample_is_not_searched(monkeypatch):
    from xrecal.arrays.ckme.search import Search

    searched = []
    search = Search.run
    monkeypatch.setattr(Search, "run", lambda self: (searched.append(1), search(self))[1])
    forecasts, observed = network(80)
    forecasts.recal.fit(observed, xrecal.LinearPool((ERRORS, xrecal.EMOS())))
    assert len(searched) == SAMPLE


def test_a_place_outside_the_sample_does_not_change_the_others():
    forecasts, observed = network(80)
    ridge = fitted(ERRORS, n_places=80).state["ridge"]
    from xrecal.inputs.forms import read_forms
    from xrecal.inputs.place_order import order_of_places

    (form,) = read_forms(forecasts, None, name="forecast").values()
    last = int(order_of_places(form, ("station",))[-1])
    changed = observed.copy()
    changed[last] += 100.0 * np.random.default_rng(1).normal(size=N)
    found = forecasts.recal.fit(changed, ERRORS).state["ridge"]
    np.testing.assert_array_equal(found, ridge)


class TestKinds:
    """Places of another kind have no say, and where they are few each chooses for itself."""

    def observed(self, some):
        """Observations with a bound at some places."""
        _, observed = network(40)
        there = xr.DataArray(np.isin(np.arange(40), some), dims="station")
        return observed.where(~there, observed.clip(0.0))

    def test_kinds_choose_each_together(self):
        forecasts, _ = network(40)
        model = forecasts.recal.fit(self.observed(range(20)), ERRORS)
        np.testing.assert_array_equal(model.state["chosen_from"], 20)
        part = forecasts[20:].recal.fit(self.observed(range(20))[20:], ERRORS)
        np.testing.assert_array_equal(model.state["ridge"][20:], part.state["ridge"])

    def test_few_of_a_kind_choose_for_themselves(self):
        forecasts, _ = network(40)
        few = OF_A_KIND - 1
        model = forecasts.recal.fit(self.observed(range(few)), ERRORS)
        np.testing.assert_array_equal(model.state["chosen_from"][:few], 1)
        np.testing.assert_array_equal(model.state["chosen_from"][few:], 40 - few)
        alone = forecasts[:few].recal.fit(self.observed(range(few))[:few], ERRORS, choose="each")
        np.testing.assert_array_equal(model.state["ridge"][:few], alone.state["ridge"])

    def test_short_records_have_no_say_in_long_ones(self):
        forecasts, observed = network(40)
        short = np.arange(40) < 20
        cut = observed.where(
            ~xr.DataArray(short, dims="station") | (observed["time"] < observed["time"][15])
        )
        model = forecasts.recal.fit(cut, ERRORS, min_samples=10)
        np.testing.assert_array_equal(model.state["chosen_from"], 20)
        part = forecasts[20:].recal.fit(observed[20:], ERRORS)
        np.testing.assert_array_equal(model.state["ridge"][20:], part.state["ridge"])

    def test_places_without_enough_cases_have_no_say(self):
        forecasts, observed = network(40)
        gone = observed.where(xr.DataArray(np.arange(40) >= 10, dims="station"))
        model = forecasts.recal.fit(gone, ERRORS)
        np.testing.assert_array_equal(model.state["chosen_from"][10:], 30)
        part = forecasts[10:].recal.fit(observed[10:], ERRORS)
        np.testing.assert_array_equal(model.state["ridge"][10:], part.state["ridge"])
        assert np.isnan(model.state["ridge"][:10]).all()

    def test_leads_without_skill_have_no_say_in_those_with_it(self):
        forecasts, observed = network(40)
        lead = {"lead": ("lead", [24, 240], {"units": "hours"})}
        noise = random("station", "time", "member", sizes=dict(forecasts.sizes), time=None)
        both = xr.concat([forecasts, forecasts.copy(data=noise.values)], "lead").assign_coords(lead)
        twice = xr.concat([observed, observed], "lead").assign_coords(lead)
        model = both.recal.fit(twice, ERRORS)
        alone = fitted(ERRORS, n_places=40)
        np.testing.assert_array_equal(model.state["ridge"].sel(lead=24), alone.state["ridge"])


class TestDimensions:
    """Names of dimensions say along which places share."""

    def grid(self):
        forecasts, observed = network(24)
        shape = {"station": ("lead", "cell")}
        labels = {"lead": np.arange(4), "cell": np.arange(6)}

        def shaped(array):
            stacked = array.assign_coords(
                {
                    d: ("station", v.ravel())
                    for d, v in zip(
                        labels, np.meshgrid(*labels.values(), indexing="ij"), strict=True
                    )
                }
            )
            return stacked.set_index(shape).unstack("station")

        return shaped(forecasts), shaped(observed)

    def test_each_lead_has_its_own(self):
        forecasts, observed = self.grid()
        model = forecasts.recal.fit(observed, ERRORS, choose=("cell",))
        one = forecasts.isel(lead=[1]).recal.fit(observed.isel(lead=[1]), ERRORS)
        np.testing.assert_array_equal(model.state["ridge"].isel(lead=[1]), one.state["ridge"])
        np.testing.assert_array_equal(model.state["chosen_from"], 6)

    @pytest.mark.parametrize("choose", ["cell", ["cell"], ("cell",)])
    def test_one_name_or_several(self, choose):
        forecasts, observed = self.grid()
        found = forecasts.recal.fit(observed, ERRORS, choose=choose).state["ridge"]
        expected = forecasts.recal.fit(observed, ERRORS, choose=("cell",)).state["ridge"]
        xr.testing.assert_equal(found, expected)

    def test_other_names_are_refused(self):
        forecasts, observed = self.grid()
        with pytest.raises(
            ValueError, match="'time' is not a dimension of places with a fit of the"
        ):
            forecasts.recal.fit(observed, ERRORS, choose="time")

    def test_windows_choose_together(self):
        forecasts, observed = self.grid()
        model = forecasts.recal.fit(observed, ERRORS, pool={"cell": 3}, choose=("cell",))
        np.testing.assert_array_equal(model.state["chosen_from"], 6)
        chunked = forecasts.chunk(cell=2).recal.fit(
            observed.chunk(cell=2), ERRORS, pool={"cell": 3}, choose=("cell",)
        )
        equal_states(chunked.compute(), model)

    def test_pooled_dimensions_have_one_fit_and_the_others_choose_together(self):
        forecasts, observed = self.grid()
        model = forecasts.recal.fit(observed, ERRORS, pool="cell")
        np.testing.assert_array_equal(model.state["chosen_from"], 4)


MARKED = [xrecal.CKME(), POOL]


class TestHonesty:
    """What verified the cases predicted changes no forecast of them, at no place."""

    @pytest.mark.parametrize("method", MARKED, ids=["ckme", "pool"])
    def test_held_out_observations_of_other_places(self, method):
        forecasts, observed = network()
        options = {"by": "block", "blocks": 4}
        found = forecasts.recal.cross_validate(observed, method, **options)
        marked = observed.copy()
        marked[5:, :10] += 1000.0  # of the first block
        again = forecasts.recal.cross_validate(marked, method, **options)
        xr.testing.assert_identical(again[:, :10], found[:, :10])
        assert not again[:, 10:].equals(found[:, 10:])

    @pytest.mark.parametrize(
        "options", [{"by": "retrospective"}, {"by": "rolling", "every": 8}], ids=str
    )
    def test_the_future_of_other_places(self, options):
        forecasts, observed = network()
        options |= {"min_samples": 5}
        found = forecasts.recal.cross_validate(observed, ERRORS, **options)
        marked = observed.copy()
        marked[5:, 24:] += 1000.0
        again = forecasts.recal.cross_validate(marked, ERRORS, **options)
        xr.testing.assert_identical(again[:, :24], found[:, :24])

    def test_observations_that_verify_several_leads(self):
        """Of a date that is held out at one lead, others have it among those they learn from."""
        dates = xr.date_range("2000-01-01", periods=N, freq="D", use_cftime=False)
        leads = ("lead", np.arange(1, 5), {"units": "days"})
        sizes = {"time": N, "lead": 4, "member": 5}
        valid = xr.date_range("2000-01-01", periods=N + 4, freq="D", use_cftime=False)
        observed = random("valid", sizes={"valid": N + 4}, valid=valid)
        forecasts = random("time", "lead", "member", sizes=sizes, time=dates, lead=leads)
        at = np.arange(N)[:, np.newaxis] + np.arange(1, 5)
        forecasts = forecasts + observed.values[at][..., np.newaxis]
        options = {"by": "block", "blocks": 4, "min_samples": 10}
        method = xrecal.CKME(support="observations")
        found = forecasts.recal.cross_validate(observed, method, **options)
        marked = observed.copy()
        marked[21] += 1000.0
        again = forecasts.recal.cross_validate(marked, method, **options)
        # It verifies start 20 at lead 1, and at longer leads three starts of the block before.
        np.testing.assert_array_equal(again[20, 0], found[20, 0])


def test_updates_keep_what_was_chosen():
    forecasts, observed = network()
    model = forecasts[:, :30].recal.fit(observed[:, :30], ERRORS)
    later = model.update(forecasts[:, 30:], observed[:, 30:])
    for name in ("ridge", "chosen_from"):
        xr.testing.assert_equal(later.state[name], model.state[name])


def test_a_stored_model_knows_whose_choices_it_has(tmp_path):
    fitted(POOL).save(tmp_path / "model.nc")
    again = xrecal.open_recalibrator(tmp_path / "model.nc")
    equal_states(again, fitted(POOL))


def test_a_comparison_takes_the_same_choices():
    forecasts, observed = network()
    found = {
        choose: xrecal.compare(forecasts, observed, {"errors": ERRORS}, choose=choose)
        for choose in ("together", "each")
    }
    for choose, table in found.items():
        expected = forecasts.recal.cross_validate(
            observed, ERRORS, by="block", output="crps", choose=choose
        ).mean("time")
        np.testing.assert_allclose(table["crps"].sel({"method": "errors"}), expected, rtol=1e-12)
    assert not np.allclose(*(table["crps"].sel({"method": "errors"}) for table in found.values()))


def test_methods_that_choose_nothing_are_as_they_were():
    forecasts, observed = network()
    equal_states(
        forecasts.recal.fit(observed, xrecal.EMOS()),
        forecasts.recal.fit(observed, xrecal.EMOS(), choose="each"),
    )


def test_an_online_pool_chooses_together():
    forecasts, observed = network(4, 60)
    model = forecasts.recal.fit(observed, xrecal.OnlinePool(POOL.methods))
    np.testing.assert_array_equal(model.state["chosen_from"], 4)
    each = forecasts.recal.fit(observed, xrecal.OnlinePool(POOL.methods), choose="each")
    weight = {name: one.state["pool_weight"].to_numpy() for name, one in
              {"together": model, "each": each}.items()}  # fmt: skip
    assert np.ptp(weight["together"], axis=0).max() < 0.5 * np.ptp(weight["each"], axis=0).max()


def test_a_pool_stays_near_forecasts_that_are_as_good_as_it_gets():
    """Calibrated forecasts: the share of the forecast as issued is most of the mass."""
    rng = np.random.default_rng(3)
    centre = rng.normal(size=(30, N, 1))
    members = centre + 0.5 * rng.normal(size=(30, N, 20))
    truth = (centre + 0.5 * rng.normal(size=(30, N, 1)))[..., 0]
    forecasts, observed = network(30)
    model = (
        forecasts[..., [0] * 20]
        .copy(data=members)
        .recal.fit(observed.copy(data=truth), xrecal.LinearPool(condition_on=()))
    )
    assert model.state["pool_weight"].sel(component="raw").min() > 0.6
