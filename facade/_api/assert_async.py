"""`torch._assert_async`: an assertion of a tensor's value, raised when values are next observed."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import Fault, Op

from .._core.grad_modes import no_grad
from .._dispatch.record import apply


def _check(x: Any, says: str) -> list[Fault]:
    return [Fault(x == 0, RuntimeError, says)]


def _asserted(x: Any, says: str) -> Any:
    return x


_ASSERTED = Op(
    _asserted, name="_asserted", differentiable=False, check=_check, method=False, function=False
)


def _assert_async(input: Any, assert_msg: str | None = None) -> None:
    """Raise unless a tensor of one element is not zero; the program is not cut for it.

    Args:
      input: the tensor.
      assert_msg: the message.

    Raises:
      RuntimeError: when a value is next observed, if it is zero; at once, of more elements.
    """
    if input.numel() != 1:
        several = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {several} is ambiguous")
    said = assert_msg or "Expected Tensor with single nonzero value, but got zero"
    with no_grad():
        apply(_ASSERTED, input.detach(), said.replace("{", "{{").replace("}", "}}"))
