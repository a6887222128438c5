"""Histograms: their edges come from the data, so they run the program."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._core.vmap_checks import differs_in_vmap, loop_over_examples, refuse_in_vmap
from ..._dispatch.conj_neg_bits import held
from ..._signatures.named_results import shown_as
from ..creation.from_arrays import from_numpy_beside
from ..writes.write_out import write_out
from . import no_formula as formulaless


@shown_as("histogram")
class histogram_return(NamedTuple):  # noqa: N801
    """Results of `torch.histogram`."""

    hist: Any
    bin_edges: Any


@shown_as("histogramdd")
class histogramdd_return(NamedTuple):  # noqa: N801
    """Results of `torch.histogramdd`."""

    hist: Any
    bin_edges: tuple[Any, ...]


def _ends(column: np.ndarray, given: Any) -> tuple[float, float]:
    if given is not None:
        low, high = float(given[0]), float(given[1])
    elif column.size:
        low, high = float(column.min()), float(column.max())
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite"
        )
    if low > high:
        raise RuntimeError("torch.histogramdd: min should not exceed max, but got min "
                           f"{low:g} max {high:g} for dimension 0")  # fmt: skip
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _counted(points: np.ndarray, edges: list[np.ndarray], weight: Any, density: bool) -> np.ndarray:
    """Count (or sum weights) by bin; the last bin of each dim holds its right edge."""
    sizes = [len(e) - 1 for e in edges]
    inside = np.full(len(points), bool(edges))  # points of no dims are in no cell
    place = np.zeros(len(points), np.int64)
    for column, e, n in zip(points.T, edges, sizes, strict=True):
        inside &= (column >= e[0]) & (column <= e[-1])
        at = _upper(e, column) - 1
        at = np.where(at == n, n - 1, at)
        place = place * max(n, 1) + np.clip(at, 0, max(n - 1, 0))
    weights = np.ones(len(points), points.dtype) if weight is None else weight.reshape(-1)
    flat = np.bincount(place[inside], weights[inside].astype(np.float64), int(np.prod(sizes)))
    out = flat.reshape(sizes)
    if density:
        with np.errstate(invalid="ignore"):  # of nothing it is NaN
            out = out / out.sum()
        for d, e in enumerate(edges):
            out = out / np.diff(e).reshape([-1 if i == d else 1 for i in range(len(edges))])
    return np.asarray(out, points.dtype)


def _upper(edges: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the first edge above each value, by C++'s `upper_bound`: edges may be in any order."""
    first = np.zeros(len(column), np.int64)
    length = np.full(len(column), len(edges))
    while (length > 0).any():
        half = length // 2
        middle = first + half
        below = column < edges[np.minimum(middle, len(edges) - 1)]
        first = np.where(below | (length == 0), first, middle + 1)
        length = np.where(below, half, np.maximum(length - half - 1, 0))
    return first


def _histogram(
    input: Any, bins: Any, range: Any, weight: Any, density: bool
) -> tuple[Any, tuple[Any, ...]]:
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if not input.is_floating_point():
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{scalar_name(input._v.dtype)}'"
        )
    dims = input.shape[-1]
    points = held(input).reshape(math.prod(input.shape[:-1]), dims)
    per_dim = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(per_dim) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} "
            f"elements, but got {len(range)}"
        )
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape "
            f"{list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    edges = []
    for d, count in enumerate(per_dim):
        if isinstance(count, Handle):
            if count.dim() != 1:
                raise RuntimeError(
                    "torch.histogramdd: bins tensor should have one dimension, but got "
                    f"{count.dim()} dimensions in the bins tensor for dimension {d}"
                )
            edges.append(held(count))
            continue
        if count <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}"
            )
        low, high = _ends(points[:, d], None if range is None else range[2 * d : 2 * d + 2])
        edges.append(np.linspace(low, high, int(count) + 1).astype(points.dtype))
    counts = _counted(points, edges, None if weight is None else held(weight), density)
    made = [from_numpy_beside(input, x) for x in (counts, *edges)]
    return made[0], tuple(made[1:])


def histogramdd(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """Count points `(..., N)` in the cells of a grid; runs the program.

    Args:
      bins: edges of each dim (a sequence of 1-dim tensors), or how many bins each has (ints).
      range: lowest and highest edge of each dim in turn, or None for those of the data.
      weight: what each point counts, in the shape of `input` without its last dim.
      density: divide by the total and by the cells' volumes.
    """
    refuse_in_vmap("histogramdd", input, weight)
    counts, edges = _histogram(input, bins, range, weight, density)
    if isinstance(bins, (tuple, list)) and any(isinstance(b, Handle) for b in bins):
        bound = formulaless.of("_histogramdd_from_bin_tensors", counts, input, weight, *bins)
        return histogramdd_return(bound, tuple(bins))
    edges = tuple(formulaless.of("_histogramdd_bin_edges", e, input, weight) for e in edges)
    counts = formulaless.of("_histogramdd_from_bin_cts", counts, input, weight)
    return histogramdd_return(counts, edges)


# Its parameters say where `out` stands.
_HISTOGRAM = Op(lambda input, bins, range, weight, density: input, name="histogram",
                differentiable=False)  # fmt: skip


def histogram(
    input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None,
    density: bool = False, out: Any = None,
) -> Any:  # fmt: skip
    """Count the elements (or sum the weights) that fall into each bin; runs the program."""
    if differs_in_vmap(input, bins, weight):
        found = loop_over_examples(
            histogram, input, bins, range=range, weight=weight, density=density
        )
        return histogram_return(
            *[formulaless.of("histogram", x, input, bins, weight) for x in found]
        )
    flat = input.reshape(-1, 1)
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = _histogram(flat, [bins], range, weights, density)
    found = histogram_return(
        *[formulaless.of("histogram", x, input, bins, weight) for x in (counts, edges[0])]
    )
    return found if out is None else write_out(_HISTOGRAM, found, out)
