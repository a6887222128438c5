"""Selective checkpointing: a policy says of each op whether its result is kept or recomputed."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from leafax.functional.program.program import Slot

from .._core.trie import State, Trace
from .._ops.calls.aten_names import OpOverload, OpOverloadPacket, aten, overload_of
from .._tracing.inputs import make

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend "
    "on global state that changed between forward and backward."
)

# Ops that policies are not asked of: what only looks at a tensor, and `detach`.
SAC_IGNORED_OPS = {
    aten.detach.default,
    *(getattr(getattr(aten, name), "default") for name in (  # noqa: B009
        "dim", "is_contiguous", "is_non_overlapping_and_dense", "is_strides_like_format", "numel",
        "size", "storage_offset", "stride", "sym_numel", "sym_size", "sym_storage_offset",
        "sym_stride",
    )),
    aten.is_contiguous.memory_format,
}  # fmt: skip


class CheckpointPolicy(enum.Enum):
    """Name what a policy may say of an op's result.

    `*_SAVE`: it is kept; `*_RECOMPUTE`: it is computed again; `*_CPU_OFFLOAD`: as in PyTorch
    outside of its compiler, it is computed again.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """Tell a policy what it gets beside the op and its arguments.

    Attributes:
      is_recompute: False: policies are asked in the forward pass alone.
      op_output: the op's result.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class _Storage:
    """Hold what the forward pass kept: by op and by how often it had been called."""

    def __init__(self, mutable: bool) -> None:
        self.kept: dict[OpOverload, dict[int, Any]] = {}  # None: to be computed again
        self.mutable = mutable  # do not mind writes to what was kept
        self.versions: dict[int, int] = {}  # of the storages of the results that were kept
        self.written = False
        self.holders: list[tuple[Any, int]] = []  # tensors on those storages, their versions

    def watch(self, trace: Trace) -> None:
        """Forward is over: see what it wrote to, and who could write later."""
        self.written = any(
            v.version > self.versions.get(v.storage, v.version)
            for s in trace.state.path() for v in s.values
        )  # fmt: skip
        for r in trace.refs:
            t = r()
            if t is not None and t._trace is trace and t._v.storage in self.versions:
                self.holders.append((r, t._version))

    def check(self) -> None:
        """Raise if somebody wrote to what was kept."""
        alive = [(r(), version) for r, version in self.holders]
        later = any(t is not None and t._version != version for t, version in alive)
        if (self.written or later) and not self.mutable:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )


class Caching:
    """The context of the forward pass."""

    def __init__(self, policy: Callable[..., Any], storage: _Storage) -> None:
        self.policy, self.storage = policy, storage

    def __enter__(self) -> Caching:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def decide(self, steps: list[State], trace: Trace) -> None:
        """Ask the policy about each op that was recorded, and keep what it says."""
        for s in steps:
            func = overload_of(s)
            outs = [make(v, trace) for v in s.values]
            out = tuple(outs) if s.call.many else outs[0]
            args, kwargs = _arguments(s, trace)
            context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
            policy = self.policy(context, func, *args, **kwargs)
            if isinstance(policy, bool):
                policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
            saves = policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
            kept = self.storage.kept.setdefault(func, {})
            kept[len(kept)] = outs if saves else None
            if saves:
                self.storage.versions.update((v.storage, v.version) for v in s.values)
        self.storage.watch(trace)


def _arguments(state: State, trace: Trace) -> tuple[tuple[Any, ...], dict[str, Any]]:
    call = state.call
    if not hasattr(call, "args"):
        return tuple([make(v, trace) for v in state.operands]), {}
    args = tuple([_filled(a, state, trace) for a in call.args])
    return args, {k: _filled(a, state, trace) for k, a in call.kwargs.items()}


def _filled(template: Any, state: State, trace: Trace) -> Any:
    if isinstance(template, Slot):
        return make(state.operands[template.index], trace)
    if type(template) in (tuple, list):
        return type(template)(_filled(x, state, trace) for x in template)
    return template


_CONSUMED = object()


class Cached:
    """The context of the recomputation."""

    def __init__(self, storage: _Storage) -> None:
        self.storage = storage

    def __enter__(self) -> Cached:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def kept(self, steps: list[State]) -> dict[State, list[Any]]:
        """Return the tensors that stand for the results of these steps, where they were kept."""
        self.storage.check()
        found, counts = {}, dict.fromkeys(map(overload_of, steps), 0)
        for s in steps:
            func = overload_of(s)
            index = counts[func]
            counts[func] += 1
            stored = self.storage.kept.get(func)
            if stored is None:
                raise RuntimeError(
                    f"{func} encountered during backward but not found in storage. {_MISMATCH}"
                )
            if index not in stored:
                raise RuntimeError(
                    f"{func} invocation index {index} encountered during backward but not found "
                    f"in storage. {_MISMATCH}"
                )
            if stored[index] is _CONSUMED:
                raise RuntimeError(
                    "Trying to backward an extra time. You are only allowed to backward once on "
                    "any region computed under selective activation checkpoint."
                )
            if stored[index] is not None:
                found[s] = stored[index]
                stored[index] = _CONSUMED
        return found


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Caching, Cached]:
    """Return the two contexts for `checkpoint(..., context_fn=...)` that keep what a policy says.

    Args:
      policy_fn_or_list: `policy(ctx, op, *args, **kwargs) -> CheckpointPolicy` (or a bool: keep),
        where `op` is an overload such as `leafax.ops.aten.mm.default`; or a list of overloads
        whose results are kept.
      allow_cache_entry_mutation: do not mind writes to what was kept; the recomputation reads
        it as it was.

    Raises:
      ValueError: for a list with anything else in it.
      TypeError: for anything else.

    >>> import functools, leafax
    >>> from leafax.utils import checkpoint as ck
    >>> keep = functools.partial(
    ...     ck.create_selective_checkpoint_contexts, [leafax.ops.aten.mm.default])
    >>> x = leafax.ones(2, 2, requires_grad=True)
    >>> ck.checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False,
    ...               context_fn=keep).sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        ops = policy_fn_or_list
        for op in ops:
            if not isinstance(op, OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if "
                    "you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}. {extra}"
                )

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            saves = any(op is o for o in ops)
            return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage = _Storage(allow_cache_entry_mutation)
    return Caching(policy, storage), Cached(storage)
