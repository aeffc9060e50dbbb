from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import xrecal
from tests.arrays.online.reference import expected_corrections, quantiles_corrected
from tests.labelled import random
from tests.marks import forbid_compute
from xrecal.arrays.distributions.forms import find_bounds
from xrecal.arrays.online.aggregation import issue, learn, mean_weights
from xrecal.arrays.online.state import empty_state, prior_weights, settings_of
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import corrected
from xrecal.methods.experts import HALF_LIFE, LEVELS, MEMORY
from xrecal.methods.known import known_cases

N = 70
SMALL = (xrecal.Climatology(), xrecal.EMOS(bounds=None))
METHOD = xrecal.OnlinePool(SMALL, refit=12, bounds=None)
FIRST, LAST = slice(0, 50), slice(50, None)
Q = [0.1, 0.5, 0.9]


def stream(seed=0, n=N, n_places=2):
    """Daily temperatures; the forecast system changes its bias after 45 days."""
    rng = np.random.default_rng(seed)
    dates = xr.date_range("2001-01-01", periods=n, freq="D", use_cftime=False)
    signal = 3 * rng.normal(size=(n, n_places))
    observed = signal + rng.normal(size=signal.shape)
    members = signal[..., np.newaxis] + 0.7 * rng.normal(size=(n, n_places, 4)) + 1
    members[45:] += 2
    coords = {"time": dates, "place": ["a", "b", "c"][:n_places]}
    forecasts = xr.DataArray(members, coords, ["time", "place", "member"], "t", {"units": "K"})
    return forecasts, xr.DataArray(observed, coords, ["time", "place"], attrs={"units": "K"})


FORECASTS, OBSERVED = stream()


def fit(cases=FIRST, method=METHOD, forecasts=FORECASTS, observed=OBSERVED):
    return forecasts.isel(time=cases).recal.fit(observed.isel(time=cases), method)


@cache
def begun():
    """The model of most tests, which never changes."""
    return fit()


@cache
def learned():
    """The same after all other cases."""
    return begun().update(FORECASTS[LAST], OBSERVED)


def assert_same_state(a, b):
    assert list(a.state.data_vars) == list(b.state.data_vars)
    for name in a.state.variables:
        np.testing.assert_array_equal(a.state[name], b.state[name], err_msg=str(name))
        assert a.state[name].dtype == b.state[name].dtype


