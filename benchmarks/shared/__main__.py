"""python -m benchmarks.shared [online] [PLACES DATES]"""

import sys

from . import online
from .run import main

if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "online"]
    size = (numbers[0], numbers[1]) if numbers else None
    if "online" in sys.argv:
        online.main(size or online.WHOLE)
    else:
        main(size=size)
