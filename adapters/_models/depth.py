"""Order in which a model uses its parameters, and the blocks along it.

Paths do not tell (`bn` comes before `stem` in a dict), the traced call does: the program that JAX
made of the model's last call is read, inner programs included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
from jax.extend.core import Jaxpr, Literal, jaxprs_in_params

from leafax.functional.program.paths import select

from .calls import Pure, abstract_shapes


def uses(pure: Pure) -> list[int]:
    """Return the places of a call's leaves, in the order of their first use, if they have one."""
    leaves, key, args, kwargs = pure.seen
    shapes, fill = abstract_shapes((leaves, key, args, kwargs))

    def run(*arrays: Any) -> Any:
        held, key, args, kwargs = fill(arrays)
        return pure(held, key, args, kwargs)

    jaxpr = jax.make_jaxpr(run)(*shapes).jaxpr
    found: dict[int, None] = {}
    _walk(jaxpr, dict(zip(jaxpr.invars, range(len(leaves)), strict=False)), found)
    return list(found)


def _walk(jaxpr: Jaxpr, leaf_of: dict[Any, int], found: dict[int, None]) -> None:
    for eqn in jaxpr.eqns:
        operands = [None if isinstance(v, Literal) else leaf_of.get(v) for v in eqn.invars]
        if all(leaf is None for leaf in operands):
            continue
        inner = list(jaxprs_in_params(eqn.params))
        for sub in inner:
            # The first operand of `cond` is the branch's number, a loop's are not in order.
            skipped = len(operands) - len(sub.invars)
            if skipped in (0, 1):
                pairs = zip(sub.invars, operands[skipped:], strict=True)
                _walk(sub, {v: leaf for v, leaf in pairs if leaf is not None}, found)
        if not inner or any(len(operands) - len(sub.invars) not in (0, 1) for sub in inner):
            found.update(dict.fromkeys(leaf for leaf in operands if leaf is not None))


def node_of(name: str, blocks: str | None) -> str | None:
    """Return the block that a path lies in, of as many names as the pattern; None if none."""
    depth = 1 if blocks is None else blocks.count(".") + 1
    names = name.split(".")
    if len(names) <= depth:
        return None
    node = ".".join(names[:depth])
    if blocks is None:
        return node
    try:
        select({node: 0}, blocks)
    except ValueError:
        return None
    return node


def levels(order: Sequence[str], names: Iterable[str], blocks: str | None) -> dict[str, int]:
    """Return each parameter's depth: 0 before the first block, then 1, 2, ... a block, and after.

    Args:
      order: paths in the order of first use.
      names: all paths; unused ones count as the very beginning.
      blocks: a glob for the blocks, None for the top-level parts.

    Raises:
      ValueError: nothing matches.
    """
    known = list(names)
    begun: dict[str, int] = {}
    found: dict[str, int] = {}
    for name in order:
        node = node_of(name, blocks)
        if node is not None:
            found[name] = begun.setdefault(node, len(begun) + 1)
    if not begun:
        select({name: 0 for name in known}, blocks or "*")  # raises, with the nearest paths
        raise ValueError(f"`{blocks}` names parameters, not the blocks that they lie in")
    started = 0
    for name in order:
        started = max(started, found.get(name, 0))
        if name not in found:
            found[name] = started if started < len(begun) else len(begun) + 1
    return {name: found.get(name, 0) for name in known}
