"""One running `vmap`: its examples, the values that depend on them, and the mapping of steps.

The function is recorded on the first example of each argument. What it recorded so far can be
mapped over all examples at any time (`whole`): that gives the batch that an intermediate result
stands for. An `autograd.Function` with a rule of its own takes such batches and returns some; its
outputs are examples of these, and what follows is mapped over them too.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from leafax.functional.lowering.jvp import JvpCall, read_inputs
from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.op import Op
from leafax.functional.program.program import Node

from .._core.grad_modes import enable_grad, within
from .._core.transforms_running import active
from .._core.trie import Mode, State, Value, local
from .._dispatch.record import apply, record
from .._dispatch.subgraph import Region
from .._storage.enter import enter
from .._storage.lay_out import lay_out
from .._storage.strides import stride
from .._tracing.inputs import make
from ._lifting import detach_keeping_tangents
from ._mapped_op import AXIS, make_check, make_mapped_op
from ._moves import has_moves, map_by_device
from ._towers import flatten_tangents, unflatten_tangents

RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' "
    "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
# PyTorch's older vmap (`_vmap_internals`, and `grad(is_grads_batched=True)`) has its own words.
RANDOM_IN_OLDER = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
    "operations outside of vmap as a workaround"
)
SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an "
    "issue with functorch"
)
# Random ops that draw by the tensors that they are given, not only in their shape.
_BY_PARAMETERS = frozenset({"bernoulli", "normal", "binomial", "poisson", "multinomial"})


class Example(NamedTuple):
    """Hold the first example of a batch, whose mapped dimension is `dim`.

    Attributes:
      version: that of the example at first.
      edge: where its gradient went at first: see `Value.edge`.
    """

    batch: Any
    dim: int
    first: Any
    version: int | None
    edge: Value | None

    @property
    def writes(self) -> int:
        """Count the writes to the example."""
        return 0 if self.version is None else self.first._version - self.version


class Level:
    """Hold the examples of one running vmap and map its steps over the batches.

    Attributes:
      size: how many examples there are.
      randomness: "error", "different" or "same".
      older: it is PyTorch's older vmap, which refuses other things and in other words.
      number: its depth among the running ones, from 1; `depth` that among all transforms.
      differentiating: how many of those around it take derivatives.
      mapped: `(batch, dimension)` of each hole; `holes` are the values of the first examples.
      examples: what the first examples are of; tangents, which `mapped` has too, are not there.
    """

    def __init__(self, size: int, randomness: str, older: bool, number: int) -> None:
        self.size, self.randomness, self.older = size, randomness, older
        self.number = number
        self.depth = active.depth
        self.differentiating = active.differentiating
        self.mapped: list[tuple[Any, int]] = []
        self.examples: list[Example] = []
        self.holes: list[Value] = []
        self._batched: set[int] = set()
        self.region: Region
        self._seen: State

    @property
    def refusal_of_random(self) -> str:
        """Return the message for random ops in randomness error mode."""
        return RANDOM_IN_OLDER if self.older else RANDOM

    def begin(self) -> None:
        """Count the steps from here on as those of the mapped function."""
        self.region = Region()
        self._seen = local.trace.state

    def take_example(self, batch: Any, dim: int) -> Any:
        """Take the first example of a batch: it stands for all while the function is recorded."""
        with enable_grad():  # the function may record gradients where its caller does not
            first = apply(_first(dim), batch)
        for whole, part in zip(flatten_tangents(batch), flatten_tangents(first), strict=True):
            _lie_as(part, whole, dim)
            value = enter(part, local.trace)
            self.mapped.append((whole, dim))
            self.holes.append(value)
            self._batched.add(value.index)
        version = None if first._v.inference else first._version
        edge = enter(first, local.trace).edge
        self.examples.append(Example(batch, dim, first, version, edge))
        return first

    def add(self, value: Value) -> None:
        """Count a value of the trace as one that differs from example to example."""
        self._batched.add(value.index)

    def is_batched(self, t: Any) -> bool:
        """Tell if a tensor differs from example to example."""
        return self.is_value_batched(enter(t, local.trace))

    def is_value_batched(self, value: Value) -> bool:
        """Tell if a value of the trace differs from example to example."""
        steps = local.trace.state.since(self._seen, self.region.start)
        self._seen = local.trace.state
        for s in steps:
            if not isinstance(s.entry, Node):
                continue
            varies = {k for k, v in enumerate(s.operands) if v.index in self._batched}
            if self.randomness == "different" and draws_random(s):
                self._batched.update(v.index for v in s.values)
            elif varies:
                reads = _reads(s, varies)
                self._batched.update(
                    v.index for k, v in enumerate(s.values) if reads is None or reads[k] & varies
                )
        return value.index in self._batched

    def find_batch(self, t: Any) -> tuple[Any, int | None]:
        """Return the batch that `t` stands for and its mapped dimension; else `t` and None."""
        if not self.is_batched(t):
            return t, None
        value = enter(t, local.trace)
        for (batch, dim), hole in zip(self.mapped, self.holes, strict=True):
            if hole.index == value.index:
                return batch, dim
        return self.record_batch(t), 0

    def record_batch(self, t: Any, dim: int = 0) -> Any:
        """Record the batch that `t` stands for, with the examples along `dim`."""
        parts = list(flatten_tangents(t))
        return unflatten_tangents(t, iter(self.map(parts, [dim] * len(parts))))

    def map(self, outs: list[Any], out_dims: list[Any], sparing: bool = False) -> list[Any]:
        """Record the steps so far as one mapped op on the batches, or as one for each device.

        Args:
          sparing: take those batches only that the outputs depend on.
        """
        if has_moves(self):
            return map_by_device(self, outs, out_dims, self._map)
        return self._map(outs, out_dims, sparing)

    def _map(self, outs: list[Any], out_dims: list[Any], sparing: bool) -> list[Any]:
        region = self.region
        if any(_op_name(s) == "rrelu" for s in region.steps()):
            raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
        if self.randomness == "error" and any(draws_random(s) for s in region.steps()):
            raise RuntimeError(self.refusal_of_random)
        if self.randomness == "same":
            self._check_same(region)
        if not outs:
            return []
        values = [enter(o, region.trace) for o in outs]
        for o in outs:
            self.is_batched(o)
        batches, given = self.mapped, self.holes
        if sparing:
            used = region.used(outs, self.holes, self._batched)
            batches = [m for m, u in zip(batches, used, strict=True) if u]
            given = [v for v, u in zip(given, used, strict=True) if u]
        holes = {v.index for v in given}
        if any(v.requires_grad for v in values) and region.has_custom(values, holes, self._batched):
            raise NotImplementedError(
                "vmap over an op that saved-tensor hooks have packed is not implemented in leafax"
            )
        dims = tuple(d for _, d in batches)
        key = (
            "vmap", region.key(values), tuple(out_dims), dims, tuple(given), self.size,
            self.randomness,
        )  # fmt: skip
        known = local.trace.state.next.get(key)
        if known is None:
            call = self._make_splitting() if self.randomness == "different" else None
            fn = region.function(outs, given, self._batched, call)
            check = make_check(region, outs, self, given, dims)
            random = any(draws_random(s) for s in region.steps())
            op = make_mapped_op(
                fn, dims, tuple(out_dims), len(region.free), self.size, check, random
            )
            op.fn.edges = region.edges(values, given)  # type: ignore[attr-defined]
            if self.number > 1:
                op.fn.reads = region.reads(values, given, self._batched)  # type: ignore[attr-defined]
            known = local.trace.state.next[key] = (op, region.free)
        op, free = known
        wholes = [enter(x, region.trace) for x, _ in batches]
        tracked = any(v.requires_grad for v in values)
        mode = local.mode
        with within(Mode.of(tracked, mode.inference, mode.autocast, False, ())):
            state, trace = record(op, (*wholes, *free), {}, budget=False)
        results = [make(v, trace) for v in state.values]
        return [
            r if v.requires_grad else detach_keeping_tangents(r)
            for r, v in zip(results, values, strict=True)
        ]

    def _make_splitting(self) -> Any:
        """Make the function that evaluates a step; it draws by a key of each example's own."""
        steps = self.region.steps()
        keys = {s.values[0].index for s in steps if _op_name(s) == "next_key"}

        def call(state: State, arrays: list[Any]) -> Any:
            if draws_random(state):
                arrays = [
                    _own_key(x) if v.index in keys else x
                    for v, x in zip(state.operands, arrays, strict=True)
                ]
            return state.call.evaluate(*arrays)

        return call

    def _check_same(self, region: Region) -> None:
        """Refuse what PyTorch does not draw alike for all examples: where parameters differ."""
        for s in region.steps():
            if _op_name(s) not in _BY_PARAMETERS or len(s.operands) < 2:
                continue
            if s.values[0].storage == s.operands[1].storage:  # in place, and asked before
                continue
            if any(self.is_value_batched(v) for v in s.operands[1:]):
                raise RuntimeError(SAME)


