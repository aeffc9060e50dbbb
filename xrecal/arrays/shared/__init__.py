"""One fit to the cases of many places: it keeps sums over cases, not the cases."""
