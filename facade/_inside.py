"""While JAX traces a user's function as an op, tensors from outside of it cannot be read."""

from __future__ import annotations

from ._trace import local


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