def _lie_as(first: Any, batch: Any, dim: int) -> None:
    """Give an example the strides of its batch."""
    strides = stride(batch)
    strides = strides[:dim] + strides[dim + 1 :]
    if strides != tuple(contiguous_strides(tuple(first._v.shape))):
        lay_out(first, strides)


@functools.cache
def _first(dim: int) -> Op:
    def first(x: Any) -> Any:
        shape = x.shape[:dim] + x.shape[dim + 1 :]
        if x.shape[dim] == 0:
            return jnp.zeros(shape, x.dtype)
        return jax.lax.index_in_dim(x, 0, dim, keepdims=False)

    return Op(first, name="select", backward="SelectBackward0")


def _reads(state: Any, varies: set[int]) -> Any:
    """Tell which operands each of a step's values is computed from; None stands for all.

    A tangent of what is linear does not depend on the values, and may be written where they differ.
    """
    call = state.call
    if isinstance(call, JvpCall) and max(varies) < len(state.operands) - len(call.given):
        avals = tuple([v.aval for v in state.operands])
        return [read_inputs(call, avals, (k,)) for k in range(len(state.values))]
    return getattr(getattr(getattr(call, "op", None), "fn", None), "reads", None)


def draws_random(state: Any) -> bool:
    """Tell if a step draws random numbers."""
    op = getattr(state.call, "op", None)
    return op is not None and (op.random or getattr(op.fn, "draws", False))


def _op_name(state: Any) -> str:
    return str(getattr(getattr(state.call, "op", None), "name", ""))


def _own_key(key: Any) -> Any:
    own = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(own, jax.lax.axis_index(AXIS)))
