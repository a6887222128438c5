"""One part of a training run as a checkpoint holds it: its state, and what of it trains."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import jax

from .._files.packing import pack, unpack
from .module import model_of


def packed_part(name: str, part: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Pack a part's state, and a model's masks and modes; its tensors go to `arrays`.

    Returns:
      What JSON can hold, under the part's name and `name/masks`.
    """
    made = {name: pack(part.state_dict(), arrays, name)}
    if is_model(part):
        made[f"{name}/masks"] = pack(_masks(part), arrays, f"{name}/masks")
    return made


def load_part(name: str, part: Any, packed: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Put a part back as it was packed."""
    part.load_state_dict(unpack(packed[name], arrays))
    if is_model(part):
        _mask(part, unpack(packed[f"{name}/masks"], arrays))


def undo_of(name: str, part: Any, packed: dict[str, Any], arrays: dict[str, Any]) -> Undo:
    """Return a function that makes a part what it is now, gradients too.

    Args:
      packed, arrays: the part as it is now.
    """
    grads = [(p, p.grad) for _, p in part.named_parameters()] if is_model(part) else []

    def undo() -> None:
        load_part(name, part, packed, arrays)
        for p, grad in grads:
            p.grad = grad

    return undo


Undo = Callable[[], None]


def placed_like_parameters(
    name: str, optimizer: Any, saved: Collection[str]
) -> dict[str, jax.Array]:
    """Return, for state that an optimizer may not have made yet, the parameter it belongs to.

    Args:
      saved: names of the arrays in a checkpoint.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbered = {str(n): p.detach().jax() for n, p in enumerate(parameters)}
    found = {}
    for array in saved:
        if array.startswith(f"{name}/state/"):
            number = array.removeprefix(f"{name}/state/").partition("/")[0]
            if number in numbered:
                found[array] = numbered[number]
    return found


def is_model(part: Any) -> bool:
    """Return True if a part has parameters and buffers, which are frozen or not."""
    return hasattr(part, "named_buffers")


def _masks(part: Any) -> dict[str, Any]:
    model = model_of(part)
    return {
        "trainable": {name: p.requires_grad for name, p in part.named_parameters()},
        "still": sorted(model._stopped()),
        "quiet": sorted(model._quiet()),
        "training": model._modes(),
    }


def _mask(part: Any, masks: dict[str, Any]) -> None:
    model, trainable = model_of(part), masks["trainable"]
    for name, p in part.named_parameters():
        if name in trainable:
            p.requires_grad_(trainable[name])
            p.grad = None if not trainable[name] else p.grad
    model._unsettle()
    model._stop_statistics(set(model._statistics()), False)
    model._stop_statistics(set(masks["still"]), True)
    model._quieten(set(trainable), False)
    model._quieten(set(masks["quiet"]), True)
    model._set_modes(masks["training"])
