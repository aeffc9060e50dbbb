"""Online aggregation: experts, and weights of experts, which each verified case updates."""
