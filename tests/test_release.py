"""What a release takes with it agrees with pyproject.toml: recipe, workflows, citation."""

import re
import tomllib

import pytest
import yaml

from tests.dist import RECIPE, ROOT, WORKFLOWS, write_recipe

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = {"dask[array]": "dask-core", "eccodes": "python-eccodes", "matplotlib": "matplotlib-base"}
"""Names of packages on conda-forge, where they differ."""


@pytest.fixture
def recipe():
    return yaml.safe_load(RECIPE.read_text())


def as_on_conda(requirements):
    """Requirements by their names and in the notation of conda-forge."""
    found = set()
    for one in requirements:
        name, versions = re.fullmatch(r"([\w.-]+(?:\[\w+\])?)(>=[^;]*)(?:;.*)?", one).groups()
        if name == "eckitlib":  # a part of eccodes in wheels alone
            continue
        found.add(f"{CONDA.get(name, name)} {versions}")
    return found


def test_the_recipe_requires_what_pyproject_does(recipe):
    python, *run = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    assert set(run) == as_on_conda(PROJECT["dependencies"] + EXTRAS["cli"] + EXTRAS["io"])
    optional = [
        one for extra in ("plot", "predictors", "tutorial", "hubs", "grib") for one in EXTRAS[extra]
    ]
    others = as_on_conda(optional) - set(run)
    assert set(recipe["requirements"]["run_constraints"]) == others
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert recipe["requirements"]["host"][1:] == ["pip", *built]


def test_the_recipe_describes_the_package(recipe):
    (program,) = recipe["build"]["python"]["entry_points"]
    assert dict([program.split(" = ")]) == PROJECT["scripts"]
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert [about["license_file"]] == PROJECT["license-files"]


def test_the_recipe_gets_version_and_checksum(tmp_path, recipe):
    sdist = tmp_path / "xrecal-1.2.3.tar.gz"
    sdist.write_bytes(b"abc")
    write_recipe(sdist, "1.2.3", tmp_path / "recipe.yaml")
    written = yaml.safe_load((tmp_path / "recipe.yaml").read_text())
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    filled = recipe["context"] | {"version": "1.2.3", "sha256": digest}
    assert written == recipe | {"context": filled}


def test_workflows_test_every_python_of_the_classifiers():
    tests = yaml.safe_load(WORKFLOWS["tests"].read_text())["jobs"]
    tried = tests["tests"]["strategy"]["matrix"]["python"]
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if " :: 3." in one]
    assert tried == named
    (_, python, _) = tests["minimum"]["steps"]
    assert python["with"]["python-version"] == PROJECT["requires-python"].removeprefix(">=")


@pytest.mark.parametrize("path", WORKFLOWS.values(), ids=WORKFLOWS)
def test_workflows_type_targets_of_the_makefile(path):
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    typed = re.findall(r"run: make (.*)", path.read_text())
    words = [word for line in typed for word in line.split() if "=" not in word]
    assert words
    assert set(words) <= set(targets)


def test_the_citation_names_the_software_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["license"] == PROJECT["license"]
    assert citation["title"].lower() == f"xrecal: {PROJECT['description']}".lower()
    paper = citation["preferred-citation"]
    names = [one["family-names"] for one in paper["authors"]]
    page = " ".join((ROOT / "docs" / "method.md").read_text().split())
    cited = f"{', '.join(names[:-1])} and {names[-1]} ({paper['year']}), *{paper['title']}*"
    assert cited in page
