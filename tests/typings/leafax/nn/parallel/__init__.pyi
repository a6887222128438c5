from facade.nn.parallel import *
