"""PyTorch's `torch.optim.lr_scheduler`: the same rates, step by step."""

from ._base.composed import ChainedScheduler as ChainedScheduler
from ._base.composed import ReduceLROnPlateau as ReduceLROnPlateau
from ._base.composed import SequentialLR as SequentialLR
from ._schedules.cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from ._schedules.cycles import CyclicLR as CyclicLR
from ._schedules.one_cycle import OneCycleLR as OneCycleLR
from ._schedules.schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._schedules.schedule import LRScheduler as LRScheduler
from ._schedules.schedule import _LRScheduler as _LRScheduler
from ._schedules.schedules import ConstantLR as ConstantLR
from ._schedules.schedules import CosineAnnealingLR as CosineAnnealingLR
from ._schedules.schedules import ExponentialLR as ExponentialLR
from ._schedules.schedules import LambdaLR as LambdaLR
from ._schedules.schedules import LinearLR as LinearLR
from ._schedules.schedules import MultiplicativeLR as MultiplicativeLR
from ._schedules.schedules import MultiStepLR as MultiStepLR
from ._schedules.schedules import PolynomialLR as PolynomialLR
from ._schedules.schedules import StepLR as StepLR

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
