"""Refusals of a `vmap`: looks at what differs between examples, and writes of it elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import Op

from .._core.handle import Handle
from .._core.transforms_running import active
from .._core.trie import local
from .._runtime.recomputation import compute
from ._level import SAME, Level
from ._level_stack import LevelStack
from ._refusal_messages import (
    ARITHMETIC,
    BATCHED,
    BY_SHAPE,
    CONTROL_FLOW,
    EITHER,
    FINE_IN_OLDER,
    ITEM,
    NAMED,
    NO_FALLBACK,
    NO_POINTER,
    NO_VIEW,
    RANDOM_OUT,
    RANKS,
    REFUSED,
    STATISTICS,
)


class Refusals(LevelStack):
    """Raise PyTorch's errors for what a `vmap` forbids."""

    def observe(self, t: Any, reason: str) -> Any:
        """Return a tensor's array without cutting the program.

        Raises:
          RuntimeError: if the tensor differs from example to example.
        """
        level = self.innermost(t)
        if level is not None:
            if level.older and reason == "numpy()":
                raise RuntimeError(NO_VIEW.format("detach"))
            if reason in ("numpy()", "tolist()"):
                raise RuntimeError(NO_POINTER)
            if level.older:
                asked = "is_nonzero" if "bool" in reason else "item"
                raise RuntimeError(NO_FALLBACK.format(asked))
            if not self.hides_grad(t):  # a transform that takes derivatives asked for it
                raise RuntimeError(EITHER)
            if "bool" in reason:
                raise RuntimeError(CONTROL_FLOW)
            raise RuntimeError(ITEM)
        return compute(t)

    def print_batch(self, t: Any, plain: Callable[[Any], str]) -> str | None:
        """Return the text of the batch that `t` stands for; None if all examples share `t`."""
        level = self.innermost(t)
        if level is None:
            return None
        after = self.levels[self.levels.index(level) :]
        before = local.vmap
        del self.levels[level.number - 1 :]
        local.vmap = self  # without a cut
        try:
            given = next((e for e in level.examples if e.first is t), None)
            dim = 0 if given is None else given.dim
            text = plain(
                level.record_batch(t, dim) if given is None or given.writes else given.batch
            )
        finally:
            self.levels += after
            local.vmap = before
        return f"BatchedTensor(lvl={level.number}, bdim={dim}, value=\n{indent(text, '    ')}\n)"

    def differs(self, *given: Any) -> bool:
        """Tell if a tensor among these differs from example to example."""
        return any(self.innermost(t) is not None for t in given if isinstance(t, Handle))

    def hides_grad(self, t: Any) -> bool:
        """Tell if PyTorch says of an example that it requires no grad, since its batch does."""
        return self.differs(t) and active.differentiating == self.levels[-1].differentiating

    def refuse(self, op: str, tensors: Sequence[Any]) -> None:
        """Raise PyTorch's error for an op if one of the tensors differs between examples.

        Inside of another transform, `data` is that transform's own.
        """
        if op in ("data", "set_data") and active.depth != self.levels[-1].depth:
            return
        for t in tensors:
            level = self.innermost(t) if isinstance(t, Handle) else None
            if level is None or level.older and op in FINE_IN_OLDER:
                continue
            error, message = REFUSED[op]
            if level.older and op == "allclose":
                message = NO_FALLBACK.format(op)
            raise error(message)

    def refuse_statistics(self, input: Any, buffers: Sequence[Any]) -> None:
        """Raise if running statistics are the same for all examples and `input` is not."""
        for level in self.levels:
            if level.region.intact() and level.is_batched(input):
                if not all(level.is_batched(b) for b in buffers):
                    raise RuntimeError(STATISTICS)

    def refuse_random(self) -> None:
        """Raise for a random op if a running `vmap` allows none."""
        for level in reversed(self.levels):
            if level.randomness == "error" and level.region.intact():
                raise RuntimeError(level.refusal_of_random)

    def refuse_random_out(self) -> None:
        """Raise for a random op that writes into `out=`."""
        raise RuntimeError(RANDOM_OUT)

    def refuse_out(self, op: str, tensors: Sequence[Any]) -> None:
        """Raise for an op that writes into `out=` if one of the tensors differs."""
        if any(self.innermost(t) is not None for t in tensors):
            raise RuntimeError(NO_VIEW.format(f"{op}.out"))

    def refuse_mask(self, mask: Any, target: Any) -> None:
        """Raise for an indexing mask that differs between examples.

        Args:
          target: the tensor that is written to, or None.
        """
        if self.innermost(mask) is None:
            return
        if target is not None and self.innermost(target) is None:
            raise RuntimeError(BATCHED.format("index_put_", "in a vmap"))
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting "
            "to batch over indexing with a boolean mask."
        )

    def refuse_write(self, op: Op, t: Any, others: Sequence[Any]) -> None:
        """Raise for a write of something that differs between examples into what does not.

        Args:
          others: the op's further arguments; indices come as one tuple.
        """
        others = [x for o in others for x in (o if isinstance(o, (tuple, list)) else (o,))]
        for level in reversed(self.levels):
            if level.region.intact():
                _refuse_write(level, op, t, [x for x in others if isinstance(x, Handle)])

    def reword_error(
        self, op: Op, operands: Sequence[Any], call: Any, error: Exception
    ) -> Exception:
        """Return an error about one example's shapes in PyTorch's words for batches."""
        level = self.levels[-1] if self.levels else None
        if level is None or not level.region.intact():
            return error
        if not any(level.is_value_batched(v) for v in operands):
            return error
        return _reworded(op, operands, call, error)


