"""python -m benchmarks.shared [--quick]"""

import sys

from .run import main

if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
