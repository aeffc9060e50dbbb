"""Products of distributions: all of them accept raw, recalibrated and held-out forecasts.

=====================================  ==========================================================
source, recalibrated, reductions       sources of distributions, and reductions
statistics, probabilities, categories  means, quantiles, probabilities of events
members, coherence                     members, also coherent over places
scores                                 scores, and probability integral transforms
apply                                  the recalibrated distributions themselves
cross_validate                         products of held-out cases
=====================================  ==========================================================
"""
