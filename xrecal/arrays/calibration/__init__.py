"""Measures and tests of calibration: SKCE, PIT, ranks, reliability."""
