"""`func.vmap`: a function of one example becomes one of many, by `jax.vmap`.

The function is recorded on the first example; the steps that it took are one op, mapped over
all examples. Data-dependent control flow would see the first example only, so it raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from leafax.functional.program.op import TABLE

from .._autograd.extensions import extensions
from .._core.grad_modes import within
from .._core.handle import Handle
from .._core.transforms_running import running_transform
from .._core.trie import Mode, local
from .._dispatch.record import apply
from .._ops.creation.generator import all_go_back, all_places
from .._storage.enter import enter
from .._storage.shared_storage import of_mode
from .._tracing.loop_cuts import uncut
from ._aliases import Alias, Views, find_alias, find_tied_results
from ._example_writes import Write
from ._level import Level
from ._running import running
from ._towers import flatten_tangents, unflatten_tangents
from ._trees import flatten, unflatten
from ._vmap_dims import (
    check_out_dims,
    check_place,
    find_batch_size,
    find_mapped_dims,
    find_result_dims,
    function_name,
)


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Map `func` over a dimension of its arguments.

    Args:
      func: a function of tensors that returns a tree of tensors.
      in_dims: the dimension of each argument that is mapped, None for none; a number, or a
        tree that is a prefix of the arguments.
      out_dims: where the mapped dimension goes in the results.
      randomness: "error" raises for random ops; "different" draws anew for every example,
        "same" gives all of them the same numbers.
      chunk_size: how many examples are mapped at a time; None maps all at once.

    Raises:
      RuntimeError: if `func` looks at values that differ from example to example, or writes
        them into a tensor that does not.

    >>> import leafax
    >>> leafax.func.vmap(leafax.dot)(leafax.ones(3, 2), leafax.ones(3, 2))
    tensor([2., 2., 2.])
    """
    return map_examples(func, in_dims, out_dims, randomness, chunk_size)


def map_examples(
    func: Callable[..., Any], in_dims: Any, out_dims: Any = 0, randomness: str = "error",
    chunk_size: int | None = None, older: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Map `func` as `vmap` does, or PyTorch's older one."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        check_out_dims(func, out_dims)
        leaves, dims, treedef = find_mapped_dims(func, in_dims, args)
        size = find_batch_size(leaves, dims)
        call = functools.partial(_map, func, treedef, dims, out_dims, (randomness, older), kwargs)
        sizes = [size] if chunk_size is None else _chunk_sizes(size, chunk_size)
        if len(sizes) < 2:
            return call(leaves, size)
        return _chunks(call, leaves, dims, sizes, func, out_dims, randomness)

    return wrapped


def _map(
    func: Any, treedef: Any, dims: list[Any], out_dims: Any, kind: tuple[str, bool], kwargs: Any,
    leaves: list[Any], size: int,
) -> Any:  # fmt: skip
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            enter(x, local.trace)
    mode = local.mode  # saved-tensor hooks see no single examples: they stay outside
    with uncut(), running_transform(differentiates=False):
        level = Level(size, *kind, number=len(running.levels) + 1)
        firsts = [
            level.take_example(x, d) if d is not None else x
            for x, d in zip(leaves, dims, strict=True)
        ]
        level.begin()
        with running.entered(level):
            with within(Mode.of(mode.enabled, mode.inference, mode.autocast, False)):
                output = func(*unflatten(treedef, firsts), **kwargs)
            if not level.region.intact():
                raise RuntimeError("vmap: the program was run by something in the mapped function")
            outs, structure = flatten(output)
            places = find_result_dims(func, out_dims, output, structure)
            _check_outputs(func, outs, places, level)
            aliases = [
                None if d is None else _alias(o, d, level)
                for o, d in zip(outs, places, strict=True)
            ]
            own = [k for k, d in enumerate(places) if d is not None and aliases[k] is None]
            of_others = find_tied_results(outs, own) if len(own) > 1 else {}
        parts: list[Any] = []
        for k in own:
            check_place(outs[k], places[k])
            if k not in of_others:
                parts += flatten_tangents(outs[k])
        made = iter(level.map(parts, [0] * len(parts)))
        # Each by itself: it may be that it, and its batch, do not differ in outer maps.
        written = [Write(e, level) for e in level.examples if e.writes]
    batches = {
        k: of_mode(unflatten_tangents(outs[k], made), outs[k]._v.inference)
        for k in own
        if k not in of_others
    }
    for k, (of, how) in of_others.items():
        aliases[k] = how._replace(batch=batches[of])
    for w in written:
        w.carry()
    views = Views()
    results = [
        _placed(batches.get(k, o), d) if a is None else views.view(a, d, size)
        for k, (o, d, a) in enumerate(zip(outs, places, aliases, strict=True))
    ]
    return unflatten(structure, results)


def _placed(result: Any, dim: int | None) -> Any:
    """Move the examples of a result from dimension 0 to where they go: a view."""
    return result if dim is None or dim % result.dim() == 0 else result.movedim(0, dim)


def _alias(out: Any, dim: int, level: Level) -> Alias | None:
    """Tell how a result can be had from the batches without computing it."""
    if not -out.dim() - 1 <= dim <= out.dim():
        return None  # `Level.map` raises
    found = find_alias(out, level.examples)
    if found is None and dim % (out.dim() + 1) == 0 and not local.mode.dual:
        return None if level.is_batched(out) else Alias(out, None, out, (), False)
    return found


def _check_outputs(func: Any, outs: list[Any], places: list[Any], level: Level) -> None:
    name = function_name(func)
    for o, d in zip(outs, places, strict=True):
        if d is None:
            if isinstance(o, Handle) and running.innermost(o) is not None:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is "
                    "None"
                )
        elif not isinstance(o, Handle):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(o)}. Did "
                "you mean to set out_dims= to None for output?"
            )


def _chunk_sizes(size: int, chunk: int) -> list[int]:
    whole = [chunk] * (size // chunk)
    return [*whole, size % chunk] if size % chunk else whole


def _chunks(
    call: Any, leaves: list[Any], dims: list[Any], sizes: list[int], func: Any, out_dims: Any,
    randomness: str,
) -> Any:  # fmt: skip
    """Map some examples at a time, and put the results together."""
    found = []
    before = all_places() if randomness == "same" else None
    for start, n in zip(accumulate(sizes, initial=0), sizes, strict=False):
        if before is not None:  # the same numbers for the examples of all chunks
            all_go_back(before)
        part = [
            x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims, strict=True)
        ]
        found.append(call(part, n))
    flat = [flatten(f)[0] for f in found]
    structure = flatten(found[0])[1]
    places = find_result_dims(func, out_dims, found[0], structure)
    joined = [
        pieces[0] if d is None else apply(TABLE["cat"], tuple(pieces), d)
        for pieces, d in zip(zip(*flat, strict=True), places, strict=True)
    ]
    return unflatten(structure, joined)


def _map_rows(fn: Callable[..., list[Any]], tensors: list[Any]) -> list[Any]:
    """Map `fn` over the rows of tensors, as `autograd.grad(is_grads_batched=True)` does."""
    return list(map_examples(fn, 0, older=True)(*tensors))


extensions.map_rows = _map_rows
