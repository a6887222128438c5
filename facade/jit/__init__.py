"""PyTorch's `torch.jit`: functions and modules stay Python's; a training step is compiled whole.

`script` and the decorators return what they are given. What would make a TorchScript program, or
read one, raises.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from .._core.absent.stand_ins import Block, do_nothing, leave, refuse, refuse_class
from .._core.absent.stand_ins import leave as interface
from .._core.absent.stand_ins import leave as script
from .._core.absent.stand_ins import leave as script_if_tracing
from .._jit_internal import _drop as _drop
from .._jit_internal import _IgnoreContextManager as _IgnoreContextManager
from .._jit_internal import _isinstance
from .._jit_internal import _overload as _overload
from .._jit_internal import _overload_method as _overload_method
from .._jit_internal import export as export
from .._jit_internal import ignore as ignore
from .._jit_internal import is_scripting as is_scripting
from .._jit_internal import unused as unused
from ..futures import Future as Future
from ..nn.modules.module import Module
from . import annotations as annotations

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule",
    "annotate", "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface",
    "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "save", "script", "script_if_tracing", "set_fusion_strategy",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_PROGRAMS = "a step is compiled as it is, and `leafax.functional.lower` exports what was recorded"
_script_if_tracing = script_method = leave
isinstance = _isinstance  # noqa: A001 # PyTorch's name

trace = refuse("jit.trace", _PROGRAMS)
trace_module = refuse("jit.trace_module", _PROGRAMS)
save = refuse("jit.save", "`leafax.save` writes state dicts, `leafax.functional.lower` programs")
load = refuse("jit.load", "there is nothing that runs TorchScript; `leafax.load` reads state dicts")


class Error(RuntimeError):
    """PyTorch's error of a TorchScript program; nothing raises it here."""


class ScriptWarning(Warning):
    """PyTorch's warning about a TorchScript program; nothing gives it here."""


class TracerWarning(Warning):
    """PyTorch's warning of `jit.trace`; nothing gives it here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: there are none."""


class ScriptModule(Module):
    """A module: Python runs it like any other.

    Packages subclass it, and ask by `isinstance` whether TorchScript has compiled a model.
    """


class RecursiveScriptModule(ScriptModule):
    """A module that TorchScript has compiled: there is none."""


class TracedModule(ScriptModule):
    """A module that TorchScript has traced: there is none."""


TopLevelTracedModule = TracedModule
ScriptFunction = refuse_class("jit.ScriptFunction", _PROGRAMS)
CompilationUnit = refuse_class("jit.CompilationUnit", _PROGRAMS)


def is_tracing() -> bool:
    """Return False: Python itself runs all functions."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value: the type is for TorchScript."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:  # noqa: N802 # a class in PyTorch
    """Return the value: the type is for TorchScript."""
    return value


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return the module as it is: weights of a module in `eval()` are inputs of its program."""
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return the module as it is: XLA optimizes the program."""
    return mod


def fork(func: Any, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function now and return its result as a future."""
    future = Future[Any]()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """Return the result of a future of `fork`."""
    return future.wait()


_fork, _wait = fork, wait


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Change nothing: XLA optimizes the program."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Change nothing: XLA fuses the ops."""
    yield


class strict_fusion(Block):  # noqa: N801 # PyTorch's name
    """Change nothing: XLA fuses the ops."""


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Return the strategy before, an empty one: XLA fuses the ops."""
    return []


_set_fusion_strategy = set_fusion_strategy
enable_onednn_fusion = do_nothing


def onednn_fusion_enabled() -> bool:
    """Return False: XLA fuses the ops."""
    return False
