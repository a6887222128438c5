"""Tensors and JAX's arrays where the other kind belongs: JAX functions that are traced, and ops."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional.program.op import Op

from .._core.trie import local


def refuse_constant() -> None:
    """Raise if a JAX function is being traced: a value read now would be baked into the program.

    Raises:
      RuntimeError: in `call_jax`, and so in the call of a Flax model.
    """
    if local.opaque is not None:
        raise RuntimeError(
            f"`{local.opaque}` uses a tensor that is not one of its arguments: the value would be "
            f"a constant of the compiled program, and no gradient would flow. Hand the tensor over "
            f"as an argument, in lists, dicts or registered classes: inside of other objects it is "
            f"not found"
        )


def refuse_arrays(op: Op, arguments: Any) -> None:
    """Raise if there are arrays of JAX where an op takes tensors.

    Raises:
      TypeError: naming the op.
    """
    if not any(isinstance(x, jax.Array) for x in jax.tree.leaves(arguments)):
        return
    if local.opaque is None:
        raise TypeError(
            f"{op.name}() takes tensors, got an array of JAX: `leafax.as_tensor(x)` holds it "
            f"without a copy"
        )
    raise TypeError(
        f"{op.name}() of leafax is called inside the JAX function `{local.opaque}`, which computes "
        f"with arrays: use JAX's own functions there, `jax.nn` or `jax.numpy`"
    )
