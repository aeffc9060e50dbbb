"""python -m benchmarks.paper [smoke | report | all | EXPERIMENT ...]"""

import argparse
import sys
import time

from . import manifest, smoke
from .data import set_names
from .experiments import ablations, clock, edk, features, scores
from .recalibration import CORE, EXTENSIONS, GP_BETA, LAPLACE, METHODS

GROUPS = {"core": CORE, "laplace": LAPLACE, "parametric": GP_BETA, "extensions": EXTENSIONS}
EXPERIMENTS = ("scores", "features", "ablations", "edk", "clock")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument(
        "what", nargs="*", default=["all"], help=f"all, smoke, report, {', '.join(EXPERIMENTS)}"
    )
    parser.add_argument("--sets", nargs="+", help="default: all that are there")
    parser.add_argument("--models", nargs="+", default=["GDN", "MDN", "BNN", "DRF"])
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(GROUPS),
        help=f"{', '.join(GROUPS)}, or labels of methods",
    )
    parser.add_argument("--splits", type=int, help="at most so many")
    found = parser.parse_args(given)
    unknown = set(found.what) - {"all", "smoke", "report", *EXPERIMENTS}
    if unknown:
        parser.error(
            f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}"
        )
    wrong = set(found.methods) - set(GROUPS) - set(METHODS)
    if wrong:
        parser.error(f"no method {', '.join(sorted(wrong))}; there are {', '.join(METHODS)}")
    return found


def main(given: list[str] | None = None) -> None:
    """Run what is asked for and not there yet, then write the report."""
    asked = arguments(given)
    if asked.what == ["smoke"]:
        smoke.main()
        return
    what = EXPERIMENTS if "all" in asked.what else asked.what
    methods = [m for name in asked.methods for m in GROUPS.get(name, (name,))]
    sets, start = asked.sets or set_names(), time.perf_counter()
    if "scores" in what:
        scores.run(sets, asked.models, methods, asked.splits)
    if "ablations" in what:
        ablations.run_preimage()
        ablations.run_bandwidth()
        ablations.run_ridge()
    if "edk" in what:
        edk.run()
    if "clock" in what:
        clock.run(sets)
    if "features" in what:
        features.run(sets, asked.splits)
    if any(name in what for name in EXPERIMENTS):
        manifest.write(
            " ".join(["python -m benchmarks.paper", *(given or sys.argv[1:])]),
            time.perf_counter() - start,
        )
    from . import report

    report.write()
    print(f"report: {report.REPORT.relative_to(report.REPORT.parents[2])}")


if __name__ == "__main__":
    main()
