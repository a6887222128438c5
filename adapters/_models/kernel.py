"""Kernels of layers: which of their dimensions are inputs and which are outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

ATTENTION = ("query", "key", "value")  # of Flax's attention: `(features, heads, size)`


class Kernel(NamedTuple):
    """A parameter that low-rank factors can be added to.

    Attributes:
      inputs: how many of its dimensions are inputs, behind those that number layers.
      turned: they are the last ones, as in PyTorch's layers; in Flax's they are the first.
    """

    inputs: int
    turned: bool = False


def flax_kernel(path: str, t: Any, stacked: int) -> Kernel | None:
    """Tell how a parameter of a Flax model is laid out; None if it is no kernel."""
    parent, _, name = path.rpartition(".")
    if t.dim() < 2 or name in ("bias", "scale"):  # attention's biases have two dimensions too
        return None
    dims = t.dim() - stacked
    return Kernel(1 if dims == 3 and parent.rpartition(".")[2] in ATTENTION else dims - 1)
