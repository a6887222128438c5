"""Submodules of Flax modules that are rematerialised in backward, inside of a traced call."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

import jax
from flax import linen, nnx

from leafax.functional.program.paths import paths as paths_of

from .._models.recomputing import on_arrays


def linen_recomputed(paths: Collection[str]) -> contextlib.AbstractContextManager[None]:
    """Rematerialise the linen modules at these paths, by `nn.remat`, while a call is traced."""
    inside: set[str] = set()

    def intercept(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        path = ".".join(context.module.path)
        if context.method_name != "__call__" or path not in paths or path in inside:
            return call(*args, **kwargs)

        def called(module: Any, args: Any, kwargs: Any) -> Any:
            inside.add(path)
            try:
                return type(module).__call__(module, *args, **kwargs)
            finally:
                inside.discard(path)

        function, arrays, result = on_arrays(called, args, kwargs)
        again: Any = linen.remat(function)
        return result(again(context.module, arrays))

    return linen.intercept_methods(intercept) if paths else contextlib.nullcontext()


class NnxRecomputed:
    """Rematerialises the nnx modules at some paths, as a tagger of their calls."""

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = paths

    def __call__(self, path: str, cls: type, call: Any, args: Any, kwargs: Any) -> Any:
        if path not in self.paths:
            return call(*args, **kwargs)
        module = call.args[0]
        graphdef, state = nnx.split(module)
        leaves, treedef = jax.tree.flatten(state)
        names: list[str] = paths_of(state)
        written: list[str] = []

        def called(leaves: Any, args: Any, kwargs: Any) -> Any:
            copy: Any = nnx.merge(graphdef, jax.tree.unflatten(treedef, leaves))
            out = call.func(copy, *args, **kwargs)
            after_state = nnx.state(copy)
            after = dict(zip(paths_of(after_state), jax.tree.leaves(after_state), strict=True))
            before = dict(zip(names, leaves, strict=True))
            written[:] = [n for n in names if after.get(n, before[n]) is not before[n]]
            return out, [after[n] for n in written]

        function, arrays, result = on_arrays(called, args, kwargs)
        out, changed = result(jax.checkpoint(function)(leaves, arrays))
        if written:
            new = dict(zip(names, leaves, strict=True)) | dict(zip(written, changed, strict=True))
            nnx.update(module, jax.tree.unflatten(treedef, list(new.values())))
        return out
