"""Forward mode: `func.jvp` by dual tensors, and `func.linearize`.

`linearize` uses that `vjp(u)` is linear in `u`: its derivative along `v` is the jvp, two backward
passes over the program that was recorded once, of which XLA keeps what the result needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from .._autograd.forward_mode.dual import make_dual, view_with_levels
from .._autograd.graph.edges import grad_fn
from .._core.dual_levels import BY_USERS, enter_level, exit_level, tangents_enabled
from .._core.handle import Handle
from .._core.transforms_running import allowing_all, running_transform
from .._core.trie import local
from .._dispatch.tangents import get_tangent
from ._grad import make_zeros, take_gradients
from ._lifting import as_normal_tensor, lift, lower, lower_tree, make_leaf, recording_gradients
from ._trees import flatten, spell, split_aux, unflatten

_JVP = "jvp(f, primals, tangents): "
_ALIAS = TABLE["alias"]


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
            f"{spell(treedef)} and tangents with structure {spell(treedef_t)}"
        )
    for name, leaves in (("primals", flat), ("tangents", given)):
        if not leaves:
            raise RuntimeError(_JVP + f"Expected {name} to contain at least one Tensor.")
        for x in leaves:
            if not isinstance(x, Handle):
                raise RuntimeError(_JVP + f"Expected {name} to only contain Tensors, got {type(x)}")
    return flat, given, treedef


def differentiate_along(outs: list[Any], ins: list[Any], given: list[Any]) -> list[Any]:
    """Differentiate `outs` along `given`, a tangent for each of `ins`."""
    dummies = [_stand_in(o) if o._tracked else None for o in outs]
    live = [(o, u) for o, u in zip(outs, dummies, strict=True) if u is not None]
    if not live:
        return [make_zeros(o) for o in outs]
    pulled = take_gradients([o for o, _ in live], ins, [u for _, u in live])
    found = iter(take_gradients(pulled, [u for _, u in live], given))
    return [make_zeros(o) if u is None else next(found) for o, u in zip(outs, dummies, strict=True)]


def _stand_in(o: Any) -> Any:
    u = make_leaf(make_zeros(o))
    u._stand_in = True
    return u


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Compute `func`'s value at `primals`, and its derivative along `tangents`.

    Args:
      func: a function of tensors that returns a tree of tensors; with `has_aux`, a pair of it
        and anything.
      primals, tangents: tuples of the same structure.
      strict: raise where an output does not depend on `primals`, instead of returning zeros.

    Returns:
      `(output, derivative)`, with `has_aux` `(output, derivative, aux)`.

    >>> import leafax
    >>> leafax.func.jvp(leafax.sin, (leafax.tensor(0.0),), (leafax.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    flat, given, treedef = _check(primals, tangents)
    if BY_USERS:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    mode = local.mode
    with running_transform(), recording_gradients(mode.grad), tangents_enabled(True):
        level = enter_level()
        try:
            for p, t in zip(flat, given, strict=True):
                for name, x in (("primal", p), ("tangent", t)):
                    if not (x.is_floating_point() or x.is_complex()):
                        raise ValueError(
                            f"Expected {name} to be floating point or complex, but got: {x.dtype}"
                        )
            duals = [
                make_dual(as_normal_tensor(p), t, level, _ALIAS)
                for p, t in zip(flat, given, strict=True)
            ]
            output = func(*unflatten(treedef, duals))
            output, aux = split_aux(_JVP, output) if has_aux else (output, None)
            if has_aux:
                lower_tree(aux, [])  # tensors only
            outs, structure = flatten(output)
            _check_outputs(outs)
            found = [_tangent(o, level, strict) for o in outs]
            # Views: what `func` captured and returned is not given away, for callers write to it.
            levels = tuple([n for n in local.mode.dual if n != level])
            output = unflatten(structure, [view_with_levels(o, levels, _ALIAS) for o in outs])
        finally:
            exit_level()
    derivative = unflatten(structure, found)
    return (output, derivative, aux) if has_aux else (output, derivative)


def _check_outputs(outs: list[Any]) -> None:
    if not outs or (len(outs) == 1 and outs[0] is None):
        raise RuntimeError(
            _JVP + f"Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for o in outs:
        if not isinstance(o, Handle):
            raise RuntimeError(
                _JVP
                + f"expected f(*primals) to return only tensors, got unsupported type {type(o)}"
            )


def _tangent(o: Any, level: int, strict: bool) -> Any:
    along = get_tangent(o, level)
    if along is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
            "inputs. This is not allowed with strict=True."
        )
    return make_zeros(o) if along is None else along


def _settle(x: Any, private: list[Any]) -> Any:
    return lower(x, [*private, *_zero_leaves(x)])


def _zero_leaves(x: Any) -> list[Any]:
    """Find the leaves that `differentiate_along` made: nobody but the graph holds them."""
    return [t for t in _leaves(x) if getattr(t, "_stand_in", False)]


def _leaves(x: Any) -> list[Any]:
    stack, seen, found = [grad_fn(x)], set(), []
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.accumulates:
            found.append(node.variable)
        else:
            stack += [e[0] for e in node.next_edges() if e is not None]
    return found


def _check_point(func: Callable[..., Any], primals: Any, flat: list[Any]) -> None:
    """Raise for what has no tangents; errors of the function itself come first."""
    for x in flat:
        if not isinstance(x, Handle):
            func(*primals)
            raise AttributeError(f"'{type(x).__name__}' object has no attribute 'new_empty'")
        if not (x.is_floating_point() or x.is_complex()):  # type: ignore[attr-defined]
            func(*primals)
            raise ValueError(
                f"Expected primal to be floating point or complex, but got: {x.dtype}"  # type: ignore[attr-defined]
            )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute `func`'s value at `primals`, and the linear function of tangents there.

    `func` is recorded once; each call of the linear function records its derivative.
    """
    flat, treedef = flatten(primals)
    _check_point(func, primals, flat)
    with recording_gradients():
        lifted = [lift(x) for x in flat]
        # PyTorch's is no transform: what these forbid is allowed in it.
        with running_transform(*[t for t in lifted if not t._leaf]), allowing_all():
            output = func(*unflatten(treedef, lifted))
    outs, structure = flatten(output)
    private = [t for t in lifted if t._leaf]
    # The linear function treats the point as a constant, as PyTorch's does.
    fixed, fixed_outs = lifted, outs
    if len(private) < len(lifted):
        with recording_gradients():
            fixed = [make_leaf(x.detach()) for x in flat]
            fixed_outs = flatten(func(*unflatten(treedef, fixed)))[0]

    def jvp_fn(*tangents: Any) -> Any:
        given, tree = flatten(tangents)
        if tree != treedef:
            raise RuntimeError(
                f"Expected the tangents {spell(tree)} to have the same argspec as the primals "
                f"{spell(treedef)}"
            )
        for k, (p, t) in enumerate(zip(flat, given, strict=True)):
            for what in ("shape", "device", "dtype"):
                if getattr(p, what) != getattr(t, what):
                    raise RuntimeError(
                        f"tangent:{k} with {what} {getattr(t, what)} in flattened pytree doesn't "
                        f"match the {what} {getattr(p, what)} of the corresponding primal."
                    )
        with recording_gradients():
            found = differentiate_along(fixed_outs, fixed, given)
        return unflatten(structure, [_settle(x, fixed) for x in found])

    return unflatten(structure, [lower(o, private) for o in outs]), jvp_fn
