"""`lower`: a recorded program as a JAX function, to be looked at or taken elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax


class Lowered:
    """A pure JAX function with what JAX says of it.

    Attributes:
      fn: the function, of one array an input; it returns one array an output (a tuple for
        several). It wants 64-bit types switched on if the program has any; calling the object
        does that.
      args: arrays that the inputs held when the program was lowered.
    """

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any]) -> None:
        self.fn = fn
        self.args = tuple(args)

    def __call__(self, *arrays: Any) -> Any:
        with jax.enable_x64(True):
            return jax.jit(self.fn)(*arrays)

    @property
    def jaxpr(self) -> Any:
        """The closed jaxpr at the inputs' shapes."""
        with jax.enable_x64(True):
            return jax.make_jaxpr(self.fn)(*self.args)

    def _compiled(self) -> Any:
        with jax.enable_x64(True):
            return jax.jit(self.fn).lower(*self.args).compile()

    @property
    def hlo(self) -> str:
        """The HLO text before XLA's optimizations (StableHLO)."""
        with jax.enable_x64(True):
            return str(jax.jit(self.fn).lower(*self.args).as_text())

    @property
    def optimized_hlo(self) -> str:
        """The HLO text that XLA made of it for this device."""
        return str(self._compiled().as_text())

    def cost(self) -> dict[str, float]:
        """Return XLA's cost estimate: `flops`, `bytes accessed` and others."""
        found = self._compiled().cost_analysis()
        return dict(found[0] if isinstance(found, list) else found)

    def memory(self) -> Any:
        """Return XLA's memory analysis: bytes of arguments, outputs and temporaries."""
        return self._compiled().memory_analysis()

    def __repr__(self) -> str:
        return f"<lowered function of {len(self.args)} inputs>"


def lower(outputs: Any, inputs: Any) -> Lowered:
    """Return the pure JAX function from `inputs` to `outputs`.

    Args:
      outputs: a tensor or several, recorded and not yet run.
      inputs: the tensors that become the function's arguments; all others are constants.

    Returns:
      A `Lowered`: call it, or read its `jaxpr`, `hlo`, `cost()` and `memory()`. `jax.grad` of
      its `fn` is what `backward()` computes: `detach` is `lax.stop_gradient` there.

    Raises:
      ValueError: for an output that has run already, or an input that no output depends on.

    >>> import jax, leafax
    >>> x = leafax.tensor([1.0, 2.0], requires_grad=True)
    >>> f = leafax.functional.lower((x * x).sum(), x)
    >>> jax.grad(f.fn)(x.detach().jax())
    Array([2., 4.], dtype=float32)
    """
    many = isinstance(outputs, (tuple, list))
    outs = tuple(outputs) if many else (outputs,)
    ins = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if not outs:
        raise ValueError("`outputs` is empty: name at least one tensor")
    protocol = getattr(outs[0], "__lower__", None)
    if protocol is None:
        raise TypeError(
            f"`outputs` must be leafax tensors, got {type(outs[0]).__name__}: a JAX function "
            "needs no lowering"
        )
    fn, args = protocol(outs, ins)
    if not many:
        return Lowered(lambda *arrays: fn(*arrays)[0], args)
    return Lowered(fn, args)
