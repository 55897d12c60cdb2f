"""`python -m kymo` is the command line."""

import sys

from kymo._cli import main

if __name__ == "__main__":
    sys.exit(main())
