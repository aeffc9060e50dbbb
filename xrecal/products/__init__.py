"""Products of distributions, each once, whatever the source: issued, recalibrated or held out.

=====================================  ==========================================================
source, recalibrated, reductions       where distributions come from, and how they are reduced
statistics, probabilities, categories  means, quantiles, probabilities of events
members, coherence                     members, and members that are fields
scores                                 scores, and where observations fall within distributions
apply                                  the recalibrated distributions themselves
cross_validate                         products of cases that fits have not seen
=====================================  ==========================================================
"""
