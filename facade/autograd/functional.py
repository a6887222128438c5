"""PyTorch's `torch.autograd.functional`: products with Jacobians and Hessians, and these whole.

Built on `autograd.grad`, so they are recorded like all else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .._autograd.graph.fit_gradient import zeros
from .._core.dual_levels import opened
from .._core.grad_modes import enable_grad, set_grad_enabled
from .._core.transforms_running import allowing_all
from .._core.trie import local
from .._core.vmap_checks import refuse_in_vmap
from ..func import jvp as _jvp
from ..func import vmap as _vmap
from ._functional_rows import (
    _construct_standard_basis_for,
    compute_at_once,
    compute_row_by_row,
    take_reached_gradients,
)
from ._strict import _as_tuple, check_requires_grad, fill_in_zeros

_Tensors = Any
_OUTPUTS = "outputs of the user-provided function"


def _fresh(inputs: Any, create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    """Make new tensors, so that those given are told from those that the function captured."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad
        else t.detach().requires_grad_() if need_graph else t.detach()
        for t in inputs
    )  # fmt: skip


def _done(x: Any, create_graph: bool) -> Any:
    if isinstance(x, tuple):
        if not x:
            raise IndexError("tuple index out of range")  # PyTorch looks at the first
        return tuple(_done(y, create_graph) for y in x)
    return x if create_graph else x.detach()


def _check_v(v: Any, other: Any, many: bool) -> None:
    if len(other) != len(v):
        if many:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, other, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            where = f"Entry {i} in " if many else ""
            raise RuntimeError(
                f"{where}v has invalid size: should be {b.size()} but got {a.size()}."
            )


def _vector(v: Any, name: str, other: Any, many: bool, create_graph: bool, hint: str) -> Any:
    if v is None:
        if len(other) != 1 or other[0].numel() != 1:
            raise RuntimeError(hint)
        return None
    v = _fresh(_as_tuple(v, "v", name)[1], create_graph, False)
    _check_v(v, other, many)
    return v


_ONE_OUTPUT = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a "
    "single element."
)
_ONE_INPUT = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor "
    "with a single element."
)


def vjp(
    func: Callable[..., Any], inputs: _Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute `func(*inputs)`, and the product of `v` with its Jacobian."""
    with enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph, True)
        many_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "vjp")
        check_requires_grad(outputs, "outputs", strict)
        v = _vector(v, "vjp", outputs, many_out, create_graph, _ONE_OUTPUT)
    with set_grad_enabled(create_graph or local.mode.enabled):
        found = take_reached_gradients(outputs, inputs, v, create_graph)
        found = fill_in_zeros(found, inputs, strict, create_graph, "back")
    return _result(outputs, many_out, create_graph), _result(found, many_in, create_graph)


def _result(xs: Any, many: bool, create_graph: bool) -> Any:
    xs = _done(tuple(xs), create_graph)
    return xs if many else xs[0]


def jvp(
    func: Callable[..., Any], inputs: _Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute `func(*inputs)`, and the product of its Jacobian with `v`."""
    with enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph, True)
        v = _vector(v, "jvp", inputs, many_in, create_graph, _ONE_INPUT)
        many_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jvp")
        check_requires_grad(outputs, "outputs", strict)
        dummies = tuple(_dummy(o) for o in outputs)
        pulled = take_reached_gradients(outputs, inputs, dummies, True)
        check_requires_grad(pulled, "grad_inputs", strict)
        found = take_reached_gradients(pulled, dummies, v, create_graph)
        found = fill_in_zeros(found, outputs, strict, create_graph, "back_trick")
    return _result(outputs, many_out, create_graph), _result(found, many_out, create_graph)


