"""PyTorch's `torch.utils._device`: the mode that gives new tensors a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._core.dtypes import device as _device_class
from .._core.overrides.modes import TorchFunctionMode, _push_mode
from .._core.overrides.state import overrides as _overrides

CURRENT_DEVICE: Any = None
#: Names of the functions that make tensors where nothing else says on which device.
_CONSTRUCTORS = frozenset("""
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye
    fftfreq full hamming_window hann_window kaiser_window linspace logspace nested_tensor ones rand
    randint randn randperm range rfftfreq scalar_tensor sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor
    tril_indices triu_indices zeros
""".split())  # fmt: skip


class DeviceContext(TorchFunctionMode):
    """A mode in which new tensors are made on a device; it sees what other modes let through.

    Args:
      device: a device, its string or number.

    >>> import leafax
    >>> from leafax.utils._device import DeviceContext
    >>> with DeviceContext("cpu"):
    ...     leafax.ones(2).device
    device(type='cpu')
    """

    def __init__(self, device: Any) -> None:
        self.device = _device_class(device)
        self.prev_mode: Any = None
        self.old_device: Any = None

    def __enter__(self) -> None:
        global CURRENT_DEVICE
        self.old_device, CURRENT_DEVICE = CURRENT_DEVICE, self.device
        others = [m for m in _overrides.modes if not isinstance(m, DeviceContext)]
        self.prev_mode = next((m for m in _overrides.modes if isinstance(m, DeviceContext)), None)
        _overrides.modes.clear()
        for mode in (self, *others):
            _push_mode(mode)

    def __exit__(self, *exc: object) -> None:
        global CURRENT_DEVICE
        CURRENT_DEVICE = self.old_device
        if not _overrides.modes or not isinstance(_overrides.modes[0], DeviceContext):
            raise AssertionError("Expected a DeviceContext at the bottom of the mode stack")
        _overrides.modes[:1] = [] if self.prev_mode is None else [self.prev_mode]

    def __torch_function__(  # noqa: PLW3201
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _CONSTRUCTORS and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: new tensors are made on this device while the function runs."""
    where = _device_class(device)

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with where:
                return func(*args, **kwargs)

        return call

    return decorate
