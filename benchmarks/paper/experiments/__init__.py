"""Experiments: each has a file of rows and knows which of them are there already."""
