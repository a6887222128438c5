"""`func.vmap`: a function of one example becomes one of many, by `jax.vmap`.

The function is recorded on the first example; the steps that it took are one op, mapped over
all examples. Data-dependent control flow would see the first example only, so it raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional import Op

from .. import _dual
from .._enter import enter, make
from .._handle import Handle
from .._record import apply, record
from .._region import Region
from .._trace import Mode, local
from ._grad import bare
from ._trees import flatten, spell, unflatten

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' "
    "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
_AXIS = "leafax_vmap"


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", repr(fn))


def _in_dims(fn: Any, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], Any]:
    """The arguments' leaves, the mapped dimension (or None) of each, and their structure."""
    name = _name(fn)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            head + "expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, treedef = flatten(args)
    dims = broadcast(in_dims, args)
    if dims is None:
        raise ValueError(
            head + "in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {spell(flatten(in_dims)[1])} but inputs has structure {spell(treedef)}."
        )
    fixed: list[Any] = []
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            fixed.append(None)
            continue
        if not isinstance(d, int):
            raise ValueError(
                head + f"Got in_dim={d} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(x, Handle):
            raise ValueError(
                head + f"Got in_dim={d} for an input but the input is of type {type(x)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        n = x.dim()  # type: ignore[attr-defined]
        if not -n <= d < n:
            raise ValueError(
                head + f"Got in_dim={d} for some input, but that input is a Tensor of "
                f"dimensionality {n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
            )
        fixed.append(d % n)
    return leaves, fixed, treedef


def broadcast(dims: Any, tree: Any) -> list[Any] | None:
    """`dims`, a prefix of `tree`, one a leaf; None if it does not fit."""
    if not isinstance(dims, (tuple, list, dict)):
        return [dims] * len(flatten(tree)[0])
    if type(dims) is not type(tree) or len(dims) != len(tree):
        return None
    keys: Any = sorted(dims) if isinstance(dims, dict) else range(len(dims))
    found: list[Any] = []
    for k in keys:
        if isinstance(dims, dict) and k not in tree:
            return None
        part = broadcast(dims[k], tree[k])
        if part is None:
            return None
        found += part
    return found


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Map `func` over a dimension of its arguments.

    Args:
      func: a function of tensors that returns a tree of tensors.
      in_dims: the dimension of each argument that is mapped, None for none; a number, or a
        tree that is a prefix of the arguments.
      out_dims: where the mapped dimension goes in the results.
      randomness: "error" raises for random ops; "different" draws anew for every example,
        "same" gives all of them the same numbers.
      chunk_size: accepted for PyTorch's sake; all examples are computed at once.

    Raises:
      RuntimeError: if `func` looks at values.

    >>> import leafax
    >>> leafax.func.vmap(leafax.dot)(leafax.ones(3, 2), leafax.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(
                "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
                f"{randomness}"
            )

        return fail

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, treedef = _in_dims(func, in_dims, args)
        mapped = [(x, d) for x, d in zip(leaves, dims, strict=True) if d is not None]
        sizes = [x.shape[d] for x, d in mapped]
        if not mapped:
            raise ValueError("vmap: at least one of the inputs must be mapped over")
        if len(set(sizes)) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sizes} for the mapped dimension"
            )
        for x, _ in mapped:
            enter(x, local.trace)
        firsts = [_example(x, d) if d is not None else x for x, d in zip(leaves, dims, strict=True)]
        pairs = [(x, f, d) for x, f, d in zip(leaves, firsts, dims, strict=True) if d is not None]
        mapped = [(part, d) for x, _, d in pairs for part in tower(x)]
        holes = [enter(part, local.trace) for _, f, _ in pairs for part in tower(f)]
        region = Region()
        output = func(*unflatten(treedef, firsts), **kwargs)
        if not region.intact():
            raise RuntimeError(_why())
        outs, structure = flatten(output)
        places = _out_dims(func, out_dims, output, structure)
        for o, d in zip(outs, places, strict=True):
            if d is not None and not isinstance(o, Handle):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                    f"{type(o)}. Did you mean to set out_dims= to None for output?"
                )
        kept = [o for o in outs if isinstance(o, Handle)]
        kept_dims = [d for o, d in zip(outs, places, strict=True) if isinstance(o, Handle)]
        parts = [(part, d) for o, d in zip(kept, kept_dims, strict=True) for part in tower(o)]
        made = iter(
            _mapped(
                region, [p for p, _ in parts], [d for _, d in parts], mapped, holes, sizes[0],
                randomness,
            )
        )  # fmt: skip
        results = iter([rebuild(o, made) for o in kept])
        return unflatten(structure, [next(results) if isinstance(o, Handle) else o for o in outs])

    return wrapped


