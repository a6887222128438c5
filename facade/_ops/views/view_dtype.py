"""`x.view(dtype)`: the same memory read as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE

from ..._core.dtypes import as_dtype
from ..._core.dtypes import dtype as dtype_class
from ..._core.trie import local
from ..._core.view_ops import Lens
from ..._dispatch.conj_neg_bits import is_conj, is_neg
from ..._dispatch.record import record
from ..._storage.enter import through
from ..._storage.shared_storage import detach, of_mode, share
from ..._storage.strides import layout
from ..._tracing.inputs import make

_VIEW = TABLE["view_dtype"]
_BITS = ((is_conj, "conjugate view tensors"), (is_neg, "tensors with negative bit set"))


def view_of(shaped: Any) -> Any:
    """`Tensor.view`, of which `shaped` does the forms that take a shape."""

    def view(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:  # most calls
            try:
                return shaped(self, *args, **kwargs)
            except TypeError:
                if not any(isinstance(a, dtype_class) for a in args):
                    raise
        dtype = kwargs.get("dtype") if kwargs else args[0] if len(args) == 1 else None
        if isinstance(dtype, (dtype_class, type)):
            return view_dtype(self, as_dtype("view", dtype))
        if any(isinstance(a, dtype_class) for a in args):
            kinds = (type(a) for a in args)
            got = ", ".join("torch.dtype" if k is dtype_class else k.__name__ for k in kinds)
            raise TypeError(
                f"view() received an invalid combination of arguments - got ({got}), but expected "
                "one of:\n * (torch.dtype dtype)\n * (tuple of ints size)\n"
            )
        return shaped(self, *args, **kwargs)

    view.__doc__ = shaped.__doc__
    return view


def view_dtype(t: Any, dtype: dtype_class) -> Any:
    """Return the bytes of `t` as another dtype; not differentiable, as PyTorch has it.

    It is an inference tensor in inference mode, and only there, whatever `t` is.

    Raises:
      RuntimeError: where strides, offset or the last dim do not allow it.
    """
    for bit, name in _BITS:
        if bit(t):
            raise RuntimeError(
                f"torch.Tensor.view is not supported for {name} when converting to a "
                "different dtype."
            )
    _check(t, dtype)
    step: Any = (_VIEW, (dtype.np, t._v.dtype.itemsize), {})
    source = detach(t)
    bytes_ = _bytes_lens(source._lens) if source._lens and t._v.dtype == np.bool_ else None
    if bytes_ is None:
        state, trace = record(_VIEW, (source, *step[1]), {}, budget=False)
        value = state.value
    else:
        trace = local.trace
        value = through(trace, source._store.cell, (*bytes_, step))
    out = of_mode(make(value, trace))
    share(source, out, (step,), view=False)
    if bytes_ is not None:
        out._lens = (*bytes_, step)
    if t._v.inference or out._v.inference:  # which have no count of versions to share
        out._vc = [0]
    return out


def _bytes_lens(lens: Lens) -> Lens | None:
    """Make the lens of a bool tensor that sees its bytes, where other numbers are seen as bools."""
    for k in reversed(range(len(lens))):
        op, args, kwargs = lens[k]
        if op is _VIEW:
            return (*lens[:k], (op, (np.dtype(np.uint8), *args[1:]), kwargs), *lens[k + 1 :])
    return None


def _check(t: Any, dtype: dtype_class) -> None:
    wide, narrow = t._v.dtype.itemsize, dtype.itemsize
    what = f"to view {scalar_name(t._v.dtype)} as {scalar_name(dtype.np)} (different element sizes)"
    if wide == narrow:
        return
    if not t.dim():
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    have = layout(t)
    ratio = narrow // wide
    parts = [("size(-1)", have.shape[-1]), ("storage_offset()", have.offset), ("stride(-1)", 1)]
    parts += [(f"stride({k})", n) for k, n in enumerate(have.strides[:-1])]
    for name, number in parts if ratio else parts[2:3]:
        if name == "stride(-1)" and have.strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {have.strides[-1]}")
        if name != "stride(-1)" and number % ratio:
            raise RuntimeError(f"self.{name} must be divisible by {ratio} {what}, but got {number}")
