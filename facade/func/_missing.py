"""Names of `torch.func` that leafax does not have yet: they say so."""

from __future__ import annotations

from typing import Any


def functional_call(module: Any, parameter_and_buffer_dicts: Any, *args: Any, **kwargs: Any) -> Any:
    """PyTorch's call of a module with other parameters.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "func.functional_call is not implemented in leafax: call the Flax module's `apply` with "
        "the parameters, through leafax.call_jax"
    )


def functionalize(func: Any, *, remove: str = "mutations") -> Any:
    """PyTorch's removal of in-place writes.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "func.functionalize is not implemented in leafax: recorded programs have no in-place "
        "writes, so leafax.functional.lower gives a pure function"
    )
