"""Plans: tasks, memory and time of a fit, or of a product such as quantiles, before any work."""
