"""Functions of the `torch` namespace that are no op: gathered from where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops.composites import matrices
from .._ops.creation import periodic_windows
from .._signatures.wrap_composites import parsed
from ..nn._functional import recurrent
from . import embedding_bag, layers, lobpcg, losses

_HOMES = {
    layers: (
        "layer_norm group_norm batch_norm instance_norm embedding embedding_renorm_ avg_pool1d "
        "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices adaptive_avg_pool1d "
        "adaptive_max_pool1d bilinear grid_sampler affine_grid_generator "
        "feature_dropout_ feature_alpha_dropout_"
    ),
    embedding_bag: "embedding_bag",
    losses: (
        "binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss "
        "margin_ranking_loss triplet_margin_loss kl_div poisson_nll_loss ctc_loss"
    ),
    periodic_windows: (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window range"
    ),
    recurrent: ("lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"),
    lobpcg: "lobpcg",
    matrices: "chain_matmul frobenius_norm nuclear_norm norm_except_dim orgqr vander",
}

#: By name.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: parsed(getattr(home, name)) for home, names in _HOMES.items() for name in names.split()
}
