"""PyTorch's older `vmap`, which its own tests still call: `func.vmap` with narrower arguments.

Functions return a tensor or a tuple of them, dims count from the front, and None may be among the
results where `autograd.grad` gives it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ._core.handle import Handle
from .func._trees import flatten
from .func._vmap import map_examples
from .func._vmap_dims import function_name, spread_dims


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`_vmap`, with the warning that `torch.vmap` is meant to be used."""
    text = "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Map `func` over a dimension of its arguments.

    Args:
      func: a function of tensors that returns a tensor or a tuple of tensors.
      in_dims: the dimension of each argument that is mapped, None for none.
      out_dims: where the mapped dimension goes in the results, a number or one a result.
      allow_none_pass_through: None may be among the results, and stays there.

    Raises:
      ValueError: for dims, arguments or results of another kind.
    """
    name = function_name(func)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        ints = isinstance(out_dims, tuple) and all(isinstance(d, int) for d in out_dims)
        if not (ints or isinstance(out_dims, int)):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of "
                "int representing where in the outputs the vmapped dimension should appear."
            )
        _check_in_dims(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): ", in_dims, args)
        single, missing = False, [False]

        @functools.wraps(func)
        def plain(*examples: Any) -> Any:
            nonlocal single, missing
            outs = func(*examples)
            single = isinstance(outs, Handle)
            if not (single or allow_none_pass_through):
                _check_outputs(name, outs)
            outs = (outs,) if single else outs
            missing = [out is None for out in outs]
            return tuple(out for out in outs if out is not None)

        given = iter(map_examples(plain, in_dims, older=True)(*args))
        places = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(missing)
        if len(places) != len(missing):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output "
                f"(got {len(missing)} outputs) of {name}."
            )
        outs = [
            None if none else next(given).movedim(0, d) if d else next(given)
            for none, d in zip(missing, places, strict=True)
        ]
        return outs[0] if single else tuple(outs)

    return wrapped


def _check_in_dims(head: str, in_dims: Any, args: tuple[Any, ...]) -> None:
    """Refuse dims that count from the end, which `func.vmap` takes; it refuses the rest."""
    if not isinstance(in_dims, (int, tuple)):
        return
    for x, d in zip(flatten(args)[0], spread_dims(in_dims, args) or (), strict=False):
        if isinstance(d, int) and isinstance(x, Handle) and not 0 <= d < len(x._v.shape):
            raise ValueError(
                f"{head}Got in_dim={d} for some input, but that input is a Tensor of "
                f"dimensionality {len(x._v.shape)} so expected in_dim to satisfy 0 <= in_dim < "
                f"{len(x._v.shape)}."
            )


def _check_outputs(name: str, outs: Any) -> None:
    if not isinstance(outs, tuple):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(outs)} as the "
            "return."
        )
    for k, out in enumerate(outs):
        if not isinstance(out, Handle):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(out)} for "
                f"return {k}."
            )
