"""Conjugate and negative views: PyTorch's conj and neg bits, read off what a tensor is a view of.

Here the view has its own values; what the bits tell is whether PyTorch would still have the
values of the storage, to be conjugated (or negated) when they are used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from .._core.vmap_checks import differs_in_vmap
from .record import apply

_CONJUGATES = frozenset({"conj", "adjoint", "mH", "H"})


def bits(t: Any) -> tuple[bool, bool]:
    """Return the conj bit and the neg bit of `t`."""
    conj = neg = after_parts = False
    for op, args, _ in t._lens:
        if op.name in _CONJUGATES:
            conj = not conj
        elif op.name == "_neg_view":
            neg = not neg
        elif op.name == "select" and conj and after_parts:  # of `real` or `imag`
            conj, neg = False, neg is not (args[1] == 1)
        after_parts = op.name == "view_as_real"
    return conj, neg


def is_conj(input: Any) -> bool:
    """Tell if `input` is a view that conjugates its storage."""
    return bool(input._lens) and input.is_complex() and bits(input)[0]


def is_neg(input: Any) -> bool:
    """Tell if `input` is a view that negates its storage."""
    return bool(input._lens) and bits(input)[1]


def resolve_conj(input: Any) -> Any:
    """Return `input`, or a copy of it if it is a conjugate view."""
    return input.clone() if is_conj(input) else input


def resolve_neg(input: Any) -> Any:
    """Return `input`, or a copy of it if it is a negative view."""
    return input.clone() if is_neg(input) else input


def _neg_view(input: Any) -> Any:
    """Return the negative as a view.

    >>> import leafax
    >>> x = leafax.ones(2)
    >>> x._neg_view().add_(3)
    tensor([2., 2.])
    >>> x
    tensor([-2., -2.])
    """
    return apply(TABLE["_neg_view"], input)


def view_as_real(input: Any) -> Any:
    """View a complex tensor as real, with real and imaginary parts along a new last dim.

    Raises:
      RuntimeError: for real tensors, and for conjugate views.
    """
    if is_conj(input):
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
            "tensor so you can view it as real, use self.resolve_conj(); however, be warned that "
            "the resulting tensor will NOT alias the original."
        )
    return apply(TABLE["view_as_real"], input)


def held(x: Any) -> np.ndarray:
    """Return the array that a tensor holds, whatever its bits; run the program."""
    return np.asarray(resolve_neg(resolve_conj(x.detach())).numpy())


def check_numpy(t: Any) -> None:
    """Raise PyTorch's error where NumPy could not see the memory as it is."""
    if t._lens:
        for name, bit, set_ in zip(
            ("conj", "neg"), ("conjugate", "negative"), bits(t), strict=True
        ):
            if set_ and (name == "neg" or t.is_complex()):
                raise RuntimeError(
                    f"Can't call numpy() on Tensor that has {bit} bit set. Use "
                    f"tensor.resolve_{name}().numpy() instead."
                )


def storage_numel(t: Any) -> int:
    """Count the elements of its dtype that the tensor's storage has."""
    if t._store is None:
        return math.prod(t._v.shape)
    cell = t._store.cell._v
    return math.prod(cell.shape) * cell.dtype.itemsize // t._v.dtype.itemsize


def same_meta(a: Any, b: Any) -> bool:
    """Tell if two tensors lie in memory alike: what can be viewed of one can of the other."""
    shape = tuple(a.shape)
    if shape != tuple(b.shape) or bits(a) != bits(b):
        return False
    if storage_numel(a) != storage_numel(b) and not differs_in_vmap(a, b):
        return False  # of a batch all examples have one
    if math.prod(shape) and a.storage_offset() != b.storage_offset():
        return False
    strides = zip(shape, a.stride(), b.stride(), strict=True)
    return all(n in (0, 1) or x == y for n, x, y in strides)
