"""Programs some of whose outputs have no data: nothing computes those."""

from __future__ import annotations

from typing import Any

from ..program.meta import META, MetaArray
from ..program.program import Aval, Program
from .several_devices import Pairs


def without_meta(
    program: Program, guards: Pairs, homes: Pairs
) -> tuple[Program, Pairs, Pairs, dict[int, Aval]]:
    """Take the outputs on the device `meta` out of a program.

    Args:
      guards, homes: places of outputs, and of inputs that they write over or replace.

    Returns:
      The program with its guards and homes, and abstract values of what was taken out, by place.
    """
    avals = [aval for entry in program.entries for aval in entry.avals]
    outputs = program.outputs
    meta = {k: avals[v] for k, v in enumerate(outputs) if avals[v].device is META}
    if not meta:
        return program, guards, homes, meta
    left = [k for k in range(len(outputs)) if k not in meta]
    program = program._replace(outputs=tuple([outputs[k] for k in left]))
    guards, homes = (
        tuple([(left.index(k), i) for k, i in pairs if k in left]) for pairs in (guards, homes)
    )
    return program, guards, homes, meta


class WithMeta:
    """A plan whose outputs on the device `meta` were taken out; used as a plan is.

    Args:
      plan: of the others.
      meta: abstract values of those taken out, by their places among all outputs.
    """

    def __init__(self, plan: Any, meta: dict[int, Aval]) -> None:
        self.plan, self._meta = plan, meta

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run on one array an input; see `Plan.run`."""
        return self._put(self.plan.run(*args, **kwargs))

    def outcome(self, *args: Any) -> Any:
        """Return the outcome of a run; see `Plan.outcome`."""
        return self._put(self.plan.outcome(*args))

    def _put(self, found: Any) -> Any:
        outputs = list(found.outputs)
        for k, aval in self._meta.items():  # in ascending order
            outputs.insert(k, MetaArray(aval.shape, aval.dtype))
        return found._replace(outputs=tuple(outputs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)
