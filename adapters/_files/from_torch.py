"""PyTorch state dicts in Flax models: names, transposes, and a report of what went where.

A tensor's role follows from its last name: `weight` is a `kernel`, an `embedding` or a `scale`,
`running_mean` a `mean`. Kernels are transposed: dense `(out, in)` to `(in, out)`, convolutions
`(out, in / groups, *window)` to `(*window, in / groups, out)`, attention projections to heads.
Module names come from the caller, or by order of use and by shape where that is unambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._models.select import near

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Names = Mapping[str, str] | Callable[[str], str | None] | None

ROLES = {
    "kernel": "weight", "embedding": "weight", "scale": "weight", "bias": "bias",
    "mean": "running_mean", "var": "running_var",
}  # fmt: skip
IGNORED = ("num_batches_tracked", "position_ids")


class Row(NamedTuple):
    """One tensor, and the place that it went to.

    Attributes:
      source, target: its name in PyTorch and in Flax.
      how: `"same"`, `"transposed"`, `"convolution"`, `"flipped"` (a transposed convolution) or
        `"heads"`.
      inferred: the names were matched by order and shape, not given.
    """

    source: str
    target: str
    how: str
    shape: Shape
    inferred: bool


class Report(NamedTuple):
    """The tensors that `load_into` and `convert` moved, and those that they could not.

    Attributes:
      rows: each tensor that was taken.
      missing: the model's names that got nothing.
      unused: PyTorch's names that went nowhere.
      notes: what state dicts do not say and is worth a look.
    """

    rows: list[Row]
    missing: list[str]
    unused: list[str]
    notes: list[str]

    def __str__(self) -> str:
        inferred = sum(row.inferred for row in self.rows)
        lines = [f"{len(self.rows)} tensors taken, {inferred} of them matched by order and shape"]
        for kind in ("missing", "unused"):
            names = getattr(self, kind)
            if names:
                more = f" and {len(names) - 8} more" if len(names) > 8 else ""
                lines.append(f"{len(names)} {kind}: {', '.join(names[:8])}{more}")
        return "\n".join([*lines, *self.notes])

    def table(self) -> str:
        """List each tensor on a line."""
        wide = max((len(r.source) for r in self.rows), default=0)
        return "\n".join(
            f"{r.source:{wide}}  {r.how:11}  {r.target} {list(r.shape)}"
            + (" (inferred)" if r.inferred else "")
            for r in self.rows
        )


def match(
    tensors: Mapping[str, Any], shapes: Mapping[str, Shape], names: Names, order: Iterable[str],
    flipped: Collection[str] = (),
) -> tuple[dict[str, Array], Report]:  # fmt: skip
    """Find values for a model's names.

    Args:
      tensors: a PyTorch state dict.
      shapes: of the model's tensors, by dotted path.
      names: from PyTorch's module names to Flax's, see `convert`.
      order: the model's paths in order of use; those that are missing keep their order in `shapes`.
      flipped: PyTorch's modules that are transposed convolutions.
    """
    theirs, ignored = _modules_of(tensors)
    ours = _flax_modules(shapes, order)
    pairs, given = _named(theirs, ours, names)
    rest = {source: leaves for source, leaves in theirs.items() if source not in given}
    inferred = _inferred(rest, ours, pairs)
    values: dict[str, Array] = {}
    rows: list[Row] = []
    used: set[str] = set()
    for source, target in {**pairs, **inferred}.items():
        for leaf, shape in ours[target].items():
            entry = theirs[source].get(ROLES.get(leaf, leaf))
            if entry is None:
                continue
            path, (origin, array) = _join(target, leaf), entry
            how, value = convert_leaf(origin, array, path, leaf, shape, source in flipped)
            values[path] = value
            used.add(origin)
            rows.append(Row(origin, path, how, shape, source in inferred))
    missing = [name for name in shapes if name not in values]
    unused = [
        name for name in tensors
        if name not in used and name not in ignored and not _parts_of(name) & used
    ]  # fmt: skip
    return values, Report(rows, missing, unused, _notes(values, ours))


def _join(module: str, leaf: str) -> str:
    return f"{module}.{leaf}" if module else leaf


def _modules_of(
    tensors: Mapping[str, Any],
) -> tuple[dict[str, dict[str, tuple[str, Array]]], set[str]]:
    """Yield PyTorch's modules with their tensors; fused attention projections come apart."""
    found: dict[str, dict[str, tuple[str, Array]]] = {}
    ignored = set()
    for name, value in tensors.items():
        module, _, leaf = name.rpartition(".")
        array = np.asarray(value)
        if leaf in IGNORED:
            ignored.add(name)
        elif leaf in ("in_proj_weight", "in_proj_bias"):
            for i, part in enumerate(("query", "key", "value")):
                size = array.shape[0] // 3
                kind = leaf.removeprefix("in_proj_")
                entry = (f"{name}[{part}]", array[i * size : (i + 1) * size])
                found.setdefault(_join(module, part), {})[kind] = entry
        else:
            if module.endswith("out_proj") and f"{module[:-9]}.in_proj_weight" in tensors:
                module = f"{module[:-8]}out"
            found.setdefault(module, {})[leaf] = (name, array)
    return found, ignored


def _parts_of(name: str) -> set[str]:
    return {f"{name}[{part}]" for part in ("query", "key", "value")}


def _flax_modules(shapes: Mapping[str, Shape], order: Iterable[str]) -> dict[str, dict[str, Shape]]:
    found: dict[str, dict[str, Shape]] = {}
    for name in [*(n for n in order if n in shapes), *shapes]:
        module, _, leaf = name.rpartition(".")
        found.setdefault(module, {})[leaf] = tuple(shapes[name])
    return found