def _dummy(out: Any) -> Any:
    if not (out.is_floating_point() or out.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return zeros(out._v).requires_grad_()


def jacobian(
    func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Compute the Jacobian of `func`: a tensor of shape `output.shape + input.shape` a pair.

    Args:
      strict: raise where an output does not depend on an input, instead of returning zeros.
      vectorize: accepted for PyTorch's sake.
      strategy: "reverse-mode"; "forward-mode" gives the same values the same way.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either set '
            '`create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, strict, vectorize)
    with enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph, True)
        many_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jacobian")
        check_requires_grad(outputs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        if vectorize:
            found = compute_at_once(outputs, inputs, create_graph)
        else:
            found = compute_row_by_row(outputs, inputs, create_graph, strict)
    done = _done(found, create_graph)
    done = done if many_in else tuple(r[0] for r in done)
    return done if many_out else done[0]


def _forward_jacobian(func: Any, inputs: Any, strict: bool, vectorize: bool) -> Any:
    """Compute the Jacobian by forward mode, all columns at once; lists where PyTorch has lists."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are '
            "not supported together (yet). Please either set `strict=False` or `strategy="
            '"reverse-mode"`.'
        )
    many_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
            "implemented for `vectorize=True`."
        )
    sizes = [x.numel() for x in inputs]
    basis = _construct_standard_basis_for(inputs, sizes)
    if opened.levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    refuse_in_vmap("_make_dual", *inputs)
    many_out: list[bool] = []
    shapes: list[Any] = []

    def outputs(*xs: Any) -> Any:
        with allowing_all():
            many, outs = _as_tuple(func(*xs), "outputs", None)
        many_out[:] = [many]
        shapes[:] = [o.shape for o in outs]
        return outs

    def push(*tangents: Any) -> Any:
        shaped = [t.view_as(x) for t, x in zip(tangents, inputs, strict=True)]
        return _jvp(outputs, inputs, tuple(shaped))[1]

    # PyTorch neither detaches the inputs nor the result, and leaves grad mode as it is.
    rows = []
    found = _vmap(push)(*basis)  # gives `shapes`
    for shape, columns in zip(shapes, found, strict=True):
        row = [
            part.permute(*range(1, part.ndim), 0).reshape((*shape, *x.shape))
            for part, x in zip(columns.split(sizes), inputs, strict=True)
        ]
        rows.append(row if many_in else row[0])
    return rows if many_out[0] else rows[0]


def hessian(
    func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Compute the Hessian of `func`, which returns a tensor of one element."""
    many, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs: Any) -> Any:
        out = func(*xs)
        return _single(out, strict, "hessian").squeeze()

    def inner(*xs: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple(x.requires_grad_() for x in xs)
        found = jacobian(scalar, xs, create_graph=True)
        check_requires_grad(found, "jacobian", strict)
        return found

    found = jacobian(inner, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if many else found[0][0]


def _single(out: Any, strict: bool, name: str) -> Any:
    many, outs = _as_tuple(out, _OUTPUTS, name)
    check_requires_grad(outs, "outputs", strict)
    if many:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if out.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )
    return out


def vhp(
    func: Callable[..., Any], inputs: _Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute `func(*inputs)`, and the product of `v` with its Hessian."""
    with enable_grad():
        many, inputs, v, out, jac = _first(func, inputs, v, create_graph, strict, "vhp")
    with set_grad_enabled(create_graph or local.mode.enabled):
        found = take_reached_gradients(jac, inputs, v, create_graph)
        found = fill_in_zeros(found, inputs, strict, create_graph, "double_back")
    return _done(out, create_graph), _result(found, many, create_graph)


def hvp(
    func: Callable[..., Any], inputs: _Tensors, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute `func(*inputs)`, and the product of its Hessian with `v`."""
    with enable_grad():
        many, inputs, v, out, jac = _first(func, inputs, v, create_graph, strict, "hvp")
        dummies = tuple(zeros(t._v).requires_grad_() for t in inputs)
        double = take_reached_gradients(jac, inputs, dummies, True)
        check_requires_grad(jac, "hessian", strict)
        found = take_reached_gradients(double, dummies, v, create_graph)
        found = fill_in_zeros(found, inputs, strict, create_graph, "double_back_trick")
    return _done(out, create_graph), _result(found, many, create_graph)


def _first(func: Any, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> Any:
    many, inputs = _as_tuple(inputs, "inputs", name)
    inputs = _fresh(inputs, create_graph, True)
    v = _vector(v, name, inputs, many, create_graph, _ONE_INPUT)
    out = _single(func(*inputs), strict, name)
    jac = take_reached_gradients((out,), inputs, None, True)
    check_requires_grad(jac, "jacobian", strict)
    return many, inputs, v, out, jac


_end_at_callers(__name__)
