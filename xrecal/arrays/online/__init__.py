"""Online aggregation: averages of experts; each verified case updates their weights."""
