"""Writes to tensors whose elements share memory: what PyTorch refuses, and in which words.

Values are immutable here, so every such write could be carried out; PyTorch's result depends on
the order in which its kernel goes through memory, and most of its ops refuse to guess.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE, Op

from .._core.handle import Handle, tensors_in
from .._core.warn_once import warn
from .._rules.error_texts import OVERLAPS_ITSELF
from .._rules.strides.layouts import dense
from .strides import layout
from .write import repeats

PARTIAL = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
    "a single memory location. Please clone() the tensor before performing the operation."
)
_UNCHECKED = frozenset({"fill", "zero", "tril", "triu", "threshold"})
_COPIED = {"conj_physical": "fiub", "nan_to_num": "iub"}  # unchecked too, for these kinds
_WARNING = {"masked_fill": "masked_fill_", "index_fill": "index_fill_", "index_put": "index_put_"}
_EXAMPLES = {
    "masked_fill_": "tensor[mask] = scalar", "index_fill_": "tensor[mask] = scalar",
    "index_put_": "tensor[indices] = tensor",
}  # fmt: skip
# These compute into memory of their own first, or read their operands before they write.
_BUFFERED = frozenset({
    "masked_scatter", "addmm", "addmv", "addbmm", "baddbmm", "mm", "renorm",
    "tril", "triu", "fill", "fill_", "zero", "diag", "dot", "vdot", "ldexp",
})  # fmt: skip


# These look at their arguments before they look at memory; elementwise ops look at memory first.
ASKS_ARGUMENTS = frozenset({
    "addmm", "addmv", "addr", "addbmm", "baddbmm", "index_add", "put",
    "scatter", "scatter_add", "scatter_reduce", "cumsum", "cumprod", "renorm",
    "bernoulli", "normal", "uniform", "exponential", "geometric", "cauchy", "log_normal",
})  # fmt: skip

# What they make is made by `cat`.
JOINS = frozenset({"cat", "stack", "hstack", "vstack", "dstack", "column_stack", "concat"})

# These refuse their own target as an operand, too.
_NO_OVERLAP = JOINS | {
    "index_put", "index_add", "index_copy", "index_fill", "index_reduce", "scatter", "scatter_add",
    "scatter_reduce", "put", "gather", "take", "index_select", "cross",
}  # fmt: skip


def check_overlap(op: Op, t: Any, args: Any, resized: bool = False) -> None:
    """Raise where PyTorch will not write the result of `op` into `t`.

    Args:
      args: the op's other operands; tensors in lists count too.
      resized: `t` gets another shape before, so that its own elements do not share memory.
    """
    store = t._store
    if store is None and op.name in _NO_OVERLAP and any(a is t for a in tensors_in(args)):
        if not _fills(op, args):
            raise RuntimeError(PARTIAL)
    if store is None or op.name == "copy" and _same_memory(t, args[0]):
        return
    if not resized and t._lens and repeats(t):
        found = layout(t)
        twice = any(n > 1 and s == 0 for n, s in zip(found.shape, found.strides, strict=True))
        if twice and 0 not in found.shape:
            by_tensor = op.name == "fill" and any(True for _ in tensors_in(args))
            _internal("copy" if by_tensor else op.name, t)  # it is copied there
            if _fills(op, args):  # it goes on to `masked_fill_`
                _internal("masked_fill", t)
    made = op.name in _BUFFERED or op.name.endswith("_out")  # in memory of its own
    if _fills(op, args):
        args, op = args[0], TABLE["masked_fill"]
    if op.name == "masked_fill":
        args = args[:1]  # the value is read before
    if not made:
        for a in tensors_in(args):
            if a is t and op.name in _NO_OVERLAP:
                raise RuntimeError(PARTIAL)
            whole = op.name in _NO_OVERLAP
            if a is not t and a._store is store and _partial(layout(t), layout(a), whole):
                raise RuntimeError(PARTIAL)


def by_kernel(refusal: Exception) -> bool:
    """Return whether an error is a kernel's refusal of a dtype.

    PyTorch looks at memory before its kernels run, but after its rules for arguments.
    """
    return "not implemented for '" in str(refusal) or "can't be cast" in str(refusal)


def _fills(op: Op, args: Any) -> bool:
    """Return whether a call writes one number where a mask is true, as `masked_fill_` does."""
    if op.name != "index_put" or len(args) < 2 or not _is_mask(args[0]):
        return False
    accumulate = len(args) > 2 and args[2]
    return len(args[0]) == 1 and args[1].numel() == 1 and not accumulate


def _is_mask(indices: Any) -> bool:
    first = indices[0] if indices else None
    return isinstance(first, Handle) and first._v.dtype == bool  # type: ignore[attr-defined]


def _same_memory(t: Any, other: Any) -> bool:
    """Return whether copying from `other` to `t` would change nothing."""
    return other is t or (
        isinstance(other, Handle) and other._store is t._store and layout(other) == layout(t)
    )


def _in_batches(t: Any) -> bool:
    """Return whether `tril_` writes to the matrices of `t` in place; else it copies them."""
    found = layout(t)
    if len(found.shape) < 4:
        return True
    step = found.shape[-1] * found.shape[-2]
    for d in range(len(found.shape) - 3, -1, -1):
        if d == 0 and (found.strides[d] == 0 or found.shape[d] == 1):
            continue
        if found.strides[d] != step:
            return False
        step *= found.shape[d]
    return True


def _internal(name: str, t: Any) -> None:
    if name in ("tril", "triu") and not _in_batches(t):
        raise RuntimeError(OVERLAPS_ITSELF)
    if name in _UNCHECKED or t._v.dtype.kind in _COPIED.get(name, ""):
        return
    method = _WARNING.get(name)
    if method is None:
        raise RuntimeError(OVERLAPS_ITSELF)
    warn(
        f"Use of {method} on expanded tensors is deprecated. Please clone() the tensor before "
        f"performing this operation. This also applies to advanced indexing e.g. "
        f"{_EXAMPLES[method]}"
    )


def _partial(a: Any, b: Any, whole: bool = False) -> bool:
    """Return whether two dense tensors on one storage overlap without being the same.

    With `whole`, tensors on the same range also count if their strides differ.
    """
    if not (_dense(a) and _dense(b)):
        return False
    first, second = _range(a), _range(b)
    if first == second:
        return whole or bool(a.strides != b.strides)
    return bool(first[0] < second[1] and second[0] < first[1])


def _range(found: Any) -> tuple[int, int]:
    count = 1
    for n in found.shape:
        count *= n
    return found.offset, found.offset + count


def _dense(found: Any) -> bool:
    """Return whether each place of a tensor's range holds exactly one element."""
    return 0 not in found.shape and dense(found)
