"""`func.rearrange`: dims reordered, merged and split as a pattern says, after einops."""

from __future__ import annotations

import functools
import keyword
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafax.functional.program.op import TABLE

from .._core.handle import Handle
from .._ops.calls.functions import function

_stack = function(TABLE["stack"])
_DOTS = "\u2026"  # an ellipsis as one character


class DimensionBindError(Exception):
    """Report sizes of dims that a pattern does not fit."""


class _Side(NamedTuple):
    """Hold one side of a parsed pattern.

    Attributes:
      groups: the names that each dim is merged of, none for a dim of size 1; or the ellipsis.
      names: all of them.
      sized: whether there is a dim of a size other than 1 without a name.
      inside: whether the ellipsis stands in parentheses.
    """

    groups: list[list[str] | str]
    names: set[str]
    sized: bool
    inside: bool


def _name_fault(name: str) -> str:
    """Explain why this is no name of a dim; "" if it is one."""
    if not name.isidentifier():
        return "not a valid python identifier"
    if name.startswith("_") or name.endswith("_"):
        return "axis name should should not start or end with underscore"
    if keyword.iskeyword(name):
        text = f"It is discouraged to use axes names that are keywords: {name}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    if name == "axis":
        warnings.warn(
            "It is discouraged to use 'axis' as an axis name and will raise an error in future",
            FutureWarning,
            stacklevel=2,
        )
    return ""


def _words(expression: str) -> list[str]:
    """Split an expression into names, numbers, ellipses and parentheses."""
    words, word = [], ""
    for char in expression + " ":
        if char in "() ":
            words += [word] if word else []
            words += [char] if char != " " else []
            word = ""
        elif char.isalnum() or char in ("_", _DOTS):
            word += char
        else:
            raise ValueError(f"Unknown character '{char}'")
    return words


def _parse(expression: str) -> _Side:
    if "." in expression:
        if "..." not in expression:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if expression.count("...") != 1 or expression.count(".") != 3:
            raise ValueError(
                "Expression may contain dots only inside ellipsis (...); only one ellipsis for "
                "tensor "
            )
        expression = expression.replace("...", _DOTS)
    groups: list[list[str] | str] = []
    names: set[str] = set()
    group: list[str] | None = None
    sized = inside = False
    for word in _words(expression):
        if word == "(":
            if group is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            group = []
        elif word == ")":
            if group is None:
                raise ValueError("Brackets are not balanced")
            groups.append(group)
            group = None
        elif word in names:
            raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
        elif word == _DOTS:
            names.add(word)
            inside = group is not None
            if group is None:
                groups.append(word)
            else:
                group.append(word)
        elif word.isdecimal():
            if int(word) < 1:
                raise ValueError(f"Anonymous axis should have positive length, not {int(word)}")
            sized = sized or int(word) > 1
            if group is None:
                groups.append([])
        else:
            reason = _name_fault(word)
            if reason:
                raise ValueError(f"Invalid axis identifier: {word}\n{reason}")
            names.add(word)
            if group is None:
                groups.append([word])
            else:
                group.append(word)
    if group is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")
    return _Side(groups, names, sized, inside)


@functools.lru_cache(256)
def _sides(pattern: str, sized: tuple[str, ...]) -> tuple[_Side, _Side]:
    """Parse both sides of a pattern and check that they fit together."""
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if _DOTS in sized:
        raise ValueError(f"'{_DOTS}' is not an allowed axis identifier")
    left, right = _parse(parts[0]), _parse(parts[1])
    if _DOTS in right.names and _DOTS not in left.names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if left.inside:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if left.sized or right.sized:
        raise ValueError("rearrange only supports unnamed axes of size 1")
    difference = left.names ^ right.names
    if difference:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{difference}"
        )
    unmatched = set(sized) - left.names
    if unmatched:
        raise ValueError(f"Identifiers not found in rearrange expression: {unmatched}")
    return left, right


