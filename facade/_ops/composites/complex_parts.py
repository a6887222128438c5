"""Functions that PyTorch makes of several ops, each with a node of its own in the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.memory_format import RANKS
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._core.vmap_checks import refuse_in_vmap
from ..._core.warn_once import warn_once
from ..._dispatch.conj_neg_bits import is_conj
from ..._dispatch.record import apply
from ..._storage.write import written_once
from ..._tracing.infer import bare
from ..calls.functions import function
from ..indexing.basic import SLICE
from ..writes.write_out import check_out, write_out


def real(input: Any) -> Any:
    """Return the real part: a view, or the tensor itself if it is real."""
    return _part(input, 0) if input.is_complex() else input


def imag(input: Any) -> Any:
    """Return the imaginary part of a complex tensor, a view."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(input, 1)


def _part(input: Any, which: int) -> Any:
    conjugate = is_conj(input)
    parts = apply(TABLE["view_as_real"], conj(input) if conjugate else input)
    if conjugate and which:  # minus the imaginary part of what `input` conjugates
        parts = apply(TABLE["_neg_view"], parts)
    return apply(TABLE["select"], parts, -1, which)


def clone_of(method: Callable[..., Any]) -> Callable[..., Any]:
    """`clone`: where no autograd takes part, PyTorch counts the copying as a write."""

    @functools.wraps(method)
    def clone(self: Any, *args: Any, **kwargs: Any) -> Any:
        if local.vmap is not None and kwargs.get("memory_format") in RANKS:
            last = {4: "ChannelsLast", 5: "ChannelsLast3d"}
            refuse_in_vmap(f"clone to {last[RANKS[kwargs['memory_format']]]}", self)
        out = method(self, *args, **kwargs)
        if self._v.inference and not local.mode.inference:
            written_once(out)
        return out

    return clone


def conj(input: Any) -> Any:
    """Return the complex conjugate, a view; a real tensor itself."""
    return apply(TABLE["conj"], input) if input.is_complex() else input


def conj_physical(input: Any, *, out: Any = None) -> Any:
    """Return the complex conjugate, computed; a real tensor itself."""
    if out is not None:
        return function(TABLE["conj_physical"])(input, out=out)
    return apply(TABLE["conj_physical"], input) if input.is_complex() else input


def positive(input: Any) -> Any:
    """Return the tensor itself.

    Raises:
      RuntimeError: for bools.
    """
    return apply(TABLE["positive"], input) if input._v.dtype == bool else input


def T(self: Any) -> Any:  # noqa: N802
    """Return all dims in reverse order, a view; PyTorch deprecates it for other than two."""
    if not self.dim():
        warn_once(_IDENTITY.format("Tensor.T"))
    elif self.dim() != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor."
        )
    return apply(TABLE["T"], self)


def mT(self: Any) -> Any:  # noqa: N802
    """Return the last two dims swapped, a view."""
    if not self.dim():
        warn_once(_IDENTITY.format("Tensor.mT"))
        return self
    if self.dim() == 1:
        return _refused("mT", self)
    return apply(TABLE["mT"], self)


_IDENTITY = "{} is deprecated on 0-D tensors. This function is the identity in these cases."


def adjoint(input: Any) -> Any:
    """Return the last two dims swapped, and conjugated."""
    return _conjugated("adjoint", input)


def mH(self: Any) -> Any:  # noqa: N802
    """Return the last two dims swapped, and conjugated."""
    return _conjugated("mH", self)


def H(self: Any) -> Any:  # noqa: N802
    """Return a matrix transposed and conjugated."""
    return _conjugated("H", self)


def _conjugated(name: str, input: Any) -> Any:
    if not input.dim():
        what = "adjoint()" if name == "adjoint" else f"Tensor.{name}"
        warn_once(f"{what} is deprecated on 0-D tensors. Consider using x.conj().")
        return conj(input)
    if input.dim() == 2 or input.dim() > 2 and name != "H":
        return conj(input.transpose(-2, -1))
    return _refused(name, input)


def _refused(name: str, input: Any) -> Any:
    """Raise the op's words for its dims, before anybody asks whether a view may still be used."""
    return _shapes(TABLE[name].fn, input._v.aval.struct())


def outer(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Return all products of the elements of two vectors."""
    for name, x in (("self", input), ("vec2", vec2)):
        if not isinstance(x, Handle):
            raise TypeError(
                f"outer(): argument '{name.replace('self', 'input')}' (position "
                f"{1 if name == 'self' else 2}) must be Tensor, not {name_of_type(x)}"
            )
        if x.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.dim()}-D")
    if out is None:
        return input.reshape(input.shape[0], 1) * vec2
    check_out(TABLE["outer"], out, (input, vec2))
    return write_out(TABLE["outer"], outer(input, vec2), out, (input, vec2))


def rtruediv(self: Any, other: Any) -> Any:
    """Compute `other / self`."""
    try:
        return self.reciprocal() * other
    except TypeError:
        return NotImplemented


def tensor_split(input: Any, where: int | tuple[int, ...], dim: int) -> tuple[Any, ...]:
    """Return the slices that `tensor_split` gives; errors are the table's op's."""
    shapes = [tuple(v.shape) for v in _pieces(input, where, dim)]
    dim %= input.dim()
    starts, at = [], 0
    for shape in shapes:
        starts.append(at)
        at += shape[dim]
    if not isinstance(where, int):
        size = input.shape[dim]
        starts = [0, *[min(max(i + size if i < 0 else i, 0), size) for i in where]]
    return tuple(
        apply(SLICE, input, dim, start, shape[dim])
        for start, shape in zip(starts, shapes, strict=True)
    )


def _pieces(input: Any, where: Any, dim: int) -> Any:
    with jax.enable_x64(True):
        aval = jax.ShapeDtypeStruct(tuple(input.shape), input._v.dtype)
        return _shapes(lambda x: TABLE["tensor_split"].fn(x, where, dim), aval)


def _shapes(fn: Any, aval: Any) -> Any:
    """Return the shapes that `fn` gives for an array; its errors come without JAX's notes."""
    try:
        return jax.eval_shape(fn, aval)
    except Exception as error:
        raise bare(error) from None
