"""Online aggregation: experts, and weights that learn from each verified case."""
