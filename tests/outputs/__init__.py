"""What every method makes of fixed sets of forecasts, in a row of numbers for each group.

    python -m tests.outputs                     # rewrites tests/outputs.txt
    python -m tests.outputs --hash > FILE       # prints a sum of all bytes of each output
    python -m tests.outputs --compare FILE      # prints the sums that differ from those in FILE

The table is compared with a tolerance, as processors and libraries of linear algebra round in their
own ways; it says that outputs of a group have changed, and sums say which. The sums are for one
machine, before and after a change that should change nothing; with ``--issued`` only those of what
is issued, for a change of how models are laid out. Names of groups may follow, with ``*`` for any
part; all are made if none do.
"""
