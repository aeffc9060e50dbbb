"""What users give: dimensions, labels, units, forms, valid times, pairs, covariates."""
