"""PyTorch's `torch.optim`, on optax."""

import typing as _typing

from .._core import missing_names as _missing_names
from . import lr_scheduler as lr_scheduler
from . import optimizer as optimizer
from ._base.optimizer import Optimizer as Optimizer
from ._rules.adam import Adam as Adam
from ._rules.adam import AdamW as AdamW
from ._rules.sgd import SGD as SGD

if _typing.TYPE_CHECKING:
    from . import swa_utils as swa_utils
    from ._adafactor import Adafactor as Adafactor
    from ._muon import Muon as Muon
    from ._rules.adadelta import Adadelta as Adadelta
    from ._rules.adagrad import Adagrad as Adagrad
    from ._rules.adamax import Adamax as Adamax
    from ._rules.asgd import ASGD as ASGD
    from ._rules.lbfgs import LBFGS as LBFGS
    from ._rules.nadam import NAdam as NAdam
    from ._rules.optax import Optax as Optax
    from ._rules.radam import RAdam as RAdam
    from ._rules.rmsprop import RMSprop as RMSprop
    from ._rules.rprop import Rprop as Rprop
# What most programs do not train with is imported when somebody asks for it.
_LATER = {
    "ASGD": "_rules.asgd", "Adadelta": "_rules.adadelta", "Adafactor": "_adafactor",
    "Adagrad": "_rules.adagrad", "Adamax": "_rules.adamax", "LBFGS": "_rules.lbfgs",
    "Muon": "_muon", "NAdam": "_rules.nadam", "Optax": "_rules.optax", "RAdam": "_rules.radam",
    "RMSprop": "_rules.rmsprop", "Rprop": "_rules.rprop",
}  # fmt: skip
__getattr__ = _missing_names.missing(
    "leafax.optim", _missing_names.OPTIM.get, ("swa_utils",), _LATER
)
__dir__ = _missing_names.listing("leafax.optim", ("swa_utils", *_LATER))
__all__ = _missing_names.public(globals(), ("swa_utils", *_LATER))
