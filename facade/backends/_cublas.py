"""`torch.backends.cuda.matmul`: the switches of matrix products."""

from __future__ import annotations

from typing import Any

from .._core.python_data import name_of_type
from ._float32_precision import (
    get_cublas_allow_tf32,
    get_fp32_precision,
    set_cublas_allow_tf32,
    set_fp32_precision,
)


class cuBLASModule:
    """The switches. Those of halves are remembered: XLA adds products of halves in float32."""

    allow_tf32: bool
    fp32_precision: str
    allow_fp16_accumulation: bool
    allow_fp16_reduced_precision_reduction: bool
    allow_bf16_reduced_precision_reduction: bool

    def __init__(self) -> None:
        self.__dict__["_halves"] = {
            "allow_fp16_accumulation": False,
            "allow_fp16_reduced_precision_reduction": True,
            "allow_fp16_reduced_precision_reduction_split_k": True,
            "allow_bf16_reduced_precision_reduction": True,
            "allow_bf16_reduced_precision_reduction_split_k": True,
        }

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return get_cublas_allow_tf32()
        if name == "fp32_precision":
            return get_fp32_precision("cuda", "matmul")
        if name in self._halves:
            return self._halves[name]
        raise AttributeError("Unknown attribute " + name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            set_cublas_allow_tf32(value)
        elif name == "fp32_precision":
            set_fp32_precision("cuda", "matmul", value)
        elif name == "allow_fp16_accumulation":
            if not isinstance(value, bool):
                raise RuntimeError(
                    "set_allow_fp16_accumulation_cublas expects a bool, but got "
                    f"{name_of_type(value)}"
                )
            self._halves[name] = value
        elif name.endswith("_reduction") and name in self._halves:
            allowed, split = _two_bools(name, value)
            self._halves.update({name: allowed, name + "_split_k": split})
        else:
            raise AttributeError("Unknown attribute " + name)


def _two_bools(name: str, value: Any) -> tuple[bool, bool]:
    """Return what a switch of reductions was told, and what of those over blocks of the sum."""
    if isinstance(value, bool):
        return value, True
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)!r}")
    if not value:
        raise TypeError(f"{name} expects at least one boolean argument")
    if len(value) > 2:
        raise TypeError(f"{name} expects at most two boolean arguments")
    for x, which in zip(value, ("allow_reduced_precision", "allow_splitk"), strict=False):
        if not isinstance(x, bool):
            raise TypeError(f"{name} expects a bool for {which}, but got {type(x)!r}")
    return value[0], value[1] if len(value) == 2 else True


cuBLASModule.__module__ = "leafax.backends.cuda"
