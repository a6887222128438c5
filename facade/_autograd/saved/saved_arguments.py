"""Arguments that graph nodes keep beside tensors: `grad_fn._saved_dim`, `_saved_self_sym_sizes`.

PyTorch's generated nodes have an attribute for each argument that their formula reads, in the form
in which C++ holds it: dims as unsigned numbers, one number for each spatial dimension, a reduction
as its number. Here they are worked out from the recorded call when someone asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from .argument_rules import CONVOLUTION, RULES
from .recorded_call import ALIASES, RecordedCall, as_kept, unpacked_stride
from .saved_results import hidden_result

_SIZE = re.compile(r"(\w+)_sym_(?:(sizes_opt|sizes|numel|strides)|argsize_(minus_)?(\d))")


def saved_argument(
    name: str, call: Any, shapes: Sequence[Any], unpack: Callable[[int], Any],
    strides: Sequence[Any] | None = None,
) -> Any:  # fmt: skip
    """Give `grad_fn._saved_<name>` where it is no saved tensor.

    Raises:
      KeyError: if the node has none of that name.
    """
    kept = RecordedCall(call, shapes, unpack, strides)
    rule = RULES.get((kept.op, name))
    if rule is not None:
        return rule(kept)
    if kept.op.startswith("conv") and name in CONVOLUTION:
        return CONVOLUTION[name](kept)
    sized = _SIZE.fullmatch(name)
    if sized is not None:
        return _size(kept, sized)
    parameter = kept.parameter(name)
    if parameter is None:
        return hidden_result(name, kept)
    if (kept.op, name) in ALIASES:
        return unpack(kept.slots[parameter][0])
    return as_kept(kept, name, kept.static(parameter))


def _size(kept: RecordedCall, sized: re.Match[str]) -> Any:
    name, what, minus, place = sized.groups()
    shape = kept.shape(name)
    if shape is None:
        raise KeyError(name)
    if what == "numel":
        return math.prod(shape)
    if what == "strides":
        return unpacked_stride(kept, name)
    if what is not None:
        return shape
    return shape[-int(place)] if minus else shape[int(place)]
