"""PyTorch's parser asked before a call is recorded, for what bodies would take in silence.

`x.sum(0, 1)` suits no signature, since 1 is no bool, and an op's body would not mind. Asking costs
as much as a small op, and the answer depends on what kinds of things the arguments are: it is kept.
"""

from __future__ import annotations

from typing import Any

from .._core.handle import Handle
from .check_arguments import refused

_admitted: set[Any] = set()  # calls that suit a signature, by the kinds of their arguments


def kind(x: Any) -> Any:
    """All that the parser looks at of an argument."""
    of: Any = type(x)
    if isinstance(x, Handle):
        t: Any = x
        v = t._v
        if v.numel != 1:
            return Handle
        return (len(v.shape) == 0, v.dtype.kind, v.requires_grad)  # it may stand for a number
    if of is tuple or of is list:
        # Of a sequence it looks at the first element, or asks whether all are tensors.
        return (of, kind(x[0]), frozenset(map(type, x))) if x else of
    return (of, x.ndim) if hasattr(x, "ndim") else of


def admit(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], said: str, method: bool = False
) -> None:
    """Raise PyTorch's TypeError where it would not let a call in.

    Args:
      name: of the function, `"fft.fft"`.
      said: what messages call it.
      method: it was called as a method, whose first argument is the tensor itself.
    """
    key: Any = (name, method, *map(kind, args))
    if kwargs:
        key += tuple([(k, kind(x)) for k, x in kwargs.items()])
    if key in _admitted:
        return
    wrong = refused(name, args, kwargs, said, method)
    if wrong is not None:
        raise wrong
    _admitted.add(key)
