"""Any JAX function as one op: `call_jax`.

The function is recorded whole, as one node, differentiated by `jax.vjp` and compiled with the
rest of the program. It is traced in the user's own JAX configuration: leafax's 64-bit types stop
at its door, unless the user has turned 64-bit on.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from leafax.functional.lowering.equations import count_equations
from leafax.functional.lowering.keys import is_key
from leafax.functional.program.numerics import numerics, products_as
from leafax.functional.program.op import Op

from .._core.handle import Handle
from .._core.trie import local
from .._tracing.inputs import from_array
from .._tracing.leaf_tuples import Leaves
from .many_inputs import apply_many

_MAX_OPS = 1024


class _Opaque:
    """One function with the structure of its arguments; an op is made of it.

    Python runs it once for arrays of some shapes and dtypes: what an op is asked for (shapes, what
    its gradients read, the program) is all read off what it traced to.

    Attributes:
      count: how many of the arrays come first, as one tuple; None if there is no such tuple.
    """

    def __init__(
        self, fn: Callable[..., Any], count: int | None, treedef: Any, static: Any, wide: bool
    ) -> None:
        self.fn, self.treedef, self.static, self.wide = fn, treedef, static, wide
        self.count = count
        self._trees: dict[Any, Any] = {}  # of what comes out, by shapes and dtypes
        self._traced = jax.jit(self._run)  # never called: it keeps what was traced
        self.op = Op(
            self.body, name=_name(fn), namespace="opaque", residuals=True,
            backward=_name(fn).replace("_", " ").title().replace(" ", "") + "Backward",
        )  # fmt: skip

    def body(self, *arrays: Any) -> Any:
        with jax.enable_x64(self.wide):
            given = [_narrow(jnp.asarray(x), self.wide) for x in arrays]
            traced = self._traced.trace(*given)
            self._trees[_kinds(arrays)] = traced.out_tree
            self.op.weight = max(1, count_equations(traced.jaxpr.jaxpr))
            return tuple(jax.tree.leaves(traced(*given)))

    def tree_of(self, leaves: Leaves, others: list[Any]) -> Any:
        """Return the structure of the outputs, given tensors of these shapes and dtypes."""
        found = list(self._trees.values())
        if all(tree == found[0] for tree in found):
            return found[0]
        return self._trees[_kinds([t._v for t in (*leaves, *others)])]

    def _run(self, *arrays: Any) -> Any:
        it = iter(arrays)
        first: tuple[Any, ...] = ()
        if self.count is not None:
            first = (tuple([next(it) for _ in range(self.count)]),)
        leaves = [
            next(it) if s is _ARRAY
            else jax.random.wrap_key_data(next(it), impl=s.impl) if type(s) is _Key
            else s
            for s in self.static
        ]  # fmt: skip
        args, kwargs = jax.tree.unflatten(self.treedef, leaves)
        outer, local.opaque = local.opaque, _name(self.fn)
        try:
            out = self.fn(*first, *args, **kwargs)
        finally:
            local.opaque = outer
        if any(map(is_key, jax.tree.leaves(out))):
            raise TypeError(
                f"`{_name(self.fn)}` returns a random key, which no tensor can hold: return "
                f"`jax.random.key_data` of it"
            )
        return jax.tree.map(jnp.asarray, out)


def _kinds(arrays: Any) -> Any:
    return tuple([(tuple(x.shape), str(x.dtype)) for x in arrays if hasattr(x, "dtype")])


class _Key(NamedTuple):
    """A random key of JAX, whose numbers go in as an array."""

    impl: Any


class _Array:
    def __repr__(self) -> str:
        return "<array>"


_ARRAY = _Array()
_OPAQUE: OrderedDict[Any, _Opaque] = OrderedDict()


def _narrow(x: Any, wide: bool) -> Any:
    if wide or not hasattr(x, "dtype"):
        return x
    to = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
    name = to.get(np.dtype(x.dtype).name)
    return x if name is None else x.astype(name)


def _name(fn: Any) -> str:
    fn = getattr(fn, "func", fn)
    name = getattr(fn, "__name__", type(fn).__name__)
    return name if name.isidentifier() else "jax_function"


def call_jax(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Record a JAX function on tensors, as one op.

    Args:
      fn: a pure function of JAX arrays, any pytrees of them, and static values. Two calls with
        the same (equal) function share their compiled program, so define it once, outside the
        loop.
      args, kwargs: pytrees whose leaves are tensors, arrays (JAX or NumPy), random keys, or
        static values: numbers, strings, None. A static value that changes makes another program.
        The first argument may be `Leaves`.

    Returns:
      What `fn` returns, with tensors for arrays. Gradients flow to tensors of floating point
      dtype that require them.

    >>> import jax.numpy as jnp, leafax
    >>> x = leafax.tensor([0.0, 1.0], requires_grad=True)
    >>> leafax.call_jax(jnp.cos, x).sum().backward()
    >>> x.grad
    tensor([-0.0000, -0.8415])
    """
    opaque, leaves, others = _found(fn, args, kwargs)
    outs = apply_many(opaque.op, leaves, others)
    return jax.tree.unflatten(opaque.tree_of(leaves, others), outs)


