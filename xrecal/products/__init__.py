"""What is made of distributions: means, quantiles, probabilities, members, coherent fields."""
