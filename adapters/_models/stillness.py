"""Modules that evaluate while the rest of a model trains, whatever `train()` says.

What was stopped is told by the module itself, so that copies and pickles of it are stopped too.
"""

from __future__ import annotations

import functools
from typing import Any

_FIELD = "_stillness"


class Stillness:
    """Record of what was stopped in one `nn.Module`.

    Attributes:
      statistics: it normalises by its statistics.
      quiet: it is part of something frozen whose dropout was stopped.
      parameters: names of its own that were frozen so.
      mode: what `train()` told it last.
    """

    def __init__(self, mode: bool) -> None:
        self.statistics = self.quiet = False
        self.parameters: set[str] = set()
        self.mode = mode


def stillness(module: Any) -> Stillness | None:
    """Return what was stopped in a module; None for most."""
    found: Stillness | None = module.__dict__.get(_FIELD)
    return found


def mode_of(module: Any) -> bool:
    """Return the mode that a module has where nothing of it is stopped."""
    held = stillness(module)
    return bool(module.training if held is None or not _is_still(held) else held.mode)


def set_mode(module: Any, mode: bool) -> None:
    """Switch one module, without those below."""
    held = stillness(module)
    if held is not None:
        held.mode = mode
    module.training = mode and not (held is not None and _is_still(held))


def change(
    module: Any, *, statistics: bool | None = None, quiet: bool | None = None,
    parameters: tuple[str, bool] | None = None,
) -> None:  # fmt: skip
    """Note what of a module is stopped from now on, and let it evaluate if anything is.

    Args:
      statistics, quiet: as in `Stillness`.
      parameters: the name of one, and whether it is among them.
    """
    held = stillness(module)
    if held is None:
        held = Stillness(module.training)
    before = _is_still(held)
    if statistics is not None:
        held.statistics = statistics
    if quiet is not None:
        held.quiet = quiet
    if parameters is not None:
        name, among = parameters
        (held.parameters.add if among else held.parameters.discard)(name)
    after = _is_still(held)
    if after or held.parameters:
        module.__dict__[_FIELD] = held
    else:
        module.__dict__.pop(_FIELD, None)
    if after and not before:
        held.mode = module.training
        module.__dict__["train"] = functools.partial(_stay, module)
        module.training = False
    elif before and not after:
        del module.__dict__["train"]
        module.training = held.mode


def _is_still(held: Stillness) -> bool:
    return held.statistics or held.quiet


def _stay(module: Any, mode: bool = True) -> Any:
    """Take the place of `train()` of a module that is to evaluate."""
    type(module).train(module, mode)
    module.__dict__[_FIELD].mode = mode
    module.training = False
    return module
