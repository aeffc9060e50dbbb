"""What forecasters use today: EMOS, isotonic regression, climatology, PIT recalibration."""
