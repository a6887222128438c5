"""`Tensor._view_func`: the view that a tensor is of its base, made of another base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.dtypes import of
from ..._core.handle import Handle
from ..._core.view_ops import BY_NAME, Replayed
from ..._dispatch.conj_neg_bits import same_meta, view_as_real
from ..._dispatch.record import apply

# Arguments that PyTorch's compiler may have as symbols; dims are not among them.
_SYMBOLIC = frozenset({
    "index", "size", "start", "end", "step", "length", "stride", "storage_offset",
    "split_size_or_sections", "split_size", "split_sizes",
})  # fmt: skip


def view_func(
    self: Any, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None
) -> Any:
    """Return the view of `new_base` that this tensor is of its base.

    Args:
      new_base: laid out as the base is: same shape, strides and size of the storage.
      symint_visitor_fn: called with each size and index of the view; what it returns is used.
      tensor_visitor_fn: would be called with tensors that a view saves; no view here saves one.

    Returns:
      None if this tensor is no view, or `new_base` is laid out otherwise.

    >>> import leafax
    >>> x = leafax.arange(4.0)
    >>> x[1:]._view_func(leafax.ones(4) * 5)
    tensor([5., 5., 5.])
    """
    if not isinstance(new_base, Handle):
        raise TypeError(
            "_view_func(): argument 'new_base' (position 1) must be Tensor, not "
            f"{type(new_base).__name__}"
        )
    base = self._base
    if base is None or not same_meta(new_base, base) or new_base._v.dtype != base._v.dtype:
        return None
    return view_func_unsafe(self, new_base, symint_visitor_fn, tensor_visitor_fn)


def view_func_unsafe(
    self: Any, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None
) -> Any:
    """Call `_view_func` without a look at the layout of `new_base`."""
    if self._base is None:
        return None
    if not _has_view_func(self):
        return new_base.as_strided(self.size(), self.stride(), self.storage_offset())
    out = new_base
    for op, args, kwargs in self._blens:
        if symint_visitor_fn is not None:
            names = op.parameters[1:]
            args = tuple(
                _visited(a, symint_visitor_fn) if n in _SYMBOLIC else a
                for n, a in zip(names, args, strict=False)
            )
            kwargs = {
                n: _visited(a, symint_visitor_fn) if n in _SYMBOLIC else a
                for n, a in kwargs.items()
            }
        out = apply(op, out, *args, **kwargs)
    return out


def rev_view_func_unsafe(self: Any, new_view: Any) -> Any:
    """Return a tensor laid out as the base of this view is, on the memory of `new_view`.

    Raises:
      RuntimeError: for a view that is made anew by `as_strided` alone.
    """
    base = self._base
    if base is None or not _has_view_func(self):
        raise RuntimeError("No _rev_view_func() found")
    out = new_view
    if new_view._v.dtype != base._v.dtype:
        if base.is_complex() and not new_view.is_complex():
            out = _as_complex(new_view, base)
        elif new_view.is_complex() and not base.is_complex():
            out = view_as_real(new_view)
        else:
            out = new_view.view(of(base._v.dtype))
    return out.as_strided(base.size(), base.stride(), base.storage_offset())


def _as_complex(new_view: Any, base: Any) -> Any:
    size = (*base.size(), 2)
    strides = (*(2 * s for s in base.stride()), 1)
    return apply(
        TABLE["view_as_complex"], new_view.as_strided(size, strides, 2 * base.storage_offset())
    )


def _has_view_func(t: Any) -> bool:
    return type(t._blens) is Replayed or any(op.name in BY_NAME for op, _, _ in t._blens)


def _visited(value: Any, visit: Callable[[int], int]) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_visited(v, visit) for v in value)
    return visit(value) if isinstance(value, int) and not isinstance(value, bool) else value
