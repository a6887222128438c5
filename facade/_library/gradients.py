"""Autograd of operators that programs define: `register_autograd` as an `autograd.Function`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.handle import Handle
from .._core.tree.trees import TreeSpec, tree_flatten, tree_unflatten
from ..autograd._function import Function

if TYPE_CHECKING:
    from .operators import Operator


class _Call(NamedTuple):
    """The structure of a call's arguments and, in a list, of its results."""

    spec: TreeSpec
    named: dict[str, Any]
    results: list[Any]


def make_function(op: Operator) -> Any:
    """Return the class whose `apply_op` calls an operator and records its gradient."""
    named = f"{op.schema.name.replace('::', '_')}_{op.schema.overload_name or 'default'}"
    made: Any = type(f"GeneratedBackwardFor_{named}", (_OfOperator,), {"op": op})
    return made


class _OfOperator(Function):
    op: Operator

    @classmethod
    def apply_op(cls, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the operator; tensors in lists are arguments of their own to autograd."""
        flat, spec = tree_flatten(args, _is_no_list_of_tensors)
        call = _Call(spec, named, [])
        made = cls.apply(*flat, cls.op, call)
        return made if not call.results else tree_unflatten(made, call.results[0])

    @staticmethod
    def forward(*given: Any) -> Any:
        *flat, op, call = given
        made = op.run(tree_unflatten(flat, call.spec), call.named)
        if isinstance(made, (list, tuple)):
            leaves, spec = tree_flatten(made, _is_no_list_of_tensors)
            call.results[:] = [spec]
            return tuple(leaves)
        return made

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *flat, op, call = inputs
        ctx._operator = op, call
        if op.setup_context is None:
            return
        args = tree_unflatten(flat, call.spec)
        made = tree_unflatten(output, call.results[0]) if call.results else output
        if any(a.kwarg_only for a in op.schema.arguments):
            op.setup_context(ctx=ctx, inputs=args, keyword_only_inputs=call.named, output=made)
        else:
            op.setup_context(ctx=ctx, inputs=args, output=made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        op, call = ctx._operator
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op.shown} but no autograd formula was registered. "
                "Please use register_autograd to add one."
            )
        given: Any = grads
        if call.results:
            whole = tree_unflatten(list(grads), call.results[0])
            given = (whole,) if isinstance(whole, list) else whole
        before = ctx.needs_input_grad
        wanted = tree_unflatten(list(before[:-2]), call.spec)
        ctx.needs_input_grad = wanted
        try:
            made = op.backward(ctx, *given)
        finally:
            ctx.needs_input_grad = before
        made = made if isinstance(made, tuple) else (made,)
        if all(child.is_leaf() for child in call.spec.children()):
            left_out = [None] * (len(before) - len(made))  # of arguments with defaults
            return (*made, *left_out)
        flat, spec = tree_flatten(made, _is_no_list_of_gradients)
        if spec != call.spec:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs. "
                f"Got: {spec} (return from backward), {call.spec} (inputs)"
            )
        return (*flat, None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> Any:
        *flat, op, call = given
        args = tree_unflatten(flat, call.spec)
        dims = tree_unflatten(list(in_dims[:-2]), call.spec)
        return op.vmap(info, dims, *args, **call.named)


def _is_no_list_of_tensors(x: Any) -> bool:
    if isinstance(x, tuple):
        return False
    return not isinstance(x, list) or any(not isinstance(y, Handle) for y in x)


def _is_no_list_of_gradients(x: Any) -> bool:
    if isinstance(x, tuple):
        return False
    return not isinstance(x, list) or any(y is not None and not isinstance(y, Handle) for y in x)
