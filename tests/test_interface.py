"""What users type stays as it is, whatever moves inside the package."""

import pytest

import xrecal

from .interface import STORED, interface


def test_the_public_interface_is_the_stored_one():
    stored, found = STORED.read_text().splitlines(), interface()
    missing = [f"- {line}" for line in stored if line not in found]
    new = [f"+ {line}" for line in found if line not in stored]
    if missing or new:
        told = "\n".join([*missing, *new])
        pytest.fail(
            f"the public interface has changed:\n{told}\n"
            "If that is meant, rewrite what is stored by python -m tests.interface",
            pytrace=False,
        )
    assert stored == found, "lines are in another order; run python -m tests.interface"


def test_the_package_lists_its_names():
    assert set(dir(xrecal)) == {*xrecal.__all__, "plot", "__version__"}
