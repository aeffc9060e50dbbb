"""Evidence for and against calibration: SKCE, PIT, ranks, reliability, and their tests."""
