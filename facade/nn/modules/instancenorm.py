"""PyTorch's `torch.nn.modules.instancenorm`: channels of each sample standardized."""

from __future__ import annotations

import warnings
from typing import Any

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
    "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = False, track_running_stats: bool = False, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        if not hasattr(self, "_ranks"):
            raise NotImplementedError
        return self._ranks[0]

    def _handle_no_batch_input(self, input: Any) -> Any:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input: Any) -> Any:
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            keys = [prefix + name for name in ("running_mean", "running_var")]
            found = [key for key in keys if key in state_dict]
            if found:
                names, klass = " and ".join([f'"{key}"' for key in found]), type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {klass} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    f"this may be expected because {klass} does not track running stats by "
                    "default since 0.4.0. Please remove these keys from state_dict. If the "
                    "running stats are actually needed, instead set track_running_stats=True in "
                    f"{klass} to enable them. See the documentation of {klass} for details."
                )
            for key in found:
                state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Any) -> Any:
        """Compute the layer; while training, note the running statistics if there are any."""
        self._check_input_dim(input)
        dim = input.dim() - self._get_no_batch_dim()
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if dim == 0:
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Standardize each channel of each `(C, L)`."""

    _ranks = (2, 3)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input."""

    _ranks = (2, 3)
    cls_to_become = InstanceNorm1d


class InstanceNorm2d(_InstanceNorm):
    """Standardize each channel of each `(C, H, W)`."""

    _ranks = (3, 4)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input."""

    _ranks = (3, 4)
    cls_to_become = InstanceNorm2d


class InstanceNorm3d(_InstanceNorm):
    """Standardize each channel of each `(C, D, H, W)`."""

    _ranks = (4, 5)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input."""

    _ranks = (4, 5)
    cls_to_become = InstanceNorm3d
