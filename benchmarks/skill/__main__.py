"""python -m benchmarks.skill"""

from .run import main

if __name__ == "__main__":
    main()
