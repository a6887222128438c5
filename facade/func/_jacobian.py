"""`func.jacrev`, `jacfwd`, `hessian`: all rows (or columns) of a Jacobian at once, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.program.op import TABLE

from .._core.handle import Handle
from .._core.vmap_checks import adopt_example
from .._dispatch.record import apply
from .._tracing.inputs import from_array
from ._forward import jvp
from ._grad import _choose, vjp
from ._trees import flatten, unflatten
from ._vmap import vmap


def _basis(tensors: list[Any]) -> list[Any]:
    """Make each tensor's part of the identity matrix on all elements of all tensors.

    Inside an outer `vmap` it is batched as the tensor is, so that its rows may be written to.
    """
    sizes = [t.numel() for t in tensors]
    total = sum(sizes)
    found, start = [], 0
    for t, n in zip(tensors, sizes, strict=True):
        with jax.enable_x64(True):
            rows = jnp.eye(total, n, k=-start, dtype=t._v.dtype)
        found.append(adopt_example(t, from_array(rows.reshape(total, *t.shape))))
        start += n
    return found


def _refuse_complex(name: str, tree: Any, what: str) -> None:
    for k, x in enumerate(flatten(tree)[0]):
        if isinstance(x, Handle) and x._v.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {k}"
            )


def jacrev(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Make the Jacobian of `func` by reverse mode: one pull a row, all rows at once.

    Returns:
      A function that returns a tree like `func`'s output, each tensor of it replaced by one
      Jacobian of shape `output.shape + input.shape` (with several `argnums`, a tuple of them).

    Args:
      chunk_size: how many rows are pulled at a time; None pulls all at once.
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacrev", args, "inputs")
        places = _choose(args, argnums)

        def partial(*chosen: Any) -> Any:
            full = list(args)
            for n, x in zip(places, chosen, strict=True):
                full[n] = x
            return func(*full)

        chosen = tuple(args[n] for n in places)
        got = vjp(partial, *chosen, has_aux=has_aux)
        outs, structure = flatten(got[0])
        _refuse_complex("jacrev", got[0], "outputs")
        pull = got[1]
        grads, in_tree = _pulled(
            lambda *cts: pull(unflatten(structure, list(cts))), outs, chunk_size
        )
        sizes = [o.numel() for o in outs]
        parts = []
        for o, *rows in zip(outs, *[g.split(sizes) for g in grads], strict=True):
            blocks = [r.reshape((*o.shape, *r.shape[1:])) for r in rows]
            tree = unflatten(in_tree, blocks)
            parts.append(tree if isinstance(argnums, tuple) else tree[0])
        result = unflatten(structure, parts)
        return (result, got[2]) if has_aux else result

    return wrapper


def _pulled(pull: Callable[..., Any], outs: list[Any], chunk_size: int | None) -> Any:
    """Pull a row for each element of `outs`; return tensors and the tree that they make up.

    One at a time they need no `vmap`, and are held by none of its rules.
    """
    basis = _basis(outs)
    if chunk_size != 1 or not len(basis[0]):
        return flatten(vmap(pull, chunk_size=chunk_size)(*basis))
    rows = [flatten(pull(*cts)) for cts in zip(*basis, strict=True)]
    by_input = zip(*[r for r, _ in rows], strict=True)
    return [apply(TABLE["stack"], column) for column in by_input], rows[0][1]


def jacfwd(
    func: Callable[..., Any], argnums: int | tuple[int, ...] | None = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """Make the Jacobian of `func` by forward mode: one push a column, all columns at once.

    Args:
      argnums: which arguments to differentiate; None is all of them, as a tuple.

    Returns:
      As `jacrev` does.
    """

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacfwd", args, "inputs")
        places = _choose(args, tuple(range(len(args))) if argnums is None else argnums)
        chosen = tuple(args[n] for n in places)
        flat, in_tree = flatten(chosen)

        def partial(*xs: Any) -> Any:
            full = list(args)
            for n, x in zip(places, xs, strict=True):
                full[n] = x
            return func(*full)

        shapes: list[Any] = []

        def push(*tangents: Any) -> Any:
            got = jvp(partial, chosen, unflatten(in_tree, list(tangents)), has_aux=has_aux)
            _refuse_complex("jacfwd", got[0], "outputs")
            aux, aux_tree = flatten(got[2]) if has_aux else ([], None)
            shapes[:] = [flatten(got[0])[1], flatten(got[0])[0], aux_tree]
            return flatten(got[1])[0], aux

        columns, aux = vmap(push, randomness=randomness, out_dims=(-1, None))(*_basis(flat))
        structure, outs, aux_tree = shapes
        parts = []
        for o, column in zip(outs, columns, strict=True):
            ends, blocks = 0, []
            for x in flat:
                start, ends = ends, ends + x.numel()
                blocks.append(column[..., start:ends].reshape((*o.shape, *x.shape)))
            tree = unflatten(in_tree, blocks)
            parts.append(tree[0] if isinstance(argnums, int) else tree)
        result = unflatten(structure, parts)
        return (result, unflatten(aux_tree, aux)) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Make the Hessian of `func`: forward mode over reverse mode.

    >>> import leafax
    >>> leafax.func.hessian(lambda x: (x**3).sum())(leafax.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
