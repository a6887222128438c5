"""All transforms."""

from ._elementwise_transforms import AbsTransform as AbsTransform
from ._elementwise_transforms import AffineTransform as AffineTransform
from ._elementwise_transforms import ExpTransform as ExpTransform
from ._elementwise_transforms import PowerTransform as PowerTransform
from ._elementwise_transforms import SigmoidTransform as SigmoidTransform
from ._elementwise_transforms import SoftplusTransform as SoftplusTransform
from ._elementwise_transforms import TanhTransform as TanhTransform
from ._elementwise_transforms import _clipped_sigmoid as _clipped_sigmoid
from ._joined_transforms import CatTransform as CatTransform
from ._joined_transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from ._joined_transforms import StackTransform as StackTransform
from ._transform import ComposeTransform as ComposeTransform
from ._transform import IndependentTransform as IndependentTransform
from ._transform import ReshapeTransform as ReshapeTransform
from ._transform import Transform as Transform
from ._transform import _InverseTransform as _InverseTransform
from ._transform import identity_transform as identity_transform
from ._vector_transforms import CorrCholeskyTransform as CorrCholeskyTransform
from ._vector_transforms import LowerCholeskyTransform as LowerCholeskyTransform
from ._vector_transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from ._vector_transforms import SoftmaxTransform as SoftmaxTransform
from ._vector_transforms import StickBreakingTransform as StickBreakingTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]
