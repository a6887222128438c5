"""`func.grad` and its kin: autograd on a copy of the arguments, recorded like all else.

The arguments are made fresh leaves (or views, where they take part in an outer gradient), the
function is recorded on them, and the engine records the gradients differentiably. Whatever the
function captured stays connected, so these functions nest.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .._autograd.backward import grad as _autograd_grad
from .._autograd.backward_arguments import check_real
from .._autograd.graph.fit_gradient import zeros
from .._autograd.saved_hooks.saved_tensors_hooks import disabled_in_transform
from .._core.handle import Handle
from .._core.transforms_running import running_transform, taking_gradients
from ._lifting import end_leaves, lift_tree, lower, lower_tree, recording_gradients
from ._trees import flatten, split_aux, starred, unflatten

NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


def take_gradients(
    outs: Any, ins: Any, cotangents: Any, retain_graph: bool = True, create_graph: bool = True
) -> list[Any]:
    """Take gradients, zeros where there is no way from `ins` to `outs`."""
    pairs = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o._tracked]
    if not pairs:
        return [make_zeros(t) for t in ins]
    with taking_gradients():
        found = _autograd_grad(
            [o for o, _ in pairs], ins, [c for _, c in pairs], retain_graph=retain_graph,
            create_graph=create_graph, allow_unused=True,
        )  # fmt: skip
    return [make_zeros(t) if g is None else g for g, t in zip(found, ins, strict=True)]


def make_zeros(t: Any) -> Any:
    return zeros(t._v)


def _choose(args: tuple[Any, ...], argnums: Any) -> tuple[Any, ...]:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = []
    for n in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        places.append(n % len(args))
    if not places:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(places)}")
    return tuple(places)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that returns `func`'s gradient and its value.

    Args:
      func: returns a tensor of one element; with `has_aux`, a pair of it and anything.
      argnums: which arguments to differentiate; trees of tensors.

    Returns:
      A function of `func`'s arguments that returns `(gradient, value)`, or with `has_aux`
      `(gradient, (value, aux))`.
    """
    prefix = "grad_and_value(f)(*args): "

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _choose(args, argnums)
        full, private, trees = list(args), [], []
        with recording_gradients(), disabled_in_transform(NO_HOOKS):
            for n in places:
                full[n], lifted = lift_tree(args[n])
                trees.append(flatten(full[n])[1])
                private.append(lifted)
            with running_transform(*[t for lifted in private for t in lifted if not t._leaf]):
                output = func(*full, **kwargs)
            output, aux = split_aux(prefix, output) if has_aux else (output, None)
            if not isinstance(output, Handle):
                raise RuntimeError(
                    prefix + f"Expected f(*args) to return a Tensor, got {type(output)}"
                )
            out: Any = output
            if out.dim() != 0:
                raise RuntimeError(
                    prefix + "Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{out.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            if out._tracked:
                check_real(out._v.dtype)
            flat = [t for lifted in private for t in lifted]
            found = iter(take_gradients([out], flat, [out.detach().new_ones(())]))
        leaves = end_leaves([t for t in flat if t._leaf])
        grads = [
            unflatten(tree, [lower(next(found), leaves) for _ in lifted])
            for tree, lifted in zip(trees, private, strict=True)
        ]
        result = tuple(grads) if isinstance(argnums, tuple) else grads[0]
        value = lower(out, leaves)
        return result, (value, lower_tree(aux, leaves)) if has_aux else value

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that returns `func`'s gradient with respect to the arguments `argnums`.

    >>> import leafax
    >>> leafax.func.grad(leafax.sin)(leafax.tensor(0.0))
    tensor(1.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def _cotangent(g: Any, out: Any) -> Any:
    """Return the gradient of an output; None stands for 1 where that has one element."""
    if g is None:
        if out.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return out.detach().new_ones(out.shape)
    if not isinstance(g, Handle):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return g.clone() if g._v.inference else g  # type: ignore[attr-defined]


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute `func`'s value, and the function that pulls cotangents of it back.

    Returns:
      `(output, vjp_fn)`, with `has_aux` `(output, vjp_fn, aux)`. `vjp_fn(*cotangents)` takes
      what `func` returns in shape and structure and returns one gradient an argument.
    """
    prefix = "vjp(f, *primals): "
    with recording_gradients(), disabled_in_transform(NO_HOOKS):
        lifted, trees = [], []
        flat: list[Any] = []
        for p in primals:
            tree, leaves = lift_tree(p)
            lifted.append(tree)
            trees.append((flatten(tree)[1], len(leaves)))
            flat += leaves
        with running_transform(*[t for t in flat if not t._leaf]):
            output = func(*lifted)
        output, aux = split_aux(prefix, output) if has_aux else (output, None)
    outs, structure = flatten(output)
    if not outs or (len(outs) == 1 and outs[0] is None):
        raise RuntimeError(
            prefix + f"Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for o in outs:
        if not isinstance(o, Handle):
            raise RuntimeError(
                prefix + f"expected f(*primals) to return only tensors, got unsupported type "
                f"{type(o)}"
            )
        if not (o.is_floating_point() or o.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {o.dtype}"
            )
    private = end_leaves([t for t in flat if t._leaf])

    def wrapper(cotangents: Any, retain_graph: Any = True, create_graph: Any = None) -> Any:
        given, tree = flatten(cotangents)
        if tree != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {starred(tree)}, primal output: "
                f"{starred(structure)}"
            )
        if retain_graph is not None:  # a second cotangent is none
            retain_graph = bool(operator.index(retain_graph))
        with recording_gradients():
            given = [_cotangent(g, o) for g, o in zip(given, outs, strict=True)]
            # Where the outer graph is this one, too, it stays.
            retain_graph = retain_graph is not False or len(private) < len(flat)
            create_graph = True if create_graph is None else bool(create_graph)
            found = iter(take_gradients(outs, flat, given, retain_graph, create_graph))
        grads = tuple(
            unflatten(tree, [lower(next(found), private) for _ in range(n)]) for tree, n in trees
        )
        return grads

    wrapper.__qualname__ = "_vjp_with_argnums.<locals>.wrapper"
    value = unflatten(structure, [lower(o, private) for o in outs])
    if has_aux:
        return value, wrapper, lower_tree(aux, private)
    return value, wrapper
