"""Every method with every feature: each pair works, or is refused with what to type.

``python -m tests.matrix`` runs every method with every feature, and records what it finds beside
this file. A page of the documentation shows it, and the tests compare with it.
"""
