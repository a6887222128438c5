"""Contents of `empty` and its like under deterministic algorithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same


def deterministic(program: Callable[[Any, Log], None]) -> Callable[[Any, Log], None]:
    def run(t: Any, log: Log) -> None:
        t.use_deterministic_algorithms(True)
        try:
            program(t, log)
        finally:
            t.use_deterministic_algorithms(False)

    return run


DTYPES = ("float32", "bfloat16", "complex64", "int8", "uint8", "int64", "bool")


@pytest.mark.parametrize("name", DTYPES)
def test_new_memory(name: str) -> None:
    @same
    @deterministic
    def program(t: Any, log: Log) -> None:
        kind = getattr(t, name)
        x = t.ones(2, 3, dtype=kind)
        made = [t.empty(3, dtype=kind), t.empty_like(x.t()), x.new_empty(2)]
        made += [t.empty_strided((2, 2), (3, 1), dtype=kind), x.new_empty_strided((2,), (2,))]
        made += [t.empty_permuted((2, 3), (1, 0), dtype=kind), x.new(2), x[0].resize_(4)]
        log(*[(m.dtype, m.stride(), str(m.tolist())) for m in made])
        if kind is t.float32:
            log(str(t.Tensor(2)), str(t.FloatTensor(2)), t.empty(2, requires_grad=True))
            log(str(t.empty(3, out=t.empty(0))), t.ones(1).resize_(3))


def test_resized_memory() -> None:
    @same
    @deterministic
    def program(t: Any, log: Log) -> None:
        whole = t.ones(4)
        part = whole[1:3]
        part.resize_(4)
        log(whole, part)  # what the memory grew by alone
        log(t.ones(2, 2).t().resize_(3, 3), t.ones(3).resize_(2), t.empty(0).resize_(2, 2))
        x = t.ones(2)
        x.resize_(4)
        log(x._version)


def test_the_switch() -> None:
    @same
    @deterministic
    def program(t: Any, log: Log) -> None:
        switch = t.utils.deterministic
        log(switch.fill_uninitialized_memory)
        with log.catch():
            switch.fill_uninitialized_memory = 1
        switch.fill_uninitialized_memory = False
        try:
            log(switch.fill_uninitialized_memory, t.ones(1).resize_(1), t.empty(2).isnan().any())
        finally:
            switch.fill_uninitialized_memory = True
