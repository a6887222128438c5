"""PyTorch's `torch.nn.modules.batchnorm`: channels standardized by their batch.

The running statistics and the count of batches are buffers; they are written in the program of the
step that calls the layer.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.dtypes import int64
from ..._core.grad_modes import no_grad
from ..._core.processes.group import default_group, is_initialized
from ..._ops.creation.factories import empty, ones, zeros
from ..._ops.creation.from_data import tensor
from .. import functional as F
from .._functional.sync_batch_norm import sync_batch_norm
from ..init import ones_, zeros_
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from ._layers.counted_norm import count_and_norm
from ._module.attributes import buffer_of, parameter_of
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d", "LazyBatchNorm1d", "BatchNorm2d", "LazyBatchNorm2d", "BatchNorm3d",
    "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Hold the parameters and the running statistics of batch and instance norms."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    _ranks: ClassVar[tuple[int, ...]]  # of the inputs taken

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = tracks = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            new = Parameter(empty(num_features, **made)) if wanted else None
            self.register_parameter(name, new)
        count = tensor(0, dtype=int64, device=device) if tracks else None
        self.register_buffer("running_mean", zeros(num_features, **made) if tracks else None)
        self.register_buffer("running_var", ones(num_features, **made) if tracks else None)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the batches seen; scale by 1 and shift by 0."""
        self.reset_running_stats()
        if self.affine:
            ones_(self.weight)
            if self.bias is not None:
                zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        if not hasattr(self, "_ranks"):
            raise NotImplementedError
        if input.dim() not in self._ranks:
            expected = " or ".join([f"{rank}D" for rank in self._ranks])
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        """Tell the number of features and the settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"  # which older states lack
            if key not in state_dict:
                count = self.num_batches_tracked
                state_dict[key] = tensor(0, dtype=int64) if count is None else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        """Compute the layer; while training, note the batch's statistics too."""
        self._check_input_dim(input)
        stats = buffer_of(self, "running_mean"), buffer_of(self, "running_var")
        weight, bias = parameter_of(self, "weight"), parameter_of(self, "bias")
        batch = self.training or stats == (None, None)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and not self.track_running_stats:
            stats = (None, None)
        elif self.training and (count := buffer_of(self, "num_batches_tracked")) is not None:
            if self.momentum is not None:
                return count_and_norm(input, count, *stats, weight, bias, momentum, self.eps)
            count.add_(1)
            return self._average(input, *stats)
        return F.batch_norm(input, *stats, weight, bias, batch, momentum, self.eps)

    def _average(self, input: Any, mean: Any, variance: Any) -> Any:
        """Compute the layer and move the statistics to the mean over all batches.

        The share of this batch is a tensor: as a number it would have to be read from the count,
        which would run the program here.
        """
        new_mean, new_variance = [
            None if old is None else old.detach().clone() for old in (mean, variance)
        ]
        out = F.batch_norm(
            input, new_mean, new_variance, self.weight, self.bias, True, 1.0, self.eps
        )
        with no_grad():
            for old, new in ((mean, new_mean), (variance, new_variance)):
                if old is not None:
                    share = self.num_batches_tracked.to(old.dtype).reciprocal()
                    old.mul_(1 - share).add_(new * share)
        return out


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Take `num_features` from the first input."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        made = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **made, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Set the parameters and statistics once their shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Make the parameters and statistics for an input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        held = []
        if self.affine:
            for name in ("weight", "bias"):
                parameter = getattr(self, name)
                if parameter is None and name == "bias":
                    continue
                if not isinstance(parameter, UninitializedParameter):
                    raise AssertionError(f"self.{name} must be an UninitializedParameter")
                held.append(parameter)
        if self.track_running_stats:
            held += [self.running_mean, self.running_var]
        for one in held:
            one.materialize((self.num_features,))
        self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Standardize each channel of `(N, C)` or `(N, C, L)`."""

    _ranks = (2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input."""

    _ranks = (2, 3)
    cls_to_become = BatchNorm1d


class BatchNorm2d(_BatchNorm):
    """Standardize each channel of `(N, C, H, W)`."""

    _ranks = (4,)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input."""

    _ranks = (4,)
    cls_to_become = BatchNorm2d


class BatchNorm3d(_BatchNorm):
    """Standardize each channel of `(N, C, D, H, W)`."""

    _ranks = (5,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input."""

    _ranks = (5,)
    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Standardize each channel by the batches of all processes, while training.

    Args:
      process_group: the processes, by default those of the default group; without one, and with one
        process, it is the plain layer.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Any) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Any) -> Any:
        """Compute the layer; while training, note the batch's statistics too."""
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if self.training and self.track_running_stats and self.num_batches_tracked is None:
            raise AssertionError("num_batches_tracked must not be None")
        if not self.training or not is_initialized():
            return super().forward(input)
        group = self.process_group or default_group()
        if group.size() == 1:
            return super().forward(input)
        mean, variance, share = None, None, self.momentum
        if self.track_running_stats:
            mean, variance = self.running_mean, self.running_var
            self.num_batches_tracked.add_(1)
            if share is None:
                share = self.num_batches_tracked.to(mean.dtype).reciprocal()
        return sync_batch_norm(
            input, mean, variance, self.weight, self.bias, share, self.eps, group
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replace all batch norms in a module, which share their tensors with the new ones."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            if module.affine:
                made.weight = module.weight
                made.bias = module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
            if hasattr(module, "qconfig"):
                made.qconfig = module.qconfig
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
