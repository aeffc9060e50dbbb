"""Every method with every feature: each pair works, or is refused with what to type.

``python -m tests.matrix`` runs all pairs and records what it finds in ``docs/together.csv``, which
a page of the documentation shows and the tests compare with.
"""
