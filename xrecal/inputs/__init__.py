"""Read inputs of users: dimensions, labels, dates, units, forms, valid times, pairs, covariates."""
