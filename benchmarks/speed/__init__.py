"""What the package costs: the budgets, how cost grows, and what a user would pick instead."""

from .run import main

__all__ = ["main"]
