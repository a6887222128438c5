"""Views that see more of the memory than the tensor that they are views of.

`as_strided` and `resize_` count in elements of the storage, so a view may reach outside of its
base. What lies there has no history: it is read from the storage as it is when the view is made
anew, and a write through the view puts it there.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from leafax.functional.ops.shape.strides import Layout
from leafax.functional.program.op import TABLE, Op

from .._core.trie import local
from .._core.view_ops import BY_NAME, Lens
from .._rules.strides.layouts import is_contiguous, laid
from .._tracing.take import take
from .autograd_roles import tag
from .enter import enter, plain_kind, without_grad
from .write import rebind

_STRIDED = TABLE["as_strided"]


def places(found: Layout) -> Any:
    """Return where in the storage each element lies."""
    at = np.full(found.shape, found.offset, np.int64)
    for dim, step in enumerate(found.strides):
        along = [1] * len(found.shape)
        along[dim] = found.shape[dim]
        at += (np.arange(found.shape[dim]) * step).reshape(along)
    return at


def _flat(base: Any, storage: Any, order: Any, have: Any) -> Any:
    """Return the storage as a vector, with the base in its place."""
    flat = storage.transpose(order).reshape(-1)
    return flat.at[places(Layout(*have)).reshape(-1)].set(base.reshape(-1))


def _read(base: Any, storage: Any, order: Any, have: Any, want: Any) -> Any:
    return _flat(base, storage, order, have)[places(Layout(*want))]


def _write(base: Any, new: Any, storage: Any, order: Any, have: Any, want: Any) -> Any:
    flat = _flat(base, storage, order, have).at[places(Layout(*want))].set(new)
    return flat[places(Layout(*have))]


def has_gaps(found: Layout) -> bool:
    """Return whether there is memory between the elements of a layout.

    An example of a `vmap` lies in memory as its batch does.
    """
    return reach(found.shape, found.strides) > math.prod(found.shape)


def _spread(base: Any, stride: Any) -> Any:
    flat = jnp.zeros(reach(base.shape, stride), base.dtype)
    return flat.at[places(Layout(base.shape, stride, 0))].set(base)


def _gather(base: Any, new: Any, stride: Any) -> Any:
    return new[places(Layout(base.shape, stride, 0))]


# The memory that a tensor of these strides lies in; what is between its elements means nothing.
MEMORY = Op(_spread, name="memory", backward="AsStridedBackward0", view=True, write=_gather)
_BEYOND = Op(_read, name="beyond", backward="AsStridedBackward0", view=True, write=_write)


def reaches_out(t: Any) -> bool:
    """Return whether `t` is a view that reaches beyond its base."""
    return any(op is _BEYOND for op, _, _ in t._blens)


def lens_from(base: Any, have: Layout, lens: Lens, want: Layout) -> Lens | None:
    """Return a lens from a base to what `lens` sees of the storage, or None if there is none.

    Args:
      have, want: how the base, and what is seen, lie in the storage.
    """
    if not base._lens:
        return lens
    if any(op.name in BY_NAME for op, _, _ in (*base._lens, *lens)):
        return None
    start = int(want.offset) - int(have.offset)
    inside = start >= 0 and start + reach(want.shape, want.strides) <= math.prod(have.shape)
    if inside and is_contiguous(have):
        return ((_STRIDED, (want.shape, want.strides, start), {}),)
    cell = base._store.cell
    return ((_BEYOND, (cell, _order(cell), _spelt(have), _spelt(want)), {}),)


def reach(size: Any, stride: Any) -> int:
    """Count the elements of a storage from the first to the last that a view reads."""
    if 0 in tuple(size):
        return 0
    return int(1 + sum((n - 1) * k for n, k in zip(size, stride, strict=True)))


def _spelt(found: Layout) -> Any:
    return tuple(found.shape), tuple(found.strides), int(found.offset)


def _order(cell: Any) -> tuple[int, ...]:
    strides = laid(cell._v).strides
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


def grow(store: Any, count: int) -> None:
    """Give a storage room for `count` elements, without changing the data of its tensors."""
    cell, trace = store.cell, local.trace
    old = enter(cell, trace)
    found = laid(old)
    value = without_grad(lambda: take(trace, _GROW, (old, _order(cell), count)).value)
    rebind(cell, tag(trace, value, plain_kind(old), old.storage, old.version))
    first: Any = (_STRIDED, (found.shape, found.strides, 0), {})
    for member in store.members:
        m = member()
        if m is not None:
            m._lens = (first, *m._lens)


def _more(storage: Any, order: Any, count: int) -> Any:
    flat = storage.transpose(order).reshape(-1)
    return jnp.pad(flat, (0, count - flat.size))


_GROW = Op(_more, name="resize_", differentiable=False)
