"""Products over chosen dims: einsum, tensordot and their relatives."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import scalar_name
from ...program.op import op
from ..shape import dimensions
from . import matmul
from .linalg import LINALG

Array = jax.Array


# Einstein sums -----------------------------------------------------------------------------------


def _parse(text: str, start: int, role: str) -> list[str]:
    """Parse the subscripts of one operand, the ellipsis as one of them."""
    found, at = [], 0
    while at < len(text):
        if text[at] == ".":
            which, short = ("for which", "") if role != "output" else ("but", " (...)")
            if "..." in found:
                raise RuntimeError(
                    f"einsum(): found '.' for {role} {which} an ellipsis{short} was already found"
                )
            if not text.startswith("...", at):
                raise RuntimeError(
                    f"einsum(): found '.' for {role} that is not part of any ellipsis{short}"
                )
            found.append("...")
            at += 3
            continue
        if text[at] != " ":
            if not (text[at].isascii() and text[at].isalpha()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {start + at} in the equation "
                    "string, subscripts must be in [a-zA-Z]"
                )
            found.append(text[at])
        at += 1
    return found


def _check_output(output: list[str], seen: Container[str]) -> None:
    for at, label in enumerate(output):
        if label in output[:at]:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        if label != "..." and label not in seen:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any "
                "input operand"
            )


def _check_ranks(inputs: list[list[str]], operands: Sequence[Array]) -> None:
    for at, (labels, x) in enumerate(zip(inputs, operands, strict=True)):
        named = len(labels) - ("..." in labels)
        if "..." not in labels and named != x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the "
                f"number of dimensions ({x.ndim}) for operand {at} and no ellipsis was given"
            )
        if named > x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the "
                f"number of dimensions ({x.ndim}) for operand {at}"
            )


def _sized(labels: list[str], x: Array) -> list[tuple[str, int, int]]:
    """Map an operand's subscripts to its dims and lengths."""
    after = len(labels) - labels.index("...") - 1 if "..." in labels else 0
    first = len(labels) - after - 1 if "..." in labels else len(labels)
    named = [(label, dim) for dim, label in enumerate(labels[:first])]
    named += [(label, x.ndim - after + i) for i, label in enumerate(labels[len(labels) - after :])]
    return [(label, dim, x.shape[dim]) for label, dim in named]


def _check_ellipses(inputs: list[list[str]], operands: Sequence[Any]) -> None:
    """Require that the dims under ellipses broadcast."""
    seen: dict[int, int] = {}  # lengths by place, counted from the last dim
    for at, (labels, x) in enumerate(zip(inputs, operands, strict=True)):
        if "..." not in labels:
            continue
        first, count = labels.index("..."), x.ndim - len(labels) + 1
        for dim in range(first, first + count):
            n, place = x.shape[dim], first + count - dim
            if n != 1 and seen.setdefault(place, n) != n:
                raise RuntimeError(
                    f"einsum(): dimension {dim} covered by ellipsis in operand {at}has size {n} "
                    "which does not broadcast with previously seen ellipsis with size "
                    f"{seen[place]} for the respective dimension"
                )


def _lengths(inputs: list[list[str]], operands: Sequence[Array]) -> dict[str, int]:
    seen: dict[str, int] = {}
    for at, (labels, x) in enumerate(zip(inputs, operands, strict=True)):
        own: dict[str, int] = {}
        for label, _, n in _sized(labels, x):
            if own.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {at} but the sizes "
                    f"don't match, {n} != {own[label]}"
                )
            if seen.get(label, 1) not in (1, n) and n != 1:
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {at} which does not "
                    f"broadcast with previously seen size {seen[label]}"
                )
            seen[label] = n if n != 1 else seen.get(label, 1)
    return seen


def einsum_terms(equation: str, operands: Sequence[Any]) -> tuple[list[list[str]], list[str]]:
    """Return the subscripts of each operand and of the output, `"..."` standing for one.

    Args:
      operands: what has a shape.

    Raises:
      RuntimeError: for an equation that is none, or that does not suit these shapes.
    """
    left, arrow, right = equation.partition("->")
    parts, start, inputs = left.split(","), 0, []
    for at, part in enumerate(parts):
        if at >= len(operands):
            raise RuntimeError(
                "einsum(): fewer operands were provided than specified in the equation"
            )
        inputs.append(_parse(part, start, f"operand {at}"))
        start += len(part) + 1
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    _check_ranks(inputs, operands)
    output = _parse(right, len(left) + 2, "output") if arrow else None
    _check_output(output or [], dict.fromkeys(label for labels in inputs for label in labels))
    _lengths(inputs, operands)
    _check_ellipses(inputs, operands)
    if output is None:
        every = [label for labels in inputs for label in labels]
        once = sorted(label for label in set(every) if every.count(label) == 1 and label != "...")
        output = (["..."] if "..." in every else []) + once
    return inputs, output


@op(method=False, backward="ViewBackward0", saves={"operands": "*"})
def einsum(equation: str, operands: Sequence[Array]) -> Array:
    """Sum of products over the subscripts that the output does not name; lengths 1 broadcast."""
    inputs, output = einsum_terms(equation, operands)
    if any(x.dtype != operands[0].dtype for x in operands):
        other = next(x.dtype for x in operands if x.dtype != operands[0].dtype)
        raise RuntimeError(
            f"expected scalar type {scalar_name(operands[0].dtype)} but found {scalar_name(other)}"
        )
    lengths = _lengths(inputs, operands)
    kept = []
    for position, x in enumerate(operands):
        # A dim of length 1 that meets a longer one is dropped; products broadcast without it.
        sized = _sized(inputs[position], x)
        short = {label for label, _, n in sized if n != lengths[label]}
        kept.append(lax.squeeze(x, [dim for label, dim, _ in sized if label in short]))
        inputs[position] = [label for label in inputs[position] if label not in short]
    terms = ",".join("".join(labels) for labels in inputs)
    return jnp.einsum(f"{terms}->{''.join(output)}", *kept)


@op(method=False, backward="ViewBackward0", saves={"a": "b", "b": "a"})
def tensordot(a: Array, b: Array, dims: Any = 2) -> Array:
    """Contract the last dims of `a` with the first of `b`, or the dims given in two lists."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (range(-dims, 0), range(dims))
    left, right = list(dims[0]), list(dims[1])
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for x, y in zip(left, right, strict=True):
        n = a.shape[dimensions.wrap_dim(x, a.ndim)]
        m = b.shape[dimensions.wrap_dim(y, b.ndim)]
        if n == 1 != m:  # a dim of size 1 stands for as many equal elements
            b = jnp.sum(b, y, keepdims=True, dtype=b.dtype)
        elif m == 1 != n:
            a = jnp.sum(a, x, keepdims=True, dtype=a.dtype)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {x} and "
                f"second has size {m} in dim {y}"
            )
    return jnp.tensordot(a, b, (left, right))


op(name="matmul", **LINALG, backward="MmBackward0",
   saves={"self": "other", "other": "self"})(matmul.matmul)  # fmt: skip
