"""PyTorch's `torch.optim`, on optax."""

from .._core import missing_names as _missing_names
from . import lr_scheduler as lr_scheduler
from . import optimizer as optimizer
from . import swa_utils as swa_utils
from ._adafactor import Adafactor as Adafactor
from ._base.optimizer import Optimizer as Optimizer
from ._muon import Muon as Muon
from ._rules.adadelta import Adadelta as Adadelta
from ._rules.adagrad import Adagrad as Adagrad
from ._rules.adam import Adam as Adam
from ._rules.adam import AdamW as AdamW
from ._rules.adamax import Adamax as Adamax
from ._rules.asgd import ASGD as ASGD
from ._rules.lbfgs import LBFGS as LBFGS
from ._rules.nadam import NAdam as NAdam
from ._rules.optax import Optax as Optax
from ._rules.radam import RAdam as RAdam
from ._rules.rmsprop import RMSprop as RMSprop
from ._rules.rprop import Rprop as Rprop
from ._rules.sgd import SGD as SGD

__getattr__ = _missing_names.missing("leafax.optim", _missing_names.OPTIM.get)
