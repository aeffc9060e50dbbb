"""python -m benchmarks.speed [PART ...] [--quick]"""

from argparse import ArgumentParser

from .run import PARTS, RESULTS, main

if __name__ == "__main__":
    parser = ArgumentParser("python -m benchmarks.speed", description="Measure the budgets.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="smallest sizes: does it run?")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    # Numbers of small sizes or of some parts are not the table that is kept.
    main(given.quick, given.parts, None if given.quick or given.parts else RESULTS)
