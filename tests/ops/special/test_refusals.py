"""Dtypes that PyTorch has no kernel of a special function for."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same

NAMES = ("i0", "i0e", "i1", "i1e", "entr", "log_ndtr", "ndtri", "ndtr", "erfcx", "digamma", "erf")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "complex64", "complex128"])
def test_dtypes_without_a_kernel(kind: str) -> None:
    def program(lib: Any, log: Log) -> None:
        x = lib.ones(2, dtype=getattr(lib, kind))
        for name in NAMES:
            with log.catch():
                log(getattr(lib.special, name)(x).dtype)
        for n in (1, 2) if kind.startswith("c") else ():
            log.attempt(lib.polygamma, n, x)
        log.attempt(lib.bincount, x)

    same(program)
