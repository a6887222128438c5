"""Checks of hyperparameters, with PyTorch's words."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.handle import Handle


def not_negative(what: str, value: Any, *, nan: bool = False) -> None:
    """Refuse a negative hyperparameter.

    Args:
      what: how PyTorch calls it.
      nan: allow NaN.
    """
    if value < 0.0 if nan else not 0.0 <= value:
        raise ValueError(f"Invalid {what}: {value}")


def at_least(least: float, what: str, value: Any) -> None:
    """Refuse a hyperparameter below a bound, in the words of PyTorch's younger optimizers."""
    if not least <= value:
        raise ValueError(f"{what} should be >= {least:g} but is: {value}")


def one_element(name: str, value: Any) -> None:
    if isinstance(value, Handle) and value.numel() != 1:  # type: ignore[attr-defined]
        raise ValueError(f"Tensor {name} must be 1-element")


def rate(lr: Any) -> None:
    one_element("lr", lr)
    not_negative("learning rate", lr)


def of_adam(lr: Any, eps: Any, values: Any, weight_decay: Any) -> None:
    """Check what Adam and its kin are given; `values` are the betas."""
    rate(lr)
    not_negative("epsilon value", eps)
    betas(values)
    not_negative("weight_decay value", weight_decay)


def betas(values: Any) -> None:
    for i in (0, 1):
        if not 0.0 <= values[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {values[i]}")


def of_one_kind(values: Any, foreach: bool) -> tuple[Any, Any]:
    """Betas as an optimizer holds them: two floats, or two tensors without dims.

    Args:
      foreach: whether tensors are refused.
    """
    kinds = [type(x) for x in values[:2]]
    if not (all(issubclass(k, float) for k in kinds) or all(issubclass(k, Handle) for k in kinds)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(values):
        if isinstance(beta, Handle) and foreach:
            raise ValueError(
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        one_element(f"betas[{i}]", beta)
    return tuple(x.squeeze() if isinstance(x, Handle) and x.dim() else x for x in values)  # type: ignore[return-value, attr-defined]


def which_kernel(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Refuse kernels of PyTorch's that cannot be asked for at once."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


_FUSED_ON = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]
_CAPTURED_ON = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


class Captured(NamedTuple):
    """PyTorch's words on a `capturable` update on a device that cannot capture it."""

    what: str = "params and state_steps"
    xla: bool = True  # whether the update takes XLA's devices


def one_by_one(group: dict[str, Any]) -> None:
    """Raise where PyTorch's update of many parameters at once is to be differentiated."""
    if group["foreach"]:
        raise AssertionError("_foreach ops don't support autograd")


def has_kernel(
    group: dict[str, Any], params: list[Any], captured: tuple[Captured, Captured]
) -> None:
    """Raise where PyTorch's fused or captured update takes no such parameters.

    Args:
      captured: what is said of updates of one parameter, and of many at once.
    """
    if group.get("fused"):
        for p in params:
            if p._v.dtype.kind == "c":
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of "
                    f"supported devices: {_FUSED_ON} but {p.dtype} and {p.device.type}"
                )
    elif group.get("capturable") and any(p.device.type == "cpu" for p in params):
        what, xla = captured[bool(group["foreach"])]
        raise AssertionError(
            f"If capturable=True, {what} must be on supported devices: "
            f"{_CAPTURED_ON if xla else _CAPTURED_ON[:-1]}."
        )
