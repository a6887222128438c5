"""PyTorch's `torch.optim.lr_scheduler`: the same rates, step by step."""

from ._composed import ChainedScheduler as ChainedScheduler
from ._composed import ReduceLROnPlateau as ReduceLROnPlateau
from ._composed import SequentialLR as SequentialLR
from ._cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from ._cycles import CyclicLR as CyclicLR
from ._cycles import OneCycleLR as OneCycleLR
from ._schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._schedule import LRScheduler as LRScheduler
from ._schedule import _LRScheduler as _LRScheduler
from ._schedules import ConstantLR as ConstantLR
from ._schedules import CosineAnnealingLR as CosineAnnealingLR
from ._schedules import ExponentialLR as ExponentialLR
from ._schedules import LambdaLR as LambdaLR
from ._schedules import LinearLR as LinearLR
from ._schedules import MultiplicativeLR as MultiplicativeLR
from ._schedules import MultiStepLR as MultiStepLR
from ._schedules import PolynomialLR as PolynomialLR
from ._schedules import StepLR as StepLR

__all__ = [  # noqa: RUF022 - in PyTorch's order
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]

for _name in __all__:  # where users find them, and pickles and messages say they are
    globals()[_name].__module__ = __name__
