from dataclasses import fields
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute
from tests.strategies import METHODS, PAPER, ensemble_and_truth, model_of

HINDCAST, TRUTH = ensemble_and_truth()


def lines(model):
    """Text behind each label of a repr."""
    head, *rest = repr(model).splitlines()
    assert head == "<xrecal.Recalibrator>"
    return {line[2:19].strip(): line[19:] for line in rest}


def test_computed_model():
    told = lines(HINDCAST.recal.fit(TRUTH[2:], PAPER, min_samples=30))
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
        told = lines(HINDCAST.chunk(lat=1).recal.fit(TRUTH, PAPER))
    assert told["state"] == "not computed: model.compute()"
    assert "status" not in told


def test_statuses_and_ranges():
    hindcast, truth = HINDCAST.copy(), TRUTH.copy()
    hindcast[:, :, 0] = np.nan
    truth[0, 1, 0] = np.nan
    told = lines(hindcast.recal.fit(truth, PAPER, min_samples=30))
    assert told["used"] == "0 to 48 cases"
    assert told["status"] == "ok: 2, too_few_cases (< 30): 2"
    assert " to " in told["ridge"]
    nowhere = lines((hindcast * np.nan).recal.fit(truth, xrecal.EMOS()))
    assert nowhere["slope"] == "none"


def test_single_point_and_missing_units():
    hindcast, truth = HINDCAST[:, :, 0, 0].drop_attrs(), TRUTH[:, 0, 0]
    with pytest.warns(UserWarning, match="units of hindcast not stated, taken as K"):
        told = lines(hindcast.rename(None).recal.fit(truth, PAPER))
    assert told["variable"] == "unnamed (K), ensemble"
    assert told["locations"] == "1"
    assert told["note"] == "units of hindcast not stated, taken as K"
    assert float(told["ridge"].split()[0]) > 0


@pytest.mark.parametrize("dim", ["lat", "lon"])
def test_one_location_dimension(dim):
    told = lines(HINDCAST.isel({dim: 0}).recal.fit(TRUTH.isel({dim: 0}), PAPER))
    assert told["locations"] == {"lat": "lon 2", "lon": "lat 2"}[dim]


def test_codes_are_counted_by_meaning():
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(support="auto"))
    codes, meanings = model.state.support, model.state.support.attrs["flag_meanings"].split()
    names = [meanings[code] for code in codes.to_numpy().ravel()]
    expected = ", ".join(f"{name}: {names.count(name)}" for name in meanings if name in names)
    assert lines(model)["support"] == expected
    nowhere = lines((HINDCAST * np.nan).recal.fit(TRUTH, xrecal.CKME(support="errors")))
    assert nowhere["support"] == "none"


def test_bounds_where_there_are_some():
    dry, wet = TRUTH.clip(280), TRUTH.copy()
    assert lines(HINDCAST.recal.fit(wet, xrecal.EMOS()))["lower"] == "none"
    told = lines(HINDCAST.recal.fit(dry, xrecal.EMOS()))
    assert told["lower"] == "280 K"
    assert told["upper"] == "none"
    mixed = lines(HINDCAST.recal.fit(xr.concat([dry[:, :1], wet[:, 1:]], "lat"), xrecal.EMOS()))
    assert mixed["lower"] == "280 K at 2 of 4"
    assert "lower" not in lines(HINDCAST.recal.fit(wet, xrecal.EMOS(bounds=None)))


def test_half_lives():
    assert (
        lines(HINDCAST.recal.fit(TRUTH, xrecal.CKME(support="observations", half_life=400)))[
            "half_life"
        ]
        == "400 days"
    )
    assert "half_life" not in lines(HINDCAST.recal.fit(TRUTH, PAPER))
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(support="observations", half_life="cv"))
    state = model.state
    state["half_life"][:] = np.inf
    assert lines(model)["half_life"] == "none"
    state["half_life"][:] = [[200, 400], [300, np.inf]]
    assert lines(model)["half_life"] == "200 to 400, median 300 days at 3 of 4"
    state["half_life"][:] = [[200, 400], [np.nan, np.inf]]
    assert lines(model)["half_life"] == "200 to 400, median 300 days at 2 of 3"


