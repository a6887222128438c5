"""Forward mode: `func.jvp` and `func.linearize`, as the derivative of the vjp.

`vjp(u)` is linear in `u`, and its derivative along `v` is the jvp: two backward passes over the
recorded program, of which XLA keeps what the result needs. So every op that has a gradient has a
forward derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._handle import Handle
from .._modes import enable_grad
from ._grad import _zeros, gradients, lift, lower, lower_tree
from ._trees import flatten, unflatten

_JVP = "jvp(f, primals, tangents): "


def _check(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            _JVP + "Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, treedef = flatten(primals)
    given, treedef_t = flatten(tangents)
    if treedef != treedef_t:
        raise RuntimeError(
            _JVP + "Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{treedef} and tangents with structure {treedef_t}"
        )
    for name, leaves in (("primals", flat), ("tangents", given)):
        if not leaves:
            raise RuntimeError(_JVP + f"Expected at least one Tensor in {name}, but got none.")
        for x in leaves:
            if not isinstance(x, Handle):
                raise RuntimeError(_JVP + f"Expected only Tensors in {name}, got {type(x)}")
    for p, t in zip(flat, given, strict=True):
        if p.shape != t.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the "
                f"original Tensor, this is not supported. Tensor is of size {list(p.shape)} while "
                f"the given forward gradient is of size {list(t.shape)}."
            )
    return flat, given, treedef


def tangents_of(outs: list[Any], ins: list[Any], given: list[Any]) -> list[Any]:
    """The derivative of `outs` along `given`, a tangent for each of `ins`."""
    dummies = [_stand_in(o) if o.requires_grad else None for o in outs]
    live = [(o, u) for o, u in zip(outs, dummies, strict=True) if u is not None]
    if not live:
        return [_zeros(o) for o in outs]
    pulled = gradients([o for o, _ in live], ins, [u for _, u in live])
    found = iter(gradients(pulled, [u for _, u in live], given))
    return [_zeros(o) if u is None else next(found) for o, u in zip(outs, dummies, strict=True)]


def _stand_in(o: Any) -> Any:
    u = _zeros(o).requires_grad_()
    u._stand_in = True
    return u


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """`func`'s value at `primals`, and its derivative along `tangents`.

    Args:
      func: a function of tensors that returns a tree of tensors; with `has_aux`, a pair of it
        and anything.
      primals, tangents: tuples of the same structure.
      strict: accepted for PyTorch's sake.

    Returns:
      `(output, derivative)`, with `has_aux` `(output, derivative, aux)`.

    >>> import leafax
    >>> leafax.func.jvp(leafax.sin, (leafax.tensor(0.0),), (leafax.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    flat, given, treedef = _check(primals, tangents)
    with enable_grad():
        lifted = [lift(x) for x in flat]
        output = func(*unflatten(treedef, lifted))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    _JVP + "output of function f should be a tuple: (output, aux) if has_aux is "
                    "True"
                )
            output, aux = output
        outs, structure = flatten(output)
        for o in outs:
            if not isinstance(o, Handle):
                raise RuntimeError(
                    _JVP + "Expected f(*args) to return only tensors, got unsupported type "
                    f"{type(o)}"
                )
        found = tangents_of(outs, lifted, given)
    private = [t for t in lifted if t.is_leaf]
    value = unflatten(structure, [lower(o, private) for o in outs])
    # The stand-in cotangents are leaves of their own: nothing of them is in the values.
    derivative = unflatten(structure, [_settle(x, private) for x in found])
    if has_aux:
        return value, derivative, lower_tree(aux, private)
    return value, derivative


def _settle(x: Any, private: list[Any]) -> Any:
    return lower(x, [*private, *_zero_leaves(x)])


def _zero_leaves(x: Any) -> list[Any]:
    """The leaves that `tangents_of` made: nobody but the graph holds them."""
    return [t for t in _leaves(x) if getattr(t, "_stand_in", False)]


def _leaves(x: Any) -> list[Any]:
    stack, seen, found = [x.grad_fn], set(), []
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.accumulates:
            found.append(node.variable)
        else:
            stack += [e[0] for e in node.edges() if e is not None]
    return found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`func`'s value at `primals`, and the linear function of tangents there.

    `func` is recorded once; each call of the linear function records its derivative.
    """
    flat, treedef = flatten(primals)
    with enable_grad():
        lifted = [lift(x) for x in flat]
        output = func(*unflatten(treedef, lifted))
    outs, structure = flatten(output)
    private = [t for t in lifted if t.is_leaf]
    # The linear function treats the point as a constant, as PyTorch's does.
    fixed, fixed_outs = lifted, outs
    if len(private) < len(lifted):
        with enable_grad():
            fixed = [x.detach().requires_grad_() for x in flat]
            fixed_outs = flatten(func(*unflatten(treedef, fixed)))[0]

    def jvp_fn(*tangents: Any) -> Any:
        given, tree = flatten(tangents)
        if tree != treedef:
            raise RuntimeError(
                f"Expected the tangents {tree} to have the same argspec as the primals {treedef}"
            )
        for k, (p, t) in enumerate(zip(flat, given, strict=True)):
            if p.shape != t.shape:
                raise RuntimeError(
                    f"Expected tangent at index {k} to have the same shape as the primal, got "
                    f"{list(t.shape)} and {list(p.shape)}"
                )
        with enable_grad():
            found = tangents_of(fixed_outs, fixed, given)
        return unflatten(structure, [_settle(x, fixed) for x in found])

    return unflatten(structure, [lower(o, private) for o in outs]), jvp_fn
