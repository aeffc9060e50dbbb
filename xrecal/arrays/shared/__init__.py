"""Shared fits: one fit to the cases of many places, which stores sums over cases, not the cases."""
