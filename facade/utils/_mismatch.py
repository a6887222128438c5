"""Errors for a checkpointed function that does something else when it is called again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .._core.dtypes import device, of
from .._core.trie import State, Value

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint‑debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""

_HEAD = "+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+"
_LINE = "+------------------------------------------------------------------------------+"
_REPORT = f""" \
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

{_HEAD}
|        1. Stack traces of the operators that ran in the original forward     |
{_LINE}

{{forward_traces}}
{_HEAD}
|        2. Stack traces of the operators that ran during recomputation        |
{_LINE}

{{recompute_traces}}
{_HEAD}
|       3. Log of operators in the original forward and recomputation          |
{_LINE}
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

IMPORTANT: Differences in "detach" calls between the original forward and the
           recomputation are expected. They are introduced by the checkpointing
           mechanism and can be ignored.

Operations executed during the original forward:

{{forward_ops}}

Operations executed during recomputation:

{{recompute_ops}}

{_LINE}
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To identify where the mismatch may be coming from, you can do the following:

 1) Compare the operators ran during original forward and recomputation to
    see where they differ. These operators are printed above in the order they
    were executed.

 2) Review the stack trace for each operator to locate its invocation source.
    Each operator's stack trace is printed in their execution order.

 Note that the logs can be quite long. Here's how they are structured:
 (Tip: you can Ctrl-f for these headers)

 1. Stack traces of the operators that ran in the original forward
 2. Stack traces of the operators that ran during recomputation
 3. Log of operators in the original forward and recomputation
 4. Error message                                             <--- You are here
--------------------------------------------------------------------------------
"""


class CheckpointError(RuntimeError):
    """The function did not do in backward what it did in forward."""


def metadata_of(v: Value) -> dict[str, Any]:
    """Return what the determinism check compares of a saved tensor."""
    return {"shape": v.shape, "dtype": of(v.dtype), "device": device("cpu")}


def compare(first: Sequence[Any], found: Sequence[Any], *, early_stop: bool, fewer: bool) -> None:
    """Raise if the tensors saved in backward are not those of forward.

    Args:
      first, found: what the determinism check knows of each, then and now.
      fewer: the second call recorded fewer nodes, whatever they save.

    Raises:
      CheckpointError: for more of them (unless `early_stop`), fewer, and others.
    """
    if len(found) > len(first) and not early_stop:
        raise CheckpointError(
            "torch.utils.checkpoint: trying to save more tensors during recomputation than "
            f"during the original forward pass.\n{TIP}"
        )
    if fewer or len(found) < len(first):
        raise CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the "
            "original forward and recomputation.\nNumber of tensors saved during forward: "
            f"{len(first)}\nNumber of tensors saved during recomputation: {len(found)}.\n{TIP}"
        )
    differ = "".join(
        f"tensor at position {k}:\nsaved metadata: {a}\nrecomputed metadata: {b}\n"
        for k, (a, b) in enumerate(zip(first, found, strict=False))
        if a != b
    )
    if differ:
        raise CheckpointError(
            "torch.utils.checkpoint: Recomputed values for the following tensors have "
            f"different metadata than during the forward pass.\n{differ}.\n{TIP}"
        )


def report(first: Sequence[State], found: Sequence[State], error: CheckpointError) -> NoReturn:
    """Raise the long form of `error`, with the ops of both calls."""
    raise CheckpointError(
        _REPORT.format(
            forward_traces=_traces(first, "original"),
            recompute_traces=_traces(found, "recompute"),
            forward_ops="\n".join(f"{s.call!r}" for s in first),
            recompute_ops="\n".join(f"{s.call!r}" for s in found),
        )
    ) from error


def _traces(steps: Sequence[State], label: str) -> str:
    return "".join(
        f"{s.call!r}   ({k} of {len(steps)} in {label})\n\n"
        + (f"{s.where[0]}:{s.where[1]}\n" if s.where else "")
        + "\n\n"
        for k, s in enumerate(steps, 1)
    )


def spent(in_group: bool) -> CheckpointError:
    """Return the error for a tensor that is asked for twice in one backward pass."""
    extra = (
        "Performing two backward calls that overlap (i.e. require the same saved activation in "
        "order to compute gradients) is not allowed while under the "
        "torch.utils.checkpoint.GraphExecGroup context. "
    )
    return CheckpointError(
        "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
        f"once. {extra if in_group else ''}If you are calling ctx.saved_tensors in backward, make "
        "sure to do so only once. Otherwise please open an issue with details on your use case."
    )
