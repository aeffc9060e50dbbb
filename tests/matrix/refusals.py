"""Refusals that are meant: the words by which each is known."""

import re

WORKS, NEEDLESS = "works", "no such setting"

REFUSALS = {
    "new place": r"a fit with pool='station' can also forecast places without past ",
    "place beyond a pool": r"update with all positions of the fit, and fit again for other "
    r"positions",
    "pool in chunks": r"every task needs all of it; use hindcast\.chunk\(\{'station': -1\}\)",
    "Raw with predictors": r"the fit conditions on \[\], not on .* leave them out",
    "days of a network": r"keeps learning from all places at once, which splits do not",
    "refit of sums": r"one fit to more than \d+ cases; leave refit out",
    "refit of its own": r"refits itself, with its own refit=90; leave refit out",
}
"""Names on the page of the documentation, and what messages say."""


def named(outcome: str) -> str:
    """The name of a refusal; the message of one that nobody meant, as it is."""
    for name, words in REFUSALS.items():
        if re.search(words, outcome):
            return name
    return outcome
