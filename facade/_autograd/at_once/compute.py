"""Calls on small tensors at rest on the host, computed at once with their graph.

They are computed in loops that never do the same twice, see `_tracing/novelty.py`: their results
are at rest, on arrays of NumPy, and their nodes stand on their own as after a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.confined import confined
from leafax.functional.execution.single_ops import check_node, on_host
from leafax.functional.lowering.lower import Side
from leafax.functional.program.number_fits import fits_int64
from leafax.functional.program.op import Op
from leafax.functional.program.options import may_run_op_by_op

from ..._core.handle import Handle
from ..._core.run_log import at_once
from ..._core.trie import local
from ..._dispatch.known_calls import is_plain_class
from ..._host.compute import fits_all
from ..._host.plans import check, number_places
from ..._host.rule import is_free
from ..._tracing import inputs
from ..._tracing.miss import key_part
from ..._tracing.novelty import Doers, is_unrepeated
from .add_graph import add_graph
from .learn import learn, template_of_call, template_of_op, templates
from .operands import NUMBERS, arrays_of
from .template import Template, run_small

_ndarray = np.ndarray
_STATIC = frozenset({bool, str, type(None), int, float})


def compute_call(
    fn: Callable[..., Any], key: Any, tensors: Sequence[Any], args: Any, kwargs: Any
) -> Any:
    """Return the result of a call of a public function; None where it is to be recorded.

    Args:
      key: what tells it from other calls, but the modes.
      tensors: those among its arguments, in order.
    """
    if "out" in kwargs or not _may():
        return None
    arrays = arrays_of(tensors)
    if arrays is None:
        return None
    key = local.mode, key
    template: Any = templates.get(key, key)
    if template is key:
        template = learn(fn, key, lambda: template_of_call(fn, tensors, args, kwargs))
    return None if template is None else _compute(template, tensors, arrays)


def compute_op(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Return the result of an op; None where it is to be recorded."""
    if op.view or op.random or not _may():
        return None
    parts: list[Any] = [local.mode, op]
    operands: list[Any] = []
    numbers = number_places(op)
    for i, a in enumerate(args):
        if not _add(a, i in numbers, parts, operands):
            return None
    for name, a in (kwargs or {}).items():
        parts.append(name)
        if not _add(a, name in op.numbers, parts, operands):
            return None
    arrays = arrays_of(operands)
    if arrays is None:
        return None
    key = tuple(parts)
    template: Any = templates.get(key, key)
    if template is key:
        template = learn(op, key, lambda: template_of_op(op, args, kwargs or {}))
    if template is None:
        return None
    if op.need or op.fits and not all(map(fits_all, arrays)):
        try:
            check(op, args, kwargs or {}, template.value.dtype)
        except Exception:  # the recorder raises it
            return None
    return _compute(template, operands, arrays)


def _may() -> bool:
    """Return whether nothing but the arguments takes part in what is computed now."""
    if not is_unrepeated() or not is_free() or local.autograd.tasks or local.autograd.pack_hooks:
        return False
    return on_host() and not confined and may_run_op_by_op()


def _add(a: Any, number: bool, parts: list[Any], operands: list[Any]) -> bool:
    """Add an argument to a key, and the tensors and numbers in it; False if no key tells it."""
    kind = type(a)
    if isinstance(a, Handle):
        if not is_plain_class(kind):
            return False
        parts.append(a._v)
        operands.append(a)
        return True
    if number and kind in NUMBERS:
        if kind is int and not fits_int64(a):
            return False
        parts.append(kind)
        operands.append(a)
        return True
    if kind in _STATIC:
        parts.append(key_part(a, local.trace))
        return True
    if kind is tuple or kind is list:
        parts.append((kind, len(a)))
        return all([_add(x, False, parts, operands) for x in a])
    if isinstance(a, np.dtype):
        parts.append(a)
        return True
    return False


def _compute(template: Template, operands: Sequence[Any], arrays: Sequence[Any]) -> Any:
    env: list[Any] = [None] * template.values
    for number, place in template.inputs:
        env[number] = arrays[place]
    with jax.enable_x64(True):
        for node, op, checked, first in template.steps:
            given = [env[i] for i in node.inputs]
            if checked and check_node(node, given, Side()):
                return None  # a program raises it
            for i, array in enumerate(run_small(node, op, given, node.call.op), first):
                env[i] = array
    at_once.ops += len(template.steps)
    out: Any = object.__new__(inputs._tensor_class)
    out._v = template.value
    out._array = array = env[template.number]
    out._trace = None
    if template.nodes:
        if type(array) is _ndarray:
            array.flags.writeable = False
        add_graph(template, operands, arrays, env, out)
    return out


Doers.call, Doers.op = compute_call, compute_op
