"""Functions of the `torch` namespace that are no op: gathered from where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _aten_layers, _aten_losses, _bags, _lobpcg, _matrices, _periodic_windows, _recurrent
from ._arguments import parsed

_HOMES = {
    _aten_layers: (
        "layer_norm group_norm batch_norm instance_norm embedding embedding_renorm_ avg_pool1d "
        "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices adaptive_avg_pool1d "
        "adaptive_max_pool1d bilinear grid_sampler affine_grid_generator "
        "feature_dropout_ feature_alpha_dropout_"
    ),
    _bags: "embedding_bag",
    _aten_losses: (
        "binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss "
        "margin_ranking_loss triplet_margin_loss kl_div poisson_nll_loss ctc_loss"
    ),
    _periodic_windows: (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window range"
    ),
    _recurrent: ("lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"),
    _lobpcg: "lobpcg",
    _matrices: "chain_matmul frobenius_norm nuclear_norm norm_except_dim orgqr vander",
}

#: By name.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: parsed(getattr(home, name)) for home, names in _HOMES.items() for name in names.split()
}
