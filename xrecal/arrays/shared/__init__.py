"""Shared fits: one fit to the cases of many places; it stores sums over cases, not the cases."""
