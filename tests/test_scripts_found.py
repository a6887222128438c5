"""What training scripts written as in tutorials showed, once."""

from __future__ import annotations

from typing import Any

import pytest
from sameness import Log, same


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_checkpoints_autocast_again_with_the_weights_of_today(
    reentrant: bool, inside: bool
) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        from importlib import import_module

        checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
        w = lib.linspace(0.5, 1.5, 4).reshape(2, 2).requires_grad_()
        v = lib.ones(2, 2, requires_grad=True)
        x = lib.ones(1, 2, requires_grad=True)
        optimizer = lib.optim.SGD([w, v], 0.125)

        def block(x: Any, w: Any) -> Any:
            log(lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"))
            y = lib.nn.functional.linear(x, w) @ v
            log(y.dtype)
            return lib.sin(y)

        for _ in range(3):
            optimizer.zero_grad()
            with lib.autocast("cpu", dtype=lib.float16):
                out = checkpoint(block, x, w, use_reentrant=reentrant)
                log(out.dtype)
                if inside:
                    out.sum().backward()
            if not inside:
                out.sum().backward()
            optimizer.step()
            log(out.detach().float(), lib.is_autocast_enabled("cpu"))
        log.gradients(w.grad, v.grad)
        log(w, v)


