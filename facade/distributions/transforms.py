"""All transforms."""

from ._transforms.elementwise import AbsTransform as AbsTransform
from ._transforms.elementwise import AffineTransform as AffineTransform
from ._transforms.elementwise import ExpTransform as ExpTransform
from ._transforms.elementwise import PowerTransform as PowerTransform
from ._transforms.elementwise import SigmoidTransform as SigmoidTransform
from ._transforms.elementwise import SoftplusTransform as SoftplusTransform
from ._transforms.elementwise import TanhTransform as TanhTransform
from ._transforms.elementwise import _clipped_sigmoid as _clipped_sigmoid
from ._transforms.joined import CatTransform as CatTransform
from ._transforms.joined import CumulativeDistributionTransform as CumulativeDistributionTransform
from ._transforms.joined import StackTransform as StackTransform
from ._transforms.transform import ComposeTransform as ComposeTransform
from ._transforms.transform import IndependentTransform as IndependentTransform
from ._transforms.transform import ReshapeTransform as ReshapeTransform
from ._transforms.transform import Transform as Transform
from ._transforms.transform import _InverseTransform as _InverseTransform
from ._transforms.transform import identity_transform as identity_transform
from ._transforms.vector import CorrCholeskyTransform as CorrCholeskyTransform
from ._transforms.vector import LowerCholeskyTransform as LowerCholeskyTransform
from ._transforms.vector import PositiveDefiniteTransform as PositiveDefiniteTransform
from ._transforms.vector import SoftmaxTransform as SoftmaxTransform
from ._transforms.vector import StickBreakingTransform as StickBreakingTransform

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