def test_covariates_and_what_they_count():
    nao = xr.DataArray(np.arange(48.0), {"time": TRUTH.time}, ["time"])
    model = HINDCAST.recal.fit(
        TRUTH, PAPER, condition_on=("season", "nao"), covariates={"nao": nao}
    )
    told = lines(model)
    assert told["condition_on"] == "season (period 1), nao"
    assert "strength" in told
    assert "precision" not in told  # several numbers at each location
    assert "condition_on" not in lines(HINDCAST.recal.fit(TRUTH, PAPER))
    with forbid_compute():
        lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, PAPER, condition_on="season")
        assert lines(lazy)["condition_on"] == "season (period 1)"


def test_shares_of_a_pool():
    methods = xrecal.IDR(), xrecal.EMOS(), xrecal.Climatology()
    model = HINDCAST.recal.fit(TRUTH, xrecal.LinearPool(methods=methods))
    told = lines(model)
    shares = dict(part.split(" ") for part in told["pool_weight"].split(", "))
    mean = model.state.pool_weight.mean(["lat", "lon"])
    assert {name: float(share) for name, share in shares.items()} == {
        str(name): round(float(share), 2)
        for name, share in zip(mean.component.to_numpy(), mean, strict=True)
        if share >= 0.005
    }
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert not any(label.startswith("emos") for label in told)
    nowhere = (HINDCAST * np.nan).recal.fit(TRUTH, xrecal.LinearPool(methods=methods))
    assert lines(nowhere)["pool_weight"] == "none"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_described(method):
    told = lines(model_of(method))
    assert told["used"] == "48 cases"
    assert "state" not in told


@pytest.mark.parametrize("chunks", [{"lat": 1}, {}])
def test_persisted_models_are_computed_or_on_the_way(chunks):
    lazy = HINDCAST.chunk(chunks).recal.fit(TRUTH, xrecal.EMOS())
    assert lines(lazy)["state"] == "not computed: model.compute()"
    persisted = lazy.persist()
    with forbid_compute():
        assert lines(persisted)["state"] == "persisted: in memory, or being computed"
    assert "state" not in lines(persisted.compute())


VOID = {"br", "hr", "img", "input", "link", "meta", "path", "use"}


class Balanced(HTMLParser):
    """Raises unless every tag is closed in its order; keeps what is shown."""

    def __init__(self, text):
        super().__init__()
        self.open, self.shown = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] not in ("style", "pre"):
            self.shown.append(data)


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_a_table_of_all_of_them(name):
    method = METHODS[name]
    page = Balanced(method._repr_html_())
    assert page.shown[0] == f"xrecal.{type(method).__name__}"
    for field in fields(method):
        value = getattr(method, field.name)
        assert repr(value) in page.shown[page.shown.index(field.name) + 1 :]
        row = unescape(method._repr_html_()).split(f"<td>{field.name}</td><td>")[1]
        assert row.startswith(f"<b>{value!r}</b>") == (value != field.default)


@pytest.mark.parametrize("name", ["ckme", "emos", "pool", "season"])
def test_a_model_shows_what_its_text_tells(name):
    model = model_of(name)
    shown = " ".join(Balanced(model._repr_html_()).shown)
    for line in repr(model).splitlines()[2:]:
        label, text = line[2:19].strip(), line[19:]
        assert text in shown
        assert label in shown or label == "variable"
    assert "fitted state" in shown
    assert '<pre style="display: none">&lt;xrecal.Recalibrator&gt;' in model._repr_html_()


def test_the_only_variable_is_unfolded_and_several_are_not():
    def unfolded(model):
        return model._repr_html_().split("xarray.Dataset")[0].count("<details open>")

    assert unfolded(HINDCAST.recal.fit(TRUTH, PAPER)) == 1
    both = xr.Dataset({"a": HINDCAST, "b": HINDCAST})
    model = both.recal.fit(xr.Dataset({"a": TRUTH, "b": TRUTH}), PAPER)
    assert unfolded(model) == 0
    assert " ".join(Balanced(model._repr_html_()).shown).count("fitted state") == 2


def test_names_are_no_markup():
    hindcast = random("time", "member", name="<b>&t2m</b>")
    model = hindcast.recal.fit(random("time"), xrecal.EMOS())
    assert "<b>&t2m</b>" not in model._repr_html_()
    assert "&lt;b&gt;&amp;t2m&lt;/b&gt;" in model._repr_html_()


def test_lazy_models_are_not_computed():
    model = HINDCAST.chunk(lat=1).recal.fit(TRUTH, PAPER)
    assert "not computed: model.compute()" in model._repr_html_()
    assert not model.is_computed
