"""Grad mode and inference mode: context managers, decorators and functions, per thread."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from abc import ABC, abstractmethod
from typing import Any

from .dual_levels import open_levels
from .python_data import name_of_type
from .trie import Mode, local


class within:
    """Record in a mode for a block; restore the former mode after it."""

    __slots__ = ("_before", "_wanted")

    def __init__(self, wanted: Mode) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        self._before = local.mode
        local.set_mode(self._wanted)

    def __exit__(self, *exc: Any) -> None:
        local.set_mode(self._before)


def _record_gradients(grad: bool) -> None:
    """Set grad mode, and nothing else of the thread's mode."""
    now = local.mode
    local.set_mode(Mode.of(grad, now.inference, now.autocast))


def _bool(name: str, enabled: Any) -> bool:
    """Return `enabled` if it is a bool; else raise the error of the setter `name`."""
    if isinstance(enabled, bool):
        return enabled
    raise TypeError(
        f"{name}(): argument 'enabled' (position 1) must be bool, not {name_of_type(enabled)}"
    )


class Scope(ABC):
    """A mode for a block, a function or a generator function; the former mode comes back."""

    def clone(self) -> Scope:
        """Return another scope of the same mode."""
        return self._copy()

    def _copy(self) -> Scope:
        return type(self)()

    @abstractmethod
    def __enter__(self) -> Any: ...

    @abstractmethod
    def __exit__(self, *exc: Any) -> None: ...

    def __call__(self, fn: Any) -> Any:
        if inspect.isclass(fn):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
            setattr(fn, "__init__", self(fn.__init__))  # noqa: B010
            return fn
        if inspect.isgeneratorfunction(fn):
            return self._generator(fn)

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._copy():
                return fn(*args, **kwargs)

        return wrapped

    def _generator(self, fn: Any) -> Any:
        """Hold the mode while the generator's own code runs, not while it is suspended."""

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            gen = fn(*args, **kwargs)
            try:
                with self._copy():
                    response = gen.send(None)
                while True:
                    try:
                        request = yield response
                    except GeneratorExit:
                        with self._copy():
                            gen.close()
                        raise
                    except BaseException:
                        with self._copy():
                            response = gen.throw(*sys.exc_info())
                    else:
                        with self._copy():
                            response = gen.send(request)
            except StopIteration as stop:
                return stop.value

        return wrapped


class _Gradients(Scope):
    """A grad mode that takes no arguments, so that it decorates without being called, too."""

    _grad: bool
    prev: bool  # whether gradients were recorded when the block was entered last

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        pass

    def __enter__(self) -> None:
        self.prev = local.mode.enabled
        _record_gradients(self._grad)

    def __exit__(self, *exc: Any) -> None:
        _record_gradients(self.prev)


class no_grad(_Gradients):
    """Record without gradients.

    >>> import leafax
    >>> x = leafax.ones(2, requires_grad=True)
    >>> with leafax.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _grad = False

    def __init__(self, orig_func: Any = None) -> None:
        self.prev = False


class enable_grad(_Gradients):
    """Record with gradients, inside `no_grad` too."""

    _grad = True


class set_grad_enabled(Scope):
    """Set grad mode at once; as a context manager, until the block's end."""

    def __init__(self, mode: bool) -> None:
        self.mode = _bool("set_grad_enabled", mode)
        self.prev = local.mode.enabled
        _record_gradients(mode)

    def _copy(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        _record_gradients(self.mode)

    def __exit__(self, *exc: Any) -> None:
        _record_gradients(self.prev)

    def __call__(self, fn: Any) -> Any:
        _record_gradients(self.prev)
        return super().__call__(fn)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.set_grad_enabled(mode={self.mode})"


class inference_mode(Scope):
    """Record without gradients, and make tensors that can never take part in them."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    _before: list[Mode]

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        now = local.mode
        self.__dict__.setdefault("_before", []).append(now)
        if self.mode:
            local.set_mode(Mode.of(False, True, now.autocast, dual=()))
            return
        # Outside of inference mode, too, this turns gradients on.
        local.set_mode(Mode.of(True, False, now.autocast, dual=open_levels()))

    def __exit__(self, *exc: Any) -> None:
        local.set_mode(self._before.pop())

    def _copy(self) -> inference_mode:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Return whether ops record gradients in this thread."""
    return local.mode.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether inference mode is on in this thread."""
    return local.mode.inference


class set_multithreading_enabled:
    """Say whether backward may use threads; leafax never does, and remembers the answer.

    Holds at once; as a context manager, until the block's end.
    """

    def __init__(self, mode: bool) -> None:
        self.prev = local.settings.multithreading
        self.mode = _bool("set_multithreading_enabled", mode)
        local.settings.multithreading = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        local.settings.multithreading = self.prev

    def clone(self) -> set_multithreading_enabled:
        """Return another scope with the same mode."""
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """Return the last setting of `set_multithreading_enabled` in this thread."""
    return local.settings.multithreading


class enforce_grad_layout_policy(Scope):
    """A setting: a new `.grad` gets its tensor's memory layout, or keeps that of backward.

    Holds at once; as a context manager, until the block's end. Only a gradient that nobody else
    holds is taken as it is: for others there is a copy, which lies as the tensor does.

    >>> import leafax
    >>> p = leafax.ones(3, 2).t().requires_grad_()
    >>> with leafax.autograd.enforce_grad_layout_policy(False):
    ...     (p.contiguous() * leafax.ones(2, 3)).sum().backward()
    >>> p.stride(), p.grad.stride()
    ((1, 2), (3, 1))
    """

    def __init__(self, enable: bool = True) -> None:
        self.prev, self.mode = local.settings.grad_layout, enable
        local.settings.grad_layout = enable

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        local.settings.grad_layout = self.prev

    def __call__(self, fn: Any) -> Any:
        local.settings.grad_layout = self.prev
        return super().__call__(fn)

    def _copy(self) -> Scope:
        return type(self)(self.mode)

    clone = _copy


def is_grad_layout_enforced() -> bool:
    """Return the last setting of `enforce_grad_layout_policy` in this thread."""
    return local.settings.grad_layout


def set_grad_layout_enforced(enable: bool) -> None:
    """Tell what `enforce_grad_layout_policy` does, for good."""
    local.settings.grad_layout = enable


class _force_original_view_tracking(Scope):
    """A setting: later views repeat their own ops after a write to their base.

    Else one `as_strided` reads them anew. Holds at once; as a context manager, until the block's
    end. The values are the same; the nodes of the graph differ.
    """

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = local.settings.view_replay, _bool("set_view_replay_enabled", mode)
        local.settings.view_replay = mode

    def __enter__(self) -> None:
        local.settings.view_replay = self.mode

    def __exit__(self, *exc: Any) -> None:
        local.settings.view_replay = self.prev

    def __call__(self, fn: Any) -> Any:
        local.settings.view_replay = self.prev
        return super().__call__(fn)

    def _copy(self) -> Scope:
        return type(self)(self.mode)

    clone = _copy


def is_view_replay_enabled() -> bool:
    """Return whether `_force_original_view_tracking` is on in this thread."""
    return local.settings.view_replay


for _kind in (
    no_grad, enable_grad, set_grad_enabled, inference_mode, set_multithreading_enabled,
    enforce_grad_layout_policy, _force_original_view_tracking,
):  # fmt: skip
    _kind.__module__ = "leafax.autograd.grad_mode"
