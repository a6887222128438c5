"""`Optimizer`: how `step()` becomes part of the step's program.

A subclass says what one parameter's state holds and how optax updates it. `step()` records the
update of exactly the parameters that have a gradient and are not frozen, as a single op, and then
the whole step runs: forward, backward and update are one program. A hyperparameter
that changes is an input of it, so a schedule compiles nothing; the old buffers are donated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import jax

from leafax.functional.program.op import Op

from ..._core.grad_modes import enable_grad, no_grad
from ..._core.locks import sharing
from ..._core.trie import Value, local
from ..._dispatch.macro_steps import MacroStep
from ..._dispatch.record import record
from ..._storage.autograd_roles import overwritten, spread
from ..._storage.enter import enter_all
from ..._storage.write import rebind, write
from ..._tracing.bundles import Bundle, Kinds, holders
from ..._tracing.inputs import NUMBER, add_input, from_array
from .bundling import BundledState, Bundling
from .checks import Captured, has_kernel
from .groups import ParamGroup
from .hyperparameters import Hyperparameters
from .skip import skip_if
from .update import (
    Entering,
    Updated,
    are_simple,
    fit,
    laid_beside,
    replay_update,
    share,
    split_overlapping,
)

# Of hundreds of parameters, in loops that Python's C code runs.
_VALUE, _OF_GRAD = attrgetter("_v"), attrgetter("_grad._v")


def _key(op: Op, params: list[Any], seen: tuple[Any, ...]) -> tuple[Any, ...]:
    return ("step", op, *map(_VALUE, params), *map(_OF_GRAD, params), *map(_VALUE, seen))


def _entered(params: list[Any]) -> bool:
    """Enter parameters and gradients anew where the program was cut since the loss.

    What another thread had meanwhile stays so, as its value tells.

    Returns:
      False if none was at rest.
    """
    tensors = [*params, *[p._grad for p in params]]
    if share(tensors) or not any(t._v.index < 0 for t in tensors):
        return False
    enter_all(tensors, local.trace)
    return True


class Optimizer(Hyperparameters):
    """Base class of the optimizers.

    Args:
      params: an iterable of tensors, of `(name, tensor)` pairs, or of dicts that define groups.
      defaults: hyperparameters of groups that do not set their own.
    """

    #: What is said of `capturable` where it is refused: of one parameter, and of many at once.
    captured = (Captured(), Captured(xla=False))

    #: The state is what `held_names` says, so that it may be bundled.
    bundles = True
    state = BundledState()  # type: ignore[assignment] # an attribute of instances, as a rule

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        self._forget_ops()
        self._note_first_numbers()

    def _forget_ops(self) -> None:
        super()._forget_ops()
        self._entering: dict[int, Entering] = defaultdict(Entering)  # by group
        self._bundling = Bundling()

    # ------------------------------------------------------------ what subclasses say

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        """Return the state of one parameter before its first step: arrays by name."""
        raise NotImplementedError(f"`{type(self).__name__}` has neither `step` nor `init_state`")

    @staticmethod
    def update(
        p: Any,
        g: Any,
        state: dict[str, Any],
        numbers: dict[str, Any],
        choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Compute one parameter's new value and state, in JAX."""
        raise NotImplementedError("an optimizer with `init_state` needs `update`, too")

    def update_recorded(self, p: Any, group: ParamGroup) -> None:
        """Update a parameter by tensors' own ops, for `differentiable=True`."""
        raise NotImplementedError(f"`{type(self).__name__}` cannot be differentiated")

    def held_of(self, params: list[Any], group: ParamGroup) -> list[Sequence[Any]]:
        """Return for each parameter its tensors of `held_names`; made at its first step."""
        names, known = self.held_names(group), list(map(self.state.get, params))
        states: Any = known
        if not all(known):
            states = [s or self.state_of(p, group) for s, p in zip(known, params, strict=True)]
        if len(names) > 1:
            return list(map(itemgetter(*names), states))
        return [[state[name] for name in names] for state in states]

    def writes(self, group: ParamGroup) -> int:
        """Count the writes to a parameter that PyTorch's version counter sees in an update."""
        return 1

    # ------------------------------------------------------------ the step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient, and run the program.

        Args:
          closure: computes the loss anew and returns it, for optimizers that ask again.
        """
        if type(self) is Optimizer:  # which says how nothing is updated
            raise NotImplementedError
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.defaults.get("differentiable", False):
            with enable_grad():
                self._step_recorded()
        elif self.found_inf is None:
            self._step_groups()
        else:
            with no_grad():
                skip_if(self.found_inf, self._touched(), self._step_groups)
        return loss

    step.undoes_itself = True  # type: ignore[attr-defined]

    def _step_groups(self) -> None:
        bundling = self._bundling
        bundling.left -= 1
        if not bundling.left:
            self._bundle()
        for group in self.param_groups:
            params = self.trainable(group)
            if params:
                self._step_params(group, params)

    def _bundle(self) -> None:
        """Bundle the state's tensors, if nothing but steps has to do with them."""
        fields, groups = vars(self), self.param_groups
        self._bundling.wait()
        alone = self.found_inf is None and local.cuts.capture is None and local.trace.inside is None
        if self.bundles and alone and "state" in fields:
            parts = [(g, self.trainable(g), self.held_names(g)) for g in groups]
            if self._bundling.bundle(fields, parts):
                holders.add(self)

    def _step_recorded(self) -> None:
        for group in self.param_groups:
            has_kernel(group, self.trainable(group), self.captured)
            for p in self.trainable(group):
                self.update_recorded(p, group)

    def _touched(self) -> list[Any]:
        """Return the tensors that the next step writes: parameters and their states."""
        found = []
        for group in self.param_groups:
            params = self.trainable(group)
            found += [*params, *[t for held in self.held_of(params, group) for t in held]]
        return found

    def _step_params(self, group: ParamGroup, params: list[Any]) -> None:
        with sharing:  # other threads may read the parameters: before the step or after it
            self._write_step(group, params)

    def _write_step(self, group: ParamGroup, params: list[Any]) -> None:
        held: Any
        if "state" in self.__dict__ or (held := self._bundling.bundle_of(group, params)) is None:
            held = [*chain.from_iterable(self.held_of(params, group))]
        sizes = len(params), len(held)
        op, numbers = self._chosen(group, sizes)
        inputs = self._entering[id(group)].as_inputs(numbers)
        counts = self.writes(group)
        if not self._replayed(op, params, held, inputs, counts):
            has_kernel(group, params, self.captured)
            if not (_entered(params) and self._replayed(op, params, held, inputs, counts)):
                parts = split_overlapping(params)
                if len(parts) > 1:
                    for part in parts:
                        self._write_step(group, part)
                    return
                self._bundling.wait()
                states = tuple(map(tuple, self.held_of(params, group)))
                held = [*chain.from_iterable(states)]
                self._record_update(op, params, states, held, numbers, counts)
        if local.cuts.capture is not None:
            again = partial(self._numbers_now, group, sizes)
            local.cuts.capture.note_numbers(again, op, inputs, numbers, group)

    def _numbers_now(self, group: ParamGroup, sizes: tuple[int, int]) -> tuple[Op, list[Any]]:
        """Return the op that would update a group now, and the numbers that would enter."""
        op, numbers = self._chosen(group, sizes)
        return op, self._entering[id(group)].as_inputs(numbers)

    def _replayed(
        self, op: Op, params: list[Any], held: list[Any] | Bundle, inputs: list[Any],
        counts: int = 1, seen: tuple[Any, ...] = (),
    ) -> bool:  # fmt: skip
        """Take the update as one step, if it was recorded from here before.

        Args:
          inputs: the numbers, or arrays of them.
          seen: other tensors that the op reads.
        """
        trace = local.trace
        key = _key(op, params, seen)
        step = trace.state.next.get(key)
        # A view that was only looked through (`x @ w.t()`) is gone; one that is alive must see it.
        if step is None or share(params) or not fit(held, step.effects.held):
            return False
        replay_update(trace, step, params, key[2 : 2 + len(params)], held, inputs, counts)
        return True

    def _record_update(
        self, op: Op, params: list[Any], states: Any, held: list[Any], numbers: list[float],
        counts: int = 1, seen: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        """Record the update as it is first met, and how to replay it.

        Args:
          states: the tensors of `held` as the op takes them.
          seen: other tensors that it takes, last.
        """
        trace = local.trace
        key = _key(op, params, seen)
        start, before, simple = trace.state, len(trace.arrays), are_simple(trace, params)
        with no_grad():
            inputs = tuple(add_input(trace, NUMBER[float], x) for x in numbers)
            grads = tuple([p._grad for p in params])
            args: tuple[Any, ...] = (tuple(params), grads, states, inputs)
            args = (*args, seen) if seen else args
            results = iter(record(op, args, {}, budget=False)[0].values)
            for p in params:
                write(p, overwritten(trace, next(results), p._v, counts))
                p._vc[0] += counts - 1
            for t in held:
                self._assign(t, next(results))
        if simple and len(trace.arrays) == before + len(numbers) + len(held):
            after = Updated(tuple(map(_VALUE, params)), Kinds.of([*map(_VALUE, held)]))
            start.next[key] = MacroStep(trace.state, effects=after)

    def _assign(self, t: Any, value: Value) -> None:
        if t._v.strides is not None:
            value = spread(local.trace, value, t._v.strides)
        if t._store is None:
            rebind(t, value)
        else:
            write(t, value)

    def state_of(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        """Return the parameter's state as tensors; made at its first step."""
        state = self.state.get(p)
        if not state and self.held_names(group):
            state = self.state[p]
            with jax.enable_x64(True):
                made = {name: from_array(a) for name, a in self.init_state(p, group).items()}
            state.update((name, laid_beside(p, t)) for name, t in made.items())
        return {} if state is None else state
