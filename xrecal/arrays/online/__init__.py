"""Online aggregation: averages of experts, whose weights each verified case updates."""
