"""Devices of results: where the operands are, which must be one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.lowering.vjp import ResidualCall, VjpCall
from leafax.functional.program.meta import META, NO_DATA
from leafax.functional.program.op import TABLE
from leafax.functional.program.platform import where_data_are_made
from leafax.functional.program.program import Aval, Call, Slot

from .._core.jax_devices import name_of

_KERNELS = {"embedding": "_index_select", "index_select": "_index_select"}  # that refuse
# Their indices may be on the CPU, whatever is indexed.
_INDEXING = frozenset({"index", "index_put", "_index_put_impl", "_unsafe_index"})


def put_results(call: Any, inputs: Sequence[Any], avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
    """Return the abstract values of a call's results with their devices.

    Args:
      inputs: the values that it takes.
      avals: of its results; a gradient is where that is which it is the gradient of.

    Raises:
      RuntimeError: the operands are on several devices.
    """
    where = _named(call)
    if type(call) is not Call and any(v.device is META for v in inputs):
        if where is META and inputs[0].device is not META:  # the gradient would have to go back
            raise NotImplementedError(NO_DATA)
        where = META
    elif isinstance(call, (VjpCall, ResidualCall)):
        return avals
    if where is None:
        where = _common(call, inputs) if type(call) is Call else _first_of(inputs)
    return avals if where is None else tuple([aval._replace(device=where) for aval in avals])


def _named(call: Any) -> Any:
    """Return the device that a copy, or a copy's derivative, goes to."""
    inner: Any = call if type(call) is Call else getattr(call, "call", None)
    copies = type(inner) is Call and inner.op.name == "_to_copy"
    return inner.arguments.get("device") if copies else None


def _first_of(inputs: Sequence[Any]) -> Any:
    return next((v.device for v in inputs if v.device is not None), None)


def _common(call: Call, inputs: Sequence[Any]) -> Any:
    """Return the one device of all operands; None if they are nowhere in particular."""
    first = _first_of(inputs)
    if first is None or all(v.device is first for v in inputs):
        return first
    op = call.op
    operands = inputs[1:] if op.random else inputs  # a key of random numbers may be anywhere
    if op.name in _INDEXING and operands:
        operands = [operands[0], *[v for v in operands[1:] if not _is_index_on_host(v)]]
    places = [v for v in operands if not (_is_on_cpu(v) and not v.shape)] or operands
    places = [v for v in places if v.device is not None or first is META]
    if not places:
        return first
    common = next((v.device for v in places if isinstance(v.device, tuple)), places[0].device)
    for v in places:
        if isinstance(common, tuple) and v.device in common:
            continue  # it is one of the mesh's devices
        if v.device != common:
            raise RuntimeError(_words(call, inputs, places[0], v))
    return common


def _is_on_cpu(value: Any) -> bool:
    where = value.device
    return where is None or getattr(where, "platform", None) == "cpu"


def _is_index_on_host(value: Any) -> bool:
    return value.dtype.kind in "biu" and _is_on_cpu(value)


def told(where: Any) -> str:
    """Return the name that PyTorch's errors give a device of JAX; None is the default."""
    kind, index = name_of(where_data_are_made() if where is None else where)
    return kind if index is None else f"{kind}:{index}"


def _words(call: Call, inputs: Sequence[Any], first: Any, other: Any) -> str:
    """Word the refusal of operands on two devices."""
    one, two = told(first.device), told(other.device)
    if META in (first.device, other.device):
        return f"Tensor on device {two} is not on the expected device {one}!"
    base = TABLE.get(call.op.qualified, call.op)  # of an in-place variant
    if base.elementwise:
        return (
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{one} and {two}!"
        )
    place = inputs.index(other)
    name = next((n for n, x in call.arguments.items() if _holds(x, place)), "other")
    return (
        f"Expected all tensors to be on the same device, but got {name} is on {two}, different "
        f"from other tensors on {one} (when checking argument in method wrapper_CUDA_"
        f"{_KERNELS.get(call.op.name, call.op.name)})"
    )


def _holds(argument: Any, place: int) -> bool:
    if isinstance(argument, Slot):
        return argument.index == place
    return isinstance(argument, (tuple, list)) and any(_holds(x, place) for x in argument)
