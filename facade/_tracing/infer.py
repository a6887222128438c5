"""Making a state: what is known for good of a call's results, worked out when it is first met."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import jax

from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.program import Node

from .._core.trie import NODE, NOWHERE, State, Trace, Value, local
from .._rules.devices import put_results
from .._rules.no_derivative import refuse_arguments, refuse_complex, refuse_integers
from .._rules.node_edges import asks_nobody
from .._rules.saved_columns import saved_places
from .._rules.strides.of_results import strides_of
from .user_lines import is_users, recorded_line
from .user_lines import user_line as user_line

MOST_WEIGHT = 400  # the most that one node counts for in the budget


UNSAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
    "inference mode in computation tracked by autograd. To work around this, you can make a clone "
    "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)


def _refuse_inference(state: State) -> None:
    """Raise if a tensor made in inference mode would be saved for backward."""
    for _, index in saved_places(state):
        if index >= 0 and state.operands[index].inference:
            raise RuntimeError(UNSAVED)


def refuse_inference_among(tensors: list[Any]) -> None:
    """Raise if autograd would save tensors of both kinds, as a convolution does."""
    mode = local.mode
    if mode.grad and any(t._tracked for t in tensors):
        if any(t.is_inference() for t in tensors):
            raise RuntimeError(UNSAVED)


# These look at their operands before they call what saves them.
_LOOK_FIRST = frozenset(
    ("_native_batch_norm", "cdist", "cross_entropy", "native_group_norm", "nll_loss")
    + ("scaled_dot_product_attention",)
)


def _refuse_inference_first(state: State, call: Any, inputs: list[Value]) -> None:
    """Raise for inference tensors before shapes are checked: PyTorch saves operands first."""
    op, mode = getattr(call, "op", None), state.mode
    if op is None or op.view or not op.differentiable or not mode.grad or mode.inference:
        return
    if op.name in _LOOK_FIRST:
        return
    kinds = {v.inference for v in inputs if not v.weak}
    if len(kinds) == 2 and any(v.requires_grad for v in inputs):
        tried = State(state, None, mode)
        tried.call, tried.operands = call, tuple(inputs)
        _refuse_inference(tried)


_OF_JAX = ("-----", "For simplicity, JAX")  # how JAX's notes on hidden frames begin


def bare(error: Exception) -> Exception:
    """Return the error without JAX's frames and notes; they hide the user's line."""
    error.__dict__.pop("__notes__", None)
    return error.with_traceback(None)


def in_users_frames(error: Exception) -> Exception:
    """Return the error of a function given to `call_jax`, with its own code's frames."""
    notes = [n for n in getattr(error, "__notes__", ()) if not n.startswith(_OF_JAX)]
    frames = []
    tb = error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if is_users(name) and "/flax/" not in name:
            frames.append((tb.tb_frame, tb.tb_lasti, tb.tb_lineno))
        tb = tb.tb_next
    bare(error)
    for note in notes:
        error.add_note(note)
    kept: Any = None
    for place in reversed(frames):
        kept = TracebackType(kept, *place)
    return error.with_traceback(kept)


def step(
    trace: Trace,
    key: Any,
    call: Any,
    inputs: list[Value],
    *,
    differentiable: bool = True,
    overwrites: Value | None = None,
    primal: State | None = None,
    strides: Any = None,
) -> State:
    """Make the state after calling `call` on `inputs`, and enter it into the trie.

    Args:
      differentiable: False where the caller knows that no gradient may flow.
      overwrites: the value whose storage the (first) result is written into.
      primal: for a gradient node, the state that it differentiates.
      strides: of the results, where what `inputs` are does not tell.
    """
    state = trace.state
    if state.mode.grad and differentiable:
        refuse_arguments(call, inputs)
    try:
        avals = put_results(call, inputs, call.abstract(tuple(v.aval for v in inputs)))
    except jax.errors.JAXTypeError:
        raise
    except Exception as error:
        if differentiable:
            _refuse_inference_first(state, call, inputs)
        op = getattr(call, "op", None)
        if local.vmap is not None and op is not None:
            error = local.vmap.reword_error(op, inputs, call, error)
        if getattr(op, "namespace", "") == "opaque":
            raise in_users_frames(error) from None
        raise bare(error) from None
    mode = state.mode
    after = State(state, None, mode)
    where = recorded_line()
    node = Node(call, tuple(v.index for v in inputs), avals, None, where)
    after.entry, after.call, after.where = node, call, where
    # A model weighs as much as the ops in it: each call of it is compiled anew.
    after.nodes += min(getattr(getattr(call, "op", None), "weight", 1), MOST_WEIGHT)
    after.operands = tuple(inputs)
    op = getattr(call, "op", None)
    tracks = mode.grad and differentiable and (op is None or op.differentiable)
    tracks = tracks and any(v.requires_grad for v in inputs)
    tracks = tracks and not asks_nobody(call, inputs)
    shared = inputs[0] if op is not None and op.view and inputs else None
    inference = mode.inference
    if shared is not None or overwrites is not None:
        inference = (shared or overwrites).inference  # type: ignore[union-attr]
    if shared is None and tracks and any(v.inference for v in inputs):
        _refuse_inference(after)
    if tracks:
        refuse_complex(op, avals)
        refuse_integers(op, avals, inputs)
    values = []
    if strides is None and overwrites is None:
        strides = strides_of(call, inputs, avals)
    kept = None if overwrites is None else overwrites.strides
    if op is not None and op.name == "set_":  # takes the memory of another tensor, or none
        kept = inputs[1].strides if len(inputs) > 1 else None
    constant = () if op is None else op.constant_outputs
    for k, aval in enumerate(avals):
        needs = tracks and is_differentiable(aval.dtype) and k not in constant
        storage, version = -1, 0
        if k == 0 and overwrites is not None:
            storage, version = overwrites.storage, overwrites.version + 1
        elif shared is not None:
            storage, version = shared.storage, shared.version
        values.append(
            Value(
                after.count + k,
                aval,
                requires_grad=needs,
                role=NODE if needs else NOWHERE,
                state=after,
                out=k,
                storage=storage,
                version=version,
                inference=inference,
                strides=(
                    kept
                    if k == 0 and overwrites is not None
                    else strides[k]
                    if strides is not None
                    else None
                ),
            )  # fmt: skip
        )
    after.values = tuple(values)
    after.value = values[0] if values else None
    after.count += len(values)
    if primal is not None:
        node.primal = primal
    for observe in mode.observers:
        observe(after)
    local.trie.states += 1
    state.next[key] = after
    return after
