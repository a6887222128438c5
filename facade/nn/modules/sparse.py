"""PyTorch's `torch.nn.modules.sparse`: tables whose rows are looked up.

There are no sparse tensors: a layer with `sparse=True` can be made and printed, its call raises.
"""

from __future__ import annotations

from typing import Any, Self

from ..._core.grad_modes import no_grad
from ..._ops.creation.factories import empty
from .. import functional as F
from ..init import normal_
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Hold a weight `(num_embeddings, embedding_dim)` and how its rows are used."""

    weight: Any
    padding_idx: int | None
    _pad = "padding_idx"  # how this class spells the argument in what it says of it

    def _use(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None,
        max_norm: float | None, norm_type: float, scale_grad_by_freq: bool,
    ) -> None:  # fmt: skip
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < max(num_embeddings, 1):
                raise AssertionError(f"{self._pad} must be within num_embeddings")
            padding_idx += num_embeddings if padding_idx < 0 else 0
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq

    def _make(self, weight: Any, device: Any, dtype: Any, requires_grad: bool = True) -> None:
        size = [self.num_embeddings, self.embedding_dim]
        if weight is not None and list(weight.shape) != size:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        drawn = weight is None
        if drawn:
            weight = empty(size, device=device, dtype=dtype)
        self.weight = Parameter(weight, requires_grad=requires_grad)
        if drawn:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows from the normal distribution; that of `padding_idx` is zeros."""
        normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _size_of(embeddings: Any) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """Look up rows of a table by indices of any shape."""

    __constants__ = [
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type",
        "scale_grad_by_freq", "sparse",
    ]  # fmt: skip

    _pad = "Padding_idx"

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._use(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq
        )
        self._make(_weight, device, dtype, not _freeze)
        self.sparse = sparse

    def forward(self, input: Any) -> Any:
        """Look up the rows."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        said = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            said.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            said.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            said.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            said.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse is not False:
            said.append("sparse=True")
        return ", ".join(said)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:  # fmt: skip
        """Make a layer of a table that is there, which does not learn if `freeze`."""
        rows, columns = _size_of(embeddings)
        return cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, _freeze=freeze,
            padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """Look up bags of rows, and sum each, or take its mean or maximum."""

    __constants__ = [
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode",
        "sparse", "include_last_offset", "padding_idx",
    ]  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._use(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq
        )
        self._make(_weight, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Look up and reduce the bags: rows of `input`, or what begins at each of `offsets`."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        said = [f"{self.num_embeddings!r}, {self.embedding_dim!r}"]
        if self.max_norm is not None:
            said.append(f"max_norm={self.max_norm!r}")
        if self.norm_type != 2:
            said.append(f"norm_type={self.norm_type!r}")
        if self.scale_grad_by_freq is not False:
            said.append(f"scale_grad_by_freq={self.scale_grad_by_freq!r}")
        said.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            said.append(f"padding_idx={self.padding_idx!r}")
        return ", ".join(said)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> Self:  # fmt: skip
        """Make a layer of a table that is there, which does not learn if `freeze`."""
        rows, columns = _size_of(embeddings)
        made = cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, max_norm=max_norm,
            norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
            include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