def _named(theirs: Any, ours: Any, names: Names) -> tuple[dict[str, str], set[str]]:
    """Match modules whose names the caller gave; a name in both places needs no mention."""
    pairs: dict[str, str] = {}
    given: set[str] = set()
    for source in theirs:
        target = names(source) if callable(names) else _renamed(source, names or {})
        if callable(names) and target is None:
            given.add(source)
            continue
        if target is not None:
            given.add(source)
        if target is None or target not in ours:
            if target is not None:
                raise ValueError(
                    f"`{source}` is to become `{target}`, which the model lacks; the nearest are "
                    f"{near(target, ours)}"
                )
            if source not in ours:
                continue
            target = source
        if target in pairs.values():
            other = next(s for s, t in pairs.items() if t == target)
            raise ValueError(f"`{other}` and `{source}` are both to become `{target}`")
        pairs[source] = target
    return pairs, given


def _renamed(source: str, names: Mapping[str, str]) -> str | None:
    """Rename by the first pattern that matches; what follows the match stays."""
    for pattern, target in names.items():
        expression = re.escape(pattern).replace(r"\*", r"([^.]+)")
        found = re.fullmatch(expression + r"((?:\..+)?)", source)
        if found:
            *stars, rest = found.groups()
            for star in stars:
                target = target.replace("*", star, 1)
            return target + rest
    return None


def _inferred(theirs: Any, ours: Any, pairs: Mapping[str, str]) -> dict[str, str]:
    """Match modules by the shapes of their tensors, and in order among equal ones.

    Where the numbers of equal ones differ nothing is guessed.
    """
    taken = set(pairs.values())
    by_shape: dict[Any, tuple[list[str], list[str]]] = {}
    for source, leaves in theirs.items():
        if source not in pairs:
            key = _signature({k: a.shape for k, (_, a) in leaves.items()})
            by_shape.setdefault(key, ([], []))[0].append(source)
    for target, shapes in ours.items():
        if target not in taken:
            key = _signature({ROLES.get(k, k): s for k, s in shapes.items()})
            by_shape.setdefault(key, ([], []))[1].append(target)
    found: dict[str, str] = {}
    for sources, targets in by_shape.values():
        if len(sources) == len(targets):
            found.update(zip(sources, targets, strict=True))
    return found


def _signature(shapes: Mapping[str, Shape]) -> Any:
    """Return what stays of shapes when axes are transposed and heads split."""
    return tuple(sorted((leaf, int(np.prod(shape))) for leaf, shape in shapes.items()))


def convert_leaf(
    origin: str, array: Array, path: str, leaf: str, shape: Shape, flipped: bool = False
) -> tuple[str, Array]:
    """Convert one tensor to Flax's layout; `restored` goes the other way.

    A transposed convolution's kernel is turned round in space as well, unless Flax's has the
    shape of one that turns it itself (`transpose_kernel=True`).

    Raises:
      ValueError: the shapes do not fit in any known way.
    """
    if leaf == "kernel":
        n = array.ndim
        if n == 2 and array.shape[::-1] == shape:
            return "transposed", np.ascontiguousarray(array.T)
        if n > 2 and flipped:
            turned = np.flip(array, tuple(range(2, n))).transpose(*range(2, n), 0, 1)
            if turned.shape == shape:
                return "flipped", np.ascontiguousarray(turned)
        if n > 2:
            moved = array.transpose(*range(2, n), 1, 0)
            if moved.shape == shape:
                return "convolution", np.ascontiguousarray(moved)
        heads = n == 2 and len(shape) > 2 and array.size == int(np.prod(shape))
        if heads and (shape[0] == array.shape[1] or shape[-1] == array.shape[0]):
            return "heads", np.ascontiguousarray(array.T).reshape(shape)
    elif array.shape == shape:
        return "same", array
    elif leaf == "bias" and array.size == int(np.prod(shape)) and len(shape) == 2:
        return "heads", array.reshape(shape)
    raise ValueError(
        f"`{origin}` of shape {list(array.shape)} does not fit `{path}` of shape {list(shape)}"
    )


def restored(how: str, value: Array, shape: Shape) -> Array:
    """Convert one tensor back to PyTorch's layout.

    Args:
      how: what `convert_leaf` said.
      value: Flax's.
      shape: PyTorch's.
    """
    n = value.ndim
    if how == "transposed":
        value = value.T
    elif how == "convolution":
        value = value.transpose(n - 1, n - 2, *range(n - 2))
    elif how == "flipped":
        value = np.flip(value, tuple(range(n - 2))).transpose(n - 2, n - 1, *range(n - 2))
    elif how == "heads" and len(shape) == 2:
        value = value.reshape(shape[::-1]).T
    return np.ascontiguousarray(value.reshape(shape))


def _notes(values: Mapping[str, Array], ours: Mapping[str, Mapping[str, Shape]]) -> list[str]:
    notes = []
    if any("mean" in leaves and "var" in leaves for leaves in ours.values()):
        notes.append(
            "BatchNorm: Flax's `momentum` is 1 minus PyTorch's (0.9 for its 0.1; Flax's default is "
            "0.99); `epsilon` is 1e-5 in both by default"
        )
    if any("scale" in leaves and "mean" not in leaves for leaves in ours.values()):
        notes.append("LayerNorm: PyTorch's default `eps` is 1e-5 (BERT's 1e-12), Flax's 1e-6")
    if any("embedding" not in k and len(v.shape) > 2 for k, v in values.items()):
        notes.append(
            "a dense layer behind flattened images counts channels first in PyTorch, last in Flax"
        )
    return notes
