"""The public interface is the stored one, whatever moves inside the package."""

import pytest

from .interface import STORED, interface


def test_the_public_interface_is_the_stored_one():
    stored, found = STORED.read_text().splitlines(), interface()
    missing = [f"- {line}" for line in stored if line not in found]
    new = [f"+ {line}" for line in found if line not in stored]
    if missing or new:
        changes = "\n".join([*missing, *new])
        pytest.fail(
            f"the public interface has changed:\n{changes}\n"
            "If you want that, run python -m tests.interface to store the new one",
            pytrace=False,
        )
    assert stored == found, "lines are in another order; run python -m tests.interface"
