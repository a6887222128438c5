"""State of a module besides parameters and buffers."""

from __future__ import annotations

from typing import Any

from .attributes import Base

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_UNREACHED = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


class ExtraState(Base):
    """Methods that classes with state besides parameters and buffers override."""

    def get_extra_state(self) -> Any:
        """Return what else belongs to the `state_dict()`; defined by classes that have it."""
        raise RuntimeError(_UNREACHED.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned; defined by classes that have it."""
        raise RuntimeError(_UNREACHED.format("set_extra_state"))


def saves_more(module: Any) -> bool:
    """Tell whether a module has `get_extra_state`."""
    return type(module).get_extra_state is not ExtraState.get_extra_state


def loads_more(module: Any) -> bool:
    """Tell whether a module has `set_extra_state`."""
    return type(module).set_extra_state is not ExtraState.set_extra_state
