"""PyTorch's `torch.autograd.forward_ad`: dual tensors, which carry a tangent through ops."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._autograd.forward_mode import dual as _dual
from .._core import dual_levels as _levels
from .._core.grad_modes import Scope as _Scope
from .._core.handle import Handle
from .._core.trie import local
from .._core.vmap_checks import refuse_in_vmap
from .._dispatch.tangents import get_tangent

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """Hold the value of a dual tensor, and its tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open a level; returns its number, 0.

    Raises:
      RuntimeError: if one is open already.
    """
    global _current_level
    if _levels.opened.levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.BY_USERS.append(_levels.enter_level())
    _current_level += 1
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level; the tangents of its dual tensors are gone."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    _levels.BY_USERS.pop()
    _levels.exit_level()
    _current_level = level - 1


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Make a tensor with the values of `tensor` that carries `tangent` through what follows.

    Args:
      tensor, tangent: floating point or complex, of the same shape. The result shares the
        storage of `tensor`; `unpack_dual` gives back `tangent` itself.

    Raises:
      RuntimeError: outside of a level; for a tensor that has a tangent; for another shape.
      ValueError: for other dtypes.

    >>> import leafax
    >>> from leafax.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(leafax.tensor(2.0), leafax.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor(4.)
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    refuse_in_vmap("_make_dual", tensor, tangent)
    return made_dual(tensor, tangent, level)


def made_dual(tensor: Any, tangent: Any, level: int | None = None) -> Any:
    """Make a dual tensor of what is known to fit, also inside `vmap`."""
    if level is None:
        level = _current_level
    if level and level >= len(_levels.BY_USERS):
        raise RuntimeError("Invalid level given to _make_dual")
    return _dual.make_dual(tensor, tangent, _number(level))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value of a dual tensor, which shares its storage, and its tangent or None."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Handle):
        raise TypeError(
            "_unpack_dual(): argument 'dual' (position 1) must be Tensor, not "
            f"{type(tensor).__name__}"
        )
    refuse_in_vmap("_unpack_dual", tensor)
    if level and level >= len(_levels.BY_USERS):
        raise RuntimeError("Invalid level given to _fw_primal")
    number = _number(level)
    along = get_tangent(tensor, number) if number in local.mode.dual else None
    levels = tuple([n for n in local.mode.dual if n != number])
    return UnpackedDualTensor(_dual.view_primal(tensor, levels), along)


def _number(level: int) -> int:
    return _levels.BY_USERS[level] if level < len(_levels.BY_USERS) else level + 1


class dual_level(_Scope):
    """Open a level for a block or a function: where it ends, tangents end.

    >>> import leafax.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level() as level:
    ...     level
    0
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    """Tell if ops carry tangents on; within `_set_fwd_grad_enabled(False)` they do not."""
    return _levels.opened.enabled and not local.mode.inference


_set_fwd_grad_enabled = _levels.tangents_enabled
