"""Tensors inside JAX's transformations: `jax.jit`, `jax.grad`, `jax.vmap` of a function of ours.

While JAX traces a function its values are tracers, which mean nothing once it is done. So what is
recorded there goes into a `Trace` of its own, one for each of JAX's, whose inputs may be tracers:
no tensor ever holds one. It is never cut: a value that is asked for is computed beside it. What
comes from outside is computed outside first, and enters as a constant.

Only while there is such a trace `local.trace` is a property, which looks at what JAX is tracing.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakSet, WeakValueDictionary, ref

import jax
import numpy as np

from leafax.functional.lowering.lower import lower as lower_program
from leafax.functional.program.program import Aval, Program
from leafax.functional.program.transformation import (
    enclosing,
    name_of_trace,
    outside,
    transformation,
    within_trace,
)

from .._core.trie import LEAF, NOWHERE, Local, State, Trace, Value, local, resting
from .tracer_checks import refuse_constant

_alive: WeakSet[Trace] = WeakSet()
_WIDE = ("float64", "complex128")


def _trace_here(self: Any) -> Trace:
    """Return the trace that this thread records in: of JAX's tracing now, or its own."""
    now, own = transformation(), self.__dict__
    if now is None:
        trace: Trace | None = own["trace"]
        if not _alive:
            _uninstall()
    else:
        inner = own.setdefault("inner", WeakValueDictionary())
        trace = inner.get(id(now))
        if trace is None:
            trace = inner[id(now)] = _new(self.mode, now)
    assert trace is not None
    mode = self.mode
    if trace.state.mode is not mode:  # it was changed while another trace was running
        after = trace.state.next.get(mode)
        if after is None or mode.anomaly:
            after = trace.state.next[mode] = State(trace.state, None, mode)
        trace.state = after
    return trace


def _set_trace(self: Any, trace: Trace) -> None:
    now, own = transformation(), self.__dict__
    if now is None or "trace" not in own:
        own["trace"] = trace
        return
    trace.inside = now
    _alive.add(trace)
    own.setdefault("inner", WeakValueDictionary())[id(now)] = trace


def _new(mode: Any, now: Any) -> Trace:
    trace = Trace(State(None, None, mode))  # at a root of its own: nothing is remembered there
    trace.inside = now
    _alive.add(trace)
    return trace


_PROPERTY: Any = property(_trace_here, _set_trace)


def _uninstall() -> None:
    if "trace" in Local.__dict__:
        del Local.trace  # type: ignore[misc]


def begin() -> Trace:
    """Return the trace of what JAX is tracing now, which the thread records in from here on."""
    _ = local.mode  # a thread's own trace is made before
    if "trace" not in Local.__dict__:
        Local.trace = _PROPERTY
    return local.trace


def home(t: Any) -> Trace | None:
    """Return the trace in which a tensor, or what it reads from, is pending; None at rest."""
    if t._trace is not None and not t._trace.outcome.done:
        return t._trace  # type: ignore[no-any-return]
    if t._viewed is not None and t._viewed[1] is not None:
        return home(t._viewed[0])
    store = t.__dict__.get("_store")  # asked as an attribute, views that are noted would get one
    return None if store is None else store.cell._trace


def inside_of(t: Any) -> Any:
    """Return the JAX trace that a tensor's value belongs to; None outside transformations."""
    trace = home(t)
    return None if trace is None else trace.inside


def is_foreign(t: Any, trace: Trace) -> bool:
    """Tell whether `t` may not simply enter `trace`, as one of them is in a transformation."""
    own = t._trace
    if trace.inside is None and (own is None or own.inside is None):
        if not _alive or not t._shares:
            return False  # by far the most
    return inside_of(t) is not trace.inside


def new_tensor(array: Any, requires_grad: bool, inference: bool, make: Any, add: Any) -> Any:
    """Make a tensor inside a transformation: an input of the trace in there."""
    trace = begin()
    if isinstance(array, np.ndarray):
        with outside(), jax.enable_x64(True):
            array = jax.device_put(array)
    aval = Aval(tuple(array.shape), np.dtype(array.dtype))
    kind = resting(aval, requires_grad, LEAF if requires_grad else NOWHERE, inference)
    value = add(trace, kind, array)
    out = make(value, trace)
    if requires_grad:
        trace.sources[value] = out
    return out


def enter_foreign(t: Any, trace: Trace, add: Any) -> Value:
    """Enter a tensor from elsewhere into a transformation's trace as a constant.

    Raises:
      RuntimeError: the tensor belongs to a transformation that is over, or is no argument of the
        function that `call_jax` is tracing.
    """
    if trace.inside is None:  # that of a transformation which is over, or it could not be here
        refuse_over(t)
    refuse_constant()
    array = value_of(t, "jax()")
    found = trace.entered.get(id(t))
    if found is not None and found[0]() is t and found[2] == id(array):
        return found[1]  # type: ignore[no-any-return]
    requires = bool(t._v.requires_grad) and bool(local.mode.grad)
    kind = resting(t._v.aval, requires, LEAF if requires else NOWHERE, t._v.inference)
    value: Value = add(trace, kind, array)
    if requires:
        trace.sources[value] = t  # where a gradient would go: `refuse_gradient` says no
    trace.entered[id(t)] = (ref(t), value, id(array))
    return value


