"""An `nn.Module` as an nnx module: its parameters are the variables."""

from __future__ import annotations

from typing import Any

from flax import nnx

from leafax import nn

from .from_module import array_of, call, check_module, members_of

_OWN = ("rngs", "deterministic")


class Buffer(nnx.Variable[Any]):
    """State of a `leafax.nn.Module` that is no parameter."""


_KINDS: dict[str, Any] = {"parameter": nnx.Param, "statistic": nnx.BatchStat, "buffer": Buffer}


class Variables(nnx.Module):
    """The variables right below one path of a `leafax.nn.Module`."""


class FromModule(nnx.Module):
    """A `leafax.nn.Module` inside of nnx; `from_module` makes it.

    Attributes:
      deterministic: it evaluates; `nnx.Module.train()` and `eval()` switch it.
    """

    def __init__(self, module: nn.Module, rngs: nnx.Rngs | None) -> None:
        self._module = module
        self.deterministic = not module.training
        self.rngs = None if rngs is None else rngs.dropout.fork()
        for path, (kind, t) in members_of(module).items():
            *parts, name = path.split(".")
            if [*parts, name][0] in (*_OWN, *dir(nnx.Module)):
                raise ValueError(
                    f"`{path}` cannot be a variable in nnx: modules there have a `"
                    f"{[*parts, name][0]}` of their own"
                )
            node: Any = self
            for part in parts:
                if not hasattr(node, part):
                    setattr(node, part, Variables())
                node = getattr(node, part)
            setattr(node, name, _KINDS[kind](array_of(t)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with the variables for its tensors."""
        variables = {path: self._variable(path) for path in members_of(self._module)}
        arrays = {path: variable.get_value() for path, variable in variables.items()}
        out, after = call(
            self._module, arrays, args, kwargs, train=not self.deterministic, key=self._key
        )
        for path, variable in variables.items():
            if after[path] is not arrays[path] and not isinstance(variable, nnx.Param):
                variable.set_value(after[path])
        return out

    def _variable(self, path: str) -> Any:
        node: Any = self
        for part in path.split("."):
            node = getattr(node, part)
        return node

    def _key(self) -> Any:
        if self.rngs is None:
            raise ValueError(
                "the module draws random numbers while it trains: give `from_module` a stream of "
                "keys, `rngs=nnx.Rngs(0)`"
            )
        return self.rngs()


def from_module(module: nn.Module, *, rngs: nnx.Rngs | None = None) -> FromModule:
    """Make an nnx module of a `leafax.nn.Module`.

    Its parameters are `nnx.Param`s by the attributes of their paths, statistics of batch norms
    `nnx.BatchStat`s. They begin with the values that the module has, which is not written to. A
    call runs the module under JAX's trace: `nnx.jit` and `nnx.grad` take it. It can be a part of
    other nnx modules, and of `leafax.adapters.nnx.Model`.

    Args:
      module: a module whose parameters all have shapes.
      rngs: what random ops draw from, by a stream `dropout` of its own.

    Raises:
      TypeError: it is none of `leafax.nn`.
      ValueError: an attribute of nnx modules is the name of one of its tensors.

    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> from leafax import nn
    >>> from leafax.adapters.nnx import from_module
    >>> inside = from_module(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
    >>> gradients = nnx.grad(lambda m: m(jnp.ones((2, 3))).sum())(inside)
    >>> gradients["2"]["bias"].get_value()
    Array([2.], dtype=float32)
    """
    check_module(module)
    return FromModule(module, rngs)
