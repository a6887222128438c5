from facade.nn.modules import *
