"""What may not be done inside a `vmap`: looks at batched values, writes of them elsewhere."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import Op

from .._core.handle import Handle
from .._core.transforms_running import active
from .._core.trie import Value, local
from .._core.vmap_protocol import hides_grad
from ._levels import SAME, innermost, running

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
_EITHER = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a "
    "Tensor in some data-dependent control flow or (3) encountering this error in PyTorch "
    "internals. For (1): we don't support vmap over calling .item() on a Tensor, please try to "
    "rewrite what you're doing with other operations. For (2): we don't support data-dependent "
    "control flow in vmap yet, please file an issue at https://github.com/pytorch/pytorch/issues "
    ". For (3): please file an issue."
)
_ISSUE = (
    "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
_DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
    "over aten::{}. " + _ISSUE
)
_NO_FALLBACK = "Batching rule not implemented for aten::{}. We could not generate a fallback."
_NO_VIEW = (
    "Batching rule not implemented for aten::{}; the fallback path doesn't work on out= or view "
    "ops."
)
_NO_POINTER = "Cannot access data pointer of Tensor that doesn't have storage"
_NO_STORAGE = "Cannot access storage of BatchedTensorImpl"
_CHANNELS = (
    "NYI: querying is_contiguous inside of vmap for memory_format other than "
    "torch.contiguous_format"
)
_CLONE = (
    "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format "
    "torch.preserve_format or torch.contiguous_format (got {})"
)
_REFUSED: dict[str, tuple[type[Exception], str]] = {
    "data": (RuntimeError, "accessing `data` under vmap transform is not allowed"),
    "set_data": (
        RuntimeError, "mutating directly with `.data` under vmap transform is not allowed."
    ),
    "allclose": (RuntimeError, "vmap over torch.allclose isn't supported yet. " + _ISSUE),
    "data_ptr": (RuntimeError, _NO_POINTER),
    "is_contiguous": (RuntimeError, _CHANNELS),
    "masked_select": (
        RuntimeError,
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support "
        "this because for each batch this would return a differently shaped Tensor. " + _ISSUE,
    ),
    "one_hot": (
        RuntimeError,
        "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
        "num_classes argument.",
    ),
    "storage": (NotImplementedError, _NO_STORAGE),
    **{
        f"clone to {name}": (RuntimeError, _CLONE.format(name))
        for name in ("ChannelsLast", "ChannelsLast3d")
    },
    **{op: (RuntimeError, _NO_FALLBACK.format(op)) for op in ("equal", "histogramdd", "is_pinned")},
    **{
        op: (RuntimeError, _NO_FALLBACK.format(f"{op}.input"))
        for op in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "as_strided_scatter": (
        RuntimeError,
        "Error: aten::as_strided_scatter requires special handling, and does not yet have a "
        "batching rule. Feel free to file a github issue!",
    ),
    **{
        op: (RuntimeError, _DYNAMIC.format(op))
        for op in ("nonzero", "where", "_unique2", "unique_dim", "unique_consecutive")
    },
    **{op: (RuntimeError, _NO_VIEW.format(op)) for op in ("_make_dual", "_unpack_dual")},
}  # fmt: skip
_FINE_IN_OLDER = frozenset({"_make_dual", "_unpack_dual"})
# How PyTorch refuses to write something batched into what is not, by op: as what these have in
# common, by their own names, as shapes that do not fit, or (all others) as its fallback does.
_ARITHMETIC = frozenset({
    "sub", "mul", "multiply", "div", "divide", "true_divide", "copy", "fill_", "clamp_min",
    "clamp_max", "logical_and", "logical_or", "logical_xor", "masked_fill",
})  # fmt: skip
_NAMED = frozenset({
    "fill", "index_fill", "index_add", "index_put", "scatter_add", "scatter_reduce",
})  # fmt: skip
_BY_SHAPE = frozenset({
    "add", "atan2", "arctan2", "copysign", "gcd", "lcm", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
})  # fmt: skip
_BATCHED = (
    "vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in "
    "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
    "over but `self` not being vmapped over {1}. Please try to use out-of-place operators instead "
    "of {0}. If said operator is being called inside the PyTorch framework, please file a bug "
    "report instead."
)
# How many dims the operands of products have.
_RANKS = {
    "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "addmm": (2, 2), "addmv": (2, 1), "baddbmm": (3, 3),
}  # fmt: skip


def look(t: Any, reason: str) -> Any:
    """The array of a tensor that is looked at inside a vmap, without cutting the program.

    Raises:
      RuntimeError: if it differs from example to example.
    """
    from .._runtime.side_programs import compute

    level = innermost(t)
    if level is not None:
        if level.older and reason == "numpy()":
            raise RuntimeError(_NO_VIEW.format("detach"))
        if reason in ("numpy()", "tolist()"):
            raise RuntimeError(_NO_POINTER)
        if level.older:
            raise RuntimeError(_NO_FALLBACK.format("is_nonzero" if "bool" in reason else "item"))
        if not hides_grad(t):  # a transform that takes derivatives asked for it
            raise RuntimeError(_EITHER)
        if "bool" in reason:
            raise RuntimeError(CONTROL_FLOW)
        raise RuntimeError(ITEM)
    return compute(t)


def spell(t: Any, plain: Any) -> str | None:
    """How a tensor prints inside a vmap; None if it is the same for all examples."""
    level = innermost(t)
    if level is None:
        return None
    after = running.levels[running.levels.index(level) :]
    before = local.look
    del running.levels[level.number - 1 :]
    local.look = look  # without a cut
    try:
        given = next((e for e in level.examples if e.first is t), None)
        dim = 0 if given is None else given.dim
        text = plain(level.whole(t, dim) if given is None or given.writes else given.batch)
    finally:
        running.levels += after
        local.look = before
    return f"BatchedTensor(lvl={level.number}, bdim={dim}, value=\n{indent(text, '    ')}\n)"


def check_inplace(op: Op, t: Any, others: list[Any]) -> None:
    """Raise PyTorch's error for a write of something batched into something that is not.

    Args:
      others: what the op takes besides; indices come as one tuple.
    """
    others = [x for o in others for x in (o if isinstance(o, (tuple, list)) else (o,))]
    for level in reversed(running.levels):
        if not level.region.intact():
            continue
        if op.random and level.randomness == "error":
            raise RuntimeError(level.refusal_of_random)
        given = [x for x in others if isinstance(x, Handle) and level.batched(x)]
        if op.name == "bernoulli" and given and level.randomness == "same":
            raise RuntimeError(SAME)
        if level.batched(t):
            continue
        if op.name == "bernoulli" and given:
            raise RuntimeError(_BATCHED.format("inplace bernoulli", "in a vmap"))
        if op.random and level.randomness == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness. If this is necessary for your usage, please "
                "file an issue with functorch."
            )
        for x in given:
            if op.name in _BY_SHAPE and not level.older:
                shape = [level.size, *jnp.broadcast_shapes(tuple(t.shape), tuple(x.shape))]  # type: ignore[attr-defined]
                raise RuntimeError(
                    f"output with shape {list(t.shape)} doesn't match the broadcast shape {shape}"
                )
            name, where = f"aten::{op.name}_", f"at level {level.number}"
            if level.older:
                pass  # always its fallback
            elif op.name in _ARITHMETIC:
                name, where = "inplace arithmetic", "in a vmap"
            elif op.name in _NAMED:
                name, where = f"{op.name}_", "in a vmap"
            raise RuntimeError(_BATCHED.format(name, where))


def differs_alone(t: Any, others: Any) -> bool:
    """Whether `t` differs between examples that one of the others is the same for."""
    levels = [level for level in running.levels if level.region.intact() and level.batched(t)]
    return any(not all(level.batched(o) for o in others) for level in levels)


def refuse_op(op: str, tensors: Any) -> None:
    """Raise the op's error if one of the tensors differs from example to example.

    Inside of another transform, `data` is that transform's own.
    """
    if op in ("data", "set_data") and active.depth != running.levels[-1].depth:
        return
    for t in tensors:
        level = innermost(t) if isinstance(t, Handle) else None
        if level is None or level.older and op in _FINE_IN_OLDER:
            continue
        error, message = _REFUSED[op]
        if level.older and op == "allclose":
            message = _NO_FALLBACK.format(op)
        raise error(message)


def reworded(op: Op, operands: list[Value], call: Any, error: Exception) -> Exception:
    """An error of one example's shapes, in the words that PyTorch has for batches."""
    if not running.levels:
        return error
    level = running.levels[-1]
    if not level.region.intact() or not any(level.differs(v) for v in operands):
        return error
    want = _RANKS.get(op.name)
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


def refuse_mask(mask: Any, target: Any) -> None:
    """Raise if a mask differs from example to example."""
    if innermost(mask) is None:
        return
    if target is not None and innermost(target) is None:
        raise RuntimeError(_BATCHED.format("index_put_", "in a vmap"))
    raise RuntimeError(
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to "
        "batch over indexing with a boolean mask."
    )


def refuse(t: Any, message: str) -> None:
    """Raise this error if `t` differs from example to example."""
    if running.levels and innermost(t) is not None:
        raise RuntimeError(message)
