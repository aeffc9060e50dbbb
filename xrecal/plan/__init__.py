"""Plans: tasks, memory and time of a fit or a product, before any work."""
