"""PyTorch's sample database: entries' samples for torch and for leafax, and their forms."""

from __future__ import annotations

import dataclasses
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal import common_utils

import leafax

MAX_NUMEL = 2000
# The database looks for its own test on the stack, which took half of the time of tests here.
common_utils.extract_test_fn = lambda: None


class Mismatch(AssertionError):
    """A difference between leafax's answer and torch's."""


def lookup(name: str) -> Callable[..., Any] | None:
    """leafax's function of that name."""
    found: Any = leafax
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def every_sample(entry: Any, dtype: torch.dtype) -> Iterator[Any]:
    """All samples of an entry, the same ones each time."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    grads = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
    yield from entry.sample_inputs("cpu", dtype, requires_grad=grads)


def samples(entry: Any, dtype: torch.dtype, limit: int) -> Iterator[tuple[int, Any]]:
    """Small samples (and their numbers) that differ in ranks or in arguments' names and kinds."""
    seen: set[Any] = set()
    for number, sample in enumerate(every_sample(entry, dtype)):
        parts = (sample.input, sample.args, sample.kwargs)
        if numel(parts) > MAX_NUMEL:
            continue
        kind = _kind(parts)
        if kind in seen:
            continue
        seen.add(kind)
        yield number, sample
        if len(seen) >= limit:
            return


def numel(x: Any) -> int:
    if isinstance(x, torch.Tensor):
        return x.numel()
    if isinstance(x, dict):
        return sum(numel(y) for y in x.values())
    return sum(numel(y) for y in x) if isinstance(x, (tuple, list)) else 0


def _kind(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return ("t", x.dim(), x.dtype, x.requires_grad, 0 in x.shape)
    if isinstance(x, dict):
        return tuple((k, _kind(v)) for k, v in sorted(x.items()))
    if isinstance(x, (tuple, list)):
        return (type(x), len(x), *[_kind(y) for y in x[:3]])
    return x if isinstance(x, (bool, str)) else type(x)


def to_leafax(x: Any, tensors: list[Any]) -> Any:
    """Sample arguments with leafax tensors; those that require grad go to `tensors`."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise Mismatch("sparse")
        out = leafax.from_numpy(array_of(x))
        if x.dtype is torch.bfloat16:
            out = out.to(leafax.bfloat16)
        if x.requires_grad:
            out.requires_grad_()
            tensors.append(out)
        return out
    if isinstance(x, torch.dtype):
        return getattr(leafax, str(x).removeprefix("torch."))
    if isinstance(x, torch.device) or isinstance(x, (torch.layout, torch.memory_format)):
        return None
    if isinstance(x, torch.nn.LinearCrossEntropyOptions):
        return leafax.nn.LinearCrossEntropyOptions(**dataclasses.asdict(x))
    if isinstance(x, torch.nn.PairwiseDistance):
        distance = leafax.nn.functional.pairwise_distance
        return lambda a, b: distance(a, b, x.norm, x.eps, x.keepdim)
    if isinstance(x, dict):
        return {k: to_leafax(v, tensors) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[to_leafax(y, tensors) for y in x])
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (tuple, list)):
        return type(x)(to_leafax(y, tensors) for y in x)
    if isinstance(x, torch.Generator):
        return None
    return x


def array_of(x: torch.Tensor) -> np.ndarray:
    x = x.detach().resolve_conj().resolve_neg()
    x = x.float() if x.dtype is torch.bfloat16 else x
    return np.array(x.numpy(force=True))


def to_torch(x: Any, tensors: list[Any]) -> Any:
    """Sample arguments with fresh leaves; those that require grad go to `tensors`."""
    if isinstance(x, torch.Tensor):
        out = x.detach().clone(memory_format=torch.contiguous_format)
        out.requires_grad_(x.requires_grad)
        if x.requires_grad:
            tensors.append(out)
        return out
    if isinstance(x, dict):
        return {k: to_torch(v, tensors) for k, v in x.items()}
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (tuple, list)):
        return type(x)(to_torch(y, tensors) for y in x)
    return x


def flat(x: Any) -> list[Any]:
    """The leaves of nested results."""
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in flat(y)]
    return [x]


DROPPED = ("device", "layout", "memory_format", "pin_memory", "generator")


def kwargs_of(sample: Any) -> dict[str, Any]:
    """The sample's keyword arguments for leafax."""
    return {k: v for k, v in to_leafax(sample.kwargs, []).items() if k not in DROPPED}


def _ours(entry: Any) -> Callable[..., Any] | None:
    """leafax's function; where torch's entry is Python code, the same code on leafax."""
    code = entry.op
    if isinstance(code, types.FunctionType) and code.__module__.startswith("torch.testing"):
        scope = dict(code.__globals__, torch=leafax, wrapper_set_seed=lambda f, *a, **k: f(*a, **k))
        if any(name.startswith("reference_") for name in code.__code__.co_names):
            return None
        return types.FunctionType(
            code.__code__, scope, code.__name__, code.__defaults__, code.__closure__
        )
    return lookup(entry.name)


def variants(entry: Any) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Function, method and in-place forms that both libraries have."""
    ours = _ours(entry)
    theirs = entry.op
    methods = (entry.name, entry.name + "_")
    if lookup(entry.name) is None and not any(hasattr(leafax.Tensor, m) for m in methods):
        return
    if ours is not None and not (_is_method(entry) and ours is lookup(entry.name)):
        yield "function", ours, theirs
    method = getattr(leafax.Tensor, entry.name, None)
    if method is not None and callable(method):
        their_method = entry.method_variant or (theirs if _is_method(entry) else None)
        if their_method is not None:
            yield "method", method, their_method
    if entry.inplace_variant is not None:
        name = getattr(entry.inplace_variant, "__name__", "")
        in_place = getattr(leafax.Tensor, name, None)
        if in_place is not None and callable(in_place):
            yield "inplace", in_place, entry.inplace_variant


def _is_method(entry: Any) -> bool:
    return hasattr(torch.Tensor, entry.name) and not hasattr(torch, entry.name)


def describe(sample: Any) -> str:
    """The sample in a line: dtypes and shapes."""

    def one(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype)[6:]}{list(x.shape)}"
        if isinstance(x, (tuple, list)):
            return "(" + ", ".join(one(y) for y in x) + ")"
        return repr(x)

    parts = [one(sample.input), *map(one, sample.args)]
    parts += [f"{k}={one(v)}" for k, v in sample.kwargs.items()]
    return ", ".join(parts)[:200]
