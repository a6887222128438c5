"""Instructions that the processor has, as Linux tells."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_FLAGS = (
    "aes", "amx_bf16", "amx_fp16", "amx_int8", "amx_tile", "avx", "avx2", "avx512_bf16",
    "avx512_bitalg", "avx512_fp16", "avx512_vbmi2", "avx512_vnni", "avx512_vpopcntdq",
    "avx_vnni", "bmi2", "clflush", "clflushopt", "clwb", "f16c", "fma4", "popcnt", "sse", "sse2",
    "sse4_1", "sse4_2", "sse4a", "ssse3",
)  # fmt: skip
_OTHERS = {  # PyTorch's names, and Linux's
    "avx512_bw": "avx512bw", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
    "avx512_f": "avx512f", "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi",
    "avx512_vl": "avx512vl", "bmi": "bmi1", "fma3": "fma", "lzcnt": "abm", "sha": "sha_ni",
    "sse3": "pni",
}  # fmt: skip


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """Tell what the processor is, and which instructions it has."""
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                facts.setdefault(name.strip(), value.strip())
    except OSError:
        pass  # another system: all are told to be absent
    flags = {*facts.get("flags", facts.get("Features", "")).split()}
    found: dict[str, Any] = {name: name in flags for name in _FLAGS}
    found |= {name: flag in flags for name, flag in _OTHERS.items()}
    found |= {"architecture": platform.machine(), "num_logical_cores": os.cpu_count()}
    return MappingProxyType(found | {"cpu_name": facts.get("model name", "")})
