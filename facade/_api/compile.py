"""`leafax.compile`: functions and modules whose calls are recorded once and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._replay.compiled import CompiledFunction
from ..nn.modules.module import Module


class OptimizedModule(Module):
    """A module whose calls are compiled; all else is that of the module itself.

    Args:
      mod: the module.
      compiled: what its calls go to.
    """

    _orig_mod: Module

    def __init__(self, mod: Module, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_compiled"] = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    forward = __call__

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or "_modules" not in self.__dict__:
            super().__setattr__(name, value)
        elif name == "training":
            self.__dict__["training"] = value
            if "_orig_mod" in self._modules:
                self._orig_mod.training = value
        else:
            setattr(self._orig_mod, name, value)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod, self.__dict__["_compiled"])

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


def compile(  # noqa: A001 # PyTorch's name
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    check: bool = False,
) -> Any:
    """Compile a training step, an inference function or a module: later calls run no Python of it.

    A call is recorded for each signature of its arguments (shapes, dtypes, flags) until two came to
    the same; from then on it goes from the arguments straight to the executable. Parameters,
    buffers, gradients, optimizers' states and generators are read and written anew at each call,
    and the numbers of optimizers (a learning rate that changes) are inputs. Whatever else the
    function can reach in Python must be as it was, or the call is recorded anew. A call that
    returns tensors with a graph becomes one step of the program that goes on.

    What cannot be replayed runs as it is: a value that is looked at inside, a Python object that
    the call changes. `leafax.explain()` tells why.

    Args:
      model: a function or an `nn.Module`; None returns a decorator.
      fullgraph: raise where a call cannot be replayed.
      check: run each replayed call plainly too, and compare all that it computes.
      dynamic, backend, mode, options: accepted; XLA compiles each shape.
      disable: return `model` as it is.

    Returns:
      The compiled function, or for a module an `OptimizedModule` around it.

    Raises:
      RuntimeError: both `mode` and `options` are given.

    >>> import leafax
    >>> w = leafax.ones(2, requires_grad=True)
    >>> optimizer = leafax.optim.SGD([w], lr=0.25)
    >>> @leafax.compile
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss.detach()
    >>> [step(leafax.ones(2)).item() for _ in range(4)]
    [2.0, 1.5, 1.0, 0.5]
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    del dynamic, backend, mode, options
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, disable=disable, check=check)
    if disable:
        return model
    if isinstance(model, OptimizedModule):
        return model
    compiled = CompiledFunction(model, fullgraph, check)
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled
