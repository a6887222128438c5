"""PyTorch's `torch.nn.functional`: functions of tensors that neural networks are made of."""

from __future__ import annotations

from leafax.functional.program.op import TABLE as _TABLE

from .._ops.calls.functions import function as _function
from .._ops.calls.functions import in_namespace as _in_namespace
from .._storage.copy_warnings import CONVOLUTIONS as _CONVOLUTIONS
from ._functional import activations as _activations
from ._functional import composed_norms as _composed_norms  # noqa: F401
from ._functional import composed_pools as _composed_pools  # noqa: F401
from ._functional import pooling as _pooling

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

from ._functional.activations import gumbel_softmax as gumbel_softmax  # noqa: E402
from ._functional.activations import log_softmax as log_softmax  # noqa: E402
from ._functional.activations import normalize as normalize  # noqa: E402
from ._functional.activations import rrelu as rrelu  # noqa: E402
from ._functional.activations import rrelu_ as rrelu_  # noqa: E402
from ._functional.activations import sigmoid as sigmoid  # noqa: E402
from ._functional.activations import softmax as softmax  # noqa: E402
from ._functional.activations import softmin as softmin  # noqa: E402
from ._functional.activations import tanh as tanh  # noqa: E402
from ._functional.attention import (  # noqa: E402
    multi_head_attention_forward as multi_head_attention_forward,
)
from ._functional.cosine import cosine_similarity as cosine_similarity  # noqa: E402
from ._functional.cross_entropy import cross_entropy as cross_entropy  # noqa: E402
from ._functional.cross_entropy import nll_loss as nll_loss  # noqa: E402
from ._functional.dropout import alpha_dropout as alpha_dropout  # noqa: E402
from ._functional.dropout import dropout as dropout  # noqa: E402
from ._functional.dropout import dropout1d as dropout1d  # noqa: E402
from ._functional.dropout import dropout2d as dropout2d  # noqa: E402
from ._functional.dropout import dropout3d as dropout3d  # noqa: E402
from ._functional.dropout import feature_alpha_dropout as feature_alpha_dropout  # noqa: E402
from ._functional.fractional_pool import (  # noqa: E402
    fractional_max_pool2d as fractional_max_pool2d,
)
from ._functional.fractional_pool import (  # noqa: E402
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
)
from ._functional.fractional_pool import (  # noqa: E402
    fractional_max_pool3d as fractional_max_pool3d,
)
from ._functional.fractional_pool import (  # noqa: E402
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
)
from ._functional.grids import affine_grid as affine_grid  # noqa: E402
from ._functional.grids import grid_sample as grid_sample  # noqa: E402
from ._functional.linear import linear as linear  # noqa: E402
from ._functional.linear_cross_entropy import (  # noqa: E402
    linear_cross_entropy as linear_cross_entropy,
)
from ._functional.losses import binary_cross_entropy as binary_cross_entropy  # noqa: E402
from ._functional.losses import (  # noqa: E402
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from ._functional.losses import gaussian_nll_loss as gaussian_nll_loss  # noqa: E402
from ._functional.losses import huber_loss as huber_loss  # noqa: E402
from ._functional.losses import kl_div as kl_div  # noqa: E402
from ._functional.losses import l1_loss as l1_loss  # noqa: E402
from ._functional.losses import mse_loss as mse_loss  # noqa: E402
from ._functional.losses import (  # noqa: E402
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from ._functional.losses import poisson_nll_loss as poisson_nll_loss  # noqa: E402
from ._functional.losses import smooth_l1_loss as smooth_l1_loss  # noqa: E402
from ._functional.losses import soft_margin_loss as soft_margin_loss  # noqa: E402
from ._functional.margin_losses import cosine_embedding_loss as cosine_embedding_loss  # noqa: E402
from ._functional.margin_losses import ctc_loss as ctc_loss  # noqa: E402
from ._functional.margin_losses import hinge_embedding_loss as hinge_embedding_loss  # noqa: E402
from ._functional.margin_losses import margin_ranking_loss as margin_ranking_loss  # noqa: E402
from ._functional.margin_losses import multi_margin_loss as multi_margin_loss  # noqa: E402
from ._functional.margin_losses import (  # noqa: E402
    multilabel_margin_loss as multilabel_margin_loss,
)
from ._functional.margin_losses import triplet_margin_loss as triplet_margin_loss  # noqa: E402
from ._functional.margin_losses import (  # noqa: E402
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from ._functional.norms import batch_norm as batch_norm  # noqa: E402
from ._functional.norms import group_norm as group_norm  # noqa: E402
from ._functional.norms import instance_norm as instance_norm  # noqa: E402
from ._functional.norms import layer_norm as layer_norm  # noqa: E402
from ._functional.norms import rms_norm as rms_norm  # noqa: E402
from ._functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d  # noqa: E402
from ._functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d  # noqa: E402
from ._functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d  # noqa: E402
from ._functional.pooling import lp_pool1d as lp_pool1d  # noqa: E402
from ._functional.pooling import lp_pool2d as lp_pool2d  # noqa: E402
from ._functional.pooling import lp_pool3d as lp_pool3d  # noqa: E402
from ._functional.pooling import max_pool1d as max_pool1d  # noqa: E402
from ._functional.pooling import max_pool2d as max_pool2d  # noqa: E402
from ._functional.pooling import max_pool3d as max_pool3d  # noqa: E402
from ._functional.sparse import bilinear as bilinear  # noqa: E402
from ._functional.sparse import embedding as embedding  # noqa: E402
from ._functional.sparse import interpolate as interpolate  # noqa: E402
from ._functional.sparse import one_hot as one_hot  # noqa: E402
from ._functional.sparse import (  # noqa: E402
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from ._functional.sparse import upsample as upsample  # noqa: E402
from ._functional.sparse import upsample_bilinear as upsample_bilinear  # noqa: E402
from ._functional.sparse import upsample_nearest as upsample_nearest  # noqa: E402
from ._functional.unpool import embedding_bag as embedding_bag  # noqa: E402
from ._functional.unpool import max_unpool1d as max_unpool1d  # noqa: E402
from ._functional.unpool import max_unpool2d as max_unpool2d  # noqa: E402
from ._functional.unpool import max_unpool3d as max_unpool3d  # noqa: E402

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
