"""Compiled programs, found again by structure, never by Python identity.

A program met for the first time runs op by op if that is the cheaper way to its values: every
op that ran alone before dispatches in microseconds, while compiling the program costs more the
longer it is. Met again, it is compiled whole, a long one when that was worth it (`policy.py`).
`Plan.run` says which it did.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from itertools import starmap
from typing import Any

import jax

from ..lowering.lower import Side, is_checked, lower, prune
from ..program.platform import platform, where_data_are_made
from ..program.program import Node, Program
from ..program.transformation import outside, transformation
from . import placement
from .confined import confined
from .executable import compile_whole
from .instructions import note_compiled
from .interrupts import interrupts_held
from .memory import as_out_of_memory, keep_freed_memory
from .memory_mappings import too_many
from .meta_outputs import WithMeta, without_meta
from .op_by_op import OpByOp
from .outcome import Outcome
from .packed_inputs import Packing
from .pieces import forget_pieces
from .policy import forget_runs
from .segments import Scattered
from .several_devices import Homes, Pairs, several
from .single_ops import forget_compiled_ops

_MAX_PLANS = 4096
_wide: list[Any] = []  # contexts of 64-bit mode that nobody is in: to make one takes microseconds


class Plan:
    """One program and its executable.

    Attributes:
      program: pruned of what nothing needs, as it is given.
      donate: the inputs whose buffers the outputs take.
      guards: outputs that are what an input was where a check found something, see `lower`.
      homes: outputs that lie where the inputs lay that they replace.
      side: residual structures and fault sites, known once the program was traced.
      runs: how often it ran.
      used: when it ran last, by `time.perf_counter`.
      executable: the `jax.stages.Compiled`, to be asked about; None before it was compiled.
      is_part: it is a part of a program that runs beside another plan.
    """

    is_part = False

    def __init__(
        self, program: Program, donate: tuple[int, ...] = (), frozen: tuple[int, ...] = (),
        guards: Pairs = (), homes: Pairs = (),
    ) -> None:  # fmt: skip
        self.program = program
        devices = placement.devices_of(program)
        mesh = placement.mesh_of(devices)
        self.homes = Homes(homes, bool(mesh))
        self._joined = placement.Joined(program, mesh)
        self.side = Side()
        self.donate = donate
        self.guards = guards
        self.runs = 0
        self.used = 0.0
        self.nodes = [e for e in self.program.entries if isinstance(e, Node)]
        self._device = placement.single_device_of(devices)
        self._checked = any(map(is_checked, self.nodes))
        self._raised: list[BaseException] | None = None  # by host callbacks; None if it has none
        # The executable, and how its arguments are made of the inputs: set at once.
        self._ready: tuple[Any, Packing | None] | None = None
        self.executable: Any = None
        self._packing = Packing.of(self.program, frozen, donate) if frozen else None
        self._sizes: tuple[int, int] = (len(self.program.outputs), 0)
        self._flat: Any = None
        self._lock = threading.Lock()
        self._op_by_op = OpByOp(self.program, self._checked, guards)

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Outcome:  # fmt: skip
        """Run on one array (or Python number) an `Input`.

        Args:
          host: outputs may be arrays of NumPy.
          once: the program is not likely to be met again.
          landed: an empty list that has what the executable returned as soon as it did, should
            the caller be interrupted then; for `outcome`.

        Raises:
          OutOfMemoryError: the program needs more memory than there is. The inputs are untouched.
        """
        try:
            if transformation() is not None:  # what traces the caller has no part in it
                with outside():
                    return self._run(args, host, once, [] if landed is None else landed)
            return self._run(args, host, once, [] if landed is None else landed)
        except Exception as error:
            if placement.is_misplaced(error) and not landed:
                gathered = placement.gather_inputs(self.program, args)
                return self._run(gathered, host, once, [] if landed is None else landed)
            if self._raised:  # by a host callback; JAX tells of it in words of its own
                found = self._raised[0]
                self._raised.clear()
                raise found from None
            if landed or (named := as_out_of_memory(error, self.program, self.executable)) is error:
                raise
            raise named from error

    def outcome(self, flat: tuple[Any, ...], how: str, seconds: float) -> Outcome:
        """Return the outcome of a run, from all that the executable returned."""
        n, r = self._sizes
        faults = flat[-1] if self._checked else None
        outputs = self._joined.leave(flat[:n]) if several else flat[:n]
        return Outcome(outputs, flat[n : n + r], faults, how, seconds)

    def _run(self, args: Sequence[Any], host: bool, once: bool, landed: list[Any]) -> Outcome:
        start = time.perf_counter()
        self.runs += 1
        self.used = start
        try:
            wide = _wide.pop()
        except IndexError:
            wide = jax.enable_x64(True)
        with wide:
            if several:
                args = self.homes.enter(self._joined.enter(args), self)
            ready: Any = self._ready
            if confined:
                found = self._op_by_op.run(args, self.side, _nothing, host=True)
                return Outcome(*found, time.perf_counter() - start)
            how = "cached"
            if ready is None:
                policy = self._op_by_op.policy
                if policy.runs_op_by_op(self.donate, self.runs > 1, once):
                    why = policy.reason(once)
                    with placement.default_device(self._device):
                        found = self._op_by_op.run(args, self.side, _make_room, host)
                    found = (placement.put_outputs(self._device, found[0]), *found[1:])
                    return Outcome(*found, time.perf_counter() - start, why)
                _make_room()
                with self._lock:
                    if self._ready is None:
                        self._compile(args)
                        policy.note_compiled(self)
                        how = "compiled"
                    ready = self._ready
            jitted, given = ready[0], _given(ready, args)
            if given is None:  # they change, after all
                with self._lock:
                    if self._packing is not None or self._ready is None:  # or it was forgotten
                        self._packing = None
                        self._compile(args)
                        how = "compiled"
                    jitted, given = self._ready[0], args  # type: ignore[index]
            # `extend` runs in C: an interrupt finds either nothing done or the results in the list.
            if how == "compiled":  # the first call runs Python code of JAX
                with interrupts_held():
                    landed.extend(starmap(jitted, (given,)))
            else:
                landed.extend(starmap(jitted, (given,)))
            if self._raised is not None:
                try:
                    jax.block_until_ready(landed[0])
                    jax.effects_barrier()
                except Exception:
                    landed.clear()  # the results are worth nothing
                    raise
        _wide.append(wide)
        return self.outcome(landed[0], how, time.perf_counter() - start)

    def run_whole(self) -> None:
        """Compile at the next run, whatever that costs: the program will run many times."""
        self._op_by_op.policy.whole = True

    def exchange(self, ready: Any) -> Any:
        """Take another executable, or None for one to be compiled; return the one before."""
        with self._lock:
            before, self._ready, self._flat = self._ready, ready, None
        return before

    def forget(self) -> None:
        """Release the executable; the next run compiles it again."""
        self.executable = None
        for ready in (self.exchange(None), *self.homes.forget()):
            if ready is not None:
                ready[0].clear_cache()

    @property
    def compiled(self) -> bool:
        """True while it holds an executable."""
        return self._ready is not None

    def _compile(self, args: Sequence[Any]) -> None:
        keep_freed_memory()
        fn, packing = lower(self.program, self.side, self.guards), self._packing
        n = len(self.program.outputs)
        given = args if packing is None else packing.packed(args)
        if given is None:
            given, packing, self._packing = args, None, None

        def flat(*given: Any) -> tuple[Any, ...]:
            outs, residuals, faults = fn(*(packing.unpacked(given) if packing else given))
            outs = self.homes.tie(outs)
            self._sizes = (n, len(residuals))
            return (*outs, *residuals, faults) if self._checked else (*outs, *residuals)

        self._flat = flat
        donate = packing.donated(self.donate) if packing else self.donate
        made = compile_whole(flat, self.program, self.nodes, given, donate, self._device)
        if made.raised is not None:
            self.donate = ()
        self.executable, self._raised = made.compiled, made.raised
        note_compiled(made.name, self)
        self._ready = made.jitted, packing  # at last: other threads run it at once

    def lowered(self, args: Sequence[Any]) -> Any:
        """Return the program's `jax.stages.Lowered`, for its text and memory analysis."""
        with jax.enable_x64(True):
            if self._ready is None:
                self._compile(args)
            assert self._ready is not None
            given = _given(self._ready, args)
            if given is None:
                given, self._packing = args, None
                self._compile(args)
            return self._ready[0].lower(*given)


