"""The device that tests run on, what it can do, and how exact it is."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import leafax

PLATFORM = leafax.zeros(1).device.type
FLOATS = ("float32",) if PLATFORM == "tpu" else ("float32", "float64")
#: The largest error, relative to the largest number of the result.
TOLERANCES = {
    "float64": 1e-11, "float32": 1e-4 if PLATFORM == "tpu" else 2e-5, "float16": 5e-3,
    "bfloat16": 4e-2,
}  # fmt: skip
TF32 = 2e-3  # of convolutions, by default, where a device has TF32


def tolerance(dtype: str, convolution: bool = False) -> float:
    """Return the largest error that a result may have, relative to its largest number."""
    if convolution and dtype == "float32" and PLATFORM != "cpu":
        return TF32
    return TOLERANCES[dtype]


def error(found: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest number expected."""
    found, expected = to_numpy(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{found.shape} instead of {expected.shape}"
    if not expected.size:
        return 0.0
    wide = complex if np.iscomplexobj(expected) else float
    difference = np.abs(found.astype(wide) - expected.astype(wide)).max()
    return float(difference / max(1.0, np.abs(expected.astype(wide)).max()))


def to_numpy(x: Any) -> np.ndarray:
    """Return a tensor's numbers, halves as float32."""
    if not isinstance(x, leafax.Tensor):
        return np.asarray(x)
    halves = x.dtype in (leafax.bfloat16, leafax.float16)
    return np.asarray((x.detach().float() if halves else x.detach()).cpu().numpy())


def live_bytes() -> int:
    """Return the bytes of all arrays that are alive."""
    return sum(x.nbytes for x in jax.live_arrays())
