"""`Optimizer`: parameter groups, state, and how `step()` becomes part of the step's program.

A subclass says what one parameter's state holds and how optax updates it. `step()` records the
update of exactly the parameters that have a gradient and require one, as a single op, and then
the whole step runs: forward, backward and update are one program. Hyperparameters are inputs of
it, so a schedule never compiles anything; the old buffers are donated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp

from leafax.functional import Op

from .._enter import NUMBER, add_input, from_array, keep_edge
from .._handle import Handle
from .._modes import enable_grad, no_grad
from .._record import record
from .._run import check_ready_faults, cut
from .._storage import rebind, write
from .._trace import State, Trace, Value, local
from ._skip import skip_if

ParamGroup = dict[str, Any]


class Optimizer:
    """Base class of the optimizers.

    Args:
      params: an iterable of tensors, of `(name, tensor)` pairs, or of dicts that define groups.
      defaults: hyperparameters of groups that do not set their own.
    """

    #: Hyperparameters that enter the program as numbers, in this order.
    numbers: tuple[str, ...] = ()
    #: Hyperparameters that choose what is computed; changing one makes another program.
    choices: tuple[str, ...] = ()
    #: A tensor that is not 0 if the step must have no effect; `GradScaler` sets it.
    found_inf: Any = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        self._ops: dict[Any, Op] = {}
        self._fixed: dict[int, tuple[float | None, ...]] = {}  # by group: constants of its op
        if isinstance(params, Handle):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type_string(params)}"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group: a dict with `params` and the hyperparameters that differ."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Handle):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        extracted, names = [], []
        for p in param_group["params"]:
            if isinstance(p, tuple):
                names.append(p[0])
                extracted.append(p[1])
            else:
                extracted.append(p)
        if names:
            param_group["param_names"] = names
        param_group["params"] = extracted
        for p in extracted:
            if not isinstance(p, Handle):
                kind = f"{type(p).__module__}.{type(p).__name__}".removeprefix("builtins.")
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {kind}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):  # type: ignore[attr-defined]
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        if len({id(p) for p in extracted}) != len(extracted):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in extracted):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # ------------------------------------------------------------ what subclasses say

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        """The state of one parameter before its first step: arrays by name."""
        raise NotImplementedError

    def update(
        self,
        p: Any,
        g: Any,
        state: dict[str, Any],
        numbers: dict[str, Any],
        choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """One parameter's new value and state, in JAX."""
        raise NotImplementedError

    # ------------------------------------------------------------ the step

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                else:
                    if p._grad.grad_fn is not None:
                        p._grad.detach_()
                    else:
                        p._grad.requires_grad_(False)
                    p._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient, and run the program.

        Args:
          closure: computes the loss anew and returns it, for optimizers that ask again.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.found_inf is None:
            self._step_groups()
        else:
            with no_grad():
                skip_if(self.found_inf, self._touched(), self._step_groups)
        check_ready_faults()
        cut("optimizer.step()")
        return loss

    def _step_groups(self) -> None:
        for group in self.param_groups:
            self._step_group(group)

    def _touched(self) -> list[Any]:
        """The tensors that the next step writes: parameters and their states."""
        found = []
        for group in self.param_groups:
            for p in self.trainable(group):
                found += [p, *self.state_of(p, group).values()]
        return found

    def trainable(self, group: ParamGroup) -> list[Any]:
        """The parameters that a step updates: those with a gradient that require one."""
        return [p for p in group["params"] if p._grad is not None and p._v.requires_grad]

    def _step_group(self, group: ParamGroup) -> None:
        params = self.trainable(group)
        if not params:
            return
        known = self.state.get
        states = [known(p) or self.state_of(p, group) for p in params]
        numbers, fixed = self._split_numbers(group)
        op = self._op(group, states, fixed)
        trace = local.trace
        held = [t for state in states for t in state.values()]
        key = ("step", op, *[p._v for p in params], *[p._grad._v for p in params])
        memo = trace.state.next.get(key)
        if memo is not None and _are_at_rest(held):
            memo.replay(trace, params, held, numbers)
            return
        start, before, simple = trace.state, len(trace.arrays), _are_simple(trace, params)
        with no_grad():
            self._record_update(op, params, states, held, numbers)
        if simple and len(trace.arrays) == before + len(numbers) + len(held):
            values = tuple(t._v for t in (*params, *held))
            start.next[key] = StepMemo(trace.state, values)

    def _split_numbers(self, group: ParamGroup) -> tuple[list[float], tuple[float | None, ...]]:
        """The numbers that enter the program, and those that are constants of it.

        The learning rate enters. Another number is a constant until it changes, in this
        optimizer or from one to the next: then it enters too, and no change compiles again.
        """
        values = [float(x) for x in self.number_values(group)]
        before = self._fixed.get(id(group))
        if before is None:
            first = _FIRST_NUMBERS.setdefault(type(self), tuple(values))
            names = self.numbers
            before = tuple([None if n == "lr" else x for n, x in zip(names, first, strict=True)])
        fixed = tuple([x if x == f else None for x, f in zip(values, before, strict=True)])
        self._fixed[id(group)] = fixed
        return [x for x, f in zip(values, fixed, strict=True) if f is None], fixed

    def _record_update(
        self, op: Op, params: list[Any], states: Any, held: Any, numbers: list[float]
    ) -> None:
        """The update as it is first met; later steps replay it."""
        trace = local.trace
        inputs = tuple(add_input(trace, NUMBER[float], x) for x in numbers)
        args = (
            tuple(params), tuple(p._grad for p in params),
            tuple(tuple(s.values()) for s in states), inputs,
        )  # fmt: skip
        results = iter(record(op, args, {}, budget=False)[0].values)
        for p in params:
            write(p, keep_edge(trace, next(results), p._v))
        for t in held:
            self._assign(t, next(results))

    def _assign(self, t: Any, value: Value) -> None:
        if t._store is None:
            rebind(t, value)
        else:
            write(t, value)

    def number_values(self, group: ParamGroup) -> list[Any]:
        return [group[name] for name in self.numbers]

    def state_of(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        """The parameter's state as tensors; made at its first step."""
        state = self.state[p]
        if not state:
            with jax.enable_x64(True):
                for name, array in self.init_state(p, group).items():
                    state[name] = from_array(array)
        return state

    def _op(
        self, group: ParamGroup, states: list[dict[str, Any]], fixed: tuple[float | None, ...]
    ) -> Op:
        """The op that updates a group's parameters."""
        # Without decay nothing is added: 0 times an infinite weight would be NaN, and costs.
        decays, names = bool(group.get("weight_decay")), tuple(map(tuple, states))
        key = (decays, names, fixed, *[group[name] for name in self.choices])
        op = self._ops.get(key)
        if op is None:
            choices = {name: group[name] for name in self.choices}
            choices["decays"] = decays
            op = self._ops[key] = _update_op(type(self), self, choices, names, fixed)
        return op

    def drop_state(self, params: Iterable[Any] | None = None) -> None:
        """Forget the state of parameters: they start fresh at their next step.

        A parameter that is frozen keeps its state, for the case that it is thawed again.

        Args:
          params: tensors; by default all that are frozen now.
        """
        chosen = None if params is None else {id(p) for p in params}
        for p in list(self.state):
            if (not p.requires_grad) if chosen is None else id(p) in chosen:
                del self.state[p]

    # ------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups, in PyTorch's form."""
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {number[id(p)]: dict(s) for p, s in self.state.items() if s}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` of an optimizer with equal groups returned."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        by_number: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            by_number.update(zip(theirs["params"], mine["params"], strict=True))
            params = mine["params"]
            mine.clear()
            mine.update(deepcopy({k: v for k, v in theirs.items() if k != "params"}))
            mine["params"] = params
        self.state = defaultdict(dict)
        for number, held in state_dict["state"].items():
            p = by_number[number]
            self.state[p] = {k: _copied(v) for k, v in held.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


class StepMemo(NamedTuple):
    """Where recording an update led, for parameters that nobody shares.

    Attributes:
      state: the state after it.
      values: what the parameters and their states hold then.
    """

    state: State
    values: tuple[Value, ...]

    def replay(self, trace: Trace, params: Any, held: Any, numbers: list[float]) -> None:
        trace.state = self.state
        trace.arrays += numbers
        trace.arrays += [t._array for t in held]
        values, refs = self.values, trace.refs
        for p, value in zip(params, values, strict=False):
            p._v, p._array = value, None
            if p._vc is None:
                p._vc = [1]
            else:
                p._vc[0] += 1
        for t, value in zip(held, values[len(params) :], strict=True):
            t._v, t._array, t._trace = value, None, trace
        refs += map(ref, held)


def _are_at_rest(tensors: list[Any]) -> bool:
    for t in tensors:
        if t._array is None or t._store is not None:
            return False
    return True


def _are_simple(trace: Trace, params: Any) -> bool:
    """Whether all parameters and gradients are in the trace and share no storage."""
    tensors = [*params, *[p._grad for p in params]]
    return all(t._trace is trace and t._v.index >= 0 and t._store is None for t in tensors)


def _copied(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, Handle) else deepcopy(x)


def type_string(t: Any) -> str:
    from .._dtype import type_string as name

    return name(t._v.dtype)


_UPDATE_OPS: dict[Any, Op] = {}
_FIRST_NUMBERS: dict[type[Optimizer], tuple[float, ...]] = {}


def _update_op(cls: type[Optimizer], self: Optimizer, choices: Any, names: Any, fixed: Any) -> Op:
    """The update of several parameters as one op; equal for optimizers of equal class."""
    key = (cls, tuple(choices.items()), names, fixed)
    op = _UPDATE_OPS.get(key)
    if op is not None:
        return op
    update = cls.update

    def body(params: Any, grads: Any, states: Any, numbers: Any) -> Any:
        entered = iter(numbers)
        named = {
            n: next(entered) if f is None else f for n, f in zip(cls.numbers, fixed, strict=True)
        }
        new_params, new_states = [], []
        for p, g, held, keys in zip(params, grads, states, names, strict=True):
            state = dict(zip(keys, held, strict=True))
            new, after = update(self, p, g, state, named, choices)
            new_params.append(new.astype(p.dtype))
            new_states += [jnp.asarray(after[k]).astype(state[k].dtype) for k in keys]
        return (*new_params, *new_states)

    # Operands are the parameters, their gradients, the states; results parameters and states.
    n, states = len(names), sum(map(len, names))
    reuses = {k: k for k in range(n)} | {n + k: 2 * n + k for k in range(states)}
    op = Op(body, name=cls.__name__, namespace="optim", differentiable=False, reuses=reuses)
    _UPDATE_OPS[key] = op
    return op


def params_of(groups: Iterable[ParamGroup]) -> list[Any]:
    """All parameters of all groups."""
    return [p for g in groups for p in g["params"]]
