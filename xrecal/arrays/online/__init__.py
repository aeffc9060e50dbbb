"""Online aggregation: experts, and weights of experts that learn from each verified case."""