def _sizes(left: _Side, shape: Sequence[int], lengths: dict[str, int]) -> dict[str, list[int]]:
    """Find the size of each name, and of all the dims that the ellipsis stands for."""
    flat = sum(1 for g in left.groups if not g) + len(left.names - {_DOTS})
    rest = len(shape) - (len(left.groups) - 1)
    if _DOTS in left.names and flat > len(shape):
        raise ValueError(
            f"Number of dimensions in pattern ({flat}) must be less than or equal to the number "
            f"of dimensions in the tensor ({len(shape)})"
        )
    if _DOTS not in left.names and len(left.groups) != len(shape):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left.groups)}) must be equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    sizes: dict[str, list[int]] = {}
    dims = iter(shape)
    before = 0
    for group in left.groups:
        if group == _DOTS:
            sizes[_DOTS] = [next(dims) for _ in range(rest)]
            before += rest
            continue
        told = [f"d{before + k}" for k in range(max(len(group), 1))]
        given = [lengths.get(name, -1) for name in group] or [1]
        for name, size in zip(group, _fitted(next(dims), given, told), strict=False):
            sizes[name] = [size]
        before += len(told)
    return sizes


def _fitted(whole: int, given: list[int], told: list[str]) -> list[int]:
    """Return sizes whose product is `whole`, one of them inferred where it is -1.

    Args:
      told: what PyTorch calls the dims in its errors.
    """
    unknown = [k for k, n in enumerate(given) if n < 0]
    known = math.prod(n for n in given if n >= 0)
    if len(unknown) > 1:
        raise DimensionBindError(
            "cannot infer the sizes of two dimensions at once "
            f"{told[unknown[0]]} and {told[unknown[1]]}"
        )
    if not unknown and known != whole:
        pack = ", ".join(told) + ("," if len(told) == 1 else "")
        raise DimensionBindError(
            f"Dimension sizes to do not match ({whole} != {known}) when matching dimension pack "
            f"({pack})"
        )
    if unknown and (known == 0 or whole % known):
        parts = tuple("?" if n < 0 else n for n in given)
        raise DimensionBindError(
            f"inferred dimension does not evenly fit into larger dimension: {whole} vs {parts}"
        )
    return [whole // known if n < 0 else n for n in given]


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Reorder, merge and split the dims of a tensor, as `einops.rearrange` does.

    Args:
      tensor: a tensor, or a sequence of tensors, which are stacked first.
      pattern: names of the dims before and after `->`. Names in parentheses are one dim, `1` is a
        dim of size 1, `...` stands for all other dims.
      axes_lengths: sizes of names that share a dim; one in each dim may be left out.

    Raises:
      ValueError: if the pattern is malformed, or is of another number of dims.
      DimensionBindError: if its sizes do not fit the shape.
      TypeError: if a size is no integer.

    >>> import leafax
    >>> images = leafax.zeros(32, 30, 40, 3)
    >>> leafax.func.rearrange(images, "b (h1 h) w c -> (b h1) c h w", h1=2).shape
    torch.Size([64, 3, 15, 40])
    """
    if not isinstance(tensor, Handle):
        tensor = _stack(tensor)
    for length in axes_lengths.values():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    left, right = _sides(pattern, tuple(axes_lengths))
    sizes = _sizes(left, tensor.shape, axes_lengths)
    order = [name for group in left.groups for name in group]
    first = {name: sum(len(sizes[n]) for n in order[:k]) for k, name in enumerate(order)}
    split = tensor.reshape([n for name in order for n in sizes[name]])
    places = [
        first[name] + k for group in right.groups for name in group for k in range(len(sizes[name]))
    ]
    shape: list[int] = []
    for group in right.groups:
        if group == _DOTS:
            shape += sizes[_DOTS]
        else:
            shape.append(math.prod(n for name in group for n in sizes[name]))
    return split.permute(places).reshape(shape)
