"""Linear layers, embedding and one-hot."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cpp_name, scalar_name
from ...program.op import Fault, op
from .checks import repeated, size_list

Array = jax.Array

F = "nn.functional"


def _linear_errors(input: Array, weight: Array, bias: Array | None) -> None:
    if input.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if bias is not None and weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if bias is not None and input.dtype != weight.dtype and bias.dtype == weight.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{scalar_name(input.dtype)} and {scalar_name(weight.dtype)}"
        )
    if bias is not None and bias.dtype != weight.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{scalar_name(bias.dtype)} and {scalar_name(weight.dtype)}"
        )
    if input.dtype == np.dtype(bool):
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    rows, inner = math.prod(input.shape[:-1]), input.shape[-1]
    if inner != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(
                f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({weight.shape[0]})"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and "
            f"{weight.shape[1]}x{weight.shape[0]})"
        )
    if bias is None and input.dtype != weight.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{cpp_name(input.dtype)} != {cpp_name(weight.dtype)}"
        )
    if bias is None:
        return
    target = (rows, weight.shape[0])
    for i, n in enumerate(reversed(bias.shape), 1):
        if i > 2 or n not in (1, target[-i]):
            raise RuntimeError(
                f"The expanded size of the tensor ({target[-i]}) must match the existing size "
                f"({n}) at non-singleton dimension {2 - i}.  Target sizes: {size_list(target)}.  "
                f"Tensor sizes: {size_list(bias.shape)}"
            )


@op(
    namespace=F, backward="AddmmBackward0", method=False,
    saves={"self": "weight", "weight": "self"},
)  # fmt: skip
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """Multiply by the transposed weight `(out, in)` and add the bias."""
    _linear_errors(input, weight, bias)
    axes = ((input.ndim - 1,), (weight.ndim - 1,))
    y = jax.lax.dot_general(input, weight, (axes, ((), ())))
    if bias is None:
        return y
    if bias.ndim > 1:
        bias = jnp.broadcast_to(bias, (math.prod(y.shape[:-1]), y.shape[-1])).reshape(y.shape)
    return y + repeated(bias, y.shape)


@jax.custom_jvp
def _gradient_over(x: Array, count: Array) -> Array:
    """Return `x`, with its gradient divided by `count`."""
    return x


@_gradient_over.defjvp
def _gradient_over_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    return primals[0], tangents[0] / primals[1]


def _embedding_check(
    input: Array, weight: Array, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> list[Fault]:  # fmt: skip
    bad = (input < 0) | (input >= weight.shape[0])
    return [Fault(bad, IndexError, "index out of range in self")]


@op(namespace=F, method=False, saves={"self": "weight"}, check=_embedding_check)
def embedding(
    input: Array, weight: Array, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Array:  # fmt: skip
    """Take rows of `weight`; the row at `padding_idx` receives no gradient.

    With `scale_grad_by_freq` gradients (and tangents, which PyTorch leaves alone) are divided by
    how often their row is taken.
    """
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.shape[0]
    if max_norm is not None:
        raise NotImplementedError(
            "embedding(): `max_norm` writes to the weight, which only leafax.nn.functional can do"
        )
    if sparse:
        raise NotImplementedError("embedding(): leafax has no sparse gradients: use `sparse=False`")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if input.dtype not in (np.dtype("int64"), np.dtype("int32")):
        boolean = input.dtype == np.dtype(bool)
        name = "CPUBoolType" if boolean else f"torch.{scalar_name(input.dtype)}Tensor"
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {name} instead (while checking arguments for embedding)"
        )
    if input.size == 0 or weight.size == 0:
        return jnp.zeros(input.shape + weight.shape[1:], weight.dtype)
    rows = jnp.take(weight, input, axis=0, mode="clip")
    if scale_grad_by_freq:
        counts = jnp.zeros(weight.shape[0], weight.dtype).at[input.reshape(-1)].add(1, mode="clip")
        rows = _gradient_over(rows, jnp.expand_dims(jnp.take(counts, input, mode="clip"), -1))
    if padding_idx is None:
        return rows
    padding = jnp.expand_dims(input == padding_idx, -1)
    return jnp.where(padding, jax.lax.stop_gradient(rows), rows)


def _one_hot_check(input: Array, num_classes: int = -1) -> list[Fault]:
    return [
        Fault(input < 0, RuntimeError, "Class values must be non-negative."),
        Fault(input >= num_classes, RuntimeError, "Class values must be smaller than num_classes."),
    ]


@op(namespace=F, method=False, differentiable=False, check=_one_hot_check)
def one_hot(input: Array, num_classes: int = -1) -> Array:
    """Make int64 rows with a single 1; `num_classes=-1` is resolved by the facade."""
    if input.dtype != np.dtype("int64"):
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes < 0:
        # A negative count is smaller than every class; only -1 has a meaning, given above us.
        raise RuntimeError("Class values must be smaller than num_classes.")
    classes = jnp.arange(num_classes, dtype=np.int64)
    return (jnp.expand_dims(input, -1) == classes).astype(np.int64)