def _refuse_write(level: Level, op: Op, t: Any, others: list[Any]) -> None:
    if op.random and level.randomness == "error":
        raise RuntimeError(level.refusal_of_random)
    given = [x for x in others if level.is_batched(x)]
    if op.name == "bernoulli" and given and level.randomness == "same":
        raise RuntimeError(SAME)
    if level.is_batched(t):
        return
    if op.name == "bernoulli" and given:
        raise RuntimeError(BATCHED.format("inplace bernoulli", "in a vmap"))
    if op.random and level.randomness == "different":
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will "
            "appear like same randomness. If this is necessary for your usage, please file an "
            "issue with functorch."
        )
    for x in given:
        if op.name in BY_SHAPE and not level.older:
            shape = [level.size, *jnp.broadcast_shapes(tuple(t.shape), tuple(x.shape))]
            raise RuntimeError(
                f"output with shape {list(t.shape)} doesn't match the broadcast shape {shape}"
            )
        name, where = f"aten::{op.name}_", f"at level {level.number}"
        if level.older:
            pass  # always its fallback
        elif op.name in ARITHMETIC:
            name, where = "inplace arithmetic", "in a vmap"
        elif op.name in NAMED:
            name, where = f"{op.name}_", "in a vmap"
        raise RuntimeError(BATCHED.format(name, where))


def _reworded(op: Op, operands: Sequence[Any], call: Any, error: Exception) -> Exception:
    want = RANKS.get(op.name)
    if want is not None:
        a, b = (len(v.shape) for v in operands[-2:])
        if (a, b) != want:
            name = {3: "bmm", 2: "mm"}[want[0]] if want[1] != 1 else "mv"
            return RuntimeError(
                f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {a}and b has dim "
                f"{b}but expected them to have dim {want[0]} and dim {want[1]}"
            )
    if op.name == "dot" and any(len(v.shape) != 1 for v in operands):
        return RuntimeError("Got wrong shapes for dot")
    if op.name == "squeeze" and isinstance(error, IndexError) and not operands[0].shape:
        dim = call.kwargs["dim"] if "dim" in call.kwargs else call.args[1]
        if isinstance(dim, int):
            return RuntimeError(
                f"Dimension is out of range (expected to be in range of [-1, 0], but got [{dim}]"
            )
    return error
