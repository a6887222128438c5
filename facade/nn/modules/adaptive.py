"""PyTorch's `torch.nn.modules.adaptive`: a softmax over many classes, the rare ones in clusters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafax.functional.program.op import TABLE

from ..._dispatch.record import apply
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log probability of each target, and the mean of their negatives."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute log probabilities of targets: frequent classes at once, the others by cluster.

    All clusters are computed for all rows, in one program, whatever the targets are: PyTorch picks
    the rows of each cluster, whose counts are data.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (start, stop) in enumerate(itertools.pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **made),
                    Linear(width, stop - start, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all layers anew."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        """Compute the log probability of each target `(N,)`, and the loss."""
        _check(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel():
            self._check_classes(target)
        head = F.log_softmax(self.head(input), dim=1)
        place, inner = target, None
        for i, (start, stop) in enumerate(itertools.pairwise(self.cutoffs)):
            here = (target >= start) & (target < stop)
            scores = F.log_softmax(self.tail[i](input), dim=1)
            of_target = scores.gather(1, (target - start).clamp(0, stop - start - 1).unsqueeze(1))
            of_target = of_target.squeeze(1).masked_fill(here.logical_not(), 0.0)
            place = place.masked_fill(here, self.shortlist_size + i)
            inner = of_target if inner is None else inner + of_target
        output = inner + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check_classes(self, target: Any) -> None:
        low, high = target.min().item(), target.max().item()
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{low}, {high}] were found. "
            )

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        """Compute the log probabilities of all classes, given what the head made of the input."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, layers in enumerate(self.tail):
            scores = F.log_softmax(layers(input), dim=1)
            parts.append(scores + head[:, self.shortlist_size + i].unsqueeze(1))
        return apply(TABLE["cat"], tuple(parts), 1)

    def log_prob(self, input: Any) -> Any:
        """Compute the log probabilities of all classes, `(N, n_classes)`."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """Name the most probable class of each row; the clusters count where the head chose one."""
        head = self.head(input)
        first = head.argmax(1)
        best = self._get_full_log_prob(input, head).argmax(1)
        return best.where(first >= self.shortlist_size, first)


def _check(input: Any, target: Any) -> None:
    """Raise PyTorch's errors for shapes that do not fit."""
    if target.dim() == 1:
        if input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != 2:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with size "
                f"{input.size()}"
            )
    elif target.dim() == 0:
        if input.dim() != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensors, but found inputs with size "
                f"{input.size()}"
            )
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
