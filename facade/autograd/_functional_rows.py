"""The rows of Jacobians for `autograd.functional`: a gradient for each element of an output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leafax.functional.program.op import TABLE

from .._autograd.backward import grad
from .._autograd.graph.fit_gradient import zeros
from .._dispatch.record import apply
from .._ops.creation.factories import arange


def take_reached_gradients(
    outputs: Any, inputs: Any, grads: Any = None, create_graph: bool = False, keep: Any = None
) -> Any:
    """Take gradients of those outputs that have one; None for inputs that are not reached."""
    given = (None,) * len(outputs) if grads is None else grads
    pairs = [
        (o, g) for o, g in zip(outputs, given, strict=True) if o is not None and o.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True,
        create_graph=create_graph, retain_graph=keep,
    )  # fmt: skip


def compute_row_by_row(
    outputs: Any, inputs: Any, create_graph: bool, strict: bool
) -> tuple[tuple[Any, ...], ...]:
    """Compute each output's Jacobians by the inputs, row by row."""
    found = []
    for i, out in enumerate(outputs):
        rows: list[list[Any]] = [[] for _ in inputs]
        if out.is_complex() and out.numel():  # an implicit 1 is for real numbers only, it says
            take_reached_gradients(out.reshape(-1).unbind(0)[:1], inputs, None, create_graph, True)
        for flat, one in _elements(out):
            grads = take_reached_gradients((flat,), inputs, (one,), create_graph, True)
            for k, (g, t) in enumerate(zip(grads, inputs, strict=True)):
                if g is None:
                    if strict:
                        raise RuntimeError(
                            f"Output {i} of the user-provided function is independent of input "
                            f"{k}. This is not allowed in strict mode."
                        )
                    g = zeros(t._v)
                elif strict and create_graph and not g.requires_grad:
                    raise RuntimeError(
                        "The jacobian of the user-provided function is independent of input "
                        f"{i}. This is not allowed in strict mode when create_graph=True."
                    )
                rows[k].append(g)
        found.append(
            tuple(_stack(r).view((*out.shape, *t.shape)) for r, t in zip(rows, inputs, strict=True))
        )
    return tuple(found)


def compute_at_once(outputs: Any, inputs: Any, create_graph: bool) -> tuple[tuple[Any, ...], ...]:
    """Compute Jacobians as pieces of one tensor an input, as PyTorch's `vectorize` does."""
    if not outputs:
        raise AssertionError("Expected at least one tensor")
    sizes = [o.numel() for o in outputs]
    if not sum(sizes):
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    rows: list[list[Any]] = [[] for _ in inputs]
    for out in outputs:
        for flat, one in _elements(out):
            grads = take_reached_gradients((flat,), inputs, (one,), create_graph, True)
            for row, g, t in zip(rows, grads, inputs, strict=True):
                row.append(zeros(t._v) if g is None else g)
    found = []
    for row, t in zip(rows, inputs, strict=True):
        pieces = _stack(row).split(sizes)
        found.append([p.view((*o.shape, *t.shape)) for p, o in zip(pieces, outputs, strict=True)])
    return tuple(zip(*found, strict=True))


def _elements(out: Any) -> Iterator[tuple[Any, Any]]:
    """Yield for each element all of them in a row, and a gradient that is 1 there.

    The same calls for each: to take the element itself is another for each number of elements,
    whose gradient is to be traced.
    """
    flat = out.reshape(-1)
    places = arange(flat.numel())
    for place in range(flat.numel()):
        yield flat, (places == place).to(flat.dtype)


def _stack(rows: list[Any]) -> Any:
    return apply(TABLE["stack"], tuple(rows), 0)


def _construct_standard_basis_for(tensors: Any, tensor_numels: Any) -> tuple[Any, ...]:
    """Make each tensor's columns of the identity matrix on all elements of all tensors."""
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total, start, found = sum(tensor_numels), 0, []
    for t, n in zip(tensors, tensor_numels, strict=True):
        rows = t.new_zeros((total, n))
        rows.diagonal(-start).fill_(1)
        found.append(rows)
        start += n
    return tuple(found)
