"""Instructions that XLA made of a program, with the ops that they are of, for profilers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..lowering.scopes import Scope, line_of, read_scope, scopes_of
from ..program.program import Node, Program

_COMPUTATION = r"^(?:ENTRY )?%?([\w.\-]+) .*\{$"
_INSTRUCTION = r"^\s+(?:ROOT )?%?([\w.\-]+) = "
_OP_NAME = r'op_name="([^"]*)"'
_CALLED = r"(?:calls|to_apply|body)=%?([\w.\-]+)"

#: By name: what was compiled and is still held, with a `program` and an `executable`.
_compiled: WeakValueDictionary[str, Any] = WeakValueDictionary()


class Op(NamedTuple):
    """The op of a program that an instruction is of.

    Attributes:
      scope: its name, line and modules.
      where: the user's file, with its whole path, and line.
      shapes: of its inputs, where the program has one such op.
      calls: how many ops of the program have this scope.
    """

    scope: Scope
    where: tuple[str, int]
    shapes: tuple[tuple[int, ...], ...]
    calls: int


def note_compiled(name: str, holder: Any) -> None:
    """Remember what holds the program and the executable that have this name."""
    _compiled[name] = holder


def ops_of(module: str) -> Mapping[str, Op] | None:
    """Return the ops of the instructions of an HLO module, by the instructions' names.

    Args:
      module: its name: "jit_leafax_program_5f3a2b1c".

    Returns:
      None for a module that is unknown, or forgotten.
    """
    holder = _compiled.get(module.removeprefix("jit_"))
    if holder is None or holder.executable is None:
        return None
    known = _known_ops(holder.program)
    found = {}
    for name, op_name in read_instructions(holder.executable.as_text()).items():
        scope = read_scope(op_name)
        if scope is not None:
            where, shapes, calls = known.get(
                (scope.op, scope.file, scope.line), ((scope.file, scope.line), (), 1)
            )
            found[name] = Op(scope, where, shapes, calls)
    return found


def _known_ops(program: Program) -> dict[Any, Any]:
    """Return whole lines, shapes and numbers of a program's ops, by name and line."""
    avals: list[Any] = []
    found: dict[Any, Any] = {}
    paths = Counter(scopes := scopes_of(program))
    for scope, entry in zip(scopes, program.entries, strict=True):
        if isinstance(entry, Node) and (read := read_scope(scope)) is not None:
            file, number = line_of(entry, program)
            shapes = tuple([tuple(avals[i].shape) for i in entry.inputs])
            key = read.op, read.file, read.line
            before = found.get(key)
            if before is not None and before[1] != shapes:
                shapes = ()
            found[key] = (file, number), shapes, paths[scope]
        avals += entry.avals
    return found


def read_instructions(text: str) -> dict[str, str]:
    """Read the `op_name` of each instruction in the text of a compiled HLO module.

    A fusion without one has that of the first instruction in it that has a user's line.
    """
    found: dict[str, str] = {}
    within: dict[str, str] = {}  # by computation
    calls: dict[str, str] = {}
    computation = ""
    for line in text.split("\n"):
        if not line.startswith(" "):
            header = re.match(_COMPUTATION, line)
            computation = header[1] if header else computation
            continue
        instruction = re.match(_INSTRUCTION, line)
        if instruction is None:
            continue
        named, called = re.search(_OP_NAME, line), re.search(_CALLED, line)
        if named is not None:
            found[instruction[1]] = named[1]
            if read_scope(named[1]) is not None:
                within.setdefault(computation, named[1])
        if called is not None:
            calls[instruction[1]] = called[1]
    for name, inner in calls.items():
        if inner in within and read_scope(found.get(name, "")) is None:
            found[name] = within[inner]
    return found
