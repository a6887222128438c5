"""nnx models under `copy.deepcopy` and `pickle`.

What a model knows of its modules and tensors it knows by the objects, which are others in a copy;
and nnx copies a module without asking what else refers to it. So it is told by path and by place.
"""

from __future__ import annotations

from typing import Any

import jax
from flax import nnx

from .nnx_call import Shared
from .nnx_leaves import Slot

_BY_MODULE = ("modes", "still", "quiet", "recomputed")


def described(module: Any, shared: Shared) -> dict[str, Any]:
    """Describe a model's module with all that is known of it. Inverse of `restored`."""
    graphdef, state = nnx.split(module)
    tensors = _tensors(state)
    known: dict[str, Any] = {
        name: [
            (path, getattr(shared, name)[part])
            for path, part in nnx.iter_modules(module)
            if part in getattr(shared, name)
        ]
        for name in _BY_MODULE
    }
    return known | {
        "module": (graphdef, state),
        "rules": shared.rules,
        "dtype": shared.dtype,
        "adapters": shared.adapters,
        "keys": [shared.keys.get(t) for t in tensors],
        "quiet_parameters": [t in shared.quiet_parameters for t in tensors],
    }


def restored(known: dict[str, Any]) -> tuple[Any, Shared]:
    """Rebuild the module that was described, and what is known of it. Inverse of `described`."""
    graphdef, state = known["module"]
    module = nnx.merge(graphdef, state)
    shared = Shared(known["rules"])
    shared.dtype, shared.adapters = known["dtype"], known["adapters"]
    parts: dict[Any, Any] = dict(nnx.iter_modules(module))
    for name in _BY_MODULE:
        getattr(shared, name).update((parts[path], value) for path, value in known.get(name, ()))
    for t, impl, quiet in zip(
        _tensors(state), known["keys"], known["quiet_parameters"], strict=True
    ):
        if impl is not None:
            shared.keys[t] = impl
        if quiet:
            shared.quiet_parameters[t] = True
    return module, shared


def _tensors(state: Any) -> list[Any]:
    return [leaf.tensor if isinstance(leaf, Slot) else leaf for leaf in jax.tree.leaves(state)]
