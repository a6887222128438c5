from facade.nn.functional import *
