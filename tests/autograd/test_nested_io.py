"""`NestedIOFunction` beside live PyTorch: what is left of it there."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_its_parts_work_and_a_call_says_that_the_engine_is_gone() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        nested = torch.autograd.function.NestedIOFunction
        log(torch.autograd.NestedIOFunction is nested)

        class Mine(nested):  # type: ignore[misc,valid-type]
            def forward_extended(self, x: Any, more: Any) -> Any:
                return [x * 2, (more[0] * 3, None)]

            def backward_extended(self, grad: Any, more: Any) -> Any:
                return [grad * 2, [more[0] * 3, None]]

        x = torch.ones(2, requires_grad=True)
        f = Mine()
        log.attempt(f, x, [x])
        log.attempt(f, 3)
        log.attempt(f.backward, x)
        log(f.save_for_backward(x, [x]), f.to_save, f._to_save_nested)
        log(f.mark_dirty(x, also={"x": x}), f.dirty_tensors)
        log(f.mark_non_differentiable(x, [x]), f.non_differentiable)
        f._nested_input = (x, [x])
        log(f.forward(), f._nested_output, f.backward(x, x))
        f._nested_input = (x, 3.0)
        log.attempt(f.forward)
        log.attempt(f._do_backward, (x, x), False)
        log.attempt(nested().forward_extended, x)
        log.attempt(nested().backward_extended, x)
