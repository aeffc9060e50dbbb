"""What was fitted, how it is fitted, held-out distributions, and how more cases join."""
