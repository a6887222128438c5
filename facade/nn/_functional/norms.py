"""Normalizations, which write running statistics into the buffers given."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._core.memory_format import channels_last, channels_last_3d, is_laid_out
from ..._core.trie import NOWHERE, local, resting
from ..._core.vmap_checks import refuse_statistics
from ..._dispatch.check_call import check
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._storage.autograd_roles import alias, keep_edge
from ..._storage.enter import enter
from ..._storage.write import write

_F = "nn.functional."


def _verify_batch_size(size: Any) -> None:
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _overwrite(buffer: Any, new: Any, counts: bool = False) -> None:
    """Write the value of `new` into `buffer`, without history.

    Args:
      counts: in the version counter. PyTorch's kernel for batches leaves it alone: a graph that
        saved the buffer before may still run backward. An example of a `vmap` always counts, for
        the batch to be written.
    """
    trace, value = local.trace, new._v
    value = alias(trace, value, resting(value.aval, False, NOWHERE, value.inference))
    old = enter(buffer, trace)
    if old.requires_grad and old.role:
        value = keep_edge(trace, value, old)
        if value.edge in trace.sources:
            trace.sources[value] = trace.sources[value.edge]
    write(buffer, value, counts=counts or local.vmap is not None)


def _with_statistics(op: str, input: Any, stats: tuple[Any, Any], *args: Any) -> Any:
    """Apply an op that returns new statistics behind its result, and keep them."""
    weight, bias, *rest = args
    if op == "_native_batch_norm" and not input.numel() and input.dim() > 1:
        out = input.clone()  # keeps the graph, as ATen says
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    made = apply(TABLE[_F + op], input, weight, bias, *stats, *rest)
    if not isinstance(made, tuple):
        return made
    refuse_statistics(input, *stats)
    for old, new in zip(stats, made[1:], strict=True):
        _overwrite(old, new, op == "_native_instance_norm")
    return made[0]


@in_one_step
def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Standardize each channel of `(N, C, ...)`, by the batch if `training`.

    Running statistics, if given, are updated in place with `momentum` while training and used
    instead of the batch's otherwise.
    """
    if training:
        _verify_batch_size(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if input.dim() == 1 and input.numel():
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    stats = (running_mean, running_var)
    return _with_statistics(
        "_native_batch_norm", input, stats, weight, bias, bool(training), momentum, eps
    )


@in_one_step
def counted_batch_norm(
    input: Any, count: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Count a batch, and standardize it by `batch_norm`: one step of a layer in training."""
    count.add_(1)
    return batch_norm(input, running_mean, running_var, weight, bias, True, momentum, eps)


def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """`batch_norm`, with the batch's means and reciprocal deviations (empty if not training)."""
    if not input.numel():
        raise RuntimeError(
            "input tensor must have at least one element, but got input_sizes = "
            f"{list(input.shape)}"
        )
    stats = (running_mean, running_var)
    rest = (weight, bias, bool(training), momentum, eps)
    out = _with_statistics("_native_batch_norm", input, stats, *rest)
    if not training:
        return out, input.new_empty(0), input.new_empty(0)
    return (out, *apply(TABLE["_batch_norm_statistics"], input, eps))


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Standardize each channel of each sample."""
    if use_input_stats:
        spatial = 1
        for n in input.size()[2:]:
            spatial *= n
        if spatial == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    given, stats = (weight, bias), (running_mean, running_var)
    rest = (bool(use_input_stats), momentum, eps)
    check(TABLE[_F + "_native_instance_norm"], (input, *given, *stats, *rest), {})
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    n, c = input.shape[:2]
    weight, bias = (None if t is None else t.repeat(n) for t in given)
    each: Any = tuple([None if t is None else t.repeat(n) for t in stats])
    flat = input.contiguous().view(1, n * c, *input.shape[2:])
    out = _with_statistics("_native_batch_norm", flat, each, weight, bias, *rest)
    if use_input_stats:
        with no_grad():
            for old, new in zip(stats, each, strict=True):
                if old is not None:
                    old.copy_(new.view(n, c).mean(0))  # which counts as a write
    return out.view(input.shape)


@in_one_step
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Standardize groups of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return group_normalized(input, num_groups, weight, bias, eps)


def group_normalized(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """`group_norm`, of groups of any size."""
    sizes = (input.size(0), input.size(1), math.prod(input.shape[2:]), num_groups)
    return apply(TABLE["native_group_norm"], in_order(input), weight, bias, *sizes, eps)[0]


def in_order(input: Any) -> Any:
    """Return what group norms compute of: a copy, unless it is row-major or channels last."""
    last = {4: channels_last, 5: channels_last_3d}.get(input.dim())
    if last is not None and is_laid_out(input.shape, input.stride(), last):
        return input
    return input.contiguous()


@in_one_step
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Standardize over the last dims, `normalized_shape`, then scale and shift."""
    if isinstance(normalized_shape, int):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int"
        )
    shape = tuple(normalized_shape)
    return apply(TABLE[_F + "layer_norm"], input, shape, weight, bias, eps)


@in_one_step
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Any:
    """Divide by the root mean square over the last dims, then scale."""
    return apply(TABLE["rms_norm"], input, tuple(normalized_shape), weight, eps)
