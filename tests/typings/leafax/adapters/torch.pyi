from adapters.torch import *
