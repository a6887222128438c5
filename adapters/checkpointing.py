"""Submodules by path that backward computes again, for an `nn.Module` as for a Flax model."""

from __future__ import annotations

from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers

from ._modules.module import model_of


def checkpoint(model: Any, *what: Any) -> Any:
    """Keep no activations of the selected submodules for backward: compute them again there.

    It is `utils.checkpoint` by path. Each submodule is a segment of its own, whose inputs are
    kept. Values, gradients, random masks and statistics are what they are without. It trades a
    second forward pass of these submodules for memory: for a model of `n` equal blocks, about
    `1 / n` of the activations stays.

    Inside of Flax models `jax.checkpoint` does it. On a CPU XLA merges the two computations where
    forward and backward are one program; there a Flax model saves memory only for what is kept
    between programs.

    Args:
      model: a `leafax.nn.Module`, or a model of `adapters.linen` or `adapters.nnx`.
      what: globs over dotted paths of submodules (`"blocks.*"` is each block), compiled regular
        expressions that match whole paths, and classes of modules. Of what one of them matches the
        outermost count. They replace those of an earlier call, and without any all is kept again.

    Returns:
      The model itself.

    Raises:
      ValueError: a pattern that matches nothing; the message has the nearest paths.
      TypeError: `model` is neither, or something else for a pattern.
      RuntimeError: classes of a linen model before its first call.

    >>> import leafax
    >>> from leafax import nn
    >>> from leafax.adapters import checkpoint
    >>> blocks = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(3)]
    >>> net = checkpoint(nn.Sequential(nn.Linear(4, 8), *blocks), nn.TransformerEncoderLayer)
    >>> net(leafax.ones(2, 5, 4)).sum().backward()
    """
    model_of(model).checkpoint(*what)
    return model


end_at_callers(__name__)
