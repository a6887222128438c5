"""Watching submodules of an `nn.Module`: its calls run in Python, so hooks see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax import nn

from .._flax.child import FlaxChild, FlaxPart
from .._inside.watch import Watched, dotted
from .._models.select import matching, near
from .recomputed import again


def watch(module: nn.Module, what: tuple[Any, ...], grad: bool) -> Watched:
    """Keep the activations of submodules in each call from now on, as `Looking.watch` does.

    Raises:
      ValueError: nothing matches, or what does lies in a Flax model.
    """
    watched = Watched(tuple(map(dotted, what)), grad)
    parts = {path: m for path, m in module.named_modules() if path}
    called = [path for path, m in parts.items() if not _is_inside(m)]
    for pattern in watched.patterns:
        if matching((pattern,), called):
            continue
        text = str(getattr(pattern, "pattern", pattern))
        inside = sorted(matching((pattern,), [path for path in parts if path not in called]))
        if inside:
            raise ValueError(
                f"`{inside[0]}` lies in a Flax model, which watches its own submodules: call "
                f"`watch` on that model"
            )
        raise ValueError(f"`{text}` matches no submodule; the nearest are {near(text, called)}")
    handles = [module.register_forward_pre_hook(_forgetting(watched, module))]
    for path in sorted(matching(watched.patterns, called)):
        handles.append(parts[path].register_forward_hook(_seeing(watched, path, parts[path])))

    def stop() -> None:
        for handle in handles:
            handle.remove()

    watched._stop = stop
    return watched


def _is_inside(module: Any) -> bool:
    return isinstance(module, FlaxPart) and not isinstance(module, FlaxChild)


def _forgetting(watched: Watched, module: nn.Module) -> Callable[..., None]:
    def forget(called: Any, args: Any) -> None:
        if called is module:  # a copy has the same hooks
            watched.every.clear()

    return forget


def _seeing(watched: Watched, path: str, module: nn.Module) -> Callable[..., Any]:
    def see(called: Any, args: Any, out: Any) -> Any:
        return watched.see(path, out) if called is module and not again.get() else None

    return see
