from dataclasses import fields
from html import unescape
from html.parser import HTMLParser

import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.strategies import METHODS, ensemble_and_truth

HINDCAST, TRUTH = ensemble_and_truth()
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
    model = HINDCAST.recal.fit(TRUTH, METHODS[name])
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

    assert unfolded(HINDCAST.recal.fit(TRUTH)) == 1
    both = xr.Dataset({"a": HINDCAST, "b": HINDCAST})
    model = both.recal.fit(xr.Dataset({"a": TRUTH, "b": TRUTH}))
    assert unfolded(model) == 0
    assert " ".join(Balanced(model._repr_html_()).shown).count("fitted state") == 2


def test_names_are_no_markup():
    hindcast = random("time", "member", name="<b>&t2m</b>")
    model = hindcast.recal.fit(random("time"), xrecal.EMOS())
    assert "<b>&t2m</b>" not in model._repr_html_()
    assert "&lt;b&gt;&amp;t2m&lt;/b&gt;" in model._repr_html_()


def test_lazy_models_are_not_computed():
    model = HINDCAST.chunk(lat=1).recal.fit(TRUTH)
    assert "not computed: model.compute()" in model._repr_html_()
    assert not model.is_computed
