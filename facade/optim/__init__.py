"""PyTorch's `torch.optim`, on optax."""

from .. import _missing
from . import lr_scheduler as lr_scheduler
from . import optimizer as optimizer
from . import swa_utils as swa_utils
from ._adadelta import Adadelta as Adadelta
from ._adafactor import Adafactor as Adafactor
from ._adagrad import Adagrad as Adagrad
from ._adam import Adam as Adam
from ._adam import AdamW as AdamW
from ._adamax import Adamax as Adamax
from ._asgd import ASGD as ASGD
from ._lbfgs import LBFGS as LBFGS
from ._muon import Muon as Muon
from ._nadam import NAdam as NAdam
from ._optax import Optax as Optax
from ._optimizer import Optimizer as Optimizer
from ._radam import RAdam as RAdam
from ._rmsprop import RMSprop as RMSprop
from ._rprop import Rprop as Rprop
from ._sgd import SGD as SGD

__getattr__ = _missing.missing("leafax.optim", _missing.OPTIM.get)
