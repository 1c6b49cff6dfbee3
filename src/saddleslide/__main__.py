"""`python -m saddleslide` is the command `saddleslide`."""

import sys

from saddleslide.cli import main

if __name__ == "__main__":
    sys.exit(main())
