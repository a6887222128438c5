"""PyTorch's package `functorch`, from the time before `torch.func`: its names say so when called.

`import functorch` finds this one where leafax stands for torch.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ... import func as _func
from ...version import __version__ as __version__
from .. import make_functional as _make_functional
from ..make_functional import FunctionalModule as FunctionalModule
from ..make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers


def _deprecated(fn: Callable[..., Any], instead: str = "") -> Callable[..., Any]:
    name = fn.__name__

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future "
            f"version of PyTorch >= 2.3. Please use `{instead or f'torch.func.{name}'}` instead; "
            "see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more "
            "details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    return call


vmap = _deprecated(_func.vmap, "torch.vmap")
grad, grad_and_value, vjp, jvp = [
    _deprecated(fn) for fn in (_func.grad, _func.grad_and_value, _func.vjp, _func.jvp)
]
jacrev, jacfwd, hessian, functionalize = [
    _deprecated(fn) for fn in (_func.jacrev, _func.jacfwd, _func.hessian, _func.functionalize)
]
make_functional, make_functional_with_buffers = [
    _deprecated(fn, "torch.func.functional_call")
    for fn in (_make_functional.make_functional, _make_functional.make_functional_with_buffers)
]
combine_state_for_ensemble = _deprecated(
    _make_functional.combine_state_for_ensemble, "torch.func.stack_module_state"
)
