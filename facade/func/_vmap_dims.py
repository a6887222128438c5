"""The dims of a `vmap`: which of the arguments are mapped, and where they go in the results."""

from __future__ import annotations

import functools
from typing import Any

from .._core.handle import Handle
from ._trees import flatten, flatten_up_to, spell


def function_name(fn: Any) -> str:
    if hasattr(fn, "__name__"):
        return str(fn.__name__)
    if isinstance(fn, functools.partial):
        return f"functools.partial({function_name(fn.func)}, ...)"
    return repr(fn)


def find_mapped_dims(
    fn: Any, in_dims: Any, args: tuple[Any, ...]
) -> tuple[list[Any], list[Any], Any]:
    """Return the arguments' leaves, the mapped dimension (or None) of each, and their structure."""
    name = function_name(fn)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            head + "expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, treedef = flatten(args)
    dims = spread_dims(in_dims, args)
    if dims is None:
        raise ValueError(
            head + "in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {spell(flatten(in_dims)[1])} but inputs has structure {spell(treedef)}."
        )
    fixed: list[Any] = []
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            fixed.append(None)
            continue
        if not isinstance(d, int):
            raise ValueError(
                head + f"Got in_dim={d} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if not isinstance(x, Handle):
            raise ValueError(
                head + f"Got in_dim={d} for an input but the input is of type {type(x)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        n = x.dim()  # type: ignore[attr-defined]
        if not -n <= d < n:
            raise ValueError(
                head + f"Got in_dim={d} for some input, but that input is a Tensor of "
                f"dimensionality {n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
            )
        fixed.append(d % n)
    return leaves, fixed, treedef


def spread_dims(dims: Any, tree: Any) -> list[Any] | None:
    """Spread `dims`, a prefix of `tree`, over its leaves; None if it does not fit."""
    given, prefix = flatten(dims)
    try:
        parts = flatten_up_to(prefix, tree)
    except ValueError:
        return None
    return [d for d, part in zip(given, parts, strict=True) for _ in flatten(part)[0]]


def find_batch_size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def check_place(out: Any, dim: int) -> None:
    n = out.dim() + 1
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )


def check_out_dims(func: Any, out_dims: Any) -> None:
    for d in flatten(out_dims)[0]:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({function_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an "
                "int, None or a python collection of ints representing where in the outputs the "
                "vmapped dimension should appear."
            )


def find_result_dims(func: Any, out_dims: Any, output: Any, structure: Any) -> list[Any]:
    if isinstance(output, Handle):
        one = isinstance(out_dims, tuple) and len(out_dims) == 1
        places = spread_dims(out_dims[0] if one else out_dims, output)
    else:
        places = spread_dims(out_dims, output)
    if places is None:
        raise ValueError(
            f"vmap({function_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            "compatible with the structure of `outputs`. out_dims has structure "
            f"{spell(flatten(out_dims)[1])} but outputs has structure {spell(structure)}."
        )
    return places