class Reference:
    """An online pool at one place, written down as its documentation says, one case at a time.

    Slow experts are models of the package; the others are computed from arrays.
    """

    def __init__(self, forecasts, observed):
        self.forecasts, self.observed, self.slow = forecasts, observed, {}
        self.labels = METHOD.experts.labels
        self.errors, self.known = {"pool": {}, "recent_ckme": {}}, {}

    def fit_slow(self, n):
        forecasts, observed = self.forecasts[:n], self.observed[:n]
        methods = {
            "pool": xrecal.LinearPool(SMALL, condition_on=()),
            "slow_emos": xrecal.EMOS(bounds=None),
            "climatology": SMALL[0],
            "emos": SMALL[1],
        }
        fits = {k: forecasts.recal.fit(observed, m, min_samples=5) for k, m in methods.items()}
        last = {"time": np.arange(n)[-MEMORY:]}
        # As if all were a day apart.
        steps = np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
        ckme = xrecal.CKME(support="regression", half_life=HALF_LIFE, tails=None, bounds=None)
        here = forecasts.assign_coords(time=steps).isel(last)
        fits["ckme"] = here.recal.fit(observed.assign_coords(time=steps).isel(last), ckme)
        self.slow[n] = fits

    def said(self, case, n_slow, known):
        new = self.forecasts[case : case + 1]
        fits = self.slow[n_slow]
        models = {label: fits[label] for label in ("pool", "slow_emos", "climatology", "emos")}
        found = {label: m.quantile(new, LEVELS).values.ravel() for label, m in models.items()}
        found["raw"] = new.recal.quantile(LEVELS).values.ravel()
        for window in (30, 60, 120):
            past = slice(max(known - window, 0), known)
            emos = self.forecasts[past].recal.fit(self.observed[past], xrecal.EMOS(bounds=None))
            found[f"emos_{window}"] = emos.quantile(new, LEVELS).values.ravel()
        past = slice(max(known - 91, 0), known)
        errors = (self.observed[past] - self.forecasts[past].mean("member")).values
        mean = new.mean("member").values
        found["errors_91"] = mean + np.quantile(errors, LEVELS, method="hazen")
        recent = fits["ckme"]
        if known > n_slow:
            steps = np.datetime64("2001-01-01", "ns") + np.arange(known) * np.timedelta64(1, "D")
            more = {"time": steps[n_slow:]}
            recent = recent.update(
                self.forecasts[n_slow:known].assign_coords(more),
                self.observed[n_slow:known].assign_coords(more),
            )
        found["recent_ckme"] = recent.quantile(new, LEVELS).values.ravel()
        for base, (shift, stretch) in self.corrections(case, known).items():
            moved = quantiles_corrected(found[base], shift, stretch)
            found["corrected_" + base.removesuffix("_ckme")] = moved
            if base == "pool":
                found["moved_pool"] = quantiles_corrected(found[base], shift, 0.0)
        return np.stack([found[label] for label in self.labels])

    def corrections(self, case, known):
        """Of both experts that are corrected, by the errors of the first known cases."""
        found = {}
        for base, errors in self.errors.items():
            past = [c for c in errors if c < known]
            earlier = [sum(other < self.known[c] for other in past) for c in past]
            table = [self.predictors(c, self.known[c]) for c in past]
            now = [self.predictors(case, known)]
            scores = [errors[c] for c in past]
            found[base] = (
                expected_corrections(scores, earlier, table, now)[0] if past else (0.0, 0.0)
            )
        return found

    def predictors(self, case, known):
        members, last = self.forecasts.values, known - 1
        mean = members[case].mean()
        change = mean - members[last].mean()
        return [mean - self.observed.values[last], change, members[case].std()]

    def learn(self, case, said, known):
        """Remember the errors of what was said of a case when so many were known."""
        self.known[case] = known
        for base, errors in self.errors.items():
            quantiles = said[self.labels.index(base)]
            rank = (quantiles < self.observed.values[case]).sum()
            errors[case] = norm.ppf((rank + 0.5) / (quantiles.size + 1))


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 3])
def test_it_does_what_its_documentation_says(delay):
    forecasts, observed = FORECASTS.isel(place=0), OBSERVED.isel(place=0)
    method = xrecal.OnlinePool(SMALL, refit=12, bounds=None, delay=delay, condition_on=())
    one = Reference(forecasts, observed)
    known = known_cases(CaseAxis(days=np.arange(N)), np.zeros(N), delay)
    start = 25
    n_slow = former = known[start]
    one.fit_slow(n_slow)
    n = len(one.labels)
    settings = settings_of([[-np.inf, np.inf]], n, LEVELS.size, alone=n - 1)
    state, states = empty_state(settings), {}
    for case in range(start, N):
        said = one.said(case, n_slow if known[case] >= n_slow else former, known[case])
        given = observed.values[np.newaxis, case : case + 1]
        state = learn(state, settings, said[np.newaxis, np.newaxis], given)
        one.learn(case, said, known[case])
        if case == 49 or (case - (n_slow - 1) >= 12 and known[case] > n_slow - 1):
            n_slow, former = case + 1, n_slow
            one.fit_slow(n_slow)
        states[case + 1] = state, n_slow
    model = fit(FIRST, method, forecasts, observed)
    for k in range(50, N):
        state, n_slow = states[k]
        new = min(k + delay, N - 1)
        if known[new] != k:
            continue
        expected = issue(state, settings, one.said(new, n_slow, k)[np.newaxis, np.newaxis])
        found = model.quantile(forecasts[new : new + 1], LEVELS).values.ravel()
        np.testing.assert_allclose(found, expected[0, 0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(
            model.state["expert_weight"], mean_weights(state, settings)[0], rtol=1e-6
        )
        model = model.update(forecasts[k : k + 1], observed[k : k + 1])
    assert len(one.slow) == 5


def test_thirty_days_at_once_are_thirty_updates():
    whole = begun().update(FORECASTS[50:64], OBSERVED)
    daily = begun()
    for day in range(50, 64):
        daily = daily.update(FORECASTS[day : day + 1], OBSERVED)
    assert_same_state(daily, whole)
    assert (whole.state["last_fitted"] == 61).all()
    assert (whole.state["last_learned"] == 63).all()


def test_only_the_last_errors_are_remembered(monkeypatch):
    monkeypatch.setattr(corrected, "REMEMBERED", 18)
    monkeypatch.setattr(corrected, "USED", 12)
    xrecal.OnlinePool.parameters.cache_clear()
    try:
        method = xrecal.OnlinePool(SMALL, refit=12, bounds=None, delay=3)
        daily = fit(method=method)
        whole = daily.update(FORECASTS[50:64], OBSERVED)
        for day in range(50, 64):
            daily = daily.update(FORECASTS[day : day + 1], OBSERVED)
        assert_same_state(daily, whole)
        np.testing.assert_array_equal(whole.state["error_case"], [np.arange(46, 64)] * 2)
        assert np.isfinite(whole.state["error"]).all()
    finally:
        xrecal.OnlinePool.parameters.cache_clear()


def test_stored_and_opened_it_goes_on_as_if_it_never_was(tmp_path):
    model = begun().update(FORECASTS[50:55], OBSERVED)
    model.save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    assert opened.method == METHOD
    assert_same_state(*(m.update(FORECASTS[55:63], OBSERVED) for m in (opened, model)))
    np.testing.assert_array_equal(
        opened.quantile(FORECASTS[55:], Q), model.quantile(FORECASTS[55:], Q)
    )


def test_where_a_system_changes_weights_follow():
    forecasts, observed = stream(n=95, n_places=1)
    method = xrecal.OnlinePool(SMALL, refit=1000, bounds=None)
    before = fit(slice(0, 45), method, forecasts, observed)
    after = before.update(forecasts[45:80], observed)
    late = forecasts[80:]
    crps = [m.crps(late, observed).mean().item() for m in (before, after)]
    assert crps[1] < 0.6 * crps[0]
    weights = [m.state["expert_weight"].isel(place=0) for m in (before, after)]
    assert [float(w.sum()) for w in weights] == pytest.approx([1, 1])
    assert weights[0].sel(expert="pool") > 0.2
    assert weights[1].sel(expert="pool") < 0.1
    assert weights[1].sel(expert="emos_30") > weights[0].sel(expert="emos_30")


def over_leads(leads):
    """Forecasts over starts and leads in days."""
    one = FORECASTS.rename(time="init").isel(place=0)
    both = xr.concat([one + 0.1 * lead for lead in leads], "lead").transpose("init", "lead", ...)
    label = xr.Variable("lead", leads, {"units": "days"})
    return both.assign_coords(lead=label).assign_attrs(units="K")


def test_nothing_that_verifies_later_is_known():
    n = 60
    forecasts = over_leads([1, 5])
    observed = OBSERVED.isel(place=0)
    model = forecasts[:n].recal.fit(observed[:n], METHOD)
    # On the last day of the fit, the start of day n - 1 was forecast from less at the longer lead.
    np.testing.assert_array_equal(model.state["last_learned"], [n - 2, n - 6])
    later = observed.copy()
    later[n:] += 100
    both = [model.update(forecasts[:n], o).state for o in (observed[: n + 1], later[: n + 1])]
    changed = [float(abs(a - b).max()) for a, b in zip(*(s["regret"] for s in both), strict=True)]
    assert (np.array(changed) > 0).all()
    np.testing.assert_array_equal(both[0]["last_learned"], [n - 1, n - 5])


def test_each_lead_learns_when_it_verifies():
    forecasts = over_leads([1, 4])
    observed = OBSERVED.isel(place=0)
    begun = forecasts[:50].recal.fit(observed[:50], METHOD)
    whole = begun.update(forecasts[:60], observed[:60])
    daily = begun
    for day in range(50, 60, 2):
        daily = daily.update(forecasts[day - 6 : day + 2], observed[: day + 2])
    assert_same_state(daily, whole)
    assert np.isfinite(daily.quantile(forecasts[60:], 0.5)).all()


def forms():
    weights = xr.ones_like(FORECASTS) * xr.DataArray([1.0, 2.0, 3.0, 2.0], dims=["member"]) / 8
    yield "weighted", xrecal.weighted(FORECASTS, weights), {"t": OBSERVED}
    levels = FORECASTS.quantile([0.1, 0.3, 0.5, 0.7, 0.9], "member").transpose(..., "quantile")
    yield "quantiles", levels.rename("t").assign_attrs(units="K"), OBSERVED
    mean = FORECASTS.mean("member").rename("t_loc").assign_attrs(units="K")
    yield "normal", xrecal.gaussian(mean, FORECASTS.std("member")), {"t": OBSERVED}
    yield "single", FORECASTS.astype("float32"), OBSERVED.astype("float32")


@pytest.mark.parametrize("form", list(forms()), ids=lambda form: form[0])
def test_forms_of_a_forecast(form):
    _, forecasts, observed = form
    past = {k: v[:50] for k, v in observed.items()} if isinstance(observed, dict) else observed[:50]
    model = forecasts.isel(time=FIRST).recal.fit(past, METHOD)
    model = model.update(forecasts.isel(time=slice(50, 60)), observed)
    found = model.quantile(forecasts.isel(time=slice(60, None)), Q)
    found = found["t"] if isinstance(found, xr.Dataset) else found
    assert np.isfinite(found).all()
    raw = FORECASTS.mean("member")[60:]
    error, of_raw = (float(abs(f - OBSERVED).mean()) for f in (found.sel(quantile=0.5), raw))
    assert error < 0.8 * of_raw


def test_lazy_stays_lazy_and_chunks_make_no_difference():
    forecasts, observed = FORECASTS.chunk(place=1), OBSERVED.chunk(place=1)
    with forbid_compute():
        lazy = fit(forecasts=forecasts, observed=observed).update(forecasts[LAST], observed[LAST])
        issued = lazy.quantile(forecasts[:3], Q)
    assert not lazy.is_computed
    assert_same_state(lazy.compute(), learned())
    np.testing.assert_array_equal(issued, learned().quantile(FORECASTS[:3], Q))


def test_a_bound_is_a_bound():
    rain, observed = (a.clip(min=0).assign_attrs(units="mm") for a in (FORECASTS, OBSERVED))
    method = xrecal.OnlinePool((xrecal.Climatology(), xrecal.EMOS()), refit=12)
    model = fit(FIRST, method, rain, observed).update(rain[LAST], observed)
    assert find_bounds(observed.values.T)[0].tolist() == [0, 0]
    np.testing.assert_array_equal(model.state["lower"], 0)
    issued = model.quantile(rain, [0.01, 0.2, 0.5])
    assert (issued >= 0).all()
    assert (issued == 0).any()


def test_a_place_with_too_few_cases_begins_when_there_are_enough():
    gone = OBSERVED.copy()
    gone[5:60, 1] = np.nan
    model = fit(observed=gone)
    assert model.state["status"].values.tolist() == [0, 1]
    assert np.isnan(model.quantile(FORECASTS, 0.5)[:, 1]).all()
    whole = model.update(FORECASTS[50:], gone)
    assert int(whole.state["status"][1]) == 1
    more, seen = stream(n=90)
    seen[:, 1] = np.r_[gone[:, 1], seen[N:, 1]]
    whole = model.update(more[50:79], seen)
    daily = model.update(more[50:72], seen)
    for day in range(72, 79):
        daily = daily.update(more[day : day + 1], seen)
    assert_same_state(daily, whole)
    assert int(whole.state["status"][1]) == 0
    assert np.isfinite(whole.quantile(more, 0.5)).all()


def test_few_cases_leave_nothing_to_warm_up_with():
    model = fit(slice(0, 20))
    np.testing.assert_array_equal(model.state["n_scored"], 0)
    np.testing.assert_array_equal(model.state["last_fitted"], 19)
    np.testing.assert_allclose(model.state["expert_weight"].sum("expert"), 1)


def test_before_it_learns_the_raw_forecast_has_more_weight_where_the_pool_hardly_changes_it():
    rng = np.random.default_rng(0)
    centre = OBSERVED.values + rng.normal(size=OBSERVED.shape)
    calibrated = FORECASTS.copy(data=centre[..., np.newaxis] + rng.normal(size=FORECASTS.shape))
    methods = *SMALL, xrecal.Raw()
    raw = {}
    for name, forecasts in (("calibrated", calibrated), ("biased", calibrated + 20)):
        model = fit(slice(0, 20), replace(METHOD, methods=methods), forecasts)
        weight, pool = model.state["expert_weight"], model.state["pool_weight"]
        for place in range(2):
            share = float(pool[place].sel(component="raw"))
            expected = 0.75 * prior_weights(weight.sizes["expert"], 0, share)
            expected[-1] += 0.25  # the pool is one strategy beside three rates of forgetting
            np.testing.assert_allclose(weight[place], expected)
        raw[name] = weight.sel(expert="raw").values
    assert (raw["calibrated"] > 1.3 * raw["biased"]).all()


def test_missing_forecasts_and_members():
    holes = FORECASTS.copy()
    holes[52, 0] = np.nan
    holes[53, 0, :2] = np.nan
    model = begun().update(holes[LAST], OBSERVED)
    assert int(model.state["n_cases"][0]) == N - 1
    assert np.isnan(model.quantile(holes[50:53], 0.5)[2, 0])
    assert np.isfinite(model.quantile(holes[53:], 0.5)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delay": -1}, "OnlinePool: delay must be a number of cases, 0 or more"),
        ({"refit": 0}, "OnlinePool: refit must be a number of cases, 1 or more"),
        ({"refit": "soon"}, "length of time such as '5D', got 'soon'"),
        ({"bounds": (1, 0)}, "OnlinePool: bounds must be"),
        ({"methods": xrecal.EMOS()}, r"OnlinePool: methods must be a tuple of methods"),
        ({"methods": (METHOD,)}, "none of them a pool"),
        ({"condition_on": 3}, "OnlinePool: condition_on must be"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        xrecal.OnlinePool(**settings)


def test_lengths_of_time_need_dates():
    bare = [a.drop_vars("time") for a in (FORECASTS, OBSERVED)]
    with pytest.raises(ValueError, match="OnlinePool: delay='2D' needs dates"):
        bare[0].recal.fit(bare[1], xrecal.OnlinePool(SMALL, delay="2D"))
    model = bare[0][FIRST].recal.fit(bare[1][FIRST], METHOD)
    dated = begun()
    for name in ("regret", "score"):
        np.testing.assert_array_equal(model.state[name], dated.state[name])


def test_lengths_are_kept_as_text():
    method = xrecal.OnlinePool(delay=np.timedelta64(36, "h"), refit="2 weeks")
    assert (method.delay, method.refit) == ("1.5D", "14D")
    assert repr(xrecal.OnlinePool(refit=30)) == "OnlinePool(refit=30)"


def test_its_text_and_state_say_what_it_is():
    model = begun()
    text = repr(model)
    assert "expert_weight" in text
    assert "former" not in text
    assert "days_ahead" not in text
    assert model.state["expert_weight"].long_name == "weight of each expert, mean over the levels"
    assert model.state["regret"].units == "K"
    issued = FORECASTS[60:].recal.apply(model)
    assert issued["t"].sizes["member"] == LEVELS.size


@pytest.mark.parametrize("name", ["default", "season"])
@pytest.mark.slow
def test_the_pool_of_its_own_methods(name):
    forecasts, observed = stream(n=400, n_places=1)
    method = xrecal.OnlinePool(condition_on="season" if name == "season" else None)
    model = forecasts[:380].recal.fit(observed[:380], method).update(forecasts[380:390], observed)
    daily = forecasts[:380].recal.fit(observed[:380], method)
    for day in range(380, 390):
        daily = daily.update(forecasts[day : day + 1], observed)
    assert_same_state(daily, model)
    assert {"ckme_season", "idr_season", "climatology", "pool"} <= {*model.state["expert"].values}
    late = forecasts[390:]
    assert model.novelty(late).max() < 0.9
    assert model.crps(late, observed).mean() < late.recal.crps(observed).mean()


def test_a_pooled_fit_learns_too():
    model = FORECASTS[FIRST].recal.fit(OBSERVED[FIRST], METHOD, pool="place")
    whole = model.update(FORECASTS[50:54], OBSERVED)
    daily = model
    for day in range(50, 54):
        daily = daily.update(FORECASTS[day : day + 1], OBSERVED)
    assert_same_state(daily, whole)
    assert np.isfinite(whole.quantile(FORECASTS, 0.5)).all()


def test_several_variables():
    other = random("time", "member", sizes={"time": N, "member": 4}, time=FORECASTS["time"].values)
    both = xr.Dataset({"a": FORECASTS, "b": other})
    observed = xr.Dataset({"a": OBSERVED, "b": both["b"].mean("member")})
    model = both.isel(time=FIRST).recal.fit(observed, METHOD)
    model = model.update(both.isel(time=LAST), observed)
    assert_same_state(model["a"], learned())


@pytest.mark.parametrize(("delay", "first"), [(0, 57), (3, 60), ("3D", 59), ("36h", 58)])
def test_replayed_it_knows_no_case_before_the_delay_has_passed(delay, first):
    forecasts = FORECASTS.isel(place=[0], time=slice(40, None))
    method = xrecal.OnlinePool(SMALL, delay=delay, refit=12, bounds=None)

    def replayed(observed):
        return forecasts.recal.cross_validate(
            observed.isel(place=[0]), method, by="rolling", every=1, window=10, q=Q, min_samples=5
        ).isel(time=slice(11, None), place=0)

    other = OBSERVED.copy()
    other[56] += 2  # of the day numbered 56, which those from the day ``first`` on know
    changed = (replayed(OBSERVED) != replayed(other)).any("quantile")
    assert changed.size == 19
    assert not changed[: first - 51].any()
    assert changed[first - 51 :].all()
