"""PyTorch's `torch.nn.functional`: functions of tensors that neural networks are made of."""

from __future__ import annotations

from leafax.functional import TABLE as _TABLE

from .._performance import CONVOLUTIONS as _CONVOLUTIONS
from .._table import function as _function
from .._table import in_namespace as _in_namespace
from . import _activations, _pooling
from . import _composed_norms as _composed_norms
from . import _composed_pools as _composed_pools

_ALSO = (  # of the top level and here
    "prelu", "hardshrink", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_similarity", "pairwise_distance", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "pdist",
    "conv_tbc",
)  # fmt: skip
_made = _in_namespace("nn.functional")
_made |= {name: _function(_TABLE[name]) for name in _ALSO if name in _TABLE}
_made |= {name: told(name, _made[name]) for name, told in _CONVOLUTIONS.items()}
_made |= _activations.FUNCTIONS | _pooling.FUNCTIONS
globals().update(_made)

from ._activations import gumbel_softmax as gumbel_softmax  # noqa: E402
from ._activations import log_softmax as log_softmax  # noqa: E402
from ._activations import normalize as normalize  # noqa: E402
from ._activations import rrelu as rrelu  # noqa: E402
from ._activations import rrelu_ as rrelu_  # noqa: E402
from ._activations import sigmoid as sigmoid  # noqa: E402
from ._activations import softmax as softmax  # noqa: E402
from ._activations import softmin as softmin  # noqa: E402
from ._activations import tanh as tanh  # noqa: E402
from ._attention import multi_head_attention_forward as multi_head_attention_forward  # noqa: E402
from ._cosine import cosine_similarity as cosine_similarity  # noqa: E402
from ._cross_entropy import cross_entropy as cross_entropy  # noqa: E402
from ._cross_entropy import nll_loss as nll_loss  # noqa: E402
from ._dropout import alpha_dropout as alpha_dropout  # noqa: E402
from ._dropout import dropout as dropout  # noqa: E402
from ._dropout import dropout1d as dropout1d  # noqa: E402
from ._dropout import dropout2d as dropout2d  # noqa: E402
from ._dropout import dropout3d as dropout3d  # noqa: E402
from ._dropout import feature_alpha_dropout as feature_alpha_dropout  # noqa: E402
from ._fractional_pool import fractional_max_pool2d as fractional_max_pool2d  # noqa: E402
from ._fractional_pool import (  # noqa: E402
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
)
from ._fractional_pool import fractional_max_pool3d as fractional_max_pool3d  # noqa: E402
from ._fractional_pool import (  # noqa: E402
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
)
from ._grids import affine_grid as affine_grid  # noqa: E402
from ._grids import grid_sample as grid_sample  # noqa: E402
from ._linear import linear as linear  # noqa: E402
from ._linear_cross_entropy import linear_cross_entropy as linear_cross_entropy  # noqa: E402
from ._losses import binary_cross_entropy as binary_cross_entropy  # noqa: E402
from ._losses import (  # noqa: E402
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from ._losses import gaussian_nll_loss as gaussian_nll_loss  # noqa: E402
from ._losses import huber_loss as huber_loss  # noqa: E402
from ._losses import kl_div as kl_div  # noqa: E402
from ._losses import l1_loss as l1_loss  # noqa: E402
from ._losses import mse_loss as mse_loss  # noqa: E402
from ._losses import multilabel_soft_margin_loss as multilabel_soft_margin_loss  # noqa: E402
from ._losses import poisson_nll_loss as poisson_nll_loss  # noqa: E402
from ._losses import smooth_l1_loss as smooth_l1_loss  # noqa: E402
from ._losses import soft_margin_loss as soft_margin_loss  # noqa: E402
from ._margin_losses import cosine_embedding_loss as cosine_embedding_loss  # noqa: E402
from ._margin_losses import ctc_loss as ctc_loss  # noqa: E402
from ._margin_losses import hinge_embedding_loss as hinge_embedding_loss  # noqa: E402
from ._margin_losses import margin_ranking_loss as margin_ranking_loss  # noqa: E402
from ._margin_losses import multi_margin_loss as multi_margin_loss  # noqa: E402
from ._margin_losses import multilabel_margin_loss as multilabel_margin_loss  # noqa: E402
from ._margin_losses import triplet_margin_loss as triplet_margin_loss  # noqa: E402
from ._margin_losses import (  # noqa: E402
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from ._norms import batch_norm as batch_norm  # noqa: E402
from ._norms import group_norm as group_norm  # noqa: E402
from ._norms import instance_norm as instance_norm  # noqa: E402
from ._norms import layer_norm as layer_norm  # noqa: E402
from ._norms import rms_norm as rms_norm  # noqa: E402
from ._pooling import adaptive_max_pool1d as adaptive_max_pool1d  # noqa: E402
from ._pooling import adaptive_max_pool2d as adaptive_max_pool2d  # noqa: E402
from ._pooling import adaptive_max_pool3d as adaptive_max_pool3d  # noqa: E402
from ._pooling import lp_pool1d as lp_pool1d  # noqa: E402
from ._pooling import lp_pool2d as lp_pool2d  # noqa: E402
from ._pooling import lp_pool3d as lp_pool3d  # noqa: E402
from ._pooling import max_pool1d as max_pool1d  # noqa: E402
from ._pooling import max_pool2d as max_pool2d  # noqa: E402
from ._pooling import max_pool3d as max_pool3d  # noqa: E402
from ._sparse import bilinear as bilinear  # noqa: E402
from ._sparse import embedding as embedding  # noqa: E402
from ._sparse import interpolate as interpolate  # noqa: E402
from ._sparse import one_hot as one_hot  # noqa: E402
from ._sparse import scaled_dot_product_attention as scaled_dot_product_attention  # noqa: E402
from ._sparse import upsample as upsample  # noqa: E402
from ._sparse import upsample_bilinear as upsample_bilinear  # noqa: E402
from ._sparse import upsample_nearest as upsample_nearest  # noqa: E402
from ._unpool import embedding_bag as embedding_bag  # noqa: E402
from ._unpool import max_unpool1d as max_unpool1d  # noqa: E402
from ._unpool import max_unpool2d as max_unpool2d  # noqa: E402
from ._unpool import max_unpool3d as max_unpool3d  # noqa: E402

__all__ = [  # noqa: PLE0604
    *_made,
    "gumbel_softmax", "log_softmax", "normalize", "sigmoid", "softmax", "softmin", "tanh",
    "cross_entropy", "nll_loss", "alpha_dropout", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "feature_alpha_dropout", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "ctc_loss", "multi_margin_loss", "multilabel_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "batch_norm", "group_norm",
    "instance_norm", "layer_norm", "rms_norm", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d",
    "max_pool3d", "bilinear", "embedding", "interpolate", "one_hot",
    "scaled_dot_product_attention", "upsample", "upsample_bilinear", "upsample_nearest",
    "embedding_bag", "multi_head_attention_forward", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "rrelu", "rrelu_", "linear_cross_entropy", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "affine_grid", "grid_sample",
]  # fmt: skip
