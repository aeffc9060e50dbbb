"""python -m benchmarks.shared [PLACES DATES]"""

import sys

from .run import main

if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(size=(numbers[0], numbers[1]) if numbers else None)