def eval_shape(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what `call_jax` would return, with a `jax.ShapeDtypeStruct` for each tensor.

    Nothing is recorded or computed; a call with such arguments that follows does not trace `fn`
    again. What `fn` raises passes through.

    >>> import jax.numpy as jnp, leafax
    >>> leafax.eval_shape(jnp.dot, leafax.ones(2, 3), leafax.ones(3))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    opaque, leaves, others = _found(fn, args, kwargs)
    structs = [t._v.aval.struct() for t in (*leaves, *others)]
    with jax.enable_x64(True), products_as(numerics().opaque, structs):
        outs = jax.eval_shape(opaque.body, *structs)
    return jax.tree.unflatten(opaque.tree_of(leaves, others), outs)


def _found(
    fn: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> tuple[_Opaque, Leaves, list[Any]]:
    """Find the function with these arguments' structure, their `Leaves` and other tensors."""
    leaves = None
    if args and type(args[0]) is Leaves:
        leaves, *args = args
    wide = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    count = None if leaves is None else len(leaves)
    parts: list[Any] = [fn, count, wide]
    tensors: list[Any] = []
    if _spell((args, kwargs), parts, tensors):
        opaque = _OPAQUE.get(tuple(parts))
        if opaque is None:
            _, static, treedef = _flatten(args, kwargs)
            opaque = _remember(tuple(parts), _Opaque(fn, count, treedef, static, wide))
    else:
        tensors, static, treedef = _flatten(args, kwargs)
        key = (fn, count, wide, treedef, tuple([(type(s), _hashed(s, fn)) for s in static]))
        opaque = _OPAQUE.get(key) or _remember(key, _Opaque(fn, count, treedef, static, wide))
    return opaque, _NONE if leaves is None else leaves, tensors


def _hashed(static: Any, fn: Any) -> Any:
    """Return a static value that can be part of a key; raise for others."""
    try:
        hash(static)
    except TypeError:
        kind = type(static).__name__
        raise TypeError(
            f"`{_name(fn)}` got a `{kind}`, which JAX does not know how to look into, and which "
            f"has no hash to be a constant by: pass a dict, list or tuple of what is in it, or "
            f"register its class with `jax.tree_util`"
        ) from None
    return static


def _remember(key: Any, opaque: _Opaque) -> _Opaque:
    _OPAQUE[key] = opaque
    if len(_OPAQUE) > _MAX_OPS:
        _OPAQUE.popitem(last=False)
    return opaque


_PLAIN = frozenset({bool, int, float, str, type(None)})


def _spell(x: Any, parts: list[Any], tensors: list[Any]) -> bool:
    """Append the key parts of a tree of tensors, plain values and Python's containers.

    Several times as quick as to flatten it. False: there is something else in it.

    Args:
      tensors: takes the tree's tensors, in the order of `jax.tree.flatten`.
    """
    kind = type(x)
    if kind in _PLAIN:
        parts += kind, x
    elif kind is dict and all(type(name) is str for name in x):
        parts += dict, len(x)
        for name in sorted(x):
            parts.append(name)
            if not _spell(x[name], parts, tensors):
                return False
    elif kind is tuple or kind is list:
        parts += kind, len(x)
        for y in x:
            if not _spell(y, parts, tensors):
                return False
    elif isinstance(x, Handle):
        parts.append(_ARRAY)
        tensors.append(x)
    else:
        return False
    return True


def _flatten(args: Any, kwargs: Any) -> tuple[list[Any], list[Any], Any]:
    """Return a call's arrays as tensors, its leaves with marks for these, and its tree."""
    flat, treedef = jax.tree.flatten((args, kwargs), is_leaf=_is_leaf)
    tensors: list[Any] = []
    static: list[Any] = []
    for x in flat:
        if isinstance(x, Handle):
            tensors.append(x)
            static.append(_ARRAY)
        elif is_key(x):
            tensors.append(_constant(jax.random.key_data(x)))
            static.append(_Key(jax.random.key_impl(x)))
        elif isinstance(x, (jax.Array, np.ndarray, np.generic)):
            tensors.append(_constant(x))
            static.append(_ARRAY)
        else:
            static.append(x)
    return tensors, static, treedef


_NONE = Leaves(())


def _is_leaf(x: Any) -> bool:
    return isinstance(x, Handle)


def _constant(x: Any) -> Any:
    with jax.enable_x64(True):
        return from_array(jnp.asarray(x))


def jax_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `fn`, written for JAX arrays, to be a function of tensors.

    >>> import jax, leafax
    >>> @leafax.jax_function
    ... def double(x):
    ...     return 2 * x
    >>> double(leafax.ones(2))
    tensor([2., 2.])
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return call_jax(fn, *args, **kwargs)

    return wrapped
