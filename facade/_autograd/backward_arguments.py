"""Arguments of `backward` and `grad`: outputs, their gradients and inputs, with the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._core.dtypes import Size
from .._core.dtypes import of as dtype_of
from .._core.handle import Handle
from .._core.python_data import name_of_type
from .._core.trie import NOWHERE
from .graph.edges import gradient_edge
from .memo import replay_backward


class GradientEdge(NamedTuple):
    """A place in the graph: an output of a node.

    Attributes:
      ownership_token: a node that keeps the graph of a `Function` alive in PyTorch; here nodes do
        that by themselves.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


GradientEdge.__module__ = "leafax.autograd.graph"


def as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, (Handle, GradientEdge)) or x is None else tuple(x)


def inputs_of(inputs: Any, caller: str) -> tuple[Any, ...]:
    """List the tensors and edges of an `inputs` argument; of a dict its values."""
    if type(inputs) is dict:
        found = tuple(inputs.values())
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    else:
        found = as_tuple(inputs)
    if not found:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return found


def check_input(t: Any) -> None:
    """Raise PyTorch's error for what one cannot differentiate with respect to."""
    if not isinstance(t, (Handle, GradientEdge)):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {name_of_type(t)}"
        )


def _kind(out: Any) -> Any:
    """Give what is known of an output or of the gradient at an edge: shape and dtype."""
    return out.node.output_kinds()[out.output_nr] if isinstance(out, GradientEdge) else out._v


def make_grads(outputs: Sequence[Any], grads: Sequence[Any], batched: bool = False) -> list[Any]:
    """Make one gradient an output; ones for scalars without; more are left out, as PyTorch does.

    Raises:
      RuntimeError: for too few, after those that are there have been looked at.
    """
    made: list[Any] = []
    for out, grad in zip(outputs, grads, strict=False):
        if not isinstance(out, (Handle, GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
        if grad is None:
            made.append(_implicit(out))
            continue
        if not isinstance(grad, Handle):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
        kind, shape = _kind(out), grad._v.shape
        if batched and not all(shape[:1] or (0,)):
            grad[0]  # type: ignore[index]  # raises
        if tuple(shape[1:] if batched else shape) != tuple(kind.shape):
            _mismatch(_place(grads, grad), _place(outputs, out), grad, out, batched)
        dtype = grad._v.dtype
        if (kind.dtype.kind == "c") != (dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{_place(grads, grad)}] has a dtype of "
                f"{dtype_of(dtype)} and output[{_place(outputs, out)}] has a dtype of "
                f"{dtype_of(kind.dtype)}."
            )
        made.append(grad if dtype == kind.dtype else grad.to(dtype_of(kind.dtype)))
    if len(made) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(made)} gradients")
    return made


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Size, Size]:
    """Give the shapes of `output` and of `grad`, without its batch dimension."""
    if isinstance(output, GradientEdge) and is_grads_batched:
        raise RuntimeError("Batched grads are not supported with GradientEdge")
    shape = grad._v.shape
    return Size(_kind(output).shape), Size(shape[1:] if is_grads_batched else shape)


def _place(among: Sequence[Any], x: Any) -> int:
    """Find `x`, as PyTorch does: the first that equals it, if they can say so."""
    return list(among).index(x)


def _mismatch(i: int, k: int, grad: Any, out: Any, batched: bool) -> None:
    want, have = _calculate_shape(out, grad[0] if batched else grad, batched)
    if not batched:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {have} and output[{k}] has a "
            f"shape of {want}."
        )
    raise RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
        "batch dimension. The sizes of the remaining dimensions are expected to match the shape "
        f"of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
        f"{have} and output[{k}] has a shape of {want}. If you only want some tensors in "
        "`grad_output` to be considered batched, consider using vmap."
    )


def _implicit(out: Any) -> Any:
    """Make the gradient of a scalar that the user left out; None if it needs none."""
    if not isinstance(out, GradientEdge) and not out.requires_grad:
        return None
    kind = _kind(out)
    if any(n != 1 for n in kind.shape):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    check_real(kind.dtype)
    return replay_backward.ones_like(kind)


def check_real(dtype: Any) -> None:
    """Raise PyTorch's error where a gradient of one would have to be complex."""
    if dtype.kind not in "fV":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {dtype_of(dtype)}"
        )


def edge_to(t: Any, i: int, root: bool = True) -> tuple[Any, int]:
    if isinstance(t, GradientEdge):
        return (t[0], t[1])
    if not t.requires_grad or (root and t._v.role == NOWHERE and t._stale is None):
        raise RuntimeError(
            f"element {i} of tensors does not require grad and does not have a grad_fn"
        )
    return gradient_edge(t)
