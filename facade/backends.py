"""`torch.backends`: switches that PyTorch programs set; XLA chooses kernels by itself."""

from __future__ import annotations

from typing import Any

import jax as _jax


class _Backend:
    """Holds what it is told; `available` says whether the backend is there."""

    def __init__(self, available: bool = False, **switches: Any) -> None:
        self._available = available
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        """Whether leafax computes with it."""
        return self._available

    def is_built(self) -> bool:
        """As `is_available`."""
        return self._available

    def version(self) -> None:
        """None: XLA brings its own."""
        return None


cudnn = _Backend(
    enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True
)
mps = _Backend()
mkl = _Backend()
mkldnn = _Backend(enabled=True)
openmp = _Backend()
opt_einsum = _Backend(True, enabled=True, strategy="auto")
cuda = _Backend(
    matmul=_Backend(
        allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    ),
)  # fmt: skip
cpu = _Backend()


def _switch(backend: Any, switch: str, get: str, set_: str, value: bool = True) -> None:
    """Give a backend a pair of functions that read and set a switch without effect."""
    setattr(backend, switch, value)
    setattr(backend, get, lambda: getattr(backend, switch))
    setattr(backend, set_, lambda enabled: setattr(backend, switch, enabled))


mha = _Backend(True)
_switch(mha, "_is_fastpath_enabled", "get_fastpath_enabled", "set_fastpath_enabled")
for _name in ("flash", "mem_efficient", "math", "cudnn"):
    _switch(cuda, f"_{_name}_sdp", f"{_name}_sdp_enabled", f"enable_{_name}_sdp")


def _get_cpu_capability() -> str:
    return str(_jax.local_devices(backend="cpu")[0].device_kind)


cpu.get_cpu_capability = _get_cpu_capability  # type: ignore[attr-defined]
