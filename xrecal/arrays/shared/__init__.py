"""One fit from the cases of many places: sums over cases, not weights of cases."""
