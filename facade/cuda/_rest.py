"""Names of `torch.cuda` that are of CUDA's own: errors, storages, and what leafax has not."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.absent.stand_ins import refuse, refuse_class
from ._devices import need_gpu

_NONE = "XLA talks to the GPU, and leafax to XLA"


class CudaError(RuntimeError):
    """An error that CUDA reports by a number.

    Args:
      code: the number.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class AcceleratorError(RuntimeError):
    """An error of an accelerator; XLA's are of classes of JAX."""


class DeferredCudaCallError(Exception):
    """An error of a call that was put off until CUDA is used: none is put off."""


class cudaStatus:  # noqa: N801 # PyTorch's name
    """Numbers by which CUDA tells how a call went."""

    SUCCESS, ERROR_NOT_READY = 0, 34


def check_error(res: int) -> None:
    """Raise `CudaError` for any number but that of success."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept the default; `leafax.explain()` tells where values are waited for.

    Raises:
      AssertionError: there is no GPU.
      NotImplementedError: another mode.
    """
    need_gpu()
    if debug_mode not in ("default", 0):
        raise NotImplementedError(
            f"leafax has no synchronization debug mode {debug_mode!r}: `leafax.explain()` tells of "
            "each place where a program was run for a value"
        )


def get_sync_debug_mode() -> int:
    """Return 0, the default.

    Raises:
      AssertionError: there is no GPU.
    """
    need_gpu()
    return 0


def _refuse_storage(name: str) -> Any:
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N807
        need_gpu()
        raise NotImplementedError(
            f"leafax makes no torch.cuda.{name}: `Tensor.untyped_storage()` is a tensor's memory"
        )

    about = "Stand for a class of memory on a GPU, which has no instances."
    return type(name, (), {"__new__": __new__, "__module__": "leafax.cuda", "__doc__": about})


BFloat16Storage = _refuse_storage("BFloat16Storage")
BoolStorage = _refuse_storage("BoolStorage")
ByteStorage = _refuse_storage("ByteStorage")
CharStorage = _refuse_storage("CharStorage")
ComplexDoubleStorage = _refuse_storage("ComplexDoubleStorage")
ComplexFloatStorage = _refuse_storage("ComplexFloatStorage")
DoubleStorage = _refuse_storage("DoubleStorage")
FloatStorage = _refuse_storage("FloatStorage")
HalfStorage = _refuse_storage("HalfStorage")
IntStorage = _refuse_storage("IntStorage")
LongStorage = _refuse_storage("LongStorage")
ShortStorage = _refuse_storage("ShortStorage")
GreenContext = refuse_class("cuda.GreenContext", _NONE, module="leafax.cuda")
cudart = refuse("cuda.cudart", _NONE)
current_blas_handle = refuse("cuda.current_blas_handle", _NONE)
current_solver_handle = refuse("cuda.current_solver_handle", _NONE)
