"""Names that the ops of a program have in XLA's metadata, where profilers find them.

"GPT.blocks.0.fc/train.py:12 linear": the module's path, the user's line and the op. A gradient
is named after the line of what it differentiates. Metadata is no part of what tells programs apart,
so a program that several lines record has the names of the line that came first.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NamedTuple

from ..program.program import Node, Program

_NO_NAMES = r"[/@]"  # XLA takes what follows for something else
_ADDRESS = r" at 0x[0-9a-f]+"
_SCOPE = r"^((?:[^/]+/)*?)([^/]+):(\d+) ([^/]+)(?=/|$)"
_TRANSFORMED = r"(?:jvp|transpose|vmap)\(|\)"
# Levels that JAX names: they are no modules of a model.
_OF_JAX = r"jit\(|^(?:while|body|cond|branch_\d+_fun|closed_call|checkpoint|remat)$|^$"


class Scope(NamedTuple):
    """Name the op that an instruction of XLA is of, as its metadata tell.

    Attributes:
      path: blocks and modules around it, and Flax's modules within it, with slashes between
        them; "" if there are none.
      op: its name.
      file, line: the user's; only the last part of the file's path.
    """

    path: str
    op: str
    file: str
    line: int


def scopes_of(program: Program) -> list[str]:
    """Name the entries of a program; "" for those that have no line."""
    return [_scope(entry, program) if isinstance(entry, Node) else "" for entry in program.entries]


def _scope(node: Node, program: Program) -> str:
    where, name = line_of(node, program), op_name(node.call)
    if where is None:
        return ""
    around = "/".join([re.sub(_NO_NAMES, "", x) for x in getattr(where, "scopes", ())])
    line = f"{PurePath(where[0]).name or '?'}:{where[1]} {name}"
    return f"{around}/{line}" if around else line


def line_of(node: Node, program: Program) -> Any:
    """Return the user's file and line of an op; of a gradient that of what it differentiates."""
    primal = program.entries[node.primal] if node.primal is not None else None
    return (primal.where if isinstance(primal, Node) else None) or node.where


def op_name(call: Any) -> str:
    """Return the name of a call's op; of a gradient `linear.backward`."""
    name = str(call.name)
    while name.startswith("vjp["):
        name = f"{name[4:-1]}.backward"
    return re.sub(_NO_NAMES, "", name.removeprefix("opaque."))


def read_scope(name: str) -> Scope | None:
    """Read the scope in the `op_name` of an instruction's metadata; None if it has none.

    >>> read_scope("jit(leafax_program)/GPT.fc/train.py:12 linear/dot_general")
    Scope(path='GPT.fc', op='linear', file='train.py', line=12)
    >>> read_scope("jit(leafax_program)/train.py:5 net.backward/transpose(jvp(Net))/fc/add").path
    'Net/fc'
    """
    found = re.search(_SCOPE, name)
    if found is None:
        return None
    *within, _ = name[found.end() :].split("/")  # the last is of JAX's own operation
    parts = found[1].split("/") + [re.sub(_TRANSFORMED, "", part) for part in within]
    path = "/".join([part for part in parts if not re.search(_OF_JAX, part)])
    return Scope(path, found[4], found[2], int(found[3]))


def name_program(fn: Callable[..., Any], kind: str, program: Program) -> str:
    """Name a function that is to be compiled after the structure of its program.

    Profilers tell programs apart by these names. They are the same in all processes, since JAX's
    persistent cache goes by them too.

    Args:
      fn: computes the program.
      kind: "program" or "piece".

    Returns:
      The name.
    """
    number = zlib.crc32(re.sub(_ADDRESS, "", str(program)).encode())
    name = f"leafax_{kind}_{number:08x}"
    fn.__name__ = fn.__qualname__ = name
    return name


def name_op(fn: Callable[..., Any], call: Any) -> None:
    """Name a function that computes one op alone."""
    fn.__name__ = fn.__qualname__ = "leafax_op_" + re.sub(r"\W+", "_", op_name(call)).strip("_")
