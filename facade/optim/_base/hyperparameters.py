"""Hyperparameters: which of them choose the op of an update, and which enter its program."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from .groups import ParamGroup
from .saving import Saved
from .update import update_op

#: Types of hyperparameters that are what they were as long as they are equal.
_CONSTANT = (float, int, str, type(None))


class Chosen(NamedTuple):
    """The op and the numbers that a group's hyperparameters came to."""

    choices: dict[str, Any]  # the group without its learning rate and parameters
    sizes: tuple[int, int]  # parameters and state tensors
    op: Op
    numbers: list[float]  # those that enter the program after the learning rate


def _are_constants(choices: dict[str, Any]) -> bool:
    for v in choices.values():
        several = v if isinstance(v, tuple) else (v,)
        if not all(isinstance(x, _CONSTANT) for x in several):
            return False
    return True


_FIRST_NUMBERS: dict[type, tuple[float, ...]] = {}


class Hyperparameters(Saved):
    """Optimizer whose groups' hyperparameters choose the op that updates them."""

    #: Hyperparameters that enter the program as numbers, in this order.
    numbers: tuple[str, ...] = ()
    #: Hyperparameters that choose what is computed; changing one makes another program.
    choices: tuple[str, ...] = ()

    #: Attributes that only remember: what a compiled step does never depends on them.
    _unwatched = frozenset({"_ops", "_fixed", "_last", "_entering", "_bundling"})

    def _forget_ops(self) -> None:
        self._ops: dict[Any, Op] = {}
        self._fixed: dict[int, tuple[float | None, ...]] = {}  # by group: constants of its op
        self._last: dict[int, Chosen] = {}  # by group

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        """Name what an update reads and writes beside a parameter: entries of its state."""
        return ()

    def number_values(self, group: ParamGroup) -> list[Any]:
        return [group[name] for name in self.numbers]

    def choice_values(self, group: ParamGroup) -> dict[str, Any]:
        return {name: group[name] for name in self.choices}

    def _chosen(self, group: ParamGroup, sizes: tuple[int, int]) -> tuple[Op, list[float]]:
        """Return the op that updates the group's parameters, and the numbers that it takes.

        Those of the last step, if nothing but the learning rate has changed.
        """
        choices = {**group, "lr": None, "params": None}
        last = self._last.get(id(group))
        if last is not None and last.sizes == sizes and last.choices == choices:
            return last.op, [float(group["lr"]), *last.numbers]
        numbers, fixed = self._split_numbers(group)
        op = self._op(group, sizes[0], fixed)
        if fixed and fixed[0] is None and _are_constants(choices):
            self._last[id(group)] = Chosen(choices, sizes, op, numbers[1:])
        return op, numbers

    def _note_first_numbers(self) -> None:
        """Note the groups' numbers before a schedule sets others, which enter at the first step."""
        for group in self.param_groups:
            if not any(isinstance(x, Handle) for x in self.number_values(group)):
                self._split_numbers(group)

    def _split_numbers(self, group: ParamGroup) -> tuple[list[float], tuple[float | None, ...]]:
        """Tell the numbers that enter the program from those that are constants of it.

        The learning rate enters. Another number is a constant until it changes, since this
        optimizer was made or from one to the next: then it enters too, and no change compiles
        again.
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

    def _op(self, group: ParamGroup, params: int, fixed: tuple[float | None, ...]) -> Op:
        """Return the op that updates this many parameters of a group."""
        # Without decay nothing is added: 0 times an infinite weight would be NaN, and costs.
        decays, names = bool(group.get("weight_decay")), (self.held_names(group),) * params
        choices = self.choice_values(group)
        key = (decays, names, fixed, *choices.values())
        op = self._ops.get(key)
        if op is None:
            choices["decays"] = decays
            op = self._ops[key] = update_op(type(self), choices, names, fixed)
        return op
