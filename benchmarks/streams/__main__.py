"""python -m benchmarks.streams"""

from .run import main, parsed

if __name__ == "__main__":
    main(**vars(parsed()))