def _given(ready: tuple[Any, Packing | None], args: Sequence[Any]) -> Sequence[Any] | None:
    """Return an executable's arguments; None if it cannot take these inputs."""
    packing = ready[1]
    return args if packing is None else packing.packed(args)


def _nothing() -> None:
    """Make room for no program: none is compiled."""


_PLANS: OrderedDict[Any, Any] = OrderedDict()
_LOCK = threading.RLock()  # the plan of a program on several devices asks for those of its parts


def _make_room() -> None:
    """Forget the programs that ran least recently, and all of single ops, if they are too many."""
    if too_many():
        with _LOCK:
            held = [plan for plan in _PLANS.values() if plan.compiled]
        held.sort(key=lambda plan: plan.used)
        for plan in held[: len(held) // 2 + 1]:
            plan.forget()
        forget_compiled_ops()
        forget_pieces()
        forget_runs()


def plan_for(
    program: Program, donate: tuple[int, ...] = (), frozen: tuple[int, ...] = (),
    guards: Pairs = (), homes: Pairs = (), pruned: Program | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a program, one for equal structure.

    Args:
      donate: inputs whose buffers the outputs may take.
      frozen: inputs that are likely to be the same arrays in every run, see `Packing`.
      guards: places of outputs, and of the inputs that they write over, see `lower`.
      homes: places of outputs, and of the inputs that they replace.
      pruned: the program without what nothing needs, where that is known.
    """
    placed = placement.devices_of(program)
    here = where_data_are_made() if placed else platform()
    key = (program.key, donate, frozen, guards, here)
    with _LOCK:
        plan: Any = _PLANS.get(key)
        if plan is None:
            pruned = prune(program) if pruned is None else pruned
            pruned, guards, homes, meta = without_meta(pruned, guards, homes)
            pruned = prune(pruned) if meta else pruned
            made: Any
            if placement.is_divided(pruned, here):
                made = Scattered(pruned, donate, guards, here, plan_for)
            else:
                made = Plan(pruned, donate, frozen, guards, homes)
            plan = _PLANS[key] = WithMeta(made, meta) if meta else made
            if len(_PLANS) > _MAX_PLANS:
                _PLANS.popitem(last=False)
        else:
            _PLANS.move_to_end(key)
        return plan
