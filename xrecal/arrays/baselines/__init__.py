"""Baselines: EMOS, isotonic regression, climatology, PIT recalibration."""
