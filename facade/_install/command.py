"""`python -m leafax`: runs a script or a module with leafax standing for torch."""

from __future__ import annotations

import os
import runpy
import sys
from types import ModuleType

from .installation import install

_USAGE = """usage: python -m leafax script.py [argument ...]
       python -m leafax -m module [argument ...]
       python -m leafax -c command [argument ...]

Run a Python program with `import torch` answered by leafax.
"""


def run(arguments: list[str]) -> None:
    """Run what the command line says.

    Args:
      arguments: those after `python -m leafax`.

    Raises:
      SystemExit: there is nothing to run.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    kind = arguments[0] if arguments[0] in ("-m", "-c") else None
    if arguments[0].startswith("-") and kind is None:
        print(f"{_USAGE}\nunknown option {arguments[0]}", file=sys.stderr)
        raise SystemExit(2)
    program = arguments[1:] if kind else arguments
    if not program:
        print(f"{_USAGE}\nargument expected for the {kind} option", file=sys.stderr)
        raise SystemExit(2)
    install()
    if kind == "-m":
        sys.argv = program  # runpy puts the file's path in the first place
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *program[1:]]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(program[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = program
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
