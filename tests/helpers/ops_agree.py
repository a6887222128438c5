"""One call on live PyTorch and on the op table: same results and gradients, or the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from leafax.functional.program.op import TABLE


def to_jax(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return jnp.asarray(x.detach().numpy())
    if isinstance(x, torch.dtype):
        return np.dtype(str(x).removeprefix("torch."))
    if isinstance(x, (tuple, list)) and any(isinstance(y, torch.Tensor) for y in x):
        return tuple(to_jax(y) for y in x)
    return x


def _leaves(x: Any, found: list[torch.Tensor]) -> Any:
    """`x` with fresh leaves for its floating point tensors, which are put into `found`."""
    if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        found.append(x.detach().clone().requires_grad_())
        return found[-1]
    if isinstance(x, (tuple, list)) and any(isinstance(y, torch.Tensor) for y in x):
        return type(x)(_leaves(y, found) for y in x)
    return x


def _place(x: Any, values: list[Any]) -> Any:
    """The JAX form of `x`, its floating point tensors taken from the front of `values`."""
    if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        return values.pop(0)
    if isinstance(x, (tuple, list)) and any(isinstance(y, torch.Tensor) for y in x):
        return tuple(_place(y, values) for y in x)
    return to_jax(x)


def many(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def reference(name: str) -> Callable[..., Any]:
    """PyTorch's function of that name, or its method."""
    home: Any = torch
    *path, last = name.split(".")
    for part in path:
        home = getattr(home, part)
    return getattr(home, last) if hasattr(home, last) else getattr(torch.Tensor, last)


def firing(entry: Any, args: Any, kwargs: Any) -> Exception | None:
    """The first data-dependent error of a call."""
    for fault in entry.check(*args, **kwargs) if entry.check else ():
        bad = np.broadcast_to(np.asarray(fault.bad), np.shape(fault.bad))
        if bad.any():
            value = None
            if fault.value is not None:
                value = np.broadcast_to(np.asarray(fault.value), bad.shape)[bad].flat[0]
            return fault.error(fault.message.format(value=value))
    return None


def agree(
    name: str, *args: Any, theirs: Callable[..., Any] | None = None, tol: float | None = None,
    grad: bool = True, **kwargs: Any,
) -> None:  # fmt: skip
    """Compare values, dtypes, shapes, gradients and errors of one call."""
    entry, leaves = TABLE[name], []
    made = tuple(_leaves(a, leaves) for a in args)
    named = {k: _leaves(v, leaves) for k, v in kwargs.items()}
    error: Exception | None = None
    try:
        expected = (theirs or reference(name))(*made, **named)
    except Exception as caught:
        error = caught
    with jax.enable_x64(True):
        raised: Exception | None = None
        flat = [to_jax(leaf) for leaf in leaves]

        def body(*values: Any) -> Any:
            rest = list(values)
            full = [_place(a, rest) for a in made]
            return entry.fn(*full, **{k: _place(v, rest) for k, v in named.items()})

        try:
            jax.eval_shape(body, *flat)
            rest = list(flat)
            full = [_place(a, rest) for a in made]
            raised = firing(entry, full, {k: _place(v, rest) for k, v in named.items()})
        except Exception as caught:
            raised = caught
        call = f"{name}{args} {kwargs}"
        if error is not None or raised is not None:
            # PyTorch hides some of its error classes behind an underscore.
            kinds = [type(e).__name__.lstrip("_") for e in (error, raised)]
            if kinds[0] != kinds[1] or str(error) != str(raised):
                raise AssertionError(f"{call}: {raised!r} but PyTorch: {error!r}") from raised
            return
        got, pull = jax.vjp(jax.jit(body), *flat)
        seeds = []
        for g, e in zip(many(got), many(expected), strict=True):
            assert tuple(g.shape) == tuple(e.shape), f"{call}: {g.shape}, PyTorch: {e.shape}"
            assert str(g.dtype) == str(e.dtype).removeprefix("torch."), f"{call}: {g.dtype}"
            assert not g.weak_type, call
            limit = tol or (1e-10 if e.dtype in (torch.float64, torch.complex128) else 2e-5)
            np.testing.assert_allclose(
                np.asarray(g), e.detach().numpy(), rtol=limit, atol=limit, err_msg=call
            )
            seeds.append(torch.linspace(0.5, 1.5, e.numel(), dtype=torch.float64).reshape(e.shape))
        seeds = [s.to(e.dtype) for s, e in zip(seeds, many(expected), strict=True)]
        wanted = [(e, s) for e, s in zip(many(expected), seeds, strict=True) if e.requires_grad]
        if not grad or not leaves or not wanted:
            return
        pulled = torch.autograd.grad(
            [e for e, _ in wanted], leaves, [s for _, s in wanted], allow_unused=True
        )
        cotangents = tuple(
            to_jax(s) if e.requires_grad else np.zeros(e.shape, jax.dtypes.float0)
            for e, s in zip(many(expected), seeds, strict=True)
        )
        if isinstance(got, tuple):
            ours = pull(type(got)(*cotangents) if hasattr(got, "_fields") else cotangents)
        else:
            ours = pull(cotangents[0])
        for leaf, o, t in zip(leaves, ours, pulled, strict=True):
            t = torch.zeros_like(leaf) if t is None else t
            limit = tol or (1e-8 if leaf.dtype == torch.float64 else 1e-4)
            np.testing.assert_allclose(
                np.asarray(o), t.numpy(), rtol=limit, atol=limit, err_msg=f"gradient of {call}"
            )
