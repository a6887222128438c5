"""Operators and functions that meet NumPy's arrays and numbers, compared with PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

TENSORS = ("t.ones(2)", "t.ones(2, requires_grad=True)", "t.ones(2).int()", "t.ones(2).bool()",
           "t.tensor(2.0)")  # fmt: skip
OTHERS = ("np.array(3)", "np.array(1.5)", "np.ones(2)", "np.array([1, 2])", "np.ones(3)",
          "np.array(True)", "np.float32(2)", "np.int64(2)", "np.bool_(True)")  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "<<", "==", "!=", "<", ">=")
CALLS = (
    "x.__eq__(np.ones(2))", "x == np.ones(2, np.uint32)", "[np.ones(1)].count(t.ones(1))",
    "x.__rtruediv__('a')", "x.__rtruediv__(np.ones(2))", "x.__rpow__([2])", "np.sin(x)",
    "np.asarray(x, dtype=int).tolist()", "np.isfinite(x)", "np.add.reduce(x)", "np.cumsum(x)",
    "np.exp(x.requires_grad_())", "t.result_type(x.int(), np.bool_(True))",
    "t.add(x.int(), np.bool_(True))", "x.bool().clone().add_(np.bool_(True))",
    "t.where(x > 0, x.int(), np.bool_(True))", "t.arange(np.bool_(True))",
    "t.add(x.int(), x.int(), alpha=np.bool_(True))",
    "t.isclose(x, x, rtol=np.bool_(True)).tolist()",
    "t.quantile(x, np.bool_(True)).tolist()", "t.nan_to_num(x, np.bool_(True))",
    "x.requires_grad_(np.bool_(True))", "t.set_grad_enabled(np.bool_(True))",
    "x.__iadd__(np.ones(2))", "x.int().fill_(np.bool_(True))",
)  # fmt: skip


def _run(lib: Any, log: Log, line: str) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        log.attempt(lambda: eval(line, {"t": lib, "np": np, "x": lib.ones(2)}))
    log([(w.category.__name__, str(w.message)) for w in said])


@pytest.mark.quick(5)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_leave_arrays_to_numpy(operator: str) -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for tensor in TENSORS:
            for other in OTHERS:
                _run(lib, log, f"{tensor} {operator} {other}")
                _run(lib, log, f"{other} {operator} {tensor}")


def test_calls_with_numpy_arguments() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for line in CALLS:
            _run(lib, log, line)


def test_in_place_operators_with_arrays_give_new_tensors() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = y = lib.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x += np.ones(2)
        log(x, y, x is y)