def tower(x: Any) -> Iterator[Any]:
    """A tensor, its tangents of forward mode, and theirs: all of them are mapped."""
    yield x
    for level in local.mode.dual:
        along = _dual.tangent(x, level)
        if along is not None:
            yield from tower(along)


def rebuild(like: Any, parts: Iterator[Any]) -> Any:
    """The tensor whose `tower`, structured as that of `like`, is `parts`."""
    out = next(parts)
    for level in local.mode.dual:
        along = _dual.tangent(like, level)
        if along is not None:
            _dual.hold(out, level, rebuild(along, parts))
    return out


def _why() -> str:
    from .._run import history

    reason = history[-1].reason if history else ""
    return CONTROL_FLOW if "bool" in reason else ITEM


@functools.cache
def _first(dim: int) -> Op:
    def first(x: Any) -> Any:
        shape = x.shape[:dim] + x.shape[dim + 1 :]
        if x.shape[dim] == 0:
            return jnp.zeros(shape, x.dtype)
        return jax.lax.index_in_dim(x, 0, dim, keepdims=False)

    return Op(first, name="select", backward="SelectBackward0")


def _example(x: Any, dim: int) -> Any:
    """The first example: it stands for all while the function is recorded."""
    return apply(_first(dim), x)


def _out_dims(func: Any, out_dims: Any, output: Any, structure: Any) -> list[Any]:
    places = broadcast(out_dims, output)
    if places is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        places = broadcast(out_dims[0], output)
    if places is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            "with the structure of `outputs`. out_dims has structure "
            f"{spell(flatten(out_dims)[1])} but outputs has structure {spell(structure)}."
        )
    return places


def _mapped(
    region: Region, outs: list[Any], out_dims: list[Any], mapped: Any, holes: Any, size: int,
    randomness: str,
) -> list[Any]:  # fmt: skip
    """Record the region as one mapped op on the whole arguments."""
    if not outs:
        return []
    if region.has_custom():
        raise NotImplementedError(
            "vmap over a function that calls an autograd.Function is not implemented in leafax: "
            "write it with ordinary ops, or as a JAX function (leafax.jax_function)"
        )
    if randomness == "error" and any(_is_random(s) for s in region.steps()):
        raise RuntimeError(RANDOM)
    for o, d in zip(outs, out_dims, strict=True):
        n = o.dim() + 1
        if d is not None and not -n <= d < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
            )
    values = [enter(o, region.trace) for o in outs]
    dims = tuple(d for _, d in mapped)
    key = ("vmap", region.key(values), tuple(out_dims), dims, size, randomness)
    known = local.trace.state.next.get(key)
    if known is None:
        call = _split_keys if randomness == "different" else None
        fn = region.function(outs, holes, call)
        known = (_op(fn, dims, tuple(out_dims), len(region.free), size), region.free)
        local.trace.state.next[key] = known
    op, free = known
    wholes = [enter(x, region.trace) for x, _ in mapped]
    tracked = any(v.requires_grad for v in values)
    mode = local.mode
    local.set_mode(Mode.of(mode.grad and tracked, mode.inference, mode.autocast, False, ()))
    try:
        state, trace = record(op, (*wholes, *free), {}, budget=False)
    finally:
        local.set_mode(mode)
    results = [make(v, trace) for v in state.values]
    return [r if v.requires_grad else bare(r) for r, v in zip(results, values, strict=True)]


def _op(fn: Any, dims: tuple[int, ...], out_dims: tuple[Any, ...], n_free: int, size: int) -> Op:
    many = jax.vmap(
        fn, in_axes=(*dims, *[None] * n_free), out_axes=tuple(out_dims), axis_name=_AXIS,
        axis_size=size,
    )  # fmt: skip

    def vmapped(*arrays: Any) -> Any:
        return many(*arrays)

    return Op(vmapped, name="vmap", namespace="opaque", backward="VmapBackward")


def _is_random(state: Any) -> bool:
    return bool(getattr(getattr(state.call, "op", None), "random", False))


def _split_keys(state: Any, arrays: list[Any]) -> Any:
    """Random ops draw by a key of each example's own."""
    if _is_random(state):
        key = jax.random.wrap_key_data(arrays[0], impl="threefry2x32")
        own = jax.random.fold_in(key, jax.lax.axis_index(_AXIS))
        arrays = [jax.random.key_data(own), *arrays[1:]]
    return state.call.evaluate(*arrays)
