"""A stretch of the running trace as one pure function: what `vmap` and `checkpoint` transform.

A user's function is recorded as usual; the steps that it took are then read off the trie. What
they use from before is passed in, so gradients flow to it as to any operand. The recorded steps
themselves are dead afterwards, and a program leaves out what is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from leafax.functional.program.program import Node
from leafax.functional.program.slices import needed_steps

from .._core.trie import EXTERNAL, LEAF, NOWHERE, State, Trace, Value, local
from .._storage.enter import enter
from .export import _stop, _with_edge_of


class Region:
    """The steps from its making until `function` is called.

    Attributes:
      free: after `function`: the values from outside that the steps use.
    """

    def __init__(self) -> None:
        self.trace: Trace = local.trace
        self.start: State = local.trace.state
        self.free: tuple[Value, ...] = ()

    def intact(self) -> bool:
        """Tell if nothing has cut the program meanwhile."""
        return local.trace is self.trace

    def steps(self) -> list[State]:
        """Return the states after the start, in order."""
        return local.trace.state.since(self.start)

    def key(self, outs: Sequence[Value]) -> Any:
        """Return a key that is equal for regions of equal meaning, for the state's `next`."""
        return ("region", self.start, tuple(outs))

    def function(
        self, outs: Sequence[Any], given: Sequence[Value], varies: Set[int],
        call: Callable[..., tuple[Any, ...]] | None = None,
    ) -> Callable[..., tuple[Any, ...]]:  # fmt: skip
        """Return the function `(*given, *free) -> outs`; fill `free`.

        Args:
          outs: tensors that the steps made (or found).
          given: values that become the function's first arguments.
          varies: numbers of the values that depend on them; the others are passed in.
          call: `call(state, arrays)` evaluates one step; by default its call does.
        """
        wanted = [enter(t, self.trace) for t in outs]
        steps = _needed(self.steps(), wanted, {v.index for v in given}, varies)
        inside = {v.index for v in given}
        free: dict[Value, None] = {}

        def use(v: Value) -> None:
            if v.index not in inside:
                free[v] = None
            elif v.edge is not None and v.edge.index not in inside:
                free[v.edge] = None

        for s in steps:
            for v in s.operands:
                use(v)
            inside.update(v.index for v in s.values)
        for v in wanted:
            use(v)
        self.free = tuple(free)
        numbers = [v.index for v in given]
        known = set(numbers)
        frees = self.free

        def fn(*arrays: Any) -> tuple[Any, ...]:
            env: dict[int, Any] = dict(zip(numbers, arrays, strict=False))
            outer = dict(zip(frees, arrays[len(numbers) :], strict=True))

            def read(v: Value) -> Any:
                if v.index not in env:
                    return outer[v] if v.requires_grad else _stop(outer[v])
                x = env[v.index]
                if v.role == NOWHERE or not v.requires_grad or v.role == LEAF:
                    return _stop(x)
                if v.edge is not None and v.edge.index != v.index:
                    old = env.get(v.edge.index)
                    old = outer[v.edge] if old is None else old
                    return _with_edge_of(x, old.reshape(x.shape))  # turned without gradients
                return x

            for s in steps:
                values = [read(v) for v in s.operands]
                results = call(s, values) if call is not None else s.call.evaluate(*values)
                for v, x in zip(s.values, results, strict=True):
                    if v.index in known:
                        continue
                    env[v.index] = x if v.requires_grad else _stop(x)
            return tuple(read(v) for v in wanted)

        return fn

    def used(self, outs: list[Any], given: list[Value], varies: Set[int]) -> list[bool]:
        """Find which of the given values these tensors depend on."""
        names = {v.index for v in given}
        read = self._read([enter(t, self.trace) for t in outs], names, varies)
        return [v.index in read for v in given]

    def reads(self, wanted: list[Value], given: list[Value], varies: Set[int]) -> list[set[int]]:
        """Find for each output of `function` the arguments that its value depends on."""
        at = {v.index: k for k, v in enumerate((*given, *self.free))}
        names = {v.index for v in given}
        return [{at[n] for n in self._read([v], names, varies) if n in at} for v in wanted]

    def _read(self, wanted: list[Value], given: Set[int], varies: Set[int]) -> set[int]:
        """Return the numbers of the values that the wanted ones are computed from, and theirs."""
        steps = _needed(self.steps(), wanted, given, varies)
        return _numbers([*wanted, *[v for s in steps for v in s.operands]])

    def edges(
        self, wanted: list[Value], given: Sequence[Value]
    ) -> tuple[frozenset[int], ...] | None:
        """Find for each output of `function` the arguments that autograd reaches from it.

        A value can be overwritten and its edge go on: its gradient is zero then. None if part of
        the graph is not that of the steps.
        """
        at = {v.index: k for k, v in enumerate((*given, *self.free))}
        found = []
        for out in wanted:
            stack, seen, reached = [out], set[Any](), set[int]()
            while stack:
                v = stack.pop()
                if not v.requires_grad or v.role == NOWHERE:
                    continue
                edge = v.edge or v
                place = at.get(v.index, at.get(edge.index))
                if place is not None:
                    reached.add(place)
                elif v.role == EXTERNAL or edge.state is None:
                    return None
                elif (edge.state, edge.out) not in seen:
                    seen.add((edge.state, edge.out))
                    operands = edge.state.operands
                    inner = getattr(getattr(edge.state.call, "op", None), "fn", None)
                    inner = getattr(inner, "edges", None)  # of another mapped function
                    stack += operands if inner is None else [operands[k] for k in inner[edge.out]]
            found.append(frozenset(reached))
        return tuple(found)

    def has_custom(self, wanted: list[Value], given: Set[int], varies: Set[int]) -> bool:
        """Tell if steps that the wanted values depend on have gradients in Python code."""
        steps = _needed(self.steps(), wanted, given, varies)
        made = {v.index for s in steps for v in s.values}
        for v in (*wanted, *[v for s in steps for v in s.operands]):
            if v.role == EXTERNAL and v.index in made and v.index not in given:
                source = self.trace.sources.get(v)
                if source is not None and source._v is None:
                    return True
        return False


def _needed(
    steps: list[State], wanted: list[Value], given: Set[int], varies: Set[int]
) -> list[State]:
    """Find the steps that compute the varying part of the wanted values from the given ones."""

    def made(s: State) -> Set[int]:
        return varies & {v.index for v in s.values} if isinstance(s.entry, Node) else set()

    found = needed_steps(
        reversed(steps), _numbers(wanted) - given, made, lambda s: _numbers(s.operands) - given
    )
    return [s for s, _ in found][::-1]


def _numbers(values: Iterable[Value]) -> set[int]:
    """Return the numbers of values and of where their gradients go."""
    return {v.index for x in values for v in (x, x.edge) if v is not None}
