"""Activations in place whose slope below 0 is negative: PyTorch has no gradient of these.

It saves the result there, of which a negative slope leaves no sign to tell the sides by.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional.program.op import Op

# Those of `selu`, which has no arguments.
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805

_WORDS = (
    "In-place {} backward calculation is triggered with a negative slope which is not supported. "
    "This is caused by calling in-place forward function with a negative slope, please call "
    "out-of-place version instead."
)
_LEAKY = _WORDS.format("leakyReLu") + (
    " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place "
    "leakRelu backward calculation with negative slope"
)
SLOPED = {  # what is said of these
    "leaky_relu": _LEAKY, "rrelu": _LEAKY, "elu": _WORDS.format("elu"),
    "celu": _WORDS.format("elu"),
}  # fmt: skip


def sloped(op: Op, *args: Any, **kwargs: Any) -> Op:
    """Choose the op to write in place with: one without a gradient where the slope is negative.

    Args:
      args, kwargs: the call's, as the op's parameters have them (without a random op's key).
    """
    if op.name not in SLOPED:
        return op
    names = op.parameters[2:] if op.random else op.parameters[1:]
    said = dict(zip(names, args[1:], strict=False)) | kwargs
    given = {name: said.get(name, op.signature.parameters[name].default) for name in names}
    if op.name == "rrelu":
        slope = 0 if given["training"] else given["lower"] + given["upper"]
    else:
        slope = given[names[0]]
    return _without_gradient(op) if slope < 0 else op


@cache
def _without_gradient(op: Op) -> Op:
    return Op(
        op.fn, name=op.name, namespace=op.namespace, backward=op.backward, numbers=op.numbers,
        random=op.random, sizes=op.sizes, no_gradient=(RuntimeError, SLOPED[op.name]),
    )  # fmt: skip
