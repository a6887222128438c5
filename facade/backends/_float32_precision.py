"""Precision of float32 products: PyTorch's switches, old and new, for all devices.

`docs/precision.md` says what each means on CPUs, GPUs and TPUs. What is told here becomes a part of
each op that is recorded from then on, and so of the keys of programs.
"""

from __future__ import annotations

import warnings

from leafax.functional.program.numerics import set_numerics

from .._core.python_data import name_of_type
from .._core.trie import local

_KNOWN = ("none", "ieee", "tf32", "bf16")
#: JAX's names of precisions.
_OF_JAX = {"ieee": "highest", "tf32": "high", "bf16": "default"}
_EXACT_FIRST = ("highest", "high", "default")
_NOTES = (
    "https://pytorch.org/docs/main/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
)


class _Told:
    """Holds all that was told.

    Attributes:
      matmul: what `set_float32_matmul_precision` was told.
      cudnn: what `backends.cudnn.allow_tf32` was told.
      new: precisions by backend and kind of op, where the newer switches or those above set them.
    """

    def __init__(self) -> None:
        self.matmul, self.cudnn = "highest", True
        self.new: dict[tuple[str, str], str] = {}


_told = _Told()


def _found(backend: str, kind: str) -> str:
    """Return the precision told of a kind or of what covers it, which the backend may lack."""
    for key in ((backend, kind), (backend, "all"), ("generic", "all")):
        if (found := _told.new.get(key, "none")) != "none":
            return found
    by_default = kind in ("conv", "rnn") and backend == "cuda" and (backend, kind) not in _told.new
    return "tf32" if by_default else "none"


def get_fp32_precision(backend: str, kind: str) -> str:
    """Return the precision of a backend's kind of op: "ieee", "tf32", "bf16" or "none".

    Args:
      backend: "generic", "cuda" or "mkldnn".
      kind: "all", "matmul", "conv" or "rnn".
    """
    found = _found(backend, kind)
    return "none" if backend == "cuda" and found == "bf16" else found


def set_fp32_precision(backend: str, kind: str, precision: str) -> None:
    """Set the precision of a backend's kind of op; "none" leaves it to what covers it.

    Raises:
      RuntimeError: there is no such precision, or the backend lacks it.
    """
    if not isinstance(precision, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. The following argument "
            "types are supported:\n    1. (arg0: str, arg1: str, arg2: str) -> str\n\n"
            f"Invoked with: {backend!r}, {kind!r}, {precision!r}"
        )
    if precision not in _KNOWN:
        raise RuntimeError(f"Unknown precision: {precision}")
    if backend == "cuda" and precision == "bf16":
        raise RuntimeError("backend 'cuda' does not support precision 'bf16'")
    _told.new[backend, kind] = precision
    _take_effect()


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told.

    Raises:
      RuntimeError: a newer switch was told otherwise since.
    """
    cuda, mkldnn = (get_fp32_precision(backend, "matmul") for backend in ("cuda", "mkldnn"))
    contradicted = (
        (cuda == "tf32" and _told.matmul == "highest")
        or (mkldnn == "bf16" and _told.matmul != "medium")
        or (mkldnn == "tf32" and _told.matmul != "high")
    )
    if contradicted:
        raise RuntimeError(
            "PyTorch is checking the matmul precision without a specific backend name,Current "
            "status indicate that you have used mix of the legacy and new APIs to set the matmul "
            f"precision. We suggest only using the new API for matmul precision. See also: {_NOTES}"
        )
    return _told.matmul


def set_float32_matmul_precision(precision: str) -> None:
    """Set how exactly float32 matrices are multiplied: "highest", "high" or "medium".

    CPUs always multiply in float32; `docs/precision.md` says what other devices do.
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    _told.matmul = precision
    cuda, mkldnn = {
        "highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16"),
    }[precision]  # fmt: skip
    _told.new |= {("cuda", "matmul"): cuda, ("mkldnn", "matmul"): mkldnn}
    _take_effect()


def get_cublas_allow_tf32() -> bool:
    """Return what `backends.cuda.matmul.allow_tf32` was told.

    Raises:
      RuntimeError: a newer switch was told otherwise since.
    """
    allowed = _told.matmul != "highest"
    if allowed != (get_fp32_precision("cuda", "matmul") == "tf32"):
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32_new is enabled for cuBlas matmul,Current "
            "status indicate that you have used mix of the legacy and new APIs to set the TF32 "
            "status for cublas matmul. We suggest only using the new API to set the TF32 flag. "
            f"See also: {_NOTES}"
        )
    return allowed


def set_cublas_allow_tf32(allowed: bool) -> None:
    """Allow matmuls TF32, or stop it."""
    _need_bool(allowed)
    _told.matmul = "high" if allowed else "highest"
    _told.new["cuda", "matmul"] = "tf32" if allowed else "ieee"
    _take_effect()


def get_cudnn_allow_tf32() -> bool:
    """Return what `backends.cudnn.allow_tf32` was told.

    Raises:
      RuntimeError: a newer switch was told otherwise since.
    """
    found = {get_fp32_precision("cuda", kind) == "tf32" for kind in ("conv", "rnn")}
    if found != {_told.cudnn}:
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32 is enabled for cuDNN without a specific "
            "operator name,but the current flag(s) indicate that cuDNN conv and cuDNN RNN have "
            "different TF32 flags.This combination indicates that you have used a mix of the "
            "legacy and new APIs to set the TF32 flags. We suggest only using the new API to set "
            f"the TF32 flag(s). See also: {_NOTES}"
        )
    return _told.cudnn


def set_cudnn_allow_tf32(allowed: bool) -> None:
    """Allow convolutions and recurrent layers TF32, or stop it."""
    _need_bool(allowed)
    _told.cudnn = allowed
    for kind in ("conv", "rnn"):
        _told.new["cuda", kind] = "tf32" if allowed else "none"
    _take_effect()


def forget() -> None:
    """Forget what was told: the precisions are those that a process begins with."""
    _told.matmul, _told.cudnn = "highest", True
    _told.new.clear()
    _take_effect()


def _need_bool(allowed: object) -> None:
    if not isinstance(allowed, bool):
        raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {name_of_type(allowed)}")


def _take_effect() -> None:
    """Record with what was told from now on."""
    found = {kind: _found("cuda", kind) for kind in ("matmul", "conv", "rnn")}
    asked = [_OF_JAX[found["matmul"]]] if found["matmul"] != "none" else []
    if found["conv"] != "tf32":  # which it is unless it was told otherwise
        asked.append(_OF_JAX.get(found["conv"], "highest"))
    if found["matmul"] == "tf32" and _told.matmul == "medium":
        found["matmul"] = "bf16"
        asked[0] = "default"
    # A function of JAX has one precision for all that it does.
    opaque = min(asked, key=_EXACT_FIRST.index) if asked else None
    set_numerics(opaque=opaque, **{k: _OF_JAX.get(v, "highest") for k, v in found.items()})
    local.set_mode(local.mode)


class FP32Precision:
    """The switch `fp32_precision` of one kind of op.

    Args:
      backend, op: what it is of.
    """

    backend: str
    op: str
    fp32_precision: str

    def __init__(self, backend: str, op: str) -> None:
        self.__dict__.update(backend=backend, op=op)

    def __setattr__(self, name: str, value: str) -> None:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        set_fp32_precision(self.backend, self.op, value)

    def __getattr__(self, name: str) -> str:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        return get_fp32_precision(self.backend, self.op)
