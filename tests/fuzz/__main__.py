"""`python -m tests.fuzz`: see `run`."""

from .run import main

if __name__ == "__main__":
    main()
