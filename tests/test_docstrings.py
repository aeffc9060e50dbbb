"""Every public function shows how it is called; pytest runs the examples as doctests.

Methods of ``.recal`` and ``.recal.plot``, and methods that only call another function, are doors:
their docstrings have an example or name the function whose docstring has it. Properties have
theirs in the docstring of their class, which may have it in their place.
"""

import doctest
import inspect
import pydoc
import re

import pytest

import xrecal
import xrecal.arrays
import xrecal.plot
from xrecal.accessor.plot import Plots
from xrecal.accessor.recal import DataArrayRecal, DatasetRecal

MODULES = [xrecal, xrecal.diagnostics, xrecal.hubs, xrecal.plot, xrecal.arrays]
DATASETS = ["lorenz96", "sinus", "open_tutorial"]
CLASSES = [xrecal.Recalibrator, xrecal.Plan]
DOORS = [DataArrayRecal, DatasetRecal, Plots]


def exported():
    """Functions and classes of settings that modules export."""
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            record = isinstance(found, type) and issubclass(found, tuple | Exception)
            if callable(found) and not record:
                yield f"{module.__name__}.{name}"
    for name in DATASETS:
        yield f"xrecal.datasets.{name}"


def methods(cls):
    for name in dir(cls):
        if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(cls, name)):
            yield name


def properties(cls):
    for name in dir(cls):
        if not name.startswith("_") and isinstance(inspect.getattr_static(cls, name), property):
            yield name


def has_examples(found):
    text = inspect.getdoc(found) or ""
    _, section, examples = text.partition("\nExamples\n--------\n")
    return bool(section) and bool(doctest.DocTestParser().get_examples(examples))


def leads_to_examples(door, cls):
    """Whether a docstring without parameters names a function that has examples."""
    text = inspect.getdoc(door) or ""
    named = re.findall(r":(?:func|meth):`~?([\w.]+)`", text)
    targets = [pydoc.locate(name) if "." in name else getattr(cls, name) for name in named]
    return "Parameters\n---" not in text and any(map(has_examples, targets))


@pytest.mark.parametrize("name", sorted(exported()))
def test_functions_have_examples(name):
    assert has_examples(pydoc.locate(name))


@pytest.mark.parametrize(("cls", "name"), [(c, n) for c in CLASSES for n in methods(c)])
def test_methods_have_examples_or_name_what_they_call(cls, name):
    method = getattr(cls, name)
    assert has_examples(method) or leads_to_examples(method, cls)


@pytest.mark.parametrize(("cls", "name"), [(c, n) for c in CLASSES for n in properties(c)])
def test_properties_are_in_examples(cls, name):
    examples = inspect.getdoc(cls).partition("\nExamples\n--------\n")[2]
    assert f".{name}" in examples or has_examples(getattr(cls, name))


@pytest.mark.parametrize(("cls", "name"), [(c, n) for c in DOORS for n in methods(c)])
def test_doors_name_functions_with_examples(cls, name):
    method = getattr(cls, name)
    assert has_examples(method) or leads_to_examples(method, cls)
