"""einops' layers as modules of leafax.

Its functions (`rearrange`, `reduce`, `repeat`, `einsum`, `pack`, `unpack`) take leafax's tensors as
they are; `einops.layers.torch` needs PyTorch, and this module stands for it.
"""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import leafax


class Rearrange(RearrangeMixin, leafax.nn.Module):  # type: ignore[misc]
    """Rearrange the axes of its input, as `einops.rearrange` does.

    >>> import leafax
    >>> from leafax.adapters.einops import Rearrange
    >>> Rearrange("b c h -> b (c h)")(leafax.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def forward(self, input: Any) -> Any:
        """Rearrange the input."""
        return self._apply_recipe(input)  # type: ignore[no-untyped-call]


class Reduce(ReduceMixin, leafax.nn.Module):  # type: ignore[misc]
    """Reduce axes of its input, as `einops.reduce` does.

    >>> import leafax
    >>> from leafax.adapters.einops import Reduce
    >>> Reduce("b c (h 2) -> b c h", "max")(leafax.ones(2, 3, 4)).shape
    torch.Size([2, 3, 2])
    """

    def forward(self, input: Any) -> Any:
        """Reduce the input."""
        return self._apply_recipe(input)  # type: ignore[no-untyped-call]


class EinMix(_EinmixMixin, leafax.nn.Module):  # type: ignore[misc]
    """Multiply its input with a weight over named axes, as einops' `EinMix` does.

    >>> import leafax
    >>> from leafax.adapters.einops import EinMix
    >>> EinMix("b c -> b o", "c o", c=3, o=5)(leafax.ones(2, 3)).shape
    torch.Size([2, 5])
    """

    def _create_parameters(
        self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float
    ) -> None:
        weight = leafax.zeros(weight_shape).uniform_(-weight_bound, weight_bound)
        self.weight = leafax.nn.Parameter(weight)
        self.bias = None
        if bias_shape is not None:
            bias = leafax.zeros(bias_shape).uniform_(-bias_bound, bias_bound)
            self.bias = leafax.nn.Parameter(bias)

    def _create_rearrange_layers(
        self, pre_reshape_pattern: str | None, pre_reshape_lengths: Any,
        post_reshape_pattern: str | None, post_reshape_lengths: Any,
    ) -> None:  # fmt: skip
        def layer(pattern: str | None, lengths: Any) -> Rearrange | None:
            return None if pattern is None else Rearrange(pattern, **lengths)

        self.pre_rearrange = layer(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = layer(post_reshape_pattern, post_reshape_lengths)

    def forward(self, input: Any) -> Any:
        """Multiply the input with the weight."""
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = leafax.einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)
