"""`python -m saddleslide` is the command `saddleslide`."""

import sys

from saddleslide.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
