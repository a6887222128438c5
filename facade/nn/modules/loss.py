"""PyTorch's `torch.nn.modules.loss`: losses as layers."""

from ._layers.class_loss import CrossEntropyLoss as CrossEntropyLoss
from ._layers.class_loss import CTCLoss as CTCLoss
from ._layers.class_loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from ._layers.class_loss import NLLLoss as NLLLoss
from ._layers.class_loss import NLLLoss2d as NLLLoss2d
from ._layers.loss import BCELoss as BCELoss
from ._layers.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from ._layers.loss import GaussianNLLLoss as GaussianNLLLoss
from ._layers.loss import HuberLoss as HuberLoss
from ._layers.loss import KLDivLoss as KLDivLoss
from ._layers.loss import L1Loss as L1Loss
from ._layers.loss import MSELoss as MSELoss
from ._layers.loss import PoissonNLLLoss as PoissonNLLLoss
from ._layers.loss import SmoothL1Loss as SmoothL1Loss
from ._layers.loss import _Loss as _Loss
from ._layers.loss import _WeightedLoss as _WeightedLoss
from ._layers.margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from ._layers.margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from ._layers.margin_loss import MarginRankingLoss as MarginRankingLoss
from ._layers.margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from ._layers.margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from ._layers.margin_loss import MultiMarginLoss as MultiMarginLoss
from ._layers.margin_loss import SoftMarginLoss as SoftMarginLoss
from ._layers.margin_loss import TripletMarginLoss as TripletMarginLoss
from ._layers.margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss

__all__ = [
    "L1Loss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "MSELoss",
    "BCELoss", "BCEWithLogitsLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SmoothL1Loss",
    "HuberLoss", "SoftMarginLoss", "CrossEntropyLoss", "LinearCrossEntropyLoss",
    "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "CTCLoss",
]  # fmt: skip
