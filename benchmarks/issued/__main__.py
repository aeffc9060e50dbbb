"""python -m benchmarks.issued [part ...]"""

import sys

from .run import main

if __name__ == "__main__":
    main(sys.argv[1:])
