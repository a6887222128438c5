"""Run a program with leafax standing for torch: `python -m leafax script [argument ...]`."""

import sys

from ._install.command import run

if __name__ == "__main__":
    run(sys.argv[1:])
