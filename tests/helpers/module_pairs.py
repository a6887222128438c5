"""A module of torch and ours with its weights, run side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import leafax


def given_to(t: Any, x: Any) -> Any:
    """NumPy arrays as tensors of a library, floats as leaves that require grad."""
    if isinstance(x, np.ndarray):
        made = t.from_numpy(x.copy())
        return made.requires_grad_() if x.dtype == np.float64 else made
    if isinstance(x, (tuple, list)):
        return type(x)(given_to(t, y) for y in x)
    return {k: given_to(t, v) for k, v in x.items()} if isinstance(x, dict) else x


def tensors_in(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in tensors_in(y)]
    return [x] if hasattr(x, "requires_grad") else []


def run(t: Any, make: Callable[[Any], Any], args: Any, kwargs: Any, state: Any) -> list[Any]:
    """Outputs and gradients of inputs and parameters, as arrays; the modes as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = make(t).double()
    if state is not None:
        module.load_state_dict({k: t.from_numpy(v.copy()) for k, v in state.items()})
    args, kwargs = given_to(t, args), given_to(t, kwargs)
    outs = [o for o in tensors_in(module(*args, **kwargs)) if o.dtype == t.float64]
    facts: list[Any] = [o.detach().numpy().copy() for o in outs]
    wanted = [o for o in outs if o.requires_grad]
    leaves = [x for x in tensors_in([args, kwargs]) if x.requires_grad] + [*module.parameters()]
    if wanted:
        total = sum((o * o).sum() + o.sum() for o in wanted)
        grads = t.autograd.grad(total, leaves, allow_unused=True)
        facts += [None if g is None else g.numpy().copy() for g in grads]
    return facts


def same(make: Callable[[Any], Any], *args: Any, tolerance: float = 1e-9, **kwargs: Any) -> None:
    """Compare outputs and gradients of a module that `make(library)` makes."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = {k: v.detach().numpy().copy() for k, v in make(torch).double().state_dict().items()}
    ours = run(leafax, make, args, kwargs, state)
    theirs = run(torch, make, args, kwargs, state)
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a is None) == (b is None), i
        if b is not None:
            assert a.shape == b.shape, i
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(i))


def said(t: Any, call: str, scope: dict[str, Any]) -> tuple[str, str]:
    """The kind and the words of what a call raises."""
    try:
        eval(call, {"t": t, "nn": t.nn, **given_to(t, scope)})
    except Exception as error:
        return type(error).__name__, str(error)
    raise AssertionError(f"{call} raises nothing in {t.__name__}")