def value_of(t: Any, reason: str) -> Any:
    """Return the array or tracer of a tensor while JAX is tracing.

    Raises:
      RuntimeError: a number is asked for that depends on a tracer, or the tensor belongs to a
        transformation that is over.
    """
    inside = inside_of(t)
    if inside is None:
        with outside():
            return local.runner.observe(t, reason)
    refuse_over(t)
    with within_trace(inside):
        array = local.runner.compute(t)
    if reason not in ("jax()", "to(device)") and isinstance(array, jax.core.Tracer):
        raise RuntimeError(
            f"{reason} asks for a number inside `{name_of_trace(inside)}`, which traces the "
            f"function without one: compute with tensors (`leafax.where`) there, or ask outside "
            f"of it"
        )
    return array


def refuse_over(t: Any) -> None:
    """Raise if a tensor belongs to a transformation that is over."""
    inside = inside_of(t)
    if inside is not None and not any(inside is x for x in enclosing()):
        raise RuntimeError(
            f"this tensor was computed inside `{name_of_trace(inside)}`, which is over: its value "
            f"existed while JAX traced the function only. Return `t.jax()` from the function, and "
            f"make a tensor of what comes out: `leafax.as_tensor(jax.jit(f)(x))`"
        )


def refuse_write(t: Any) -> None:
    """Raise if a tensor from outside is written to inside a transformation."""
    inside = local.trace.inside
    if inside is not None and any(inside_of(x) is not inside for x in _sharing(t)):
        raise RuntimeError(
            f"a tensor from outside is written to inside `{name_of_trace(inside)}`, where its new "
            f"value would exist while JAX traces the function only: write to a copy "
            f"(`t.clone()`), return its `.jax()`, and do `t.copy_(...)` outside"
        )


def _sharing(t: Any) -> list[Any]:
    """Return a tensor together with the tensors that hold the memory it lies in."""
    found = [t]
    if t._viewed is not None and t._viewed[1] is not None:
        found += _sharing(t._viewed[0])
    if t._shares and t._store is not None:
        found += [x for x in (t._base_, t._store.cell) if x is not None]
    return found


def at_home(t: Any) -> AbstractContextManager[None]:
    """Go on within the block where a tensor belongs, outside of this transformation."""
    inside = inside_of(t)
    return outside() if inside is None else within_trace(inside)


def refuse_gradient(leaf: Any) -> None:
    """Raise if a gradient goes to a leaf from outside inside a transformation."""
    inside = local.trace.inside
    if inside is not None and inside_of(leaf) is not inside:
        raise RuntimeError(
            f"backward() inside `{name_of_trace(inside)}` would leave a gradient on a tensor from "
            f"outside, where its value would exist while JAX traces the function only: use "
            f"`leafax.autograd.grad` and return `.jax()` of what it gives, or `detach()` that "
            f"tensor"
        )


def refuse_draw() -> None:
    """Raise if a random number is drawn where it would be a constant of a compiled function."""
    for trace in enclosing():
        name = name_of_trace(trace)
        if name == "jax.grad":
            continue
        same = "in all calls" if name == "jax.jit" else "for all examples"
        raise RuntimeError(
            f"a random number is drawn inside `{name}`, where it would be the same {same}: draw "
            f"outside and hand the tensor over as an argument, or use `jax.random` with a key that "
            f"is one"
        )


def run_inside(program: Program, inputs: list[Any]) -> tuple[Any, ...] | None:
    """Run a program with tracers among its inputs; None if there are none.

    It is traced in the user's own JAX configuration, as everything else in there is, but for ops
    that ask for 64-bit integers.

    Raises:
      TypeError: it needs 64-bit floats, which JAX does not have there.
    """
    if not any(isinstance(x, jax.core.Tracer) for x in inputs):
        return None
    wide = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    if not wide:
        for entry in program.entries:
            for aval in entry.avals:
                if aval.dtype.name in _WIDE and not aval.weak:
                    raise TypeError(
                        f"{aval.dtype.name} inside a JAX transformation, where JAX computes with "
                        f"32 bits: convert with `.float()` before, or set "
                        f"`jax.config.update('jax_enable_x64', True)`"
                    )
    run = lower_program(program)
    if wide:
        return run(*inputs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        try:
            return run(*map(_narrow, inputs))
        except (RuntimeError, TypeError, ValueError, IndexError):
            if not any(getattr(x, "dtype", None) in ("int64", "uint64") for x in inputs):
                raise
    with jax.enable_x64(True):  # labels and indices, whose dtype is checked
        return tuple(map(_narrow, run(*inputs)))


def _narrow(x: Any) -> Any:
    to = {"int64": "int32", "uint64": "uint32"}
    name = to.get(getattr(getattr(x, "dtype", None), "name", ""))
    return x if name is None else x.astype(name)
